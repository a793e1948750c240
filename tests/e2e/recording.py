#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""urma_admin record and urma_replay: what live programs and daemons did is replayed, bit for bit.

  tests/e2e/recording.py --build build
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import daemons
import wires
from processes import FAILED, USAGE, Failure, Process, check, free_port

CANNOT = 2  # exit code of urma_replay: no recording, or none of this program
LOSSES = {"SOFTUB_IMPAIR_SEND": "loss=2% duplicate=1% reorder=64", "SOFTUB_IMPAIR_RECEIVE": "corrupt=1%"}


class Tests:
    def __init__(self, args, directory):
        self.args = args
        self.directory = directory
        self.admin = os.path.join(args.build, "tools/admin/urma_admin")
        self.perf = os.path.join(args.build, "tools/perf/urma_perf")
        self.replay = os.path.join(args.build, "tools/replay/urma_replay")
        self.softubd = os.path.join(args.build, "dataplane/softubd/softubd")
        self.files = 0

    def path(self):
        self.files += 1
        return os.path.join(self.directory, f"{self.files}.rec")

    def pages(self):
        return {"SOFTUB_LOG_STATS_DIR": tempfile.mkdtemp(dir=self.directory)}

    def wire(self, kind, variables=None):
        wire = wires.make(kind, self.args.plugin)
        wire.variables.update({**self.pages(), **(variables or {})})
        return wire

    def ask(self, pages, pid, *words, code=0):
        """urma_admin record."""
        command = [self.admin, "record", *words, "-i", pid, "--dir", pages]
        return Process(command, wires.Given({})).expect(code)

    def check_replay(self, *paths, calls=1000):
        """Each comes out as it was, and so many calls are in it."""
        for path in paths:
            said = Process([self.replay, "--check", path], wires.Given({})).expect(0, 300)
            found = re.search(r"the same, (\d+) calls", said)
            check(found and int(found.group(1)) >= calls, said)
            print(f"   {os.path.basename(path)}: {found.group(1)} calls, {os.path.getsize(path) >> 10} KiB")

    def start_pair(self, wire, test, *options):
        port = free_port()
        args = [self.perf, test, "-p", port, "-D", 600, *options]
        server = Process(args, wire)
        server.wait_for_text("TCP port")
        client = Process([*args, wire.host()], wire)
        client.wait_for_text("#bytes")
        return server, client

    def pair(self, kind, test, *options, variables=None, calls=1000):
        """Both ends of a pair, which runs already, are recorded for a second, and have so many calls in it."""
        wire = self.wire(kind, variables)
        pages = wire.variables["SOFTUB_LOG_STATS_DIR"]
        server, client = self.start_pair(wire, test, *options)
        try:
            paths = {}
            for end in (server, client):
                paths[end] = self.path()
                self.ask(pages, end.popen.pid, "on", paths[end], "--headers")
            time.sleep(1)
            for end, path in paths.items():
                said = self.ask(pages, end.popen.pid, "off")
                check("ended" in said and "it was stopped" in said and path in said, said)
            time.sleep(0.3)
            check(client.popen.poll() is None and server.popen.poll() is None, "a program ended:\n" + client.text())
            self.check_replay(*paths.values(), calls=calls)
        finally:
            client.kill()
            server.kill()
            wire.close()

    def finite(self):
        """Programs that verify all they do notice nothing of recordings that begin, roll over and end meanwhile."""
        wire = self.wire("udp", LOSSES)
        pages = wire.variables["SOFTUB_LOG_STATS_DIR"]
        port = free_port()
        args = [self.perf, "write_bw", "-p", port, "-D", 15, "-s", 4096, "-t", 16, "--verify"]
        server = Process(args, wire)
        server.wait_for_text("TCP port")
        client = Process([*args, wire.host()], wire)
        client.wait_for_text("#bytes")
        for _ in range(4):
            for end in (server, client):
                self.ask(pages, end.popen.pid, "on", self.path(), "--size", "24M", "--files", "0")
            time.sleep(0.4)
            for end in (server, client):
                self.ask(pages, end.popen.pid, "off")
        client.expect(0)
        server.expect(0)
        files = [os.path.join(self.directory, f) for f in os.listdir(self.directory) if ".rec" in f]
        said = Process([self.replay, "--check", "-q", *files], wires.Given({})).expect(0, 300)
        check(re.search(r"(\d+) of \1 recordings replay", said), said)
        wire.close()

    def killed(self):
        """What entered the Core of a program that is killed."""
        wire = self.wire("shm")
        pages = wire.variables["SOFTUB_LOG_STATS_DIR"]
        server, client = self.start_pair(wire, "write_bw", "-s", 64)
        try:
            path = self.path()
            self.ask(pages, client.popen.pid, "on", path)
            time.sleep(0.5)
            client.kill()
            self.check_replay(path)
        finally:
            server.kill()
            wire.close()

    def payload(self):
        """None of it is in a recording, of whoever sends or gets it, unless it was asked for: then frames that leave have
        the bytes and the ICRC that they had."""
        for kept in (False, True):
            self.copy_a_file(kept)

    def copy_a_file(self, payload_is_kept):
        wire = self.wire("udp")
        pages, port = wire.variables["SOFTUB_LOG_STATS_DIR"], free_port()
        words, inbox = os.path.join(self.directory, "words"), tempfile.mkdtemp(dir=self.directory)
        secret = b"a secret of 32 bytes, or nearly\n"
        with open(words, "wb") as file:
            file.write(secret * (64 << 15))
        copy = os.path.join(self.args.build, "apps/file_copy/file_copy")
        server = Process([copy, "receive", "--dir", inbox, "--port", port], wire)
        try:
            server.wait_for_text("listen|waiting|port")
            path = self.path()
            self.ask(pages, server.popen.pid, "on", path, "--headers", *(["--payload"] if payload_is_kept else []))
            Process([copy, "send", words, f"{wire.host()}:{port}"], wire).expect(0)
            self.ask(pages, server.popen.pid, "off")
            check(os.path.getsize(os.path.join(inbox, "words")) == os.path.getsize(words), "nothing was copied")
            with open(path, "rb") as file:
                check((secret[:16] in file.read()) == payload_is_kept, "payload is in the recording, or is not")
            self.check_replay(path)
        finally:
            server.kill()
            wire.close()

    def daemon(self):
        """A daemon with four applications, two of which are killed and followed by others."""
        pages = self.pages()
        daemon = daemons.Daemon(self.softubd, self.directory, 0, {**pages, "SOFTUB_PORT_KINDS": "shm"})
        wire = wires.Given({**pages, **daemon.variables()})
        pid = daemon.process.pid
        try:
            path = self.path()
            first = self.start_pair(wire, "write_bw", "-s", 4096, "-t", 4)
            self.ask(pages["SOFTUB_LOG_STATS_DIR"], pid, "on", path, "--headers", "--size", "1G")
            pairs = [first, self.start_pair(wire, "send_bw", "-s", 100, "-t", 4)]
            for kill in (0, 1, 0):
                time.sleep(0.3)
                pairs[kill][kill].kill()
                time.sleep(0.2)
                pairs[kill][1 - kill].kill()
                pairs[kill] = self.start_pair(wire, "read_bw", "-s", 4096, "-t", 4)
            time.sleep(0.3)
            said = self.ask(pages["SOFTUB_LOG_STATS_DIR"], pid, "off")
            check("it was stopped" in said, said)
            for pair in pairs:
                for process in pair:
                    process.kill()
            self.check_replay(path)
            self.minimise(path)
        finally:
            check(daemon.stop() == 0, daemon.log())

    def minimise(self, path):
        """To the objects of each jetty that was there in the end: together they are a part of the recording, and each
        does what it did."""
        said = Process([self.replay, path, "-c", "continue", "-c", "queues"], wires.Given({})).expect(0, 300)
        queues = re.findall(r"^ +(\d+) READY +[1-9]", said, re.MULTILINE)
        check(len(queues) >= 2, said)
        for queue in queues:
            smaller = self.path()
            said = Process([self.replay, path, "--minimise", smaller, "--queue", queue], wires.Given({})).expect(0, 300)
            print("   " + said.replace("\n", "; "))
            counts = {what: re.search(what + r" +(\d+) +(\d+)", said) for what in ("calls", "their packets")}
            then, here = map(int, counts["calls"].groups())
            check(here < then, said)
            then, here = map(int, counts["their packets"].groups())
            check(0.9 * then <= here <= 1.1 * then, said)
            self.check_replay(smaller, calls=100)

    def rotation(self):
        """Each file begins with an image, so each replays by itself, and no more stay than were asked for."""
        wire = self.wire("shm")
        pages = wire.variables["SOFTUB_LOG_STATS_DIR"]
        server, client = self.start_pair(wire, "write_bw", "-s", 64)
        try:
            path = self.path()
            self.ask(pages, client.popen.pid, "on", path, "--size", "15M", "--files", "2")
            end = time.monotonic() + 60
            while not os.path.exists(path + ".3"):
                check(time.monotonic() < end, self.ask(pages, client.popen.pid, "status"))
                time.sleep(0.05)
            self.ask(pages, client.popen.pid, "off")
            files = sorted(f for f in os.listdir(self.directory) if f.startswith(os.path.basename(path)))
            check(len(files) == 2, files)
            self.check_replay(*(os.path.join(self.directory, f) for f in files), calls=1)
            full = self.path()
            self.ask(pages, client.popen.pid, "on", full, "--size", "15M")
            while "running" in self.ask(pages, client.popen.pid, "status"):
                check(time.monotonic() < end + 60, "a file without a limit")
                time.sleep(0.05)
            said = self.ask(pages, client.popen.pid, "status")
            check("as many bytes as it may" in said, said)
            self.check_replay(full)
        finally:
            client.kill()
            server.kill()
            wire.close()

    # ---- bad input ----
    def mistakes(self):
        wire = self.wire("shm")
        pages = wire.variables["SOFTUB_LOG_STATS_DIR"]
        server, client = self.start_pair(wire, "write_bw", "-s", 64)
        pid = client.popen.pid
        try:
            path = self.path()
            for words, text in (((self.directory,), "File exists"), ((os.path.join(self.directory, "no/x"),), "No such"),
                                ((path, "--size", "1000"), "at least 8388608 bytes"),
                                ((path, "--size", "1000T"), "cannot map"),
                                ((path, "--size", "9M"), "has no room in")):
                said = self.ask(pages, pid, "on", *words, code=FAILED)
                check(text in said and len(said.splitlines()) == 1, said)
            for words in ((), ("",), (path, "--size", "x"), (path, "--size", "-1"), (path, "--files", "-1")):
                self.ask(pages, pid, "on", *words, code=USAGE)
            check("no recording" in self.ask(pages, pid, "off", code=FAILED), "an end without a beginning")
            image = self.written(self.ask(pages, pid, "on", path))
            said = self.ask(pages, pid, "on", self.path(), code=FAILED)
            check(f"there is a recording already, in {path}" in said, said)
            end = time.monotonic() + 60
            while self.written(self.ask(pages, pid, "status")) < image + 100000:
                check(time.monotonic() < end, "nothing is recorded")
                time.sleep(0.05)
            self.ask(pages, pid, "off")
            self.bad_files(path, image)
        finally:
            client.kill()
            server.kill()
            wire.close()

    @staticmethod
    def written(status):
        return int(re.search(r"(\d+) bytes in it", status).group(1))

    def bad_files(self, path, image):
        """Files that are no recording, of another build or architecture, cut off, or changed."""
        with open(path, "rb") as file:
            good = file.read()

        def replay(data, code, text):
            bad = self.path()
            with open(bad, "wb") as file:
                file.write(data)
            said = Process([self.replay, "--check", bad], wires.Given({})).expect(code, 120)
            check(text in said, said)

        replay(b"", CANNOT, "shorter than a header")
        replay(b"x" * 8192, CANNOT, "it does not begin with SOFTUBR1")
        replay(good[:8] + b"\x07" + good[9:], CANNOT, "has format 7")
        replay(good[:12] + b"\x03\x00" + good[14:], CANNOT, "another architecture")
        replay(good[:120] + b"\x00" * 8 + good[128:], CANNOT, "whose state is laid out in another way")
        replay(good[:100000], CANNOT, "is cut off or damaged")
        middle = image // 2
        replay(good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1:], CANNOT, "is cut off or damaged")
        replay(good[:image + 50001], 0, "the same")
        # Wherever the writer was killed, or the disk became full.
        for end in range(image + 1, image + 60000, 1499):
            replay(good[:end], 0, "the end of the file is missing")
        replay(good[:image + 20000] + bytes(64) + good[image + 20064:], 1, "DIFFERS")
        for place in (48, 200, 300):  # of the header: its version, and what is only known by its sum
            replay(good[:place] + bytes([good[place] ^ 1]) + good[place + 1:], CANNOT, "is cut off or damaged")
        pipe = self.path()
        os.mkfifo(pipe)
        said = Process([self.replay, "--check", pipe], wires.Given({})).expect(CANNOT)
        check("it is no file" in said, said)
        with open("/dev/full", "w") as full:
            done = subprocess.run([self.replay, path, "-c", "channels"], stdout=full, stderr=subprocess.PIPE, timeout=60)
        check(done.returncode == CANNOT, done)
        said = Process([self.replay, "--check", os.path.join(self.directory, "none")], wires.Given({})).expect(CANNOT)
        check("No such file" in said, said)
        # A byte of an entry that is another one is noticed before anything is done with it.
        for place in range(image + 100, image + 90000, 2951):
            bad = self.path()
            with open(bad, "wb") as file:
                file.write(good[:place] + bytes([good[place] ^ 0x5a]) + good[place + 1:])
            done = subprocess.run([self.replay, "--check", bad], capture_output=True, text=True, timeout=120)
            check(done.returncode == 1 and "is damaged" in done.stdout,
                  f"byte {place}: {done.returncode}\n{done.stdout}{done.stderr}")
            os.unlink(bad)

    def all(self):
        steps = [("a lossy wire", lambda: self.pair("udp", "write_bw", "-s", 4096, "-t", 16, variables=LOSSES)),
                 ("READ over shared memory", lambda: self.pair("shm", "read_bw", "-s", 64)),
                 ("SEND over shared memory", lambda: self.pair("shm", "send_lat", "-s", 64)),
                 # A program that loads by a lane does so without its NIC.
                 ("lanes", lambda: self.pair("shm", "load_lat", "-s", 64, "--path", "lane", calls=1)),
                 ("nobody notices", self.finite), ("no payload", self.payload), ("a daemon", self.daemon), ("kill -9", self.killed),
                 ("several files", self.rotation), ("mistakes", self.mistakes)]
        if self.args.plugin:
            steps.append(("memif", lambda: self.pair("memif", "write_bw", "-s", 4096)))
            steps.append(("loads over frames", lambda: self.pair("memif", "load_lat", "-s", 64, "--path", "frames")))
        for name, step in steps:
            if self.args.only and self.args.only not in name:
                continue
            start = time.monotonic()
            step()
            print(f"ok {name} ({time.monotonic() - start:.1f} s)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--plugin", help="the plugin of DPDK, for memif")
    parser.add_argument("--only", help="steps with that in their name")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="softub-recording-") as directory:
        try:
            Tests(args, directory).all()
        except Failure as failure:
            print(f"FAILED: {failure}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
