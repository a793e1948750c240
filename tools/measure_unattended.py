#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures programs that spin on their memory and call nothing, or that sleep until something comes.

In both the helper threads of the NICs do the work, and the kernel decides when they run. A round measures each bare
floor once and then each figure of SoftUB once; of the rounds the medians are printed, as rows of a Markdown table, all
times in us. Ping-pongs are given as half a round trip. The distance of the CPUs is printed, but no round is left out
for it: a wake-up costs many times what a cache line does.

usage: measure_unattended.py [--build DIR] [--rounds 5] [--only NAME] [--cpus 0,1]
"""
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from measure import options_of

# name -> arguments of ub_floor
FLOORS = {
    "helper": "helper --unpinned",
    "placement": "placement --unpinned",
    "eventfd": "eventfd --unpinned",
    "eventfd, pinned": "eventfd",
    "udp": "udp --blocking --unpinned",
    "udp, pinned": "udp --blocking",
    "tcp": "tcp --unpinned",
}

# wire, pinned to a CPU each, arguments of urma_perf, floor
FIGURES = [
    ("shm", False, "write_lat -s 8 -n 20000 --wait spin", "helper"),
    ("shm", False, "write_lat -s 8 -n 20000 --wait completion-spin", "helper"),
    ("udp", False, "write_lat -s 8 -n 5000 --wait spin", "udp"),
    ("shm", False, "send_lat -s 64 -n 5000 -e", "eventfd"),
    ("shm", True, "send_lat -s 64 -n 5000 -e", "eventfd, pinned"),
    ("shm", False, "send_lat -s 64 -n 5000 --epoll", "eventfd"),
    ("udp", False, "send_lat -s 64 -n 5000 -e", "udp"),
    ("udp", True, "send_lat -s 64 -n 5000 -e", "udp, pinned"),
    ("udp", False, "send_lat -s 64 -n 5000 --epoll", "udp"),
    ("udp", False, "send_lat -s 1024 -n 5000 --epoll", "udp"),
]


class Bench:
    """Runs the programs; a measurement is (median, 99th percentile) in us."""

    def __init__(self, build, cpus):
        self.perf_program = os.path.join(build, "tools/perf/urma_perf")
        self.floor_program = os.path.join(build, "tests/bench/floor/ub_floor")
        self.cpus = cpus
        self.port = 23000 + os.getpid() % 5000

    def floor(self, arguments):
        command = [self.floor_program, *arguments.split(), "--json", "--seconds", "0.6", "--cpus", ",".join(self.cpus)]
        result = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout)
        rows = [row for row in result["latency"] if "blocking" in row["name"]] or result["latency"]
        return rows[0]["p50_ns"] / 2000, rows[0]["p99_ns"] / 2000

    def perf(self, wire, pinned, arguments):
        self.port += 1
        command = [self.perf_program, *arguments.split(), "-p", str(self.port)]
        environment = dict(os.environ, SOFTUB_PORT_KINDS=wire)
        if wire == "udp":  # the same address as the floor
            environment["SOFTUB_DEVICE_EIDS"] = "127.0.0.1"
        near, far = ([["taskset", "-c", cpu] for cpu in self.cpus] if pinned else ([], []))
        with tempfile.NamedTemporaryFile() as report:
            server = subprocess.Popen([*far, *command], env=environment, stdout=subprocess.DEVNULL)
            try:
                time.sleep(0.5)
                subprocess.run([*near, *command, "--json", report.name, "127.0.0.1"], env=environment,
                               stdout=subprocess.DEVNULL, timeout=120, check=True)
                server.wait(20)
            finally:
                server.kill()
                server.wait()
            row = json.load(open(report.name, encoding="utf-8"))["results"][0]
        return row["t_typical_us"], row["p99_us"]


def name_of(figure):
    """Those that are measured with and without pinned threads share one."""
    return f"{figure[0]} {figure[2]}"


def median_of(runs):
    return [statistics.median(column) for column in zip(*runs)]


def main():
    options = options_of(__doc__, [name_of(figure) for figure in FIGURES])
    bench = Bench(options.build, options.cpus.split(","))
    figures = [figure for figure in FIGURES if options.only in name_of(figure)]
    floors, found, failed = collections.defaultdict(list), collections.defaultdict(list), False
    for _ in range(options.rounds):
        for name in {f[3] for f in figures} | {"placement", "tcp"}:
            floors[name].append(bench.floor(FLOORS[name]))
        for figure in figures:
            try:
                found[figure].append(bench.perf(*figure[:3]))
            except (subprocess.SubprocessError, OSError, KeyError, ValueError) as error:
                print(f"{figure[2]}: {error!r}", file=sys.stderr)
                failed = True
    print("| wire | urma_perf | p50 | p99 | floor | p50 | p99 | ratio of p50 |")
    print("|---|---|---|---|---|---|---|---|")
    for figure, runs in ((f, found[f]) for f in figures if found[f]):
        wire, pinned, arguments, name = figure
        (p50, p99), (raw50, raw99) = median_of(runs), median_of(floors[name])
        where = ", pinned" if pinned else ""
        print(f"| {wire}{where} | `{arguments}` | {p50:.1f} | {p99:.0f} | `{FLOORS[name]}` | {raw50:.1f} | {raw99:.0f} | "
              f"{p50 / raw50:.1f} |")
    for name in ("placement", "tcp"):
        p50, p99 = median_of(floors[name])
        print(f"| | | | | `{FLOORS[name]}` | {p50:.1f} | {p99:.0f} | |")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
