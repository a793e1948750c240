#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what docs/performance.md states: each figure of SoftUB beside the raw floor of the same run.

A round measures the floor, then SoftUB, then the floor again. It counts only if every core-to-core probe in it says
the same distance (near or far), because that distance changes by itself and everything scales with it. Of the
rounds of one distance the medians are printed, as rows of a Markdown table.

usage: measure.py [--build DIR] [--rounds 5] [--only NAME] [--cpus 0,1]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import typing

# name, wire, urma_perf arguments, what of its result, floor arguments, what of its result
FIGURES = [
    ("READ 64 B, shm", "shm", "read_lat -s 64 -n 200000", "latency", "spsc", "latency"),
    ("WRITE 64 B, shm", "shm", "write_lat -s 64 -n 200000 --to-completion", "latency", "spsc", "latency"),
    ("WRITE 64 B there and back, shm", "shm", "write_lat -s 64 -n 200000", "pingpong", "spsc", "latency"),
    ("SEND 64 B there and back, shm", "shm", "send_lat -s 64 -n 200000", "pingpong", "spsc", "latency"),
    ("FADD 8 B, shm", "shm", "atomic_lat -s 8 -n 200000", "latency", "spsc", "latency"),
    ("READ 64 B, target blocked, shm", "shm", "read_lat -s 64 -n 50000 --target-mode block", "latency", "spsc", "latency"),
    ("READ 64 B, target spins on memory, shm", "shm", "read_lat -s 64 -n 50000 --target-mode spin-memory", "latency",
     "spsc", "latency"),
    ("WRITE 64 B, window 64, shm", "shm", "write_bw -s 64 -n 2000000 -t 64", "rate", "spsc", "latency"),
    ("WRITE 64 KiB, window 64, shm", "shm", "write_bw -s 65536 -n 50000 -t 64", "gbps", "spsc-bw", "gbps"),
    ("READ 64 KiB, window 64, shm", "shm", "read_bw -s 65536 -n 50000 -t 64", "gbps", "spsc-bw", "gbps"),
    ("READ 64 B, UDP", "udp", "read_lat -s 64 -n 100000", "latency", "udp --unconnected", "latency"),
    ("READ 64 B, UDP (floor: connected)", "udp", "read_lat -s 64 -n 100000", "latency", "udp", "latency"),
    ("WRITE 64 B, UDP", "udp", "write_lat -s 64 -n 30000 --to-completion", "latency", "udp --unconnected", "latency"),
    ("WRITE 64 B there and back, UDP", "udp", "write_lat -s 64 -n 30000", "pingpong", "udp --unconnected", "latency"),
    ("READ 64 B, target blocked, UDP", "udp", "read_lat -s 64 -n 5000 --target-mode block", "latency",
     "udp --unconnected", "latency"),
    ("WRITE 64 KiB, window 16, UDP, 4 KiB packets", "udp", "write_bw -s 65536 -n 20000 -t 16", "gbps",
     "udp --bw --size 4144", "gbps"),
    ("WRITE 64 KiB, window 16, UDP, 1 KiB packets", "udp-1k", "write_bw -s 65536 -n 10000 -t 16", "gbps",
     "udp --bw --size 1072", "gbps"),
]

DPDK_FLOORS = ("memif", "af_packet", "af_xdp")


class End(typing.NamedTuple):
    """Where a program of a pair runs: its environment, what its command line begins with, and how to reach its peer."""
    environment: dict
    command: list = []
    peer: str = "127.0.0.1"


