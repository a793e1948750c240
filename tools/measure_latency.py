#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what it costs that latencies inside are measured (docs/telemetry.md): urma_perf between two processes over
shared memory, whose NICs do so or do not, in turn. Of the rounds in which all core-to-core probes say the same distance
the medians are printed, as rows of a Markdown table.

usage: measure_latency.py [--build DIR] [--rounds 9] [--cpus 0,1]
"""
import argparse
import os
import statistics
import sys

from measure import Bench, End

FIGURES = [
    ("WRITE 64 B, median, us", "write_lat -s 64 -n 100000 --to-completion", "latency"),
    ("WRITE 64 B, window 64, M/s", "write_bw -s 64 -n 1000000 -t 64", "rate"),
    ("WRITE 64 KiB, window 64, Gb/s", "write_bw -s 65536 -n 20000 -t 64", "gbps"),
]


def measured(bench, arguments, what, on):
    end = End(dict(os.environ, SOFTUB_PORT_KINDS="shm", SOFTUB_LOG_LATENCY="true" if on else "false"))
    return bench.perf_pair(arguments, what, end, end)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cpus", default="0,1", type=lambda text: text.split(","))
    args = parser.parse_args()
    bench = Bench(args.build, args.cpus)
    print("| | distance | rounds | off | on | on / off |\n|---|---|--:|--:|--:|--:|")
    for name, arguments, what in FIGURES:
        found = {"near": [], "far": []}
        for _ in range(args.rounds):
            (off, before), (on, after) = (measured(bench, arguments, what, on) for on in (False, True))
            if len(before | after) == 1:
                found[(before | after).pop()].append((off, on))
        for distance, pairs in found.items():
            if not pairs:
                continue
            off, on = (statistics.median(values) for values in zip(*pairs))
            print(f"| {name} | {distance} | {len(pairs)} | {off:.2f} | {on:.2f} | {on / off:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
