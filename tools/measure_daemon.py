#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures NICs in daemons, and memif, as measure.py measures embedded ones: each figure beside the raw floor.

Daemons: two softubd joined by shared memory, an application at each; every application shares a core with its daemon.
The daemons are started for each figure and are gone while the floor is measured; urma_perf's own probes share their
cores with them, so only the floor's probes say how far apart the cores are. The floor of a latency is a bare relay
over four processes (ub_floor relay), that of a bandwidth a copy in and out of a ring. "own memory" is memory that the
daemon cannot see: the application copies.

memif: two embedded NICs with DPDK's memif device; the floor is an echo over the bare driver (ub_floor_dpdk memif).

af_packet, af_xdp: the same between two network namespaces over a veth pair; needs root. The floor has such a pair of its
own. Only the floor's probes count here, too: the namespaces' kernels work on the same CPUs.

usage: measure_daemon.py [--build DIR] [--rounds 5] [--only NAME] [--cpus 0,1]
"""
import os
import subprocess
import sys
import tempfile

import measure

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/e2e"))
import daemons  # noqa: E402
import wires  # noqa: E402

DAEMON = [
    ("READ 64 B", "read_lat -s 64 -n {} ", "latency", "relay", "latency"),
    ("WRITE 64 B", "write_lat -s 64 -n {} --to-completion ", "latency", "relay", "latency"),
    ("WRITE 64 KiB, window 64", "write_bw -s 65536 -n 5000 -t 64 ", "gbps", "spsc-bw", "gbps"),
]
MEMIF = [
    ("READ 64 B, memif", "memif", "read_lat -s 64 -n 100000", "latency", "memif", "latency"),
    ("WRITE 64 B, memif", "memif", "write_lat -s 64 -n 100000 --to-completion", "latency", "memif", "latency"),
    ("WRITE 64 B there and back, memif", "memif", "write_lat -s 64 -n 100000", "pingpong", "memif", "latency"),
    ("WRITE 64 KiB, window 64, memif", "memif", "write_bw -s 65536 -n 20000 -t 64", "gbps", "memif --bw", "gbps"),
]
VETH = [
    (f"{name}, {wire}", wire, perf, what, f"{wire} {floor}".strip(), floor_what)
    for wire in ("af_packet", "af_xdp")
    for name, perf, what, floor, floor_what in [
        ("READ 64 B", "read_lat -s 64 -n 10000", "latency", "", "latency"),
        ("WRITE 64 B, window 64", "write_bw -s 64 -n 300000 -t 64", "rate", "--bw --size 64", "rate"),
        ("WRITE 64 KiB, window 16", "write_bw -s 65536 -n 4000 -t 16", "gbps", "--bw", "gbps"),
    ]
]


def figures():
    for idle, count in ("poll", 20000), ("adaptive", 20000), ("sleep", 5000):
        for memory, option in (("", ""), (", own memory", "--own-memory")):
            for name, perf, *rest in DAEMON:
                yield (f"{name}, daemon {idle}{memory}", idle, (perf.format(count) + option).strip(), *rest)
    yield from MEMIF
    yield from VETH


class DaemonBench(measure.Bench):
    def softub(self, wire, arguments, what):
        return self.dpdk(wire, arguments, what) if wire in wires.DPDK_WIRES else self.daemons(wire, arguments, what)

    def dpdk(self, name, arguments, what):
        wire = wires.make(name, os.path.abspath(os.path.join(self.build, "dataplane/dpdk/libsoftub_dpdk.so.0")))
        try:
            value, modes = self.perf_pair(arguments, what, *(self.end(wire, number) for number in (1, 0)))
            return value, modes if name == "memif" else set()
        finally:
            wire.close()

    @staticmethod
    def end(wire, number):
        return measure.End({**os.environ, **wire.environment(number)}, wire.command(number), wire.host())

    def floor(self, arguments, what):
        driver, *options = arguments.split()
        if driver not in ("af_packet", "af_xdp"):
            return super().floor(arguments, what)
        namespace = f"softub-floor-{os.getpid()}"
        ip = ["ip", "-n", namespace]
        commands = [["ip", "netns", "add", namespace],
                    [*ip, "link", "add", "near", "type", "veth", "peer", "name", "peer"],
                    *([*ip, "link", "set", name, "up"] for name in ("near", "peer"))]
        try:
            for command in commands:
                subprocess.run(command, check=True)
            return self.run_floor([driver, "near", "peer", *options], what, ["ip", "netns", "exec", namespace])
        finally:
            subprocess.run(["ip", "netns", "del", namespace])

    def daemons(self, idle, arguments, what):
        softubd = os.path.join(self.build, "dataplane/softubd/softubd")
        running = []
        with tempfile.TemporaryDirectory(prefix="softub-measure-") as directory:
            try:
                for number, cpu in enumerate(self.cpus):
                    variables = {"SOFTUB_PORT_KINDS": "shm", "SOFTUB_PORT_SHM_DIR": directory,
                                 "SOFTUB_DAEMON_IDLE": idle, "SOFTUB_DAEMON_CORES": cpu}
                    running.append(daemons.Daemon(softubd, directory, number, variables))
                ends = (measure.End({**os.environ, **d.variables()}) for d in running)
                value, _ = self.perf_pair(arguments, what, *ends)
                return value, set()
            finally:
                for daemon in running:
                    daemon.kill()


if __name__ == "__main__":
    sys.exit(measure.main(list(figures()), DaemonBench, __doc__))
