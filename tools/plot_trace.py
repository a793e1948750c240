#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the time series that `urma_perf --trace FILE` writes: throughput, and of each path (or of each channel, if none has
several paths) its share of the packets, round trip and window.

usage: plot_trace.py TRACE.csv [-o PREFIX] [--points N]

Writes PREFIX-throughput.svg, PREFIX-share.svg, PREFIX-rtt.svg and PREFIX-window.svg; PREFIX is the name of the trace
without .csv unless -o says otherwise. N points at most are drawn of each series: the mean of the samples between two.
Where a path is not live it has no round trip and a window of 0.
"""
import argparse
import csv
import math
import os
import sys

from chart import Axis, Chart, ChartError, Series

NUMBERS = ("time_s", "gbit_s", "rtt_us", "window", "tx_packets")


class TraceError(Exception):
    """What is wrong with a trace, in a sentence."""


def read(path):
    """The lines of a trace as dictionaries, with numbers where there are some."""
    rows = []
    try:
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if None in row or None in row.values():  # the last line of a program that was killed
                    continue
                rows.append({**row, **{name: float(row[name]) for name in NUMBERS if row[name]}})
    except (KeyError, ValueError) as error:
        raise TraceError(f"{path} is no trace of urma_perf: {error}") from None
    if not rows:
        raise TraceError(f"{path} has no samples")
    return rows


class Grid:
    """Equal parts of the time that a trace covers."""

    def __init__(self, rows, points):
        self.end = rows[-1]["time_s"] or 1
        self.points = max(1, min(points, len({row["time_s"] for row in rows})))

    def means(self, samples):
        """Of (time, value): (middle of a part, mean of its values), without parts that have none."""
        parts = {}
        for time, value in samples:
            part = max(math.ceil(time / self.end * self.points - 1e-9), 1) - 1  # a sample tells of the time before it
            parts.setdefault(part, []).append(value)
        return [((part + 0.5) * self.end / self.points, sum(values) / len(values))
                for part, values in sorted(parts.items())]


def tracks(rows):
    """The lines of each path by its name; those of the channels if no channel has several paths."""
    found = {}
    kind = "path" if any(row["row"] == "path" for row in rows) else "channel"
    several = len({row["tpn"] for row in rows if row["row"] == kind}) > 1
    for row in rows:
        if row["row"] != kind:
            continue
        name = f"{row['local']} > {row['remote']}" if kind == "path" else f"{row['tpn']} to {row['remote']}"
        found.setdefault(f"{row['tpn']}: {name}" if several and kind == "path" else name, []).append(row)
    return found


def deltas(rows):
    """(time, packets since the sample before). A channel that was made anew counts from 0."""
    return [(after["time_s"], max(after["tx_packets"] - before["tx_packets"], 0)) for before, after in zip(rows, rows[1:])]


def shares(by_name, grid):
    """Percent of the packets of all, by name."""
    sent = {name: dict(grid.means(deltas(rows))) for name, rows in by_name.items()}
    sums = {}
    for points in sent.values():
        for time, packets in points.items():
            sums[time] = sums.get(time, 0) + packets
    return [Series(name, [(time, 100 * packets / sums[time]) for time, packets in points.items() if sums[time]])
            for name, points in sent.items()]


def is_live(row):
    return row["live"] != "0"


def charts(rows, points):
    """Those that have something to draw, by the ends of their files' names."""
    grid, by_name, time = Grid(rows, points), tracks(rows), Axis("time", "s")
    speed = [(row["time_s"], row["gbit_s"]) for row in rows if row["row"] == "program"]
    drawn = {"throughput": Chart("Throughput", time, Axis("throughput", "Gb/s"), [Series("program", grid.means(speed))])}
    if not by_name:
        return drawn
    drawn["share"] = Chart("Share of the packets", time, Axis("share", "%"), shares(by_name, grid))
    rtt = [Series(name, grid.means((r["time_s"], r["rtt_us"]) for r in one if is_live(r))) for name, one in by_name.items()]
    window = [Series(name, grid.means((r["time_s"], r["window"] if is_live(r) else 0) for r in one))
              for name, one in by_name.items()]
    drawn["rtt"] = Chart("Round trip", time, Axis("smoothed round trip", "us"), rtt)
    drawn["window"] = Chart("Window", time, Axis("window", "packets"), window)
    return {name: chart for name, chart in drawn.items() if any(series.points for series in chart.series)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("-o", "--output", metavar="PREFIX")
    parser.add_argument("--points", type=int, default=60)
    args = parser.parse_args()
    prefix = args.output or os.path.splitext(args.trace)[0]
    try:
        for name, chart in charts(read(args.trace), args.points).items():
            chart.write(f"{prefix}-{name}.svg")
            print(f"{prefix}-{name}.svg")
    except (ChartError, TraceError, OSError) as error:
        print(f"plot_trace.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
