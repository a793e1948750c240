#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The compact transport (CTP) beside RTP: READs and WRITEs of 64 B between two processes on a CPU each, by urma_perf.

A round measures RTP, CTP and RTP again, and counts if all its probes say the same distance of the CPUs. Prints medians
as rows of a Markdown table, and between which values the middle half of the rounds lies: a full window of WRITEs has
two rates, of which a run takes one, so that a few rounds say little about it. The programs are the same;
`transport.compact` decides which transport serves. How many instructions and packets that takes is counted by
tests/bench/instructions.

usage: measure_compact.py [--build DIR] [--rounds 15] [--only NAME] [--cpus 0,1]
"""
import os
import statistics
import sys

from measure import Bench, Unsteady, options_of, rounds_of_one_distance
from measure_daemon import DaemonBench

FIGURES = [(f"{operation}, window {window}, {wire}", wire, perf, what)
           for wire in ("shm", "memif")
           for operation, window, perf, what in (
               ("READ 64 B", 1, "read_lat -s 64 -n 200000", "latency"),
               ("WRITE 64 B", 1, "write_lat -s 64 -n 200000 --to-completion", "latency"),
               ("READ 64 B", 64, "read_bw -s 64 -n 1000000 -t 64", "rate"),
               ("WRITE 64 B", 64, "write_bw -s 64 -n 1000000 -t 64", "rate"))]
UNITS = {"latency": "us", "rate": "M/s"}


class CompactBench(DaemonBench):
    def transport(self, name, wire, arguments, what):
        """A value, and the distances that were seen."""
        os.environ["SOFTUB_TRANSPORT_COMPACT"] = "true" if name == "CTP" else "false"
        return self.dpdk(wire, arguments, what) if wire == "memif" else Bench.softub(self, wire, arguments, what)


def measure_round(bench, wire, perf, what):
    """What CTP and RTP took, and the distances that were seen."""
    (before, seen), (compact, more), (after, last) = (bench.transport(name, wire, perf, what)
                                                      for name in ("RTP", "CTP", "RTP"))
    return (compact, (before + after) / 2), seen | more | last


def median_and_middle(values, unit):
    """The median, and where the middle half of at least four values lies."""
    median = f"{statistics.median(values):.2f} {unit}"
    if len(values) < 4:
        return median
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return f"{median} ({first:.2f} to {third:.2f})"


def main():
    options = options_of(__doc__, [figure[0] for figure in FIGURES], rounds=15)
    bench = CompactBench(options.build, options.cpus.split(","))
    print("| figure | distance (rounds) | CTP, median (middle half) | RTP, median (middle half) | ratio | urma_perf |")
    print("|---|---|--:|--:|--:|---|")
    for name, wire, perf, what in FIGURES:
        if options.only not in name:
            continue
        try:
            kept, distance = rounds_of_one_distance(lambda: measure_round(bench, wire, perf, what), options.rounds)
        except Unsteady as cause:
            print(f"{name}: {cause}", file=sys.stderr)
            continue
        compact, reliable = zip(*kept)
        print(f"| {name} | {distance} ({len(kept)}) | {median_and_middle(compact, UNITS[what])} | "
              f"{median_and_middle(reliable, UNITS[what])} | "
              f"{statistics.median(compact) / statistics.median(reliable):.2f} | `{perf}` |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
