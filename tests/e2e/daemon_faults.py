#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults of a daemon's NIC (daemon.inject): its applications are told of the port, SIGHUP puts others into force, the
counters tell of them, and calls of applications are answered while the NIC is stopped.

  tests/e2e/daemon_faults.py --watch build/tests/e2e/port_events --softubd build/dataplane/softubd/softubd \
      --admin build/tools/admin/urma_admin
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
from processes import Failure, Process, check

DOWN, ACTIVE = "event 8 port 0 state 1", "event 7 port 0 state 4"


def counters(args, pid, directory):
    done = subprocess.run([args.admin, "show", "counters", "--json", "--instance", str(pid)], text=True,
                          stdout=subprocess.PIPE, env={**os.environ, "SOFTUB_LOG_STATS_DIR": directory})
    check(done.returncode == 0, "urma_admin does not see the daemon")
    return json.loads(done.stdout)["counters"]


def wait_for_counter(args, pid, directory, name, value):
    end = time.monotonic() + 20
    while (now := counters(args, pid, directory).get(name, 0)) != value:
        check(time.monotonic() < end, f"{name} is {now}, expected {value}")
        time.sleep(0.05)


def run(args, directory):
    path = os.path.join(directory, "softub.toml")

    def configure(faults, daemon=None):
        with open(path, "w") as file:
            file.write(f'[daemon]\ninject = "{faults}"\n')
        if daemon:
            daemon.reload()

    configure("port down after=1000s")
    daemon = daemons.Daemon(args.softubd, directory, 0, {"SOFTUB_CONFIG": path, "SOFTUB_LOG_STATS_DIR": directory})
    pid = daemon.process.pid
    wire = wires.Given(daemon.variables())
    watch = late = None
    try:
        daemon.wait_for_log("the NIC has faults from now on: port down after=1000s")
        watch = Process([args.watch], wire)
        watch.wait_for_text("ready")
        configure("port down for=300ms", daemon)
        watch.wait_for_text(ACTIVE)
        said = [line for line in watch.text().splitlines() if line.startswith("event")]
        check(said == [DOWN, ACTIVE], f"it was told {said}")
        wait_for_counter(args, pid, directory, "injected.port_down", 1)
        print("the port went down and came up again")

        configure("stop", daemon)
        daemon.wait_for_log("the NIC has faults from now on: stop")
        late = Process([args.watch], wire)
        late.wait_for_text("ready")
        wait_for_counter(args, pid, directory, "injected.stop", 1)
        configure("", daemon)
        print("the NIC was stopped, and went on")

        configure("rnr", daemon)
        daemon.wait_for_log("daemon.inject: completion, post and rnr are faults of a program")
        print("what is not the daemon's was refused")
    except Failure as failure:
        raise Failure(f"{failure}\n{daemon.log()}") from failure
    finally:
        for process in (watch, late):
            if process:
                process.kill()
    check(daemon.stop() == 0, f"softubd did not end well\n{daemon.log()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watch", required=True)
    parser.add_argument("--softubd", required=True)
    parser.add_argument("--admin", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="softub-faults-") as directory:
        try:
            run(args, directory)
        except (Failure, RuntimeError) as failure:
            print(f"FAILED: {failure}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
