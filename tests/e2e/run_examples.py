#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/guide.md and docs/roce.md, as these run them.

  tests/e2e/run_examples.py --build build
"""
import argparse
import os
import sys

import wires
from processes import Failure, Process, check, free_port

NO_WINDOWS = "Operation not permitted"  # EPERM: the kernel or the container allows no cached windows


def run(directory):
    def start(name, *arguments):
        return Process([os.path.join(directory, name), *arguments])

    def ask(name, *arguments, code=0):
        return start(name, "::1", *arguments).expect(code, 30)

    def retry(name, *arguments):
        """The server may not listen yet."""
        for _ in range(50):
            client = start(name, "::1", *arguments)
            if client.wait(30) == 0:
                return client.text()
            check("no server there" in client.text(), client.text())
        raise Failure(f"{name}: its server never listened")

    os.environ["EXAMPLE_PORT"] = str(free_port())
    server = start("one_sided")
    retry("one_sided", "put", "apple", "red")
    check(ask("one_sided", "get", "apple") == "red\n", "the value is another one")
    ask("one_sided", "put", "apple", "green")
    check(ask("one_sided", "get", "apple") == "green\n", "the value did not change")
    check("no such key" in ask("one_sided", "get", "pear", code=1), "there is no pear")
    server.kill()

    os.environ["EXAMPLE_PORT"] = str(free_port())
    server = start("messaging")
    check(retry("messaging", "1", "2", "3") == "sum 6\n", "the sum is wrong")
    check(server.expect(0, 20) == "3 numbers, sum 6\n", "the server saw something else")

    os.environ["EXAMPLE_PORT"] = str(free_port())
    server = start("event_loop")
    check(retry("event_loop", "hello") == "hello\n", "another echo")
    check(ask("event_loop", "again") == "again\n", "another echo")
    server.wait_for_text("client 0 goes\\s+client 0 comes\\s+client 0 goes")
    server.kill()

    os.environ["EXAMPLE_PORT"] = str(free_port())
    server = start("journal")
    texts = [f"record {i}" for i in range(16)]
    retry("journal", *texts)
    check(server.expect(0, 20) == "".join(f"{t}\n" for t in (*texts, "copied: record 15")), "another journal")

    os.environ["EXAMPLE_PORT"] = str(free_port())
    server = start("lock")
    check(retry("lock", "show") == "cas 0, ticket 0\n", "somebody was there before")
    adders = [start("lock", "::1", how, "200") for how in ("cas", "ticket") * 3]
    for adder in adders:
        adder.expect(0, 60)
    check(ask("lock", "show") == "cas 600, ticket 600\n", "additions were lost")
    server.kill()

    run_far_memory(start)


def run_far_memory(start):
    name = f"notes-{free_port()}"
    owner = start("far_memory", "own", name)
    owner.wait_for_text(f"{name} is there")
    watcher = start("far_memory", "watch", name)
    for text in ("hello there", "again"):
        writer = start("far_memory", "write", name, text)
        if writer.wait(30) != 0 and NO_WINDOWS in writer.text():
            print(f"run_examples: no windows here: {writer.text().strip()}")
            watcher.kill()
            break
        check(writer.expect(0) == f"read back: {text}\n", "the memory has something else")
        owner.wait_for_text(f"somebody wrote: {text}")
        watcher.wait_for_text(f"watched: {text}")
    else:
        owner.kill()
        check("the memory is gone: status 9" in watcher.expect(0, 30), "the end of the owner was not noticed")
    owner.kill()


def run_roce(directory, kind):
    wire = wires.make_for_roce(kind)
    program = os.path.join(directory, "roce_write")
    server = Process([program], wire)
    try:
        server.wait_for_text("waiting on RDMA port")
        Process([program, wire.address(0), "written by RoCE"], wire).expect(0, 30)
        check("written by RoCE\n" in server.expect(0, 30), "the server read something else")
    finally:
        server.kill()
        wire.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    args = parser.parse_args()
    try:
        directory = os.path.abspath(os.path.join(args.build, "apps/examples"))
        run(directory)
        run_roce(directory, "shm")
        try:
            run_roce(directory, "udp")
        except wires.Skip as reason:
            print(f"run_examples: no RoCE over UDP here: {reason}")
    except Failure as failure:
        print(f"run_examples: FAIL: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
