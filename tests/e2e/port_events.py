#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An application, embedded and at a daemon, sits behind a memif device whose peer is killed and comes back: it is told
that its port is down, and that it is active again. One that attaches meanwhile learns that it is down.

  tests/e2e/port_events.py --watch build/tests/e2e/port_events --softubd build/dataplane/softubd/softubd \
      --admin build/tools/admin/urma_admin --plugin build/dataplane/dpdk/libsoftub_dpdk.so.0
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid

import daemons
import wires
from processes import Failure, Process, check

DOWN, ACTIVE = "event 8 port 0 state 1", "event 7 port 0 state 4"


def variables(args, directory, socket, role, address):
    return {"SOFTUB_PORT_KINDS": "dpdk", "SOFTUB_DPDK_PLUGIN": os.path.abspath(args.plugin),
            "SOFTUB_DPDK_DEVICE": f"net_memif0,role={role},socket={socket}", "SOFTUB_DPDK_ADDRESSES": address,
            "SOFTUB_LOG_STATS_DIR": directory}


def link_changes(args, pid, environment):
    done = subprocess.run([args.admin, "show", "counters", "--json", "--instance", str(pid)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **environment})
    return json.loads(done.stdout)["counters"].get("dpdk.link.changes", 0) if done.returncode == 0 else 0


def wait_for_link(args, pid, environment, changes):
    end = time.monotonic() + 20
    while link_changes(args, pid, environment) < changes:
        check(time.monotonic() < end, "the devices never had a link")
        time.sleep(0.05)


def comes_and_goes(args, directory, placement):
    socket = "softub-" + uuid.uuid4().hex[:8]
    ours = variables(args, directory, socket, "server", "10.1.0.1/24")
    theirs = wires.Given(variables(args, directory, socket, "client", "10.1.0.2/24"))
    daemon = daemons.Daemon(args.softubd, directory, 0, ours) if placement == "daemon" else None
    watch = Process([args.watch], wires.Given(daemon.variables() if daemon else ours))
    peer = None
    try:
        watch.wait_for_text("ready")
        nic = daemon.process.pid if daemon else watch.popen.pid
        peer = Process([args.watch], theirs)
        wait_for_link(args, nic, ours, 1)
        peer.kill()
        watch.wait_for_text(DOWN)
        if daemon:
            late = Process([args.watch, "down"], wires.Given(daemon.variables()))
            late.wait_for_text("down")
            late.expect(0)
        peer = Process([args.watch], theirs)
        watch.wait_for_text(ACTIVE)
        said = [line for line in watch.text().splitlines() if line.startswith("event")]
        check(said == [DOWN, ACTIVE], f"it was told {said}")
        print(f"{placement}: down, and active again")
    except Failure as failure:
        raise Failure(f"{placement}: {failure}\n{daemon.log() if daemon else ''}") from failure
    finally:
        for process in (watch, peer, daemon):
            if process:
                process.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watch", required=True)
    parser.add_argument("--softubd", required=True)
    parser.add_argument("--admin", required=True)
    parser.add_argument("--plugin", default="")
    args = parser.parse_args()
    if not os.path.exists(args.plugin):
        print("skipped: the DPDK port is not built")
        return 77
    with tempfile.TemporaryDirectory(prefix="softub-port-") as directory:
        try:
            for placement in "embedded", "daemon":
                comes_and_goes(args, directory, placement)
        except (Failure, RuntimeError) as failure:
            print(f"FAILED: {failure}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
