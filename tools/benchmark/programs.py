# SPDX-License-Identifier: Apache-2.0
"""Runs the programs that figures name. The wires of SoftUB and the bare floors come from the measure_*.py beside this
package, programs of other projects from foreign.py."""
import functools
import os
import re
import subprocess

import measure
import measure_daemon  # which finds the modules of tests/e2e
import wires

from . import foreign, parsing, ycsb
from .guests import Guests
from .program import Skip

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SKIPPED = 77


class Programs(measure_daemon.DaemonBench):
    """A run returns values by name (parsing.py), and the distances of the CPUs that the program saw itself; None: they do
    not matter."""

    def __init__(self, build, cpus, seconds):
        super().__init__(build, cpus)
        self.seconds = self.floor_seconds = seconds
        self.guests = self.no_guests = None
        self.perf_options = None

    def run_program(self, program):
        """Raises Skip, or what went wrong."""
        try:
            return KINDS[program.kind](self, program.arguments)
        except wires.Skip as cause:
            raise Skip(str(cause)) from None

    def distance(self):
        """Of the CPUs, now."""
        return self.run_floor(["c2c"], "all")[0]["c2c_after"]["mode"]

    def need(self, path):
        """A program of the build."""
        if not os.path.exists(os.path.join(self.build, path)):
            raise Skip(f"{os.path.basename(path)} is not in the build ({path})")

    def urma_perf(self, measured, arguments):
        """`measured`: how a pair of urma_perf is run (Bench.perf_pair)."""
        self.need("tools/perf/urma_perf")
        self.look_for_options(arguments)
        test, *options = arguments.split()
        if "-D" not in options:
            arguments += f" -D {self.seconds}"
        rows, distances = measured(arguments, "rows")
        ping_pong = test in ("write_lat", "send_lat") and "--to-completion" not in options
        return parsing.perf_values(rows, 2 if ping_pong else 1), distances

    def look_for_options(self, arguments):
        if self.perf_options is None:
            self.perf_options = set(re.findall(r"--[a-z][a-z-]*", self.run([self.perf, "--help"])))
        for option in re.findall(r"--[a-z][a-z-]*", arguments):
            if option not in self.perf_options:
                raise Skip(f"urma_perf has no {option}")

    def over(self, wire, arguments):
        run = self.dpdk if wire == "memif" else functools.partial(measure.Bench.softub, self)
        return self.urma_perf(lambda *what: run(wire, *what), arguments)

    def at_daemons(self, arguments):
        self.need("dataplane/softubd/softubd")
        return self.urma_perf(lambda *what: self.daemons("adaptive", *what), arguments)

    def bare(self, arguments):
        words = arguments.split()
        name = "ub_floor_dpdk" if words[0] in measure.DPDK_FLOORS else "ub_floor"
        self.need(f"tests/bench/floor/{name}")
        result, distances = self.run_floor(words, "all")
        return parsing.floor_values(result), distances

    def instructions(self, arguments):
        self.need("tests/bench/count_core")
        self.need("tests/bench/count_api")
        done = subprocess.run([os.path.join(ROOT, "tests/bench/instructions"), "--build", self.build, "--only", arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        if done.returncode == SKIPPED:
            raise Skip(done.stdout.strip().removeprefix("skipped: "))
        if done.returncode != 0:
            raise ValueError(f"instructions --only {arguments!r}: {done.stderr.strip()[-300:]}")
        return parsing.instruction_values(done.stdout), None

    def ycsb(self, arguments):
        return ycsb.run(self.build, self.cpus, arguments), set()

    def roce(self, arguments):
        """By our RoCE engine, over a veth pair."""
        self.need("tools/roce_perf/roce_perf")
        return self.soft_roce().latency("ours", arguments), None

    def soft_roce_guest(self, arguments):
        return self.soft_roce().latency("guests", arguments), None

    def soft_roce(self):
        if self.no_guests:
            raise Skip(self.no_guests)
        if self.guests is None:
            try:
                self.guests = Guests(self.build)
            except Skip as cause:  # to find that out takes long
                self.no_guests = str(cause)
                raise
        return self.guests

    def close(self):
        """Ends what runs from one program to the next."""
        if self.guests is not None:
            self.guests.close()
            self.guests = None


def of_others(run):
    return lambda programs, arguments: (run(programs.cpus, arguments), set())


KINDS = {
    "shm": lambda programs, arguments: programs.over("shm", arguments),
    "memif": lambda programs, arguments: programs.over("memif", arguments),
    "udp": lambda programs, arguments: programs.over("udp", arguments),
    "daemons": Programs.at_daemons,
    "floor": Programs.bare,
    "instructions": Programs.instructions,
    "ucx": of_others(foreign.ucx),
    "libfabric": of_others(foreign.libfabric),
    "ycsb": Programs.ycsb,
    "roce": Programs.roce,
    "soft-roce": Programs.soft_roce_guest,
}
