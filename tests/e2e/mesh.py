#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several processes with many jettys each, all to all, mixed traffic (mesh.cc): nothing is lost, sums agree, and
afterwards nothing is left: no object in the daemon, no instance on the host.

  tests/e2e/mesh.py --build build --where embedded-shm --processes 10 --jettys 100 --seconds 60

Where: embedded-shm, embedded-udp: one host; embedded-namespaces: half of them in each of two network namespaces, over
UDP between the halves; daemon-shm: one softubd on one host; daemon-namespaces: a softubd in each.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import daemons
import wires
from processes import Failure, check

SKIPPED = 77
PLACES = ("embedded-shm", "embedded-udp", "embedded-namespaces", "daemon-shm", "daemon-namespaces")


class Mesh:
    def __init__(self, args, directory):
        self.args = args
        self.directory = directory
        self.placement, self.place = args.where.split("-")
        self.namespaces = wires.Namespaces() if self.place == "namespaces" else None
        self.daemons = []

    def host_of(self, index):
        """0 or 1: which of the two namespaces."""
        return index * 2 // self.args.processes if self.namespaces else 0

    def command(self, host):
        return self.namespaces.command(host) if self.namespaces else []

    def variables(self, host):
        kinds = "udp" if self.place == "udp" else "shm,udp" if self.namespaces else "shm"
        eid = self.namespaces.address(host) if self.namespaces else "127.0.0.1"
        shm = os.path.join(self.directory, f"host{host}")
        os.makedirs(shm, mode=0o700, exist_ok=True)
        return {"SOFTUB_PORT_KINDS": kinds, "SOFTUB_DEVICE_EIDS": eid, "SOFTUB_PORT_SHM_DIR": shm}

    def start_daemons(self):
        for host in range(2 if self.namespaces else 1):
            self.daemons.append(daemons.Daemon(self.args.softubd, self.directory, host, self.variables(host),
                                               self.command(host)))

    def start(self, index):
        host = self.host_of(index)
        variables = self.daemons[host].variables() if self.daemons else self.variables(host)
        command = [self.args.mesh, "--directory", self.directory, "--index", index, "--count", self.args.processes,
                   "--jettys", self.args.jettys, "--seconds", self.args.seconds]
        return subprocess.Popen([*self.command(host), *map(str, command)], env={**os.environ, **variables},
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self):
        if self.placement == "daemon":
            self.start_daemons()
        processes = [self.start(index) for index in range(self.args.processes)]
        failures, lines = [], []
        try:
            for process in processes:
                text = process.communicate(timeout=self.args.seconds + 180)[0]
                lines.append(text.strip())
                if process.returncode != 0:
                    failures.append(f"ended with {process.returncode}: {text.strip()}")
        finally:
            for process in processes:
                process.kill()
        check(not failures, "\n".join(failures))
        print("\n".join(lines))
        self.check_nothing_left()

    def check_nothing_left(self):
        for host, daemon in enumerate(self.daemons):
            end = time.monotonic() + 5
            while (left := self.objects(daemon)) and time.monotonic() < end:
                time.sleep(0.05)
            check(not left, f"the daemon of host {host} still has {left}")
            check(daemon.stop() == 0, f"softubd {host} did not end well:\n{daemon.log()}")
        for host in range(2 if self.namespaces else 1):
            left = os.listdir(os.path.join(self.directory, f"host{host}"))
            left = [name for name in left if not name.endswith(".lock")]
            check(not left, f"files of dead instances are left: {left}")

    def objects(self, daemon):
        out = subprocess.run([self.args.admin, "show", "objects", "--json", "--instance", str(daemon.process.pid)],
                             stdout=subprocess.PIPE, text=True, env=daemon.environment, check=True).stdout
        objects = json.loads(out)["objects"]
        kinds = ("jfc", "jfr", "jfs", "jetty", "groups", "segments", "targets")
        return {kind: objects[kind] for kind in kinds if objects[kind]}

    def close(self):
        for daemon in self.daemons:
            daemon.kill()
        if self.namespaces:
            self.namespaces.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build directory")
    parser.add_argument("--where", choices=PLACES, action="append", help="may be repeated; default: all")
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--jettys", type=int, default=100, help="of each process")
    parser.add_argument("--seconds", type=float, default=10)
    args = parser.parse_args()
    for name, place in {"mesh": "tests/e2e/mesh", "softubd": "dataplane/softubd/softubd",
                        "admin": "tools/admin/urma_admin"}.items():
        setattr(args, name, os.path.abspath(os.path.join(args.build, place)))
    failed = skipped = 0
    for args.where in args.where or PLACES:
        with tempfile.TemporaryDirectory(prefix="softub-mesh-") as directory:
            try:
                mesh = Mesh(args, directory)
            except wires.Skip as why:
                print(f"{args.where}: not run: {why}", flush=True)
                skipped += 1
                continue
            try:
                mesh.run()
                print(f"{args.where}: ok", flush=True)
            except (Failure, RuntimeError, subprocess.SubprocessError) as failure:
                print(f"{args.where}: FAIL: {failure}", flush=True)
                failed += 1
            finally:
                mesh.close()
    return 1 if failed else SKIPPED if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
