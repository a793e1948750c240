#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What losses and reordering cost two live processes on a slow link: goodput of WRITEs, latency of READs.

The link is so slow that it is the limit, not the machine: its rate, its delay and its faults come from a ub_fabric
between the two. A round measures all faults, the link without faults first, and each WRITE and READ by urma_perf over
UDP. Prints the medians of the rounds as rows of a Markdown table; goodput counts bytes of payload only.

usage: measure_loss.py [--build DIR] [--rounds 3] [--seconds 2] [--rate 200M] [--delay 50us] [--only FAULT] [--json FILE]
                       [--plot PREFIX]      (draws PREFIX-goodput.svg and PREFIX-latency.svg)
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from chart import Axis, Chart, Series

# name, what is added to the rate and the delay of the link
FAULTS = {"none": "", "loss 0.1 %": "loss=0.1%", "loss 1 %": "loss=1%", "loss 5 %": "loss=5%",
          "reordered within 64": "reorder=64"}

WRITE_64K, WRITE_64, READ_MEDIAN, READ_P99 = "WRITE 64 KiB, Mb/s", "WRITE 64 B, Mb/s", "READ 64 B, us", "READ, 99 %, us"
COLUMNS = (WRITE_64K, WRITE_64, READ_MEDIAN, READ_P99)

# arguments of urma_perf, and what of its first row becomes which column
TESTS = (
    ("write_bw -s 65536 -t 16 --warmup 100", {WRITE_64K: lambda row: row["bw_average_mib_s"] * 8 * 1.048576}),
    ("write_bw -s 64 -t 64 -Q 1", {WRITE_64: lambda row: row["msg_rate_mpps"] * 64 * 8}),
    ("read_lat -s 64 --warmup 100", {READ_MEDIAN: lambda row: row["t_typical_us"], READ_P99: lambda row: row["p99_us"]}),
)

ENDS = {"a": "127.79.1.1", "b": "127.79.1.2"}
PATIENCE = 120  # seconds, beyond those of a test


class Failure(Exception):
    pass


class Fabric:
    """Two NICs with a ub_fabric between them."""

    def __init__(self, build, seed):
        seen = {name: address.replace("127.79.1.", "127.79.2.") for name, address in ENDS.items()}
        self.command = [os.path.join(build, "tools/fabric/ub_fabric"), "--seed", str(seed), "-q"]
        for name, address in ENDS.items():
            self.command += ["--nic", f"{name}=udp {address} {seen[name]}"]

    def environment(self, nic):
        shown = subprocess.run([*self.command, "--environment", nic], stdout=subprocess.PIPE, text=True, check=True)
        return dict(line.split("=", 1) for line in shown.stdout.split())

    @contextlib.contextmanager
    def link(self, impairments):
        fabric = subprocess.Popen([*self.command, "--set", f"*>* {impairments}"], stdout=subprocess.PIPE, text=True)
        try:
            if not any(line == "ready\n" for line in fabric.stdout):
                raise Failure("ub_fabric did not start; it says above why")
            yield [self.environment(name) for name in ENDS]
        finally:
            fabric.terminate()
            fabric.wait()
            fabric.stdout.close()


def run_pair(build, test, seconds, environments, port):
    """The first row of the results. Raises Failure."""
    command = [os.path.join(build, "tools/perf/urma_perf"), *test.split(), "-p", str(port)]
    client, server = ({**os.environ, **environment} for environment in environments)
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        target = subprocess.Popen(command, env=server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            done = subprocess.run([*command, "-D", str(seconds), "--json", report.name, "localhost"], env=client,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  timeout=seconds + PATIENCE)
            if done.returncode != 0:
                raise Failure(f"urma_perf {test}: {done.stderr.strip()}")
            target.wait(20)
        except subprocess.TimeoutExpired:
            raise Failure(f"urma_perf {test} did not end in time") from None
        finally:
            target.kill()
            target.wait()
        with open(report.name, encoding="utf-8") as file:
            return json.load(file)["results"][0]


def measure_round(options, fabric, faults, port):
    """The columns by fault."""
    found = {}
    for fault in faults:
        impairments = f"rate={options.rate} delay={options.delay} {FAULTS[fault]}".strip()
        found[fault] = {}
        for test, columns in TESTS:
            with fabric.link(impairments) as environments:
                row = run_pair(options.build, test, options.seconds, environments, port)
            found[fault].update({column: value(row) for column, value in columns.items()})
    return found


def medians(rounds):
    return {fault: {column: statistics.median(one[fault][column] for one in rounds) for column in COLUMNS}
            for fault in rounds[0]}


def print_table(result):
    print(f"| fault | {' | '.join(COLUMNS)} | WRITE 64 KiB beside none | WRITE 64 B beside none |")
    print("|---" + "|--:" * (len(COLUMNS) + 2) + "|")
    for fault, row in result.items():
        beside = [f"{row[c] / result['none'][c]:.2f}" if "none" in result else "" for c in (WRITE_64K, WRITE_64)]
        print(f"| {fault} | {' | '.join(f'{row[c]:.1f}' for c in COLUMNS)} | {' | '.join(beside)} |")


def charts(result, rate):
    """By the ending of their names."""
    def series(column, name):
        return Series(name, [(fault, row[column]) for fault, row in result.items()])

    x = Axis("faults of each direction")
    return {
        "goodput": Chart(f"Goodput on a link of {rate}b/s", x, Axis("goodput", "Mb/s", log=True),
                         [series(WRITE_64K, "WRITE 64 KiB, 16 in flight"), series(WRITE_64, "WRITE 64 B, 64 in flight")],
                         "bar"),
        "latency": Chart(f"READ of 64 B on a link of {rate}b/s", x, Axis("latency", "us", log=True),
                         [series(READ_MEDIAN, "median"), series(READ_P99, "99 %")], "bar"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rate", default="200M")
    parser.add_argument("--delay", default="50us")
    parser.add_argument("--only", choices=FAULTS)
    parser.add_argument("--json")
    parser.add_argument("--plot", metavar="PREFIX")
    options = parser.parse_args()
    faults = [options.only] if options.only else list(FAULTS)
    rounds = []
    try:
        for seed in range(1, options.rounds + 1):
            fabric = Fabric(options.build, seed)
            rounds.append(measure_round(options, fabric, faults, 24000 + os.getpid() % 5000))
    except Failure as failure:
        print(f"measure_loss.py: {failure}", file=sys.stderr)
        return 1
    result = medians(rounds)
    print_table(result)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"rate": options.rate, "delay": options.delay, "seconds": options.seconds,
                       "medians": result, "rounds": rounds}, file, indent=1)
    if options.plot:
        for ending, chart in charts(result, options.rate).items():
            chart.write(f"{options.plot}-{ending}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
