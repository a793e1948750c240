#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two processes on an impaired network (docs/impair.md), over shared memory, UDP and memif: all their requests complete,
and the counters show what was lost. Over shared memory and UDP that is what RTP sends again; CTP does not serve there.
Over memif CTP repeats its requests. Then two processes whose lines are hops of C-AQM, and a daemon whose impairments
SIGHUP changes.

  tests/e2e/impaired.py --perf build/tools/perf/urma_perf --admin build/tools/admin/urma_admin \
      --softubd build/dataplane/softubd/softubd --plugin build/dataplane/dpdk/libsoftub_dpdk.so.0
"""
import argparse
import os
import sys
import tempfile

import daemons
import wires
from nic_counters import NicCounters
from processes import Failure, Process, check, free_port

IMPAIRED = "loss=4% duplicate=4% reorder=8 late=4% corrupt=2% delay=20us"

CAQM = {
    "SOFTUB_IMPAIR_SEND": "rate=100M queue=4MiB caqm=40KiB/1ms",
    "SOFTUB_CONGESTION_ALGORITHM": "caqm",
    "SOFTUB_TRANSPORT_RTP_OVER_CNA": "true",
}

FAULTS = ("lost_random", "duplicated", "reordered", "corrupted")


def sent_again(kind, counters):
    if kind == "memif":
        return counters["ctp.tx.repeat"]
    return counters["tp.tx.retransmit_fast"] + counters["tp.tx.retransmit_timeout"]


def run_pair(args, directory, kind, variables, look):
    """WRITEs of four packets, verified. Where there is little CPU, a few hundred frames are all there is. Meanwhile `look`
    looks at the client, and tells what it saw."""
    try:
        wire = wires.make(kind, args.plugin)
    except wires.Skip as why:
        return print(f"{kind}: not run: {why}")
    wire.variables.update({**variables, "SOFTUB_LOG_STATS_DIR": directory})
    port = free_port()
    test = [args.perf, "write_bw", "-s", "16384", "-t", "8", "--verify", "-p", str(port)]
    server = Process(test, wire)
    client = None
    try:
        server.wait_for_text("TCP port")
        client = Process([*test, "-D", str(args.seconds), "localhost"], wire)
        saw = look(client, NicCounters(args.admin, wire.variables))
        text = client.expect(0, 150)
        check("impaired on purpose" in text, f"the log does not say so:\n{text}")
        server.expect(0, 150)
        print(f"{kind}: all completed; {saw}")
    finally:
        for process in (server, client):
            if process:
                process.kill()
        wire.close()


def run_with_faults(args, directory, kind):
    def look(client, nics):
        shown = nics.wait(client, lambda c: all(c[f"impaired.{fault}"] for fault in FAULTS) and sent_again(kind, c))
        if kind != "memif":
            check(shown["ctp.tx"] == 0, f"{kind}: CTP serves a wire that loses")
        lost, came = shown["impaired.lost_random"], shown["impaired.offered"]
        return f"{lost} of {came} frames that the client sent or received were lost"

    run_pair(args, directory, kind, {"SOFTUB_IMPAIR_SEND": IMPAIRED}, look)


def run_with_caqm(args, directory):
    """With hints, since the channel has UB's own network header."""
    def look(client, nics):
        shown = nics.wait(client, lambda c: c["impaired.granted"] and c["impaired.marked"] and c["tp.marks"])
        channels = nics.show(client, "channels")["channels"]
        check(any(c["transport"] == "rtp over cna" and c["congestion"] == "caqm" for c in channels), channels)
        return ", ".join(f"{name} {shown[f'impaired.{name}']}" for name in ("granted", "refused", "marked"))

    run_pair(args, directory, "shm", CAQM, look)


def run_daemon(args, directory):
    path = os.path.join(directory, "softub.toml")

    def configure(send, daemon=None):
        with open(path, "w") as file:
            file.write(f'[impair]\nsend = "{send}"\n')
        if daemon:
            daemon.reload()

    variables = {"SOFTUB_CONFIG": path, "SOFTUB_LOG_STATS_DIR": directory}
    configure("clear")
    daemon = daemons.Daemon(args.softubd, directory, 0, variables)
    try:
        daemon.wait_for_log('it sends with "clear"')
        configure("loss=2%", daemon)
        daemon.wait_for_log('it sends with "loss=2%"')
        configure("", daemon)
        daemon.wait_for_log('it sends with "clear"', times=2)
        print("daemon: SIGHUP put other impairments into force")
    finally:
        check(daemon.stop() == 0, f"softubd did not end well\n{daemon.log()}")
    configure("")
    daemon = daemons.Daemon(args.softubd, directory, 1, variables)
    try:
        for times in range(1, 3):
            configure("loss=2%", daemon)
            daemon.wait_for_log("needs a restart to change: impair.send", times)
        print("daemon: one that was started without impairments says each time that it takes none")
    finally:
        check(daemon.stop() == 0, f"softubd did not end well\n{daemon.log()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--perf", required=True)
    parser.add_argument("--admin", required=True)
    parser.add_argument("--softubd", required=True)
    parser.add_argument("--plugin", help="the DPDK port's shared object; without it memif is left out")
    parser.add_argument("--seconds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="softub-impaired-") as directory:
        try:
            for kind in ("shm", "udp", "memif"):
                run_with_faults(args, directory, kind)
            run_with_caqm(args, directory)
            run_daemon(args, directory)
        except (Failure, RuntimeError) as failure:
            print(failure)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
