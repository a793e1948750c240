#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""UB and RoCE at the same time on the same ports, and their counters apart.

One NIC for both, over shared memory, UDP sockets and memif (both_protocols.cc); then urma_perf beside roce_perf, NICs
of their own, on the same addresses over UDP sockets; then without UDP port 4791. What cannot be had here is named.

  tests/e2e/both_protocols.py --build build
"""
import argparse
import os
import signal
import socket
import sys

import wires
from nic_counters import NicCounters, nonzero
from processes import Failure, Process, check, free_port

MESSAGES = 3000  # of both_protocols.cc, each way
# One packet for each message, at least. UB's go by CTP or RTP.
OF_MESSAGES = (("tp.tx.data", "ctp.tx"), ("tp.rx.data", "ctp.rx"), ("roce.tx.request",), ("roce.rx.request",))


# Set-up sends a record again whose answer takes long. The second one comes when nobody waits for it any more.
SENT_TWICE = ("rx.drop.record_stale", "rx.drop.record_state")


def check_no_drops(process, counters):
    drops = {name: value for name, value in nonzero(counters).items()
             if name.startswith(("rx.drop.", "roce.rx.drop.")) and name not in SENT_TWICE or name.endswith("error")}
    check(not drops, f"{process.name()} dropped packets: {drops}")


def ub_part(counters):
    """Of what only UB counts: rx.* and tx.* are of the port."""
    return {name: value for name, value in nonzero(counters).items()
            if name.startswith(("tp.", "ta.", "um.", "ctp.", "rx.drop."))}


def roce_part(counters):
    return {name: value for name, value in nonzero(counters).items() if name.startswith("roce.")}


def one_nic(args, name):
    """Returns why it cannot be had, or nothing."""
    try:
        wire = wires.make_for_roce(name, args.plugin)
    except wires.Skip as reason:
        return reason
    port = free_port()
    server = Process([args.program, port], wire)
    client = None
    try:
        server.wait_for_text("TCP port")
        client = Process([args.program, port, "localhost"], wire)
        nics = NicCounters(args.admin, wire.environment(0))
        for process in client, server:
            process.wait_for_text("exchanged", 60)
        for process in client, server:
            counters = nics.wait(process, lambda c: all(sum(c[n] for n in names) >= MESSAGES for names in OF_MESSAGES))
            check_no_drops(process, counters)
            known = counters["roce.rx.packets"] + counters["tp.rx.data"] + counters["ctp.rx"]
            check(counters["rx.packets"] >= known, nonzero(counters))
            process.kill(signal.SIGINT)
        for process in client, server:
            process.expect(0, 20)
    finally:
        for process in filter(None, (client, server)):
            process.kill()
        wire.close()
    return None


def two_nics(args):
    """The first holds UDP port 4792 of the address, the second 4791. Returns why it cannot be had, or nothing."""
    try:
        wire = wires.make_for_roce("udp")
    except wires.Skip as reason:
        return reason
    pairs = []
    try:
        for program, test in (args.perf, ["write_lat", "-D", "60"]), (args.roce_perf, ["write_lat", "-n", "100000000"]):
            port = free_port()
            server = Process([program, *test, "-p", port], wire)
            pairs.append([server])
            server.wait_for_text("TCP port")
            pairs[-1].append(Process([program, *test, "-p", port, "localhost"], wire))
        nics = NicCounters(args.admin, wire.environment(0))
        for process in pairs[0]:
            counters = nics.wait(process, lambda c: c["tp.rx.data"] >= MESSAGES)
            check_no_drops(process, counters)
            check(not roce_part(counters), f"RoCE at a NIC of UB: {roce_part(counters)}")
        for process in pairs[1]:
            counters = nics.wait(process, lambda c: c["roce.rx.request"] >= MESSAGES)
            check_no_drops(process, counters)
            check(not ub_part(counters), f"UB at a NIC of RoCE: {ub_part(counters)}")
        for process in sum(pairs, []):
            check(process.popen.poll() is None, f"{process.name()} ended\n{process.text()}")
    finally:
        for process in sum(pairs, []):
            process.kill()
        wire.close()
    return None


def port_taken(args):
    """Somebody else has UDP port 4791, and there is no other wire: said at the start, and the program ends."""
    try:
        wire = wires.make_for_roce("udp")
    except wires.Skip as reason:
        return reason
    command = [args.roce_perf, "write_lat", "-n", "10", "-p", free_port()]
    server = None
    with socket.socket(type=socket.SOCK_DGRAM) as holder:
        holder.bind((wire.address(0), wires.ROCE_PORT))
        try:
            server = Process(command, wire)
            said = server.expect(1, 30)
            check("There is no RoCE at this address" in said, said)
            check("nobody could reach this program by RoCE" in said, said)
        finally:
            if server:
                server.kill()
            wire.close()
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--plugin", help="libsoftub_dpdk.so.0")
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    args.program = os.path.join(build, "tests/e2e/both_protocols")
    args.admin = os.path.join(build, "tools/admin/urma_admin")
    args.perf = os.path.join(build, "tools/perf/urma_perf")
    args.roce_perf = os.path.join(build, "tools/roce_perf/roce_perf")
    args.plugin = args.plugin or os.path.join(build, "dataplane/dpdk/libsoftub_dpdk.so.0")
    cases = [(f"one NIC, {name}", lambda name=name: one_nic(args, name)) for name in ("shm", "udp", "memif")]
    cases.append(("two NICs of one address, udp", lambda: two_nics(args)))
    cases.append(("UDP port 4791 is taken", lambda: port_taken(args)))
    failed = 0
    for name, run in cases:
        try:
            missing = run()
            print(f"{name:<30} {f'not run: {missing}' if missing else 'pass'}", flush=True)
        except Failure as failure:
            print(f"{name:<30} FAIL: {failure}", flush=True)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
