#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Latency of Soft-RoCE, the RoCE NIC in Linux's kernel, between two guests, beside that of our engine between two
processes over a veth pair: perftest's ib_{send,write,read}_lat there, roce_perf here, in turn. Prints medians and their
ratio as rows of a Markdown table.

  tests/interop/soft_roce.py --build build

The guests have no KVM: every instruction of theirs is emulated, and a bridge and four taps lie between them. So the
ratio says how much sooner an emulated test bench answers with our engine, not how fast either is on hardware. Exit code
77: nothing could be run here, with the cause.
"""
import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile

import guest as guests

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import wires  # noqa: E402

VERBS = ("send", "write", "read")
SIZE = 64


class SoftRoce:
    """Two guests on one bridge."""

    def __init__(self, network, cache):
        self.guests = []
        self.port = 19000
        network.add_bridge("wire")
        try:
            for number in range(2):
                self.guests.append(guests.Guest(network, number, 1500, "wire", cache, guests.say))
        except BaseException:
            self.close()
            raise

    def latency(self, verb, count):
        """Microseconds, as perftest counts: of send and write half a round trip."""
        self.port += 1
        server, client = self.guests
        command = f"ib_{verb}_lat -d rxe0 -x 1 -F -m 1024 -p {self.port} -s {SIZE} -n {count}"
        running = server.start(command, 60)
        result = client.run(f"until {command} {server.tcp_address}; do usleep 100000; done", 60)
        there = running.wait()
        if result.status != 0 or there.status != 0:
            raise RuntimeError(f"{command}: {result.output}\n{there.output}")
        row = re.search(rf"^\s*{SIZE}\s+{count}\s+(.+)$", result.output, re.MULTILINE)
        if row is None:
            raise RuntimeError(f"{command} printed no result: {result.output}")
        return float(row[1].split()[2])  # after the least and the most: the typical one

    def close(self):
        for guest in self.guests:
            guest.close()


class Ours:
    """Two processes in network namespaces of their own; each has an end of a veth pair as its NIC."""

    def __init__(self, build):
        self.perf = os.path.abspath(os.path.join(build, "tools/roce_perf/roce_perf"))
        self.wire = wires.make("af_packet", os.path.abspath(os.path.join(build, "dataplane/dpdk/libsoftub_dpdk.so.0")))
        self.port = 19500

    def start(self, end, *arguments):
        command = [*self.wire.command(end), self.perf, *arguments]
        return subprocess.Popen(command, env={**os.environ, **self.wire.environment(end)}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def latency(self, verb, count):
        self.port += 1
        arguments = [f"{verb}_lat", "-s", str(SIZE), "-n", str(count), "-p", str(self.port)]
        server = self.start(0, *arguments)
        client = None
        try:
            said = [server.stdout.readline()]
            while said[-1] and not said[-1].startswith("waiting"):
                said.append(server.stdout.readline())
            with tempfile.TemporaryDirectory() as directory:
                report = os.path.join(directory, "report.json")
                client = self.start(1, *arguments, "--json", report, self.wire.host())
                output = client.communicate(timeout=120)[0]
                if client.returncode != 0:
                    raise RuntimeError(f"roce_perf {' '.join(arguments)}: {output}{''.join(said)}")
                server.wait(20)
                with open(report, encoding="utf-8") as file:
                    return json.load(file)["results"][0]["t_typical_us"]
        finally:
            for process in filter(None, (server, client)):
                process.kill()
                process.wait()
                process.stdout.close()

    def close(self):
        self.wire.close()


def compare(args):
    ours = Ours(args.build)
    network = soft = None
    try:
        network = guests.Network()
        soft = SoftRoce(network, args.cache)
        print(f"| {SIZE} B, us | Soft-RoCE, guest to guest | ours, process to process | ratio | rounds |")
        print("|---|---|---|---|---|")
        for verb in VERBS:
            rounds = [(soft.latency(verb, args.count), ours.latency(verb, args.count)) for _ in range(args.rounds)]
            theirs, mine = (statistics.median(column) for column in zip(*rounds))
            kind = "" if verb == "read" else ", half a round trip"
            print(f"| {verb.upper()}{kind} | {theirs:.1f} | {mine:.1f} | {theirs / mine:.1f} | {args.rounds} |",
                  flush=True)
    finally:
        for opened in filter(None, (soft, network, ours)):
            opened.close()
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build directory")
    parser.add_argument("--rounds", type=int, default=5, help="of each operation (5)")
    parser.add_argument("--count", type=int, default=1000, help="messages of a round (1000)")
    parser.add_argument("--cache", help="of packages and the guest's image")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, guests.end_as_interrupted)
    try:
        return compare(args)
    except (guests.Skip, wires.Skip) as reason:
        print(f"skipped: {reason}")
        return 77
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
