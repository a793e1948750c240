#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures RoCE beside UB, as measure.py measures SoftUB beside a raw floor: embedded, two processes, over memif.

A round runs roce_perf, then urma_perf, then roce_perf again, with the same message, depth and number of completions,
and nothing inline; it counts only if all core-to-core probes in it say the same distance. Medians are printed, as rows
of a Markdown table; the ratio is UB's value to RoCE's. Without the DPDK port the wire is shared memory, and the
cause is printed.

usage: measure_roce.py [--build DIR] [--rounds 5] [--only NAME] [--cpus 0,1]
"""
import os
import sys

import measure
from measure_daemon import DaemonBench, wires

VERBS = ("send", "write", "read")
HEADER = "| figure | distance (rounds) | UB, median | RoCE, median | UB / RoCE | arguments |"


def figures():
    for verb in VERBS:
        name = verb.upper()
        latency = f"{verb}_lat -s 64 -n 50000"
        what = "latency" if verb == "read" else "pingpong"
        kind = "" if verb == "read" else " there and back"
        yield (f"{name} 64 B{kind}", "wire", f"{latency} -I 0", what, latency, what)
        if verb == "write":
            latency += " --to-completion"
            yield (f"{name} 64 B to its completion", "wire", f"{latency} -I 0", "latency", latency, "latency")
        rate = f"{verb}_bw -s 64 -n 1000000 -t 64"
        yield (f"{name} 64 B, window 64", "wire", f"{rate} -I 0 -Q 1", "rate", rate, "rate")


class SharedMemory(wires.Wire):
    """Each process has an address of its own: RoCE knows nothing else to tell them apart."""

    def environment(self, end):
        return {"SOFTUB_PORT_KINDS": "shm", "SOFTUB_DEVICE_EIDS": f"127.0.0.{end + 1}"}


class RoceBench(DaemonBench):
    def __init__(self, build, cpus):
        super().__init__(build, cpus)
        self.roce_perf = os.path.join(build, "tools/roce_perf/roce_perf")
        self.wire = "memif"
        try:
            wires.make("memif", self.plugin()).close()
        except wires.Skip as cause:
            print(f"shared memory instead of memif: {cause}", file=sys.stderr)
            self.wire = "shm"

    def plugin(self):
        return os.path.abspath(os.path.join(self.build, "dataplane/dpdk/libsoftub_dpdk.so.0"))

    def pair(self, arguments, what, program=None):
        wire = wires.make("memif", self.plugin()) if self.wire == "memif" else SharedMemory()
        try:
            return self.perf_pair(arguments, what, *(self.end(wire, number) for number in (1, 0)), program)
        finally:
            wire.close()

    def softub(self, wire, arguments, what):
        return self.pair(arguments, what)

    def floor(self, arguments, what):
        return self.pair(arguments, what, self.roce_perf)


if __name__ == "__main__":
    sys.exit(measure.main(list(figures()), RoceBench, __doc__, HEADER))