class Bench:
    """The programs, each on its CPU. floor() and softub() return a value and the distances that were seen."""

    def __init__(self, build, cpus):
        self.perf = os.path.join(build, "tools/perf/urma_perf")
        self.floor_directory = os.path.join(build, "tests/bench/floor")
        self.build = build
        self.cpus = cpus
        self.floor_seconds = 0.6
        self.port = 23000 + os.getpid() % 5000

    def floor(self, arguments, what):
        return self.run_floor(arguments.split(), what)

    @staticmethod
    def run(command, **options):
        """What it prints. Drivers are talkative: of their complaints only those of a failure are shown."""
        out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        if out.returncode != 0:
            raise ValueError(f"{' '.join(command)}: {out.stderr.strip()[-1000:]}")
        return out.stdout

    def run_floor(self, arguments, what, command=()):
        """What of its result is wanted: "latency", "rate", "gbps", or "all" of it."""
        program = "ub_floor_dpdk" if arguments[0] in DPDK_FLOORS else "ub_floor"
        result = json.loads(self.run([*command, os.path.join(self.floor_directory, program), *arguments, "--json",
                                      "--seconds", str(self.floor_seconds), "--cpus", ",".join(self.cpus)], timeout=60))
        modes = {result["c2c_before"]["mode"], result["c2c_after"]["mode"]}
        if what == "all":
            return result, modes
        if what == "latency":
            return result["latency"][0]["p50_ns"] / 1000, modes
        row = result["rate"][0]
        return row["gbit_per_s"] if what == "gbps" else row["msgs_per_s"] / 1e6, modes

    def softub(self, wire, arguments, what):
        environment = dict(os.environ, SOFTUB_PORT_KINDS=wire.split("-")[0])
        if wire != "shm":  # same address as the floor
            environment.update(SOFTUB_DEVICE_EIDS="127.0.0.1", SOFTUB_PORT_MTU="1024" if wire == "udp-1k" else "4096")
        return self.perf_pair(arguments, what, End(environment), End(environment))

    def perf_pair(self, arguments, what, near, far, program=None):
        """urma_perf, or a program that measures in its manner, on both CPUs, the one that measures on the first.
        What of its result is wanted: "latency", "pingpong", "rate", "gbps", "row", which is all of that, or "rows":
        those of all sizes."""
        self.port += 1
        command = [program or self.perf, *arguments.split(), "-p", str(self.port)]
        with tempfile.NamedTemporaryFile() as report:
            server = subprocess.Popen([*far.command, "taskset", "-c", self.cpus[1], *command], env=far.environment,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                time.sleep(1.5 if near.command else 0.5)
                self.run([*near.command, "taskset", "-c", self.cpus[0], *command, "--json", report.name, near.peer],
                         env=near.environment, timeout=120)
                server.wait(20)
            finally:
                server.kill()
            result = json.load(open(report.name, encoding="utf-8"))
        row = result["results"][0]
        modes = {result["c2c_before"]["mode"], result["c2c_after"]["mode"]}
        if what == "rows":
            return result["results"], modes
        if what == "row":
            return row, modes
        if what == "latency":
            return row["t_typical_us"], modes
        if what == "pingpong":  # one way, as perftest prints it: there and back is twice that
            return 2 * row["t_typical_us"], modes
        if what == "rate":
            return row["msg_rate_mpps"], modes
        return row["bw_average_mib_s"] * 8 * 1.048576 / 1000, modes


def measure(bench, figure, rounds):
    name, wire, perf, what, floor, floor_what = figure
    found = {"near": [], "far": []}
    for _ in range(4 * rounds):
        before, modes = bench.floor(floor, floor_what)
        value, more = bench.softub(wire, perf, what)
        after, last = bench.floor(floor, floor_what)
        modes = modes | more | last
        if len(modes) == 1:
            found[modes.pop()].append((value, (before + after) / 2))
        if max(len(runs) for runs in found.values()) >= rounds:
            break
    if not any(found.values()):
        print(f"{name}: no round in which all probes said the same distance; repeat it", file=sys.stderr)
    unit = {"latency": "us", "pingpong": "us", "rate": "M/s", "gbps": "Gb/s"}[what]
    floor_unit = {"latency": "us", "pingpong": "us", "rate": "M/s", "gbps": "Gb/s"}[floor_what]
    for mode, runs in found.items():
        if not runs:
            continue
        value = statistics.median(v for v, _ in runs)
        raw = statistics.median(f for _, f in runs)
        ratio = "" if unit != floor_unit else f"{value / raw:.2f}"
        print(f"| {name} | {mode} ({len(runs)}) | {value:.2f} {unit} | {raw:.2f} {floor_unit} (`{floor}`) | {ratio} | "
              f"`{perf}` |", flush=True)


class Unsteady(SystemExit):
    """The distance of the CPUs changed in every round. Ends the program, with the cause, unless it is caught."""


def rounds_of_one_distance(measure_round, rounds):
    """What the first `rounds` calls returned in which all probes said the same distance, and that distance.
    Raises Unsteady."""
    found = {}
    for _ in range(4 * rounds):
        values, modes = measure_round()
        if len(modes) != 1:
            continue
        distance = modes.pop()
        kept = found.setdefault(distance, [])
        kept.append(values)
        if len(kept) == rounds:
            break
    if not found:
        raise Unsteady("no round in which all probes said the same distance; repeat it")
    distance, kept = max(found.items(), key=lambda item: len(item[1]))
    return kept, distance


HEADER = "| figure | distance (rounds) | SoftUB, median | floor, median | ratio | urma_perf |"


def options_of(description, names, rounds=5, plot=False):
    """What every measurement of figures with these names can be told, one that draws also where to. An error if --only
    leaves none of them."""
    listed = "".join(f"\n  {name}" for name in names)
    parser = argparse.ArgumentParser(description=description, epilog=f"figures:{listed}",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--only", default="", metavar="NAME", help="only the figures whose names contain this")
    parser.add_argument("--cpus", default="0,1")
    if plot:
        parser.add_argument("--plot", metavar="FILE.svg")
    options = parser.parse_args()
    if not any(options.only in name for name in names):
        parser.error(f"--only {options.only}: no figure has a name that contains this, but there are:{listed}")
    return options


def main(figures=FIGURES, make_bench=Bench, description=__doc__, header=HEADER):
    options = options_of(description, [figure[0] for figure in figures])
    bench = make_bench(options.build, options.cpus.split(","))
    print(header)
    print("|---|---|---|---|---|---|")
    for figure in figures:
        if options.only in figure[0]:
            try:
                measure(bench, figure, options.rounds)
            except (subprocess.SubprocessError, OSError, KeyError, ValueError) as error:
                print(f"{figure[0]}: {error!r}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
