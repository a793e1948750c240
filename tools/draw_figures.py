#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What algorithms reach in virtual time: figures of congestion_table and path_table as bars.

The figures are the same on any machine, at each run.

usage: draw_figures.py [--build DIR] DIRECTORY     (draws congestion-short.svg and paths-many.svg there)
"""
import argparse
import json
import os
import subprocess
import sys

from chart import Axis, Chart, Series


def figures(build, program, *arguments):
    path = os.path.join(build, "tests/bench", program)
    return json.loads(subprocess.run([path, "--json", *arguments], check=True, capture_output=True).stdout)


def bars(title, rows, axis, columns):
    series = [Series(name, [(row["algorithm"], value(row)) for row in rows]) for name, value in columns]
    return Chart(title, Axis("algorithm"), axis, series, "bar")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="directory of the build (build)")
    parser.add_argument("directory", help="of the charts")
    options = parser.parse_args()
    short = figures(options.build, "congestion_table", "--only", "short")
    bars("1000 short WRITEs among long ones", short, Axis("latency", "us", log=True),
         [("median", lambda row: row["p50_us"]), ("p99", lambda row: row["p99_us"])]
         ).write(os.path.join(options.directory, "congestion-short.svg"))
    many = figures(options.build, "path_table", "--paths", "64", "--window", "2048", "--jitter", "5000")
    bars("64 paths with 5 us of jitter, and one ideal path", many, Axis("goodput", "Gb/s"),
         [("64 paths", lambda row: row["gbps"]), ("one path", lambda row: row["gbps"] / row["of_one_path"])]
         ).write(os.path.join(options.directory, "paths-many.svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
