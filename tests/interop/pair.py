#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/roce_peer against itself, each test over DPDK's memif or another wire: what matrix.py needs a guest for,
without root and in seconds. It shows that both roles work, not that another implementation agrees. The tests of
roce_perf, too, where it is built.

  tests/interop/pair.py --build build
  tests/interop/pair.py --build build --wire udp
"""
import argparse
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import wires  # noqa: E402
from processes import free_port  # noqa: E402

TESTS = ["rc_pingpong", "uc_pingpong", "ud_pingpong", "send_lat", "send_bw", "write_lat", "write_bw", "read_lat",
         "read_bw", "atomic_lat", "atomic_bw", "rping", "send_lat -c UC", "write_lat -c UC", "write_bw -c UC"]
PERF_TESTS = ["send_lat", "send_bw", "write_lat", "write_lat --to-completion", "write_bw", "read_lat", "read_bw"]


def sizes_of(test):
    if test.startswith("atomic"):
        return [8]
    if test.startswith("uc") or test.endswith("UC"):
        return [5, 4096, 65536]  # a message that the buffers of any wire take: what is lost does not come again
    return [5, 4096] if test == "ud_pingpong" else [5, 4096, 1 << 20] if test != "rping" else [64, 65000]


def pairs(args):
    """Name, size, and the command of both sides but for the server's address."""
    for test in TESTS:
        for size in sizes_of(test):
            options = ["-s", str(size), "-n", "50", "--time-limit", "20", "--linger", "0.1"]
            yield test, size, [args.peer, *test.split(), *options]
    for test in PERF_TESTS if args.perf else []:
        for size in 1, 5000:
            yield f"perf {test}", size, [args.perf, *test.split(), "-s", str(size), "-n", "300"]


def run(args, test, command):
    """"" or what went wrong."""
    wire = wires.make_for_roce(args.wire, args.plugin)
    command = [*command, "-p", str(free_port())]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "stdin": subprocess.DEVNULL}
    echo = ["--echo"] if test.endswith("pingpong") else []  # one side has to, as the real tools do
    server = wire.start([*command, *echo], **options)
    client = None
    try:
        said = ""
        while not (line := server.stdout.readline()).startswith(("listening", "waiting")):
            said += line
            if not line:
                return f"the server says: {said}"
        client = wire.start([*command, wire.address(0) if test == "rping" else "localhost"], **options)
        said = client.communicate(timeout=40)[0]
        rest = server.communicate(timeout=40)[0]
        if client.returncode == 0 and server.returncode == 0:
            return ""
        return f"client {client.returncode}: {said.strip()}; server {server.returncode}: {rest.strip()}"
    except subprocess.TimeoutExpired:
        return "still runs after 40 s"
    finally:
        for process in filter(None, (server, client)):
            process.kill()
            process.wait()
            process.stdout.close()
        wire.close()


def built(build, name):
    path = os.path.abspath(os.path.join(build, name))
    return path if os.path.exists(path) else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build directory, where the next three are unless named")
    parser.add_argument("--peer", help="roce_peer")
    parser.add_argument("--perf", help="roce_perf")
    parser.add_argument("--wire", default="memif", choices=["shm", "udp", "memif"])
    parser.add_argument("--plugin", help="libsoftub_dpdk.so.0")
    parser.add_argument("--only", default="", help="regular expression: which tests")
    args = parser.parse_args()
    args.peer = args.peer or built(args.build, "tools/roce_peer/roce_peer")
    args.perf = args.perf or built(args.build, "tools/roce_perf/roce_perf")
    args.plugin = args.plugin or built(args.build, "dataplane/dpdk/libsoftub_dpdk.so.0")
    if not args.peer or not os.access(args.peer, os.X_OK):
        parser.error("there is no roce_peer: build first, and name --build or --peer")
    failed = 0
    for test, size, command in pairs(args):
        if not re.search(args.only, test):
            continue
        try:
            wrong = run(args, test, command)
        except wires.Skip as reason:
            print(f"skipped: {reason}")
            return 77
        print(f"{test:<30} {size:>8}  {'FAIL: ' + wrong if wrong else 'pass'}", flush=True)
        failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
