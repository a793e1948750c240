#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DPDK's telemetry socket answers /softub/..., with what the instance's own socket says, too. Two programs talk over
memif; the client of the socket is DPDK's protocol: SOCK_SEQPACKET, a greeting, then a command and an answer each.

  tests/e2e/dpdk_telemetry.py --build build --plugin build/dataplane/dpdk/libsoftub_dpdk.so.0
"""
import argparse
import json
import os
import socket
import sys
import time

import wires
from processes import Failure, Process, check, free_port

SKIPPED = 77


def runtime_directory(pid):
    """As DPDK chooses it."""
    base = "/var/run" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "/tmp")
    return os.path.join(base, "dpdk", f"softub-{pid}")


class Client:
    def __init__(self, pid):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(10)
        self.socket.connect(os.path.join(runtime_directory(pid), "dpdk_telemetry.v2"))
        self.room = json.loads(self.socket.recv(1024))["max_output_len"]

    def ask(self, request):
        self.socket.send(request.encode())
        answer = json.loads(self.socket.recv(self.room))
        return answer[request.partition(",")[0]]

    def close(self):
        self.socket.close()


def shape(value):
    """Names and types, without numbers, and without what may be there or not."""
    if not isinstance(value, dict):
        return type(value).__name__
    return {name: shape(inner) for name, inner in value.items()
            if name not in ("counts", "counters", "classes") and not name.isdigit()}


def same_answers(client, admin, pid):
    for command in ("/softub/info", "/softub/ports", "/softub/channels", "/softub/channels,1", "/softub/apps",
                    "/softub/latency", "/softub/work"):
        own = json.loads(Process([admin, "telemetry", command, "-i", pid]).expect(0))[command.partition(",")[0]]
        by_dpdk = client.ask(command)
        check(shape(own) == shape(by_dpdk), f"{command}: DPDK says {by_dpdk}, and the instance {own}")


def run(admin, perf):
    args = [perf, "write_lat", "-s", 64, "-p", free_port(), "-D", 600]
    server = Process(args)
    client = peer = None
    try:
        server.wait_for_text("TCP port")
        peer = Process(args + [Process.wire.host()])
        peer.wait_for_text("#bytes")
        pid = server.popen.pid
        client = Client(pid)
        time.sleep(0.5)
        paths = client.ask("/")
        check({"/softub/counters", "/ethdev/list"} <= set(paths), f"{paths}")
        first = client.ask("/softub/counters")
        check(first["rx_packets"] > 0, f"{first}")
        time.sleep(1)
        check(client.ask("/softub/counters")["rx_packets"] > first["rx_packets"], "counters stand still")
        check(client.ask("/softub/info")["pid"] == pid, "another one answers")
        check(client.ask("/softub/ports")["wires"] == ["dpdk"], "other wires")
        check(client.ask("/softub/channels")["channels"]["0"]["rx_packets"] > 0, "no channel")
        check(client.ask("/softub/channels,x") is None and client.ask("/softub/info,1") is None, "nonsense has answers")
        Process([admin, "latency", "on", "-i", pid]).expect(0)
        time.sleep(1)
        placed = client.ask("/softub/latency")["stages"]["received_to_placed"]["classes"]
        check(placed and all(c["count"] > 0 and c["p50_ns"] <= c["max_ns"] for c in placed.values()), f"{placed}")
        same_answers(client, admin, pid)
        others = [Client(pid) for _ in range(4)]  # at the same time
        for other in others:
            check(other.ask("/softub/info")["pid"] == pid, "another one answers")
            other.close()
        server.kill(15)
        server.wait(30)  # with a client that is connected
    finally:
        for process in server, peer:
            if process:
                process.kill()
        if client:
            client.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--plugin", default="")
    args = parser.parse_args()
    try:
        Process.wire = wires.Memif(args.plugin)
    except wires.Skip as why:
        print(f"skipped: {why}")
        return SKIPPED
    Process.wire.variables["SOFTUB_DPDK_ARGUMENTS"] = "--telemetry"
    try:
        run(os.path.join(args.build, "tools/admin/urma_admin"), os.path.join(args.build, "tools/perf/urma_perf"))
    except Failure as failure:
        print(f"FAILED: {failure}")
        return 1
    finally:
        Process.wire.close()
    print("ok DPDK's telemetry")
    return 0


if __name__ == "__main__":
    sys.exit(main())
