#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kv_store, as docs/kv-store.md runs it, and clients that use one store at the same time, some of which are killed.

kv_trial checks all that it reads: values tell whether they are whole, and those of one writer are numbered. The wire is
that of the environment, as for every program; --daemon puts the NICs of all programs into two daemons.

  SOFTUB_PORT_KINDS=udp tests/e2e/run_kv_store.py --build build
  tests/e2e/run_kv_store.py --build build --daemon --only killed
"""
import argparse
import contextlib
import os
import re
import signal
import sys
import tempfile
import time

import daemons
import wires
from processes import FAILED, USAGE, Failure, Process, check, free_port

PEER_LOST = 3
INTERRUPTED = 130
MODES = ("read", "write", "load")


class Tests:
    def __init__(self, build):
        self.program = os.path.join(build, "apps/kv_store/kv_store")
        self.trial_program = os.path.join(build, "tests/e2e/kv_trial")

    def ask(self, *arguments, code=0):
        return Process([self.program, *arguments]).expect(code, 60)

    @contextlib.contextmanager
    def server(self, *arguments):
        """Its port, while it runs. It must not end by itself, and must say nothing against its clients."""
        server = Process([self.program, "serve", "-p", "0", *arguments])
        try:
            yield server.wait_for_text(r"TCP port (\d+)").group(1)
            check(server.popen.poll() is None, f"the server ended\n{server.text()}")
            server.kill(signal.SIGTERM)
            text = server.expect(INTERRUPTED, 20)
            complaints = re.findall(r"(?m)^kv_store: (?!interrupted$).*", text)
            check(not complaints, f"the server complains: {complaints}")
        finally:
            server.kill()

    def trial(self, port, mode, *arguments):
        return Process([self.trial_program, "localhost", "-p", port, "--mode", mode, *arguments])

    def look(self, port, most_value):
        """All keys are whole and can be replaced, whatever way a client takes. How many there are."""
        counts = {re.search(r"(\d+) keys are whole", self.trial(port, mode, "--look", "--most-value",
                                                                   most_value).expect(0, 60)).group(1)
                  for mode in MODES}
        check(len(counts) == 1, f"clients see different numbers of keys: {counts}")
        return int(counts.pop())

    def command_line(self):
        check("Examples:" in self.ask("--help"), "kv_store --help has no examples")
        self.ask("--nonsense", code=USAGE)
        self.ask("get", "localhost", code=USAGE)
        self.ask("put", "localhost", "key", code=USAGE)
        check("at most" in self.ask("serve", "-m", "1m", code=USAGE), "memory that is too small for two values")
        check("connect" in self.ask("get", "localhost", "key", "-p", free_port(), code=FAILED), "nobody listens there")

    def by_hand(self):
        with self.server("-m", "64m", "--value-limit", "100k") as port, tempfile.TemporaryDirectory() as directory:
            def at(command, *arguments, **options):
                return self.ask(command, "localhost", *arguments, "-p", port, **options)
            for mode in MODES:
                at("put", f"apple {mode}", "red", "--mode", mode)
                at("put", f"apple {mode}", "green", "--mode", mode)
                check(at("get", f"apple {mode}", "--mode", mode) == "green\n", f"another value by {mode}")
            check(at("scan", "apple m") == "apple read green\napple write green\n", "another scan")
            check(at("scan", "-n", "1") == "apple load green\n", "another first key")
            at("delete", "apple read")
            check("there is no key apple read" in at("get", "apple read", code=FAILED), "it is still there")
            check("there is no key apple read" in at("delete", "apple read", code=FAILED), "it is still there")
            path = os.path.join(directory, "value")
            with open(path, "w") as file:
                file.write("x" * 100 * 1024)
            at("put", "long", "--file", path)
            check(at("get", "long", "--raw") == "x" * 100 * 1024, "another long value")
            with open(path, "a") as file:
                file.write("x")
            check("values at most 102400" in at("put", "long", "--file", path, code=FAILED), "a value that is too long")
            check("keys have 1 to" in at("put", "", "value", code=FAILED), "an empty key")
            check(re.search(r"(?m)^keys +3$", at("stat")), "another number of keys")

    def full(self):
        with self.server("-m", "256k", "--value-limit", "100k") as port, tempfile.NamedTemporaryFile("w") as file:
            file.write("x" * 100 * 1024)
            file.flush()
            for key in ("one", "two"):
                self.ask("put", "localhost", key, "-f", file.name, "-p", port)
            text = self.ask("put", "localhost", "three", "-f", file.name, "-p", port, code=FAILED)
            check("the store is full" in text, text)
            self.ask("delete", "localhost", "one", "-p", port)
            self.ask("put", "localhost", "three", "-f", file.name, "-p", port)

    def together(self):
        """The heap is so small that places are used again all the time."""
        clients = ("read", "write", "write", "load")
        for most_value, memory, operations in ((1 << 20, "160m", 600), (2000, "128k", 3000)):
            limit = ("--value-limit", most_value)
            with self.server("-m", memory, *limit) as port:
                trials = [self.trial(port, mode, "--me", me, "--clients", len(clients), "--operations", operations,
                                     "--most-value", most_value)
                          for me, mode in enumerate(clients)]
                try:
                    texts = [trial.expect(0, 60) for trial in trials]
                finally:
                    for trial in trials:
                        trial.kill()
                counts = {name: sum(int(re.search(rf"(\d+) {name}", text).group(1)) for text in texts)
                          for name in ("gets", "puts", "direct puts", "lost races", "hint hits", "torn reads")}
                print(f"together, up to {most_value} bytes: {counts}")
                check(all(counts[name] > 0 for name in ("gets", "puts", "direct puts", "hint hits")), f"{counts}")
                check(self.look(port, most_value) > 0, "no key is left")

    def killed(self):
        """Clients die in the middle of whatever they do; those that live notice nothing, and no key is lost."""
        clients = 8
        with self.server("-m", "160m") as port:
            def start(me, mode):
                return self.trial(port, mode, "--me", me, "--clients", clients, "--keys", 10, "--most-value", 200_000)
            living = [start(0, "write"), start(1, "read")]
            mortal = []
            try:
                for me in range(2, clients):
                    victim = start(me, MODES[me % 2])
                    mortal.append(victim)
                    victim.wait_for_text("is under way")
                    time.sleep(0.02 * me)
                    victim.kill()
                for trial in living:
                    trial.wait_for_text("is under way")
                    trial.kill(signal.SIGTERM)
                    trial.expect(INTERRUPTED, 60)
            finally:
                for trial in living + mortal:
                    trial.kill()
            check(self.look(port, 200_000) > 0, "no key is left")

    def server_dies(self):
        server = Process([self.program, "serve", "-p", "0", "-m", "64m"])
        trials = []
        try:
            port = server.wait_for_text(r"TCP port (\d+)").group(1)
            trials = [self.trial(port, mode, "--me", me, "--clients", len(MODES), "--most-value", 1000)
                      for me, mode in enumerate(MODES)]
            for trial in trials:
                trial.wait_for_text("is under way")
            server.kill()
            for trial in trials:
                text = trial.expect(FAILED, 30)
                check(re.search("failed .*(server|NIC)", text), f"it does not say why: {text}")
        finally:
            server.kill()
            for trial in trials:
                trial.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--daemon", action="store_true", help="the NICs of all programs are in two daemons")
    names = ("command_line", "by_hand", "full", "together", "killed", "server_dies")
    parser.add_argument("--only", choices=names)
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    if args.daemon:
        Process.wire = daemons.Daemons(wires.Wire(), os.path.join(build, "dataplane/softubd/softubd"))
    try:
        for name in names if args.only is None else [args.only]:
            getattr(Tests(build), name)()
    except Failure as failure:
        print(f"run_kv_store: FAIL: {failure}")
        return 1
    finally:
        Process.wire.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
