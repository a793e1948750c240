#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a strong order costs, by the share of the requests that ask for it.

WRITEs of 64 B with a window of 64, between two processes on a CPU each, by `urma_perf write_bw --strong PERCENT`: a
request with a strong order waits until all before it have been executed, the others have a relaxed order and wait for
nobody. A round measures every share once, and requests without any order before and after them; it counts if all its
probes say the same distance of the CPUs. Prints medians as rows of a Markdown table. A request's time is what it spends
between posting and completion on average, the window divided by the rate.

usage: measure_order.py [--build DIR] [--rounds 3] [--wire shm] [--cpus 0,1] [--plot FILE.svg]
"""
import argparse
import statistics
import sys

from chart import Axis, Chart, Series
from measure import Bench, rounds_of_one_distance

SHARES = (0, 1, 2, 5, 10, 25, 50, 75, 100)
WINDOW = 64
REQUESTS = {"shm": 200_000, "udp": 20_000}


def measure_round(bench, wire):
    """Rates in M/s by share (None: no order at all), and the distances that were seen."""
    rates, modes, plain = {}, set(), []
    for share in (None, *SHARES, None):
        order = "" if share is None else f" --strong {share}"
        rate, seen = bench.softub(wire, f"write_bw -s 64 -n {REQUESTS[wire]} -t {WINDOW} -Q 1{order}", "rate")
        modes |= seen
        if share is None:
            plain.append(rate)
        else:
            rates[share] = rate
    rates[None] = statistics.mean(plain)
    return rates, modes


def measure(bench, wire, rounds):
    """Medians of the rates by share, and the distance, of the first `rounds` rounds with one distance alone."""
    kept, distance = rounds_of_one_distance(lambda: measure_round(bench, wire), rounds)
    return {share: statistics.median(r[share] for r in kept) for share in kept[0]}, distance, len(kept)


def print_table(rates, wire, distance, rounds):
    print(f"| strong, % of the requests ({wire}, {distance}, {rounds} rounds) | M/s | us a request | rate beside none |")
    print("|---|--:|--:|--:|")
    for share, rate in sorted(rates.items(), key=lambda item: -1 if item[0] is None else item[0]):
        name = "no order" if share is None else share
        print(f"| {name} | {rate:.3f} | {WINDOW / rate:.1f} | {rate / rates[None]:.2f} |")


def plot(rates):
    """The rate beside none, by the share."""
    points = [(share, rates[share] / rates[None]) for share in SHARES]
    return Chart("WRITEs of 64 B, some with a strong order", Axis("requests with a strong order", "%"),
                 Axis("rate beside no order"), [Series("strong", points)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--wire", choices=REQUESTS, default="shm")
    parser.add_argument("--cpus", default="0,1")
    parser.add_argument("--plot")
    options = parser.parse_args()
    bench = Bench(options.build, options.cpus.split(","))
    rates, distance, rounds = measure(bench, options.wire, options.rounds)
    print_table(rates, options.wire, distance, rounds)
    if options.plot:
        plot(rates).write(options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
