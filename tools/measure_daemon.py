#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures NICs in daemons, and memif, as measure.py measures embedded ones: each figure beside the raw floor.

Daemons: two softubd joined by shared memory, an application at each; every application shares a core with its daemon.
The daemons are started for each figure and are gone while the floor is measured; urma_perf's own probes share their
cores with them, so only the floor's probes say how far apart the cores are. The floor of a latency is a bare relay
over four processes (ub_floor relay), that of a bandwidth a copy in and out of a ring. "own memory" is memory that the
daemon cannot see: the application copies.

memif: two embedded NICs with DPDK's memif device; the floor is an echo over the bare driver (ub_floor_dpdk memif).

usage: measure_daemon.py [--build DIR] [--rounds 5] [--only NAME] [--cpus 0,1]
"""
import os
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


def figures():
    for idle, count in ("poll", 20000), ("adaptive", 20000), ("sleep", 5000):
        for memory, option in (("", ""), (", own memory", "--own-memory")):
            for name, perf, *rest in DAEMON:
                yield (f"{name}, daemon {idle}{memory}", idle, (perf.format(count) + option).strip(), *rest)
    yield from MEMIF


class DaemonBench(measure.Bench):
    def softub(self, wire, arguments, what):
        return self.memif(arguments, what) if wire == "memif" else self.daemons(wire, arguments, what)

    def memif(self, arguments, what):
        wire = wires.make("memif", os.path.abspath(os.path.join(self.build, "dataplane/dpdk/libsoftub_dpdk.so.0")))
        try:
            return self.perf_pair(arguments, what, *({**os.environ, **wire.environment(end)} for end in (1, 0)))
        finally:
            wire.close()

    def daemons(self, idle, arguments, what):
        softubd = os.path.join(self.build, "dataplane/softubd/softubd")
        running = []
        with tempfile.TemporaryDirectory(prefix="softub-measure-") as directory:
            try:
                for number, cpu in enumerate(self.cpus):
                    variables = {"SOFTUB_PORT_KINDS": "shm", "SOFTUB_PORT_SHM_DIR": directory,
                                 "SOFTUB_DAEMON_IDLE": idle, "SOFTUB_DAEMON_CORES": cpu}
                    running.append(daemons.Daemon(softubd, directory, number, variables))
                value, _ = self.perf_pair(arguments, what, *({**os.environ, **d.variables()} for d in running))
                return value, set()
            finally:
                for daemon in running:
                    daemon.kill()


if __name__ == "__main__":
    sys.exit(measure.main(list(figures()), DaemonBench, __doc__))
