#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What congestion control and several paths do in virtual time: figures of congestion_table and path_table as charts.

They are the same on any machine, at each run.

usage: draw_congestion.py [--build DIR] DIRECTORY

Draws there congestion-queue.svg, congestion-window.svg, congestion-short.svg, paths-cut.svg and paths-many.svg.
"""
import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile

from chart import Axis, Chart, Series

ALGORITHMS = ("caqm", "ldcp", "dcqcn", "swift")
SHOWN_US = 4000
EACH = 4  # a point of so many of an incast


def program(options, name):
    return os.path.join(options.build, "tests/bench", name)


def curves(options, name, *arguments):
    """The rows that a program writes for plots."""
    with tempfile.TemporaryDirectory() as directory:
        data = os.path.join(directory, "curves.csv")
        subprocess.run([program(options, name), *arguments, "--plot-data", data], check=True, stdout=subprocess.DEVNULL)
        with open(data, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


def figures(options, name, *arguments):
    printed = subprocess.run([program(options, name), "--json", *arguments], check=True, capture_output=True).stdout
    return json.loads(printed)


def lines(title, rows, algorithms, x, y):
    """`x` and `y`: an axis, and its value in a row."""
    (x_axis, x_of), (y_axis, y_of) = x, y
    series = [Series(name, [(x_of(row), y_of(row)) for row in rows if row["algorithm"] == name]) for name in algorithms]
    return Chart(title, x_axis, y_axis, series)


def bars(title, rows, axis, columns):
    series = [Series(name, [(row["algorithm"], value(row)) for row in rows]) for name, value in columns]
    return Chart(title, Axis("algorithm"), axis, series, "bar")


def charts(options):
    incast = curves(options, "congestion_table", "--only", "incast")
    shown = [row for name in ALGORITHMS
             for row in [r for r in incast if r["algorithm"] == name and float(r["us"]) <= SHOWN_US][::EACH]]
    time = Axis("time", "us"), lambda row: float(row["us"])
    yield "congestion-queue", lines("Queue of 16 senders into one", shown, ALGORITHMS, time,
                                    (Axis("queue", "KB"), lambda row: float(row["queue_kb"])))
    yield "congestion-window", lines("Packets in flight of each sender", shown, ALGORITHMS, time,
                                     (Axis("in flight", "packets"), lambda row: float(row["in_flight_packets"])))
    short = figures(options, "congestion_table", "--only", "short")
    yield "congestion-short", bars("1000 short WRITEs among long ones", short, Axis("latency", "us", log=True),
                                   [("median", lambda row: row["p50_us"]), ("p99", lambda row: row["p99_us"])])
    yield "paths-cut", lines("Four paths: one is slow from 2 to 5 ms, and cut from 8 to 11 ms",
                             curves(options, "path_table"), ("none", *ALGORITHMS),
                             (Axis("time", "ms"), lambda row: float(row["us"]) / 1000),
                             (Axis("goodput", "Gb/s"), lambda row: float(row["gbps"])))
    many = figures(options, "path_table", "--paths", "64", "--window", "2048", "--jitter", "5000")
    yield "paths-many", bars("64 paths with 5 us of jitter, and one ideal path", many, Axis("goodput", "Gb/s"),
                             [("64 paths", lambda row: row["gbps"]),
                              ("one path", lambda row: row["gbps"] / row["of_one_path"])])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="directory of the build (build)")
    parser.add_argument("directory", help="of the charts")
    options = parser.parse_args()
    for name, chart in charts(options):
        chart.write(os.path.join(options.directory, name + ".svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
