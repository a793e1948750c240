#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a stalled jetty costs the others of its channel, between two processes on a CPU each.

Eight jettys write, without and with a ninth one whose SEND nobody receives, so that it is asked for again and again, and
whose WRITEs with a strong order wait behind it (`urma_perf write_bw -q 8 --stalled`). A round measures without it, with
it, and without it again; it counts if all its probes say the same distance of the CPUs. Prints medians as rows of a
Markdown table. tests/sim/test_directed_order_isolation.cc measures the same in virtual time.

usage: measure_isolation.py [--build DIR] [--rounds 5] [--cpus 0,1]
"""
import argparse
import statistics
import sys

from measure import Bench, rounds_of_one_distance

REQUESTS = {("shm", 64): 2_000_000, ("shm", 65536): 40_000, ("udp", 64): 100_000, ("udp", 65536): 10_000}


def measure_round(bench, wire, mode, size):
    """Rates in M/s: without the stalled jetty, with it."""
    command = f"write_bw -s {size} -n {REQUESTS[wire, size]} -t 16 -q 8 -m {mode}"
    before, modes = bench.softub(wire, command, "rate")
    beside, more = bench.softub(wire, command + " --stalled", "rate")
    after, last = bench.softub(wire, command, "rate")
    return (statistics.mean((before, after)), beside), modes | more | last


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpus", default="0,1")
    options = parser.parse_args()
    bench = Bench(options.build, options.cpus.split(","))
    print("| eight jettys, 16 WRITEs each | distance (rounds) | alone, M/s | beside a stalled one, M/s | ratio |")
    print("|---|---|--:|--:|--:|")
    for wire, size in REQUESTS:
        for mode in ("rm", "rc"):
            kept, distance = rounds_of_one_distance(lambda: measure_round(bench, wire, mode, size), options.rounds)
            alone, beside = (statistics.median(values) for values in zip(*kept))
            ratio = statistics.median(b / a for a, b in kept)
            print(f"| {mode.upper()}, {size} B, {wire} | {distance} ({len(kept)}) | {alone:.3f} | {beside:.3f} | "
                  f"{ratio:.3f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
