#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of apps/aperture, as docs/aperture.md runs them: servers that hold memory, and clients that use it.

The wire is that of the environment, as for every program. Where the kernel allows no windows, far_container is left out
and the cause is printed.

  SOFTUB_PORT_KINDS=udp tests/e2e/run_aperture.py --build build
  tests/e2e/run_aperture.py --build build --only table
"""
import argparse
import contextlib
import os
import re
import signal
import sys

from processes import Failure, Process, check, free_port

FAILED = 1
USAGE = 2
PEER_LOST = 3
INTERRUPTED = 130
NO_WINDOWS = "cannot map remote memory: Operation not permitted"


class Tests:
    def __init__(self, build):
        self.directory = os.path.abspath(os.path.join(build, "apps/aperture"))

    def start(self, name, *arguments):
        return Process([os.path.join(self.directory, name), *arguments])

    def ask(self, name, *arguments, code=0):
        return self.start(name, *arguments).expect(code, 120)

    @contextlib.contextmanager
    def server(self, name, *arguments):
        """Its port, while it runs. It must not end by itself."""
        server = self.start(name, "-p", "0", *arguments)
        try:
            yield server.wait_for_text(r"TCP port (\d+)").group(1)
            check(server.popen.poll() is None, f"the server ended\n{server.text()}")
            server.kill(signal.SIGTERM)
            server.expect(INTERRUPTED, 20)
        finally:
            server.kill()

    @contextlib.contextmanager
    def clients(self, count, name, *arguments):
        """So many at the same time; what they said when all have ended well."""
        running = [self.start(name, *arguments) for _ in range(count)]
        try:
            yield [client.expect(0, 120) for client in running]
        finally:
            for client in running:
                client.kill()

    def command_line(self):
        for name in ("far_chase", "far_container", "far_lock", "far_table"):
            check("Examples:" in self.ask(name, "--help"), f"{name} --help has no examples")
            self.ask(name, "--nonsense", code=USAGE)
            self.ask(name, "localhost", "--loopback", code=USAGE)
        text = self.ask("far_chase", "localhost", "-p", free_port(), code=FAILED)
        check(re.match("far_chase: .*connect", text), f"it does not say that nobody listens: {text}")
        with self.server("far_table") as port:
            check("not far_lock" in self.ask("far_lock", "localhost", "-p", port, code=FAILED), "another server serves")

    def table(self):
        self.ask("far_table", "--loopback", "--keys", "50", "--rounds", "1")
        with self.server("far_table") as port:
            there = ("far_table", "localhost", "-p", port)
            self.ask(*there, "--put", "7=red")
            check(self.ask(*there, "--get", "7") == "red\n", "the value is another one")
            self.ask(*there, "--put", "7=green, and a text of exactly forty-seven bytes!")
            check(self.ask(*there, "--get", "7").startswith("green"), "the value did not change")
            check("there is no key 8" in self.ask(*there, "--get", "8", code=FAILED), "there is no such key")
            self.ask(*there, "--put", "seven=red", code=USAGE)
            check("at most 47" in self.ask(*there, "--put", "9=" + "x" * 48, code=FAILED), "a long text")
            with self.clients(3, *there, "--keys", "100", "--rounds", "2") as texts:
                numbers = {re.match(r"client (\d+): 400 puts", text).group(1) for text in texts}
                check(len(numbers) == 3, f"clients with equal numbers: {texts}")
                of_others = [int(re.search(r"(\d+) of them written by others", text).group(1)) for text in texts]
                check(sum(of_others) > 0, f"clients saw nothing of each other: {texts}")
        with self.server("far_table", "-m", "4k") as port:
            text = self.ask("far_table", "localhost", "-p", port, "--keys", "100", code=FAILED)
            check("the table is full: 63 keys" in text, text)

    def lock(self):
        self.ask("far_lock", "--loopback", "--times", "20")
        with self.server("far_lock") as port:
            for kind in ("ticket", "cas"):
                options = ("--clients", "3", "--times", "100", "--lock", kind)
                with self.clients(3, "far_lock", "localhost", "-p", port, *options) as texts:
                    check(all("300 in all" in text for text in texts), f"additions were lost: {texts}")

    def windows_allowed(self):
        probe = self.start("far_container", "--loopback", "--items", "10")
        if probe.wait(60) == FAILED and NO_WINDOWS in probe.text():
            print(f"run_aperture: no windows here: {probe.text().strip()}")
            return False
        probe.expect(0)
        return True

    def container(self):
        if not self.windows_allowed():
            return
        with self.server("far_container", "-m", "256k") as port:
            there = ("far_container", "localhost", "-p", port)
            for kind, items in {"vector": 1000, "list": 800, "map": 400, "unordered_map": 600}.items():  # 40 KiB each
                text = self.ask(*there, "--container", kind, "--items", items, "--lookups", "50", "--cache", "32k")
                check(f"{kind} of {items} elements" in text, text)
                faults = int(re.search(r"faults: (\d+) of missing pages", text).group(1))
                evicted = int(re.search(r"(\d+) evicted", text).group(1))
                check(faults > 0 and evicted > 0, f"the cache was never full:\n{text}")
            text = self.ask(*there, "--items", "20000", "--cache", "256k", code=FAILED)
            check("the server's memory is full after" in text, text)
        self.container_loses_its_server()

    def container_loses_its_server(self):
        server = self.start("far_container", "-p", "0")
        client = None
        try:
            port = server.wait_for_text(r"TCP port (\d+)").group(1)
            client = self.start("far_container", "localhost", "-p", port, "--items", "400", "--cache", "32k", "--lookups",
                                "1000000000")
            client.wait_for_text("walked through")
            server.kill()
            check("the server is gone" in client.expect(PEER_LOST, 60), client.text())
        finally:
            server.kill()
            if client:
                client.kill()

    def chase(self):
        wanted = "lane" if Process.wire.name == "shm" else "queue"
        short = ("--seconds", "0.01", "--rounds", "2")
        with self.server("far_chase", "-m", "256k") as port:
            for arguments in (("localhost", "-p", port), ("--loopback", "-m", "128k")):
                text = self.ask("far_chase", *arguments, *short)
                check(f"the path is a {wanted}" in text, text)
                ways = ["own memory", "explicit load", "READ of URMA"]
                ways += [way for way in ("cached window, all present", "cached window, an eighth", "uncached window")
                         if f"no {way} here" not in text]
                for way in ways:
                    row = re.search(rf"(?m)^{way} +([\d.]+) +([\d.]+) +([\d.]+) +(\d+)$", text)
                    check(row and float(row.group(1)) > 0 and int(row.group(4)) > 0, f"no row for {way}:\n{text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    names = ("command_line", "table", "lock", "container", "chase")
    parser.add_argument("--only", choices=names)
    args = parser.parse_args()
    try:
        for name in names if args.only is None else [args.only]:
            getattr(Tests(args.build), name)()
    except Failure as failure:
        print(f"run_aperture: FAIL: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
