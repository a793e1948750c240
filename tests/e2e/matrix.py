#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the API and of the tools on every combination of placement and wire, and prints a table.

  tests/e2e/matrix.py --build build                     all of it, some minutes
  tests/e2e/matrix.py --build build --write docs/matrix.md
  tests/e2e/matrix.py --build build --placement daemon --wire memif --verbose

Two NICs take part in each test: two processes that hold one each, or two softubd. What cannot be had here is named
with the cause. Exit code 0: nothing failed.
"""
import argparse
import os
import re
import subprocess
import sys
import time

import daemons
import wires

PLACEMENTS = ("embedded", "daemon")
SKIPPED = 77
TESTS = {
    "tools": "the command-line tools against each other (run_tools.py --short)",
    "bad_input": "what programs and peers do wrong (conformance/bad_input.c)",
    "receive_queues": "receive queues in ERROR, low water (conformance/receive_queues.c)",
    "kill_peer": "a peer is killed under load (kill_peer.cc)",
}


class Cell:
    """The result of one test on one combination."""

    def __init__(self, text, output="", failed=False):
        self.text, self.output, self.failed = text, output, failed


def run(args, environment=None, timeout=400):
    """(exit code, output)"""
    try:
        done = subprocess.run(args, env={**os.environ, **(environment or {})}, timeout=timeout,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as expired:
        return None, (expired.stdout or b"").decode(errors="replace") + f"\nstill ran after {timeout} s"


def judge(code, output, good):
    if code == 0:
        return Cell(good, output)
    if code == SKIPPED:
        return Cell(f"not run: {cause(output)}", output)
    return Cell("FAILED", output, failed=True)


def cause(output):
    """Of a program that says "not run over WIRE: CAUSE" and ends with SKIPPED."""
    said = re.findall(r"^(?:\w+: )?not run[^:\n]*: (.+)$", output, re.M)
    return said[-1] if said else "no cause given"


class Combination:
    def __init__(self, args, placement, wire):
        self.args, self.placement, self.wire_name = args, placement, wire

    def path(self, name):
        return os.path.abspath(os.path.join(self.args.build, name))

    def make_wire(self):
        wire = wires.make(self.wire_name, self.path("dataplane/dpdk/libsoftub_dpdk.so.0"))
        if self.placement == "daemon":
            return daemons.Daemons(wire, self.path("dataplane/softubd/softubd"))
        return wire

    # A C test of two processes: the first gets one end of the wire, its peer (PEER_) the other.
    def ends(self, wire):
        first, second = wire.environment(0), wire.environment(1)
        environment = {**first, **{f"PEER_{name}": value for name, value in second.items()}}
        for prefix in ("", "PEER_"):  # the tests' own default is not an address of the device
            networks = environment.get(prefix + "SOFTUB_DPDK_ADDRESSES")
            if networks:
                environment[prefix + "SOFTUB_DEVICE_EIDS"] = networks.split("/")[0]
        environment.setdefault("SOFTUB_PORT_KINDS", "dpdk" if self.wire_name in wires.DPDK_WIRES else self.wire_name)
        namespace = wire.network_namespace(1)
        if namespace:
            environment["PEER_NETNS"] = namespace
        return wire.command(0), environment

    def tools(self):
        code, output = run([sys.executable, os.path.join(os.path.dirname(__file__), "run_tools.py"), "--short",
                            "--build", self.args.build, "--wire", self.wire_name, "--placement", self.placement])
        count = re.search(r"(\d+) passed, (\d+) failed", output)
        return judge(code, output, f"{count[1]} pass" if count else "pass")

    def bad_input(self):
        wire = self.make_wire()
        try:
            command, environment = self.ends(wire)
            two_ends = self.placement == "embedded" and self.wire_name in wires.DPDK_WIRES
            code, output = run([*command, self.path("tests/conformance/bad_input"),
                                "--two" if two_ends else "--processes"], environment)
            cell = judge(code, output, f"{len(re.findall('^ok ', output, re.M))} pass")
            if cell.failed and self.placement == "daemon":
                cell.output += wire.log()
            return cell
        finally:
            wire.close()

    def receive_queues(self):
        wire = self.make_wire()
        try:
            command, environment = self.ends(wire)
            code, output = run([*command, self.path("tests/conformance/receive_queues")], environment)
            return judge(code, output, f"{len(re.findall('^ok ', output, re.M))} pass")
        finally:
            wire.close()

    def kill_peer(self):
        if self.placement == "embedded" and self.wire_name in wires.DPDK_WIRES:
            if self.wire_name != "memif":
                return Cell("-: three NICs, and the wire has two ends")
            code, output = run([sys.executable, os.path.join(os.path.dirname(__file__), "kill_peer_memif.py"),
                                "--kill-peer", self.path("tests/e2e/kill_peer"),
                                "--plugin", self.path("dataplane/dpdk/libsoftub_dpdk.so.0"), "--rounds", "5"])
            return judge(code, output, "pass")
        wire = self.make_wire()
        try:
            sets = []
            for who, end in (("A", 0), ("B", 1), ("C", 1)):
                for name, value in wire.environment(end).items():
                    sets += ["--set", who, f"{name}={value}"]
            code, output = run([self.path("tests/e2e/kill_peer"), *sets, "--rounds", "5"],
                               {"SOFTUB_DEVICE_EIDS": "127.0.0.1"})
            return judge(code, output, "5 kills")
        finally:
            wire.close()

    def run(self, test):
        begin = time.monotonic()
        try:
            cell = getattr(self, test)()
        except wires.Skip as why:
            cell = Cell(f"not run: {why}")
        except RuntimeError as error:
            cell = Cell("FAILED", str(error), failed=True)
        print(f"{self.placement:9} {self.wire_name:10} {test:15} {cell.text}  ({time.monotonic() - begin:.1f} s)",
              flush=True)
        if cell.failed or self.args.verbose:
            print("    " + cell.output.strip().replace("\n", "\n    "), flush=True)
        return cell


def table(results, placements, names):
    lines = ["| placement | wire | " + " | ".join(TESTS) + " |", "|---|---|" + "---|" * len(TESTS)]
    for placement in placements:
        for wire in names:
            cells = [results[placement, wire, test].text for test in TESTS if (placement, wire, test) in results]
            lines.append(f"| {placement} | {wire} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def document(text):
    rows = "".join(f"* **{name}**: {what}\n" for name, what in TESTS.items())
    return ("# Tests on every placement and wire\n\nPrinted by `tests/e2e/matrix.py --build build --write docs/matrix.md`"
            " (as root).\nNo hugepages. An ordinary user gets all of it but af_xdp, where user namespaces are allowed; what he"
            "\ndoes not get says `not run`, with the cause."
            f"\n\n{text}\n{rows}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--placement", choices=PLACEMENTS, help="only this one")
    parser.add_argument("--wire", choices=wires.NAMES, help="only this one")
    parser.add_argument("--test", choices=TESTS, help="only this one")
    parser.add_argument("--write", metavar="FILE", help="keep the table there")
    parser.add_argument("--verbose", action="store_true", help="outputs of what passes, too")
    args = parser.parse_args()
    placements = [args.placement] if args.placement else PLACEMENTS
    names = [args.wire] if args.wire else [name for name in wires.NAMES if name not in wires.VARIANTS]
    results = {}
    for placement in placements:
        for wire in names:
            for test in [args.test] if args.test else TESTS:
                results[placement, wire, test] = Combination(args, placement, wire).run(test)
    if not args.test:
        print("\n" + table(results, placements, names))
        if args.write:
            with open(args.write, "w") as file:
                file.write(document(table(results, placements, names)))
    failed = sum(cell.failed for cell in results.values())
    print(f"{len(results)} cells, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
