#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What congestion control does in virtual time: the curves of congestion_table as charts.

The figures are the same on any machine, at each run.

usage: draw_congestion.py [--build DIR] PREFIX     (draws PREFIX-queue.svg and PREFIX-window.svg)
"""
import argparse
import csv
import os
import subprocess
import sys
import tempfile

from chart import Axis, Chart, Series

ALGORITHMS = ("caqm", "ldcp", "dcqcn", "swift")
SHOWN_US = 4000
EACH = 4  # a point of so many


def points_of(rows, algorithm, column):
    mine = [row for row in rows if row["algorithm"] == algorithm and float(row["us"]) <= SHOWN_US]
    return [(float(row["us"]), float(row[column])) for row in mine[::EACH]]


def chart(title, rows, column, axis):
    series = [Series(name, points_of(rows, name, column)) for name in ALGORITHMS]
    return Chart(title, Axis("time", "us"), axis, series)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="directory of the build (build)")
    parser.add_argument("prefix", help="of the names of the charts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        data = os.path.join(directory, "curves.csv")
        table = os.path.join(options.build, "tests/bench/congestion_table")
        subprocess.run([table, "--only", "incast", "--plot-data", data], check=True, stdout=subprocess.DEVNULL)
        with open(data, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    queue = chart("Queue of 16 senders into one", rows, "queue_kb", Axis("queue", "KB"))
    window = chart("Packets in flight of each sender", rows, "in_flight_packets", Axis("in flight", "packets"))
    queue.write(options.prefix + "-queue.svg")
    window.write(options.prefix + "-window.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
