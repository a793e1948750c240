#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads and stores of remote memory, beside READs, WRITEs and raw floors of the same run, and whether they keep their
limits.

A figure is a list of programs that run one after the other in each round: urma_perf between two processes on a CPU
each, floors, and benches of one process. A round counts if all its probes say the same distance of the CPUs. Prints a
row of a Markdown table for each comparison: medians over the rounds that count, their ratio, the limit, and whether it
is met. A runtime that swaps pages over READs is taken to need a READ of 4 KiB for each page that is not there, and
nothing else.

--plot draws the figure "sizes".

usage: measure_aperture.py [--build DIR] [--rounds 5] [--only NAME] [--cpus 0,1] [--plot FILE.svg]
"""
import json
import os
import re
import statistics
import subprocess
import sys
import typing

from benchmark.goals import Goal, at_least, at_least_times, at_most, at_most_times
from chart import Axis, Chart, Series
from measure import Bench, Unsteady, options_of, rounds_of_one_distance
from measure_daemon import DaemonBench

ONE_PROCESS = "one CPU"  # the distance of a bench that needs no other
SIZES = [8 << i for i in range(14)]  # to 64 KiB
CACHES = (10, 50, 90)  # percent of a window
SECONDS = 1  # of each run of urma_perf
PLOTTED = "sizes"


# ---- programs ------------------------------------------------------------------------------------------------------
# Each returns its values by name, times in us, and the distances that were seen.


class ApertureBench(DaemonBench):
    COLUMNS = {"p50": "t_typical_us", "p99": "p99_us", "mean": "t_avg_us", "rate": "msg_rate_mpps",
               "MiB/s": "bw_average_mib_s"}

    def urma_perf(self, wire, arguments):
        row, modes = self.dpdk(wire, arguments, "row") if wire == "memif" else Bench.softub(self, wire, arguments, "row")
        return {name: row[key] for name, key in self.COLUMNS.items() if key in row}, modes

    def echo(self, arguments):
        p50, modes = self.floor(arguments, "latency")
        return {"p50": p50}, modes

    def window_faults(self):
        return faults_of(self.run_alone("bench_window")), {ONE_PROCESS}

    def traps(self):
        return traps_of(self.run_alone("bench_uncached")), {ONE_PROCESS}

    def cache_hits(self):
        return cpu_times_of(self.run_alone("bench_line_cache", "--benchmark_format=json")), {ONE_PROCESS}

    def same_host(self):
        return same_host_of(self.run_alone("bench_shared")), {ONE_PROCESS}

    def run_alone(self, program, *arguments):
        program = os.path.join(self.build, "tests/bench", program)
        return self.run(["taskset", "-c", self.cpus[0], program, *arguments], timeout=300)


def faults_of(out):
    """What bench_window prints: "read, missing" -> p50, and the same with "bare ..." and "... p99"."""
    values = {}
    for line in out.splitlines():
        if found := re.fullmatch(r"(\S.*?)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)", line):
            name, *times = found.groups()
            places = ("bare {}", "bare {} p99", "{}", "{} p99")
            values.update({place.format(name): float(time) for place, time in zip(places, times)})
    return values


def traps_of(out):
    """What bench_uncached prints, in us: "load, 8 bytes" -> p50, "load, 8 bytes p99"."""
    values = {}
    for name, p50, p99 in re.findall(r"^(\S.*?)\s+p50\s+(\d+)\s+p99\s+(\d+)", out, re.MULTILINE):
        values[name], values[f"{name} p99"] = int(p50) / 1000, int(p99) / 1000
    return values


def cpu_times_of(out):
    """What Google Benchmark prints as JSON: name -> CPU time, in ns."""
    return {row["name"]: row["cpu_time"] for row in json.loads(out)["benchmarks"]}


def same_host_of(out):
    """What bench_shared prints, in ns."""
    found = re.search(r"local ([\d.]+) ns, shared window ([\d.]+) ns", out)
    return {"local": float(found[1]), "window": float(found[2])}


def perf(wire, arguments):
    return lambda bench: bench.urma_perf(wire, f"{arguments} -D {SECONDS}")


def echo(arguments):
    return lambda bench: bench.echo(arguments)


# ---- rows ----------------------------------------------------------------------------------------------------------


class Row(typing.NamedTuple):
    name: str
    unit: str
    value: typing.Callable  # of the results of a round, by program
    beside_name: str = ""
    beside: typing.Callable = None
    limit: Goal = None


class Figure(typing.NamedTuple):
    name: str
    programs: dict
    rows: list


def of(program, name="p50"):
    return lambda results: results[program][name]


def explicit(target, option):
    """Loads and stores of 64 B, whatever the application of the target does."""
    mode = f" --target-mode {option}" if option else ""
    where = f"64 B, target {target}"
    return Figure(f"explicit, target {target}", {
        "echo": echo("spsc"),
        "read": perf("shm", f"read_lat -s 64{mode}"),
        "load": perf("shm", f"load_lat -s 64 --path lane{mode}"),
        "write": perf("shm", f"write_lat -s 64 --to-completion{mode}"),
        "store": perf("shm", f"store_lat -s 64 --path lane{mode}"),
        "reads": perf("shm", f"read_bw -s 64 -t 16{mode}"),
        "loads": perf("shm", f"load_bw -s 64 -t 16 --path lane{mode}"),
        "stores": perf("shm", f"store_bw -s 64 -t 16 --path lane{mode}"),
    }, [
        Row(f"load {where}", "us", of("load"), "READ", of("read"), at_most_times(0.85)),
        Row(f"load {where}", "us", of("load"), "SPSC echo", of("echo"), at_most_times(2.5)),
        Row(f"load {where}, p99", "us", of("load", "p99"), "READ, p99", of("read", "p99")),
        Row(f"store and fence {where}", "us", of("store"), "WRITE", of("write")),
        Row(f"load {where}, 16 in flight", "M/s", of("loads", "rate"), "READ", of("reads", "rate"), at_least_times(1.5)),
        Row(f"load {where}, 16 in flight", "M/s", of("loads", "rate"), limit=at_least(8, "M/s")),
        Row(f"store {where}, without fences", "M/s", of("stores", "rate")),
    ])


def over_wire(wire, floor, factor, path):
    """What has no lane."""
    by_path = f" --path {path}"
    return Figure(f"explicit, {wire}", {
        "echo": echo(floor),
        "read": perf(wire.lower(), "read_lat -s 64"),
        "load": perf(wire.lower(), "load_lat -s 64" + by_path),
        "queue": perf(wire.lower(), "load_lat -s 64 --path queue"),
        "store": perf(wire.lower(), "store_lat -s 64" + by_path),
        "loads": perf(wire.lower(), "load_bw -s 64 -t 16" + by_path),
    }, [
        Row(f"load 64 B, {wire}", "us", of("load"), f"echo (`{floor}`)", of("echo"), at_most_times(factor)),
        Row(f"load 64 B, {wire}", "us", of("load"), "READ", of("read")),
        *([Row(f"load 64 B, {wire}", "us", of("load"), "load by a queue", of("queue"))] if path != "queue" else []),
        Row(f"load 64 B, {wire}, 16 in flight", "M/s", of("loads", "rate")),
        Row(f"store and fence 64 B, {wire}", "us", of("store"), f"echo (`{floor}`)", of("echo")),
    ])


def sizes():
    def steepest(results):
        return max(results[f"load {2 * n}"]["p50"] / results[f"load {n}"]["p50"] for n in SIZES[:-1])

    programs = {f"{verb} {n}": perf("shm", f"{verb}_lat -s {n}{path}")
                for n in SIZES for verb, path in (("read", ""), ("load", " --path lane"))}
    return Figure(PLOTTED, programs, [
        *(Row(f"load {size_text(n)}", "us", of(f"load {n}"), "READ", of(f"read {n}")) for n in SIZES),
        Row("load, the steepest step to twice the size", "times", steepest, limit=at_most(2.5, "times")),
    ])


def size_text(n):
    return f"{n} B" if n < 1024 else f"{n // 1024} KiB"


def cached():
    def fault_limit(results):
        return results["read"]["p50"] + 5

    def swapped(percent):
        return lambda results: results["read"]["mean"] * (100 - percent) / 100

    random = {f"cache {c}": perf("shm", f"map_lat -s 16m --cache {c}") for c in CACHES}
    return Figure("mapped, cached", {
        "read": perf("shm", "read_lat -s 4096"),
        "fault": perf("shm", "map_lat -s 16m --prefetch 0"),
        "one by one": perf("shm", "read_bw -s 4096 -t 1"),
        "eight": perf("shm", "read_bw -s 4096 -t 8"),
        "scan": perf("shm", "map_bw -s 16m --prefetch 0"),
        "scan ahead": perf("shm", "map_bw -s 16m"),
        **random,
    }, [
        Row("cold page", "us", of("fault"), "READ 4 KiB and 5 us", fault_limit, at_most_times(1)),
        Row("cold page, p99", "us", of("fault", "p99"), "READ 4 KiB and 5 us", fault_limit, at_most_times(2)),
        Row("cold page", "us", of("fault"), "READ 4 KiB", of("read")),
        Row("scan, no prefetch", "MiB/s", of("scan", "MiB/s"), "READs of 4 KiB, one by one", of("one by one", "MiB/s")),
        Row("scan, prefetch", "MiB/s", of("scan ahead", "MiB/s"), "READs of 4 KiB, 8 in flight", of("eight", "MiB/s")),
        Row("scan, prefetch", "MiB/s", of("scan ahead", "MiB/s"), "scan, no prefetch", of("scan", "MiB/s")),
        *(Row(f"random words, cache {c} %, mean", "us", of(f"cache {c}", "mean"), "READ 4 KiB for each miss", swapped(c))
          for c in CACHES),
    ])


FAULTS = ("read, missing", "write, clean, first twin in its slot", "write, clean", "write, missing",
          "read, missing, a clean page goes", "write, missing, a dirty page goes")


def faults():
    """Without a wire: the remote memory answers at once."""
    return Figure("faults", {"window": ApertureBench.window_faults}, [
        Row(f"fault: {name}{',' * bool(more)}{more}", "us", of("window", f"{name}{more}"), "bare userfaultfd fault",
            of("window", f"bare {name}{more}")) for name in FAULTS for more in ("", " p99")])


def uncached():
    trap = "SIGSEGV, the handler steps over it"
    return Figure("mapped, uncached", {
        "traps": ApertureBench.traps,
        "load": perf("shm", "load_lat -s 8 --path lane"),
        "over the wire": perf("shm", "map_lat --way uncached -s 64k"),
    }, [
        Row("trapped load, memory that answers at once", "us", of("traps", "load, 8 bytes"), "SIGSEGV", of("traps", trap)),
        Row("trapped load, memory that answers at once, p99", "us", of("traps", "load, 8 bytes p99"), "SIGSEGV, p99",
            of("traps", f"{trap} p99")),
        Row("trapped store, memory that answers at once", "us", of("traps", "store, 8 bytes"), "SIGSEGV",
            of("traps", trap)),
        Row("trapped load, shm", "us", of("over the wire"), "SIGSEGV and a load of 8 B",
            lambda results: results["traps"][trap] + results["load"]["p50"]),
    ])


def line_cache():
    """Times of the CPU, by benches of one process."""
    access = {"in_a_row": "in a row", "anywhere": "anywhere"}
    return Figure("line cache", {"hits": ApertureBench.cache_hits}, [
        row for place, where in access.items() for row in (
            Row(f"line cache, hit, {where}", "ns", of("hits", f"hit/{place}"), "load of an array",
                of("hits", f"array/{place}"), at_most(5, "ns")),
            Row(f"line cache, store that hits, {where}", "ns", of("hits", f"store_hit/{place}"), "load of an array",
                of("hits", f"array/{place}")))])


def same_host():
    return Figure("same host", {"chase": ApertureBench.same_host}, [
        Row("load of memory mapped within one host", "ns", of("chase", "window"), "local DRAM", of("chase", "local"),
            at_most_times(1.05)),
    ])


FIGURES = [
    explicit("polls", ""),
    explicit("blocked", "block"),
    explicit("spins on memory", "spin-memory"),
    over_wire("UDP", "udp --unconnected", 1.2, "queue"),
    over_wire("memif", "memif", 1.5, "frames"),
    sizes(),
    cached(),
    faults(),
    uncached(),
    line_cache(),
    same_host(),
]


# ---- measuring -----------------------------------------------------------------------------------------------------


def measure_round(bench, figure):
    results, seen = {}, set()
    for name, run in figure.programs.items():
        results[name], modes = run(bench)
        seen |= modes
    return results, seen - {ONE_PROCESS} or seen


def number(value):
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def print_row(row, distance, rounds):
    value = statistics.median(row.value(results) for results in rounds)
    beside = statistics.median(row.beside(results) for results in rounds) if row.beside else None
    met = "" if row.limit is None else "yes" if row.limit.is_met(value, beside) else "**no**"
    print(f"| {row.name} | {distance} ({len(rounds)}) | {number(value)} {row.unit} | {row.beside_name} | "
          f"{'' if beside is None else f'{number(beside)} {row.unit}'} | "
          f"{'' if beside is None else f'{value / beside:.2f}'} | {row.limit.text if row.limit else ''} | {met} |",
          flush=True)


def chart_of(rounds):
    def series(name, verb):
        return Series(name, [(str(n) if n < 1024 else f"{n // 1024}K",
                              statistics.median(results[f"{verb} {n}"]["p50"] for results in rounds)) for n in SIZES])

    return Chart("Loads and READs over shared memory", Axis("size", "bytes"), Axis("time", "us", log=True),
                 [series("load", "load"), series("READ", "read")])


def measure(bench, figure, options):
    rounds, distance = rounds_of_one_distance(lambda: measure_round(bench, figure), options.rounds)
    for row in figure.rows:
        print_row(row, distance, rounds)
    if options.plot and figure.name == PLOTTED:
        chart_of(rounds).write(options.plot)


def main():
    options = options_of(__doc__, [figure.name for figure in FIGURES], plot=True)
    if options.plot and options.only not in PLOTTED:
        sys.exit(f'measure_aperture.py: --plot draws the figure "{PLOTTED}", which --only "{options.only}" leaves out')
    bench = ApertureBench(options.build, options.cpus.split(","))
    failed = False
    print("| figure | distance (rounds) | median | beside | median | ratio | limit | met |")
    print("|---|---|--:|---|--:|--:|---|---|")
    for figure in FIGURES:
        if options.only not in figure.name:
            continue
        try:
            measure(bench, figure, options)
        except (Unsteady, subprocess.SubprocessError, OSError, KeyError, ValueError) as error:
            print(f"{figure.name}: {error!r}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
