#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What losses and another order cost in virtual time: loss_table of the simulator as Markdown tables and charts.

The figures are the same on any machine, at each run. measure_loss.py measures the same live, on a slower link.

usage: draw_losses.py [--build DIR] [--plot PREFIX]     (draws PREFIX-goodput.svg and PREFIX-latency.svg)
"""
import argparse
import json
import os
import subprocess
import sys

from chart import Axis, Chart, Series

# As loss_table has them: a READ took up to so many round trips.
ROUND_TRIPS = (1.1, 2, 3, 4, 6, 10, 20, 100)


def name_of(line):
    parts = [f"loss {100 * line['loss']:g} %"] if line["loss"] else []
    parts += [f"reordered within {line['reorder_packets']}"] if line["reorder_packets"] else []
    return ", ".join(parts) or "none"


def is_usual(line):
    """Selective retransmission, and losses that do not halve the window."""
    return not line["go_back_n"] and not line["loss_window"]


def full_name_of(line):
    mode = "Go-Back-N: " if line["go_back_n"] else "window halved by losses: " if line["loss_window"] else ""
    return mode + name_of(line)


def percent(share):
    return f"{100 * share:.1f}"


def print_goodput(large, small):
    print("| faults of each direction | WRITE 64 KiB, Gb/s | % of none | % of ideal | sent again | needless "
          "| WRITE 64 B, M/s | % of none | % of ideal | sent again | needless |")
    print("|---" + "|--:" * 10 + "|")
    for a, b in zip(large, small):
        cells = [full_name_of(a)]
        for line, rate in ((a, a["gigabits_per_second"]), (b, b["gigabits_per_second"] / 0.512)):
            cells += [f"{rate:.2f}", percent(line["of_loss_free"]), percent(line["of_ideal"]), str(line["again"]),
                      str(line["needless"])]
        print(f"| {' | '.join(cells)} |")


def print_latency(single):
    print("| faults of each direction | median, us | 99 %, us | 99.9 %, us | "
          + " | ".join(f"up to {n:g}" for n in ROUND_TRIPS) + " | more |")
    print("|---" + "|--:" * (4 + len(ROUND_TRIPS)) + "|")
    for line in single:
        figures = [f"{line[key]:.1f}" for key in ("p50_us", "p99_us", "p999_us")]
        print(f"| {full_name_of(line)} | {' | '.join(figures + [str(n) for n in line['round_trips']])} |")


def charts(large, small, single):
    """By the ending of their names."""
    def goodput(name, lines, share):
        return Series(name, [(name_of(line), round(100 * share(line), 1)) for line in lines if is_usual(line)])

    def latency(line):
        labels = [f"{n:g}" for n in ROUND_TRIPS] + ["more"]
        return Series(name_of(line), [point for point in zip(labels, line["round_trips"]) if point[1] != 0])

    def reached(line):
        return line["of_loss_free"]

    def ideal(line):
        return line["of_loss_free"] / line["of_ideal"]

    return {
        "goodput": Chart("Goodput at 100 Gb/s and 10 us", Axis("faults of each direction"), Axis("of no fault", "%"),
                         [goodput("WRITE 64 KiB", large, reached), goodput("ideal, 64 KiB", large, ideal),
                          goodput("WRITE 64 B", small, reached), goodput("ideal, 64 B", small, ideal)], "bar"),
        "latency": Chart("READ of 64 B, 20 000 of them", Axis("round trips up to"), Axis("READs", log=True),
                         [latency(line) for line in single if is_usual(line) and not line["reorder_packets"]], "bar"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--plot", metavar="PREFIX")
    options = parser.parse_args()
    table = os.path.join(options.build, "tests/sim/loss_table")
    done = subprocess.run([table, "--json"], stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        print(f"draw_losses.py: {table} ended with status {done.returncode}", file=sys.stderr)
        return 1
    lines = json.loads(done.stdout)
    large, small, single = ([line for line in lines if line["load"] == load] for load in ("large", "small", "single"))
    print_goodput(large, small)
    print()
    print_latency(single)
    if options.plot:
        for ending, chart in charts(large, small, single).items():
            chart.write(f"{options.plot}-{ending}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
