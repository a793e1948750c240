#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What several paths reach in virtual time while one of four is slow and later cut: the curves of path_table as a chart.

The figures are the same on any machine, at each run.

usage: draw_paths.py [--build DIR] FILE
"""
import argparse
import csv
import os
import subprocess
import sys
import tempfile

from chart import Axis, Chart, Series

ALGORITHMS = ("none", "caqm", "ldcp", "dcqcn", "swift")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="directory of the build (build)")
    parser.add_argument("file", help="of the chart")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        data = os.path.join(directory, "curves.csv")
        table = os.path.join(options.build, "tests/bench/path_table")
        subprocess.run([table, "--plot-data", data], check=True, stdout=subprocess.DEVNULL)
        with open(data, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    series = [Series(name, [(float(row["us"]) / 1000, float(row["gbps"])) for row in rows if row["algorithm"] == name])
              for name in ALGORITHMS]
    title = "Four paths: one is slow from 2 to 5 ms, and cut from 8 to 11 ms"
    Chart(title, Axis("time", "ms"), Axis("goodput", "Gb/s"), series).write(options.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
