#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tools against each other, two processes on this host, and checks exit codes and outputs.

The wire is that of the environment, as for every program, unless --wire names one (wires.py). A wire that cannot be
had here ends with exit code 77 and the cause.

  SOFTUB_PORT_KINDS=udp tests/e2e/run_tools.py --build build
  tests/e2e/run_tools.py --build build --only perf
  tests/e2e/run_tools.py --build build --wire memif --short
  tests/e2e/run_tools.py --build build --wire udp --placement daemon
"""
import argparse
import glob
import hashlib
import json
import os
import signal
import socket
import sys
import tempfile
import time

import daemons
import traces
import wires
from processes import FAILED, USAGE, Failure, Process, check, free_port, pair
from run_admin import TRANSPORTS, AdminTests

PEER_LOST = 3
INTERRUPTED = 130
SKIPPED = 77


class Tests(AdminTests):
    def __init__(self, tools, directory, placement):
        self.tools = tools
        self.placement = placement
        self.directory = directory
        self.host = Process.wire.host()

    # ---- urma_pingpong ----
    def pingpong(self, *options):
        port = free_port()
        args = [self.tools["pingpong"], "-p", port, "-n", 2000, *options]
        _, out = pair(args, args + [self.host])
        check("round trips of" in out, out)

    def pingpong_usage(self):
        for args in (["-s", "1x"], ["-s", 4294967297], ["-s", 0], ["-s", -1], ["-n", "1e3"], ["-n", ""], ["-p", 99999],
                     ["-p", 0], ["-p", "http"], ["--nonsense"], [self.host, self.host]):
            check(len(Process([self.tools["pingpong"], *args]).expect(USAGE)) > 0, f"no message for {args}")

    # ---- hello_write ----
    def hello(self):
        server = Process([self.tools["hello"]])
        try:
            address = server.wait_for_text(r"(?m)^[0-9a-f]{80,}$").group()
            out = Process([self.tools["hello"], "hello there", address]).expect(0)
            check("read back: hello there" in out, out)
            check("somebody wrote: hello there" in server.expect(0), server.text())
        finally:
            server.kill()

    # ---- urma_perf ----
    def perf(self, test, *options, server_options=(), rows=1, transport=None):
        port = free_port()
        file = os.path.join(self.directory, "perf.json")
        args = [self.tools["perf"], test, "-p", port, *options]
        _, out = pair(args + list(server_options), args + ["--json", file, self.host], timeout=120)
        check("#bytes" in out and "core to core" in out, out)
        with open(file) as f:
            document = json.load(f)
        check(len(document["results"]) == rows, f"{len(document['results'])} rows, expected {rows}")
        wanted = [transport] if transport else TRANSPORTS
        for row in document["results"]:
            speed = row["msg_rate_mpps"] if test.endswith("_bw") else row["t_typical_us"]
            check(row["iterations"] > 0 and speed > 0, json.dumps(row))
            check(row["transport"] in wanted, f"{test} {' '.join(map(str, options))}: not {wanted} served, {row}")
        check(not transport or f"# transport: {transport}" in out, out)

    def transport_of(self, verb, mode="rm"):
        """Which one has to serve short requests in this mode, on this wire."""
        if self.placement == "daemon":
            return "rtp"
        if mode == "rc" and Process.wire.name == "memif":  # its order needs a wire that loses nothing
            return "rtp"
        if Process.wire.name == "memif":  # a device may lose frames, and messages that take a receive need their order
            return "rtp" if verb == "send" else "ctp with repeats"
        return "ctp" if Process.wire.name in ("shm", "(default)") else "rtp"

    def perf_mismatch(self):
        port = free_port()
        server = Process([self.tools["perf"], "write_lat", "-p", port, "-s", 64])
        try:
            server.wait_for_text("TCP port")
            out = Process([self.tools["perf"], "write_lat", "-p", port, "-s", 128, self.host]).expect(2)
            check("-s is [128] here and [64] at the peer" in out, out)
            server.expect(2)
        finally:
            server.kill()

    def perf_usage(self):
        perf = self.tools["perf"]
        for seconds in ("nan", "inf", "-1", "0", "1e10", "1e300", "1e-9"):
            out = Process([perf, "write_lat", "-D", seconds]).expect(USAGE)
            check("seconds" in out and len(out) < 200, out)
        for args in (["nonsense"], ["write_lat", "-s", "0"], ["write_lat", "-s", "2g", "x"], ["atomic_lat", "-s", "4"],
                     ["map_lat", "-s", "5000"], ["load_lat", "--cache", "5"], ["map_lat", "--way", "uncached", "--cache", "5"],
                     ["write_lat", "-e"], ["send_lat", "--target-mode", "spin-memory"], ["write_lat", "-b"],
                     ["write_lat", "--trace", ""]):
            check(len(Process([perf, *args]).expect(2)) > 0, f"no message for {args}")
        check("Examples" in Process([perf, "--help"]).expect(0), "no examples")
        out = Process([perf, "write_lat", "-d", "no_such_device", self.host]).expect(1)
        check("no device no_such_device" in out, out)

    def perf_json_first(self):
        """A file that cannot be written is noticed before the measurement; what is there stays if that fails."""
        perf, there = self.tools["perf"], os.path.join(self.directory, "there.json")
        for path in ("/nonexistent/x.json", self.directory, "/dev/null"):
            out = Process([perf, "write_lat", "-p", free_port(), "--json", path]).expect(FAILED, 10)
            check("cannot write" in out and "waiting" not in out, out)
        with open(there, "w") as f:
            f.write("old")
        before = os.listdir(self.directory)
        Process([perf, "write_lat", "-p", free_port(), "--json", there, self.host]).expect(FAILED)
        check(open(there).read() == "old", "the file was touched")
        check(os.listdir(self.directory) == before, f"left behind: {os.listdir(self.directory)}")

    def perf_trace_lost(self):
        """A time series that cannot be written is an error, after the measurement at the latest."""
        pipe = os.path.join(self.directory, "pipe")
        os.mkfifo(pipe)
        out = Process([self.tools["perf"], "write_lat", "-p", free_port(), "--trace", pipe]).expect(FAILED, 10)
        check("cannot write" in out and "pipe" in out, out)
        args = [self.tools["perf"], "write_bw", "-p", free_port(), "-D", 1]
        server = Process(args)
        try:
            server.wait_for_text("TCP port")
            out = Process(args + ["--trace", "/dev/full", "--trace-interval", "1ms", self.host]).expect(FAILED, 30)
            check("cannot write /dev/full: No space left on device" in out, out)
        finally:
            server.kill()

    def perf_port_taken(self):
        with socket.socket() as s:
            s.bind(("", 0))
            s.listen()
            out = Process([self.tools["perf"], "write_lat", "-p", s.getsockname()[1]]).expect(1)
            check("cannot listen on TCP port" in out, out)

    def perf_nobody_there(self):
        out = Process([self.tools["perf"], "write_lat", "-p", free_port(), self.host]).expect(1)
        check("cannot connect" in out, out)

    def perf_killed(self, test, victim):
        """One side is killed in the middle; the other one says so and ends within seconds."""
        port = free_port()
        args = [self.tools["perf"], test, "-p", port, "-D", 60]
        server = Process(args)
        server.wait_for_text("TCP port")
        client = Process(args + [self.host])
        try:
            client.wait_for_text("#bytes")
            time.sleep(0.7)
            dies, stays = (server, client) if victim == "server" else (client, server)
            dies.kill()
            out = stays.expect(PEER_LOST, 30)
            check("peer" in out, out)
        finally:
            server.kill()
            client.kill()

    def perf_interrupted(self, test, victim):
        """One side is told to end; the other one ends with its reason."""
        port = free_port()
        args = [self.tools["perf"], test, "-p", port, "-D", 60]
        server = Process(args)
        server.wait_for_text("TCP port")
        client = Process(args + [self.host])
        try:
            client.wait_for_text("#bytes")
            time.sleep(0.5)
            ends, stays = (server, client) if victim == "server" else (client, server)
            ends.kill(signal.SIGTERM)
            check("interrupted" in ends.expect(INTERRUPTED, 20), ends.text())
            check("gave up: it was interrupted" in stays.expect(PEER_LOST, 20), stays.text())
        finally:
            server.kill()
            client.kill()

    def perf_request_failed(self, victim, status, text, code):
        """A request of one side fails: it says so in its own words, the other one that it gave up and why, both once."""
        port = free_port()
        faulty = ["env", f"SOFTUB_FAULT_INJECT=completion every=100 side=send status={status}"]
        args = [self.tools["perf"], "write_bw", "-b", "-s", 64, "-p", port, "-D", 60]
        server = Process((faulty if victim == "server" else []) + args)
        server.wait_for_text("TCP port")
        client = Process((faulty if victim == "client" else []) + args + [self.host])
        try:
            fails, stays = (server, client) if victim == "server" else (client, server)
            out = fails.expect(code, 30)
            check(f"urma_perf: a request failed: {text}" in out and "gave up" not in out, out)
            out = stays.expect(code, 30)
            check(f"urma_perf: the peer gave up: a request failed: {text}" in out and out.count("gave up") == 1, out)
        finally:
            server.kill()
            client.kill()

    # ---- file_copy ----
    def make_file(self, size):
        path = os.path.join(self.directory, f"source-{size}")
        block = bytes(range(256)) * 4096
        with open(path, "wb") as f:
            for i in range(0, size, len(block)):
                piece = bytearray(block[: min(len(block), size - i)])
                piece[: min(8, len(piece))] = i.to_bytes(8, "little")[: min(8, len(piece))]
                f.write(piece)
        return path

    @staticmethod
    def sha256(path):
        digest = hashlib.sha256()
        with open(path, "rb") as f:
            while piece := f.read(1 << 20):
                digest.update(piece)
        return digest.hexdigest()

    def receiver(self, *options, once=True):
        directory = tempfile.mkdtemp(dir=self.directory)
        process = Process([self.tools["file_copy"], "receive", "--dir", directory, "--port", 0,
                           *(["--once"] if once else []), *options])
        port = process.wait_for_text(r"TCP port (\d+)").group(1)
        return directory, process, f"{self.host}:{port}"

    def copy(self, size, *options):
        source = self.make_file(size)
        directory, receiver, host = self.receiver()
        try:
            out = Process([self.tools["file_copy"], "send", source, host, "--name", "copy", *options]).expect(0, 120)
            receiver.expect(0, 20)
            check("xxh64" in out, out)
            check(os.listdir(directory) == ["copy"], f"left behind: {os.listdir(directory)}")
            check(self.sha256(source) == self.sha256(os.path.join(directory, "copy")), "the copy differs")
        except Failure as failure:
            raise Failure(f"{failure}\n--- receiver:\n{receiver.text()}")
        finally:
            receiver.kill()
            os.unlink(source)

    def copy_refused(self):
        source = self.make_file(1000)
        directory, receiver, host = self.receiver()
        with open(os.path.join(directory, "taken"), "w") as f:
            f.write("here")
        try:
            out = Process([self.tools["file_copy"], "send", source, host, "--name", "taken"]).expect(1)
            check("exists already" in out, out)
            receiver.expect(1)
            check(open(os.path.join(directory, "taken")).read() == "here", "overwritten")
        finally:
            receiver.kill()
        for name in ("../x", "a/b", ".."):
            directory, receiver, host = self.receiver()
            try:
                Process([self.tools["file_copy"], "send", source, host, "--name", name]).expect(1)
                receiver.expect(1)
                check(os.listdir(directory) == [], "something was created")
            finally:
                receiver.kill()
        out = Process([self.tools["file_copy"], "send", source + "-missing", self.host]).expect(1)
        check("cannot open" in out, out)

    def copy_keeps_neighbours(self):
        """Names that look like that of an unfinished file, and the longest ones."""
        source = self.make_file(1000)
        directory, receiver, host = self.receiver(once=False)
        names = ["x.part", "x", ".x.part", "\u00e4" * 127, "n" * 255]
        mine = os.path.join(directory, "mine.part")
        with open(mine, "w") as f:
            f.write("here")
        try:
            for name in [*names, "mine"]:
                Process([self.tools["file_copy"], "send", source, host, "--name", name]).expect(0)
            check(open(mine).read() == "here", "a file of the user was changed")
            check(sorted(os.listdir(directory)) == sorted([*names, "mine", "mine.part"]), str(os.listdir(directory)))
            check(all(self.sha256(os.path.join(directory, n)) == self.sha256(source) for n in names), "a copy differs")
            out = Process([self.tools["file_copy"], "send", source, host, "--name", "n" * 256]).expect(FAILED)
            check("not acceptable" in out, out)
        finally:
            receiver.kill()

    @staticmethod
    def await_unfinished(directory, sender):
        """The file that a copy goes to, as soon as something is in it; None: the sender ended, or did nothing."""
        end = time.monotonic() + 20
        while sender.popen.poll() is None and time.monotonic() < end:
            found = glob.glob(os.path.join(directory, ".copy.*.part"))
            if found and os.path.getsize(found[0]) > 0:
                return found[0]
        return None

    def slow_copy(self, *receive_options):
        """A copy under way whose sender is stopped: source, directory, receiver, sender, unfinished file, host."""
        source = os.path.join(tempfile.mkdtemp(dir=self.directory), "source")
        with open(source, "wb") as f:
            f.truncate(256 << 20)
        directory, receiver, host = self.receiver(*receive_options, once=False)
        slowly = ("--iobuf", "4k", "--inflight", 1)
        sender = Process([self.tools["file_copy"], "send", source, host, "--name", "copy", *slowly])
        part = self.await_unfinished(directory, sender)
        sender.kill(signal.SIGSTOP)
        if part is None or sender.popen.poll() is not None:
            receiver.kill()
            sender.kill()
            raise Failure(f"no copy is under way\n{receiver.text()}\n{sender.text()}")
        return source, directory, receiver, sender, part, host

    def still_serves(self, directory, receiver, host):
        """The receiver has nothing unfinished, and takes a file."""
        source = self.make_file(3000)
        Process([self.tools["file_copy"], "send", source, host, "--name", "next"]).expect(0, 20)
        check(os.listdir(directory) == ["next"], f"left behind: {os.listdir(directory)}")
        check(receiver.popen.poll() is None, receiver.text())

    def copy_disturbed(self, whose, size, message):
        """Another program changes the size of the source or of the unfinished file: None removes it."""
        source, directory, receiver, sender, part, host = self.slow_copy()
        try:
            victim = source if whose == "source" else part
            os.unlink(victim) if size is None else os.truncate(victim, size)
            sender.kill(signal.SIGCONT)
            check(message in sender.expect(FAILED), sender.text())
            receiver.wait_for_text(message)
            self.still_serves(directory, receiver, host)
        finally:
            sender.kill()
            receiver.kill()

    def copy_interrupted(self, victim, sig):
        """One side is told to end; the other one says so, and nothing unfinished stays."""
        source, directory, receiver, sender, _, host = self.slow_copy()
        try:
            if victim == "receiver":
                receiver.kill(sig)
                receiver.expect(INTERRUPTED, 20)
                sender.kill(signal.SIGCONT)
                check("the receiver gave up: it was interrupted" in sender.expect(PEER_LOST, 20), sender.text())
                check(os.listdir(directory) == [], f"left behind: {os.listdir(directory)}")
            else:
                sender.kill(sig)
                sender.kill(signal.SIGCONT)
                sender.expect(INTERRUPTED, 20)
                receiver.wait_for_text("the sender gave up: it was interrupted")
                self.still_serves(directory, receiver, host)
        finally:
            sender.kill()
            receiver.kill()

    def copy_stopped(self):
        """A sender that makes no progress is given up, and the next one is served."""
        source, directory, receiver, sender, _, host = self.slow_copy("--timeout", 2)
        try:
            receiver.wait_for_text("nothing has come from the peer for 2 s")
            self.still_serves(directory, receiver, host)
            sender.kill(signal.SIGCONT)
            check("the receiver gave up: nothing has come" in sender.expect(PEER_LOST, 20), sender.text())
        finally:
            sender.kill()
            receiver.kill()

    def copy_without_size(self):
        out = Process([self.tools["file_copy"], "send", "/proc/self/status", self.host]).expect(FAILED)
        check("has content but no size" in out, out)

    def wrong_server(self, server_tool, client_tool):
        """Both sides say that the other one is another program."""
        port = free_port()
        source = self.make_file(1000)
        servers = {"perf": ["write_lat", "-p", port], "pingpong": ["-p", port],
                   "file_copy": ["receive", "--dir", self.directory, "--port", port, "--once"]}
        clients = {"perf": ["write_lat", "-p", port, self.host], "pingpong": ["-p", port, self.host],
                   "file_copy": ["send", source, f"{self.host}:{port}"]}
        server = Process([self.tools[server_tool], *servers[server_tool]])
        try:
            server.wait_for_text("TCP port")
            client = Process([self.tools[client_tool], *clients[client_tool]])
            for side in (client, server):
                check("is the TCP port" in side.expect(FAILED, 20), side.text())
        finally:
            server.kill()

    def copy_killed(self, victim):
        source = self.make_file(400 << 20)
        directory, receiver, host = self.receiver()
        sender = Process([self.tools["file_copy"], "send", source, host, "--name", "copy", "--iobuf", "4k", "--inflight", 1])
        try:
            if self.await_unfinished(directory, sender) is None:
                check(sender.wait(1) == 0, sender.text())
                return  # too fast to be caught
            time.sleep(0.1)
            dies, stays = (receiver, sender) if victim == "receiver" else (sender, receiver)
            dies.kill()
            out = stays.expect(PEER_LOST, 30)
            check(len(out) > 0, "no message")
            check("copy" not in os.listdir(directory), "an unfinished file got its name")
            if victim == "sender":
                check(os.listdir(directory) == [], f"left behind: {os.listdir(directory)}")
        finally:
            receiver.kill()
            sender.kill()
            os.unlink(source)

    def hello_few_descriptors(self):
        """A server that cannot take a link over shared memory is reached by UDP; one that cannot start says so."""
        both_wires = ["env", "SOFTUB_PORT_KINDS=shm, udp"]
        # UndefinedBehaviorSanitizer makes a pipe to look at an object's type, and takes the object for a broken one
        # where there is no descriptor left for that.
        reports_go_on = "UBSAN_OPTIONS=halt_on_error=0"
        for limit in range(14, 26):
            server = Process([*both_wires, reports_go_on, "bash", "-c", f"ulimit -n {limit}; exec {self.tools['hello']}"])
            try:
                address = server.wait_for_text(r"(?m)^[0-9a-f]{80,}$").group()
                Process([*both_wires, self.tools["hello"], "hi there", address]).expect(0, 20)
            except Failure:
                if server.popen.returncode != 1:  # not even started
                    raise
            finally:
                server.kill()

    def hello_mixed_wires(self):
        """Instances with other wires live beside each other, whoever was first."""
        for first, second in (("shm", "shm, udp"), ("shm, udp", "shm"), ("udp", "shm, udp"), ("shm", "udp")):
            servers = [Process(["env", f"SOFTUB_PORT_KINDS={kinds}", self.tools["hello"]]) for kinds in (first, second)]
            try:
                for server, kinds in zip(servers, (first, second)):
                    address = server.wait_for_text(r"(?m)^[0-9a-f]{80,}$").group()
                    Process(["env", f"SOFTUB_PORT_KINDS={kinds}", self.tools["hello"], "hi there", address]).expect(0, 20)
                    server.expect(0, 10)
            finally:
                for server in servers:
                    server.kill()

    def hello_taken_port(self):
        """Another instance has the port number of our address: ours moves on, on its DPDK port, too."""
        directory = f"SOFTUB_PORT_SHM_DIR={self.directory}"
        hello = self.tools["hello"]
        same_eid = ("SOFTUB_DEVICE_EIDS=10.9.0.1", "SOFTUB_DEVICE_EID_MAP=10.9.0.1=127.0.0.1")
        first = Process(["env", *same_eid, directory, hello], wires.Wire("shm"))
        server = None
        try:
            first.wait_for_text(r"(?m)^[0-9a-f]{80,}$")
            server = Process(["env", "SOFTUB_PORT_KINDS=shm,dpdk", directory, hello])
            address = server.wait_for_text(r"(?m)^[0-9a-f]{80,}$").group()
            check(address[32:36] != "b812", f"the port number is 4792 still: {address}")
            Process([hello, "hi there", address]).expect(0, 20)
            server.expect(0, 10)
        finally:
            first.kill()
            if server:
                server.kill()

    def all(self):
        yield "hello_write", self.hello
        yield "hello_write, few descriptors", self.hello_few_descriptors
        yield "hello_write, mixed wires", self.hello_mixed_wires
        if Process.wire.name in wires.DPDK_WIRES:
            yield "hello_write, port number taken", self.hello_taken_port
        yield "pingpong SEND", lambda: self.pingpong()
        yield "pingpong WRITE", lambda: self.pingpong("-w")
        yield "pingpong SEND 100000 bytes", lambda: self.pingpong("-s", 100000, "-n", 200)
        yield "pingpong usage", self.pingpong_usage
        yield "perf usage", self.perf_usage
        yield "perf --json is tried first", self.perf_json_first
        yield "perf, a trace that cannot be written", self.perf_trace_lost
        yield from traces.tests(self.tools["perf"], self.directory, self.host)
        yield "perf mismatch", self.perf_mismatch
        yield "perf port taken", self.perf_port_taken
        yield "perf nobody there", self.perf_nobody_there
        short = ("-n", 1000, "--verify")
        for verb in ("write", "read", "send", "atomic"):
            for kind in ("lat", "bw"):
                test = f"{verb}_{kind}"
                for mode in ("rm", "rc"):
                    yield f"perf {test} {mode}", lambda t=test, m=mode: self.perf(t, *short, "-m", m)
        for verb in ("write", "read", "send"):
            yield f"perf {verb}_lat 20000 bytes", lambda v=verb: self.perf(f"{v}_lat", *short, "-s", 20000)
            yield f"perf {verb}_bw 1 byte", lambda v=verb: self.perf(f"{v}_bw", *short, "-s", 1)
            yield f"perf {verb}_bw 1 MiB", lambda v=verb: self.perf(f"{v}_bw", "-n", 50, "--verify", "-s", "1m", "-t", 8)
            yield f"perf {verb}_bw -b -l 8 -q 4", lambda v=verb: self.perf(
                f"{v}_bw", *short, "-s", 4096, "-b", "-l", 8, "-q", 4)
            yield f"perf {verb}_bw -e", lambda v=verb: self.perf(f"{v}_bw", *short, "-s", 4096, "-e")
            yield f"perf {verb}_bw --token", lambda v=verb: self.perf(f"{v}_bw", *short, "--token")
        yield "perf write_lat -a", lambda: self.perf("write_lat", "-n", 20, "--warmup", 2, "--verify", "-a", rows=23)
        yield "perf send_bw -a", lambda: self.perf("send_bw", "-n", 20, "--warmup", 2, "--verify", "-a", rows=23)
        for verb in ("write", "read", "send", "atomic"):
            size = () if verb == "atomic" else ("-s", 64)
            yield f"perf {verb}_bw --ctp", lambda v=verb, s=size: self.perf(
                f"{v}_bw", *short, *s, "--ctp", transport=self.transport_of(v))
        yield "perf read_lat, the transport is left open", lambda: self.perf(
            "read_lat", *short, "-s", 64, transport=self.transport_of("read"))
        yield "perf write_lat --ctp, rc", lambda: self.perf(
            "write_lat", *short, "-s", 64, "--ctp", "-m", "rc", transport=self.transport_of("write", "rc"))
        yield "perf write_bw --ctp, 1 MiB", lambda: self.perf(
            "write_bw", "-n", 50, "-s", "1m", "-t", 8, "--ctp", transport="rtp")
        for test, *options in (("load_lat", "-n", 1000), ("load_bw", "-n", 1000, "-t", 16), ("map_bw", "-n", 2, "-s", "1m"),
                               ("map_lat", "-n", 500, "-s", "1m"), ("map_lat", "-n", 500, "-s", "64k", "--way", "uncached")):
            yield " ".join(map(str, ("perf", test, *options))), lambda t=test, o=options: self.perf(
                t, "--verify", *o, transport=wires.best_path(self.placement, Process.wire.name))
        yield "perf -D", lambda: self.perf("read_lat", "-D", 1)
        yield "perf atomic CAS", lambda: self.perf("atomic_lat", *short, "-A", "CMP_AND_SWAP")
        yield "perf send_lat -e", lambda: self.perf("send_lat", *short, "-e")
        yield "perf send_lat --epoll", lambda: self.perf("send_lat", *short, "--epoll")
        for mode in ("block", "spin-memory"):
            for test in ("read_lat", "read_bw", "write_bw", "atomic_lat"):
                yield f"perf {test}, target {mode}", lambda t=test, m=mode: self.perf(
                    t, *short, server_options=("--target-mode", m))
        yield "perf write_lat, target spin-memory", lambda: self.perf(
            "write_lat", *short, server_options=("--target-mode", "spin-memory"))
        yield "perf send_bw, target block", lambda: self.perf(
            "send_bw", *short, server_options=("--target-mode", "block"))
        for test in ("send_lat", "read_lat", "write_bw"):
            for victim in ("server", "client"):
                yield f"perf {test}, {victim} interrupted", lambda t=test, v=victim: self.perf_interrupted(t, v)
        for victim in ("server", "client"):
            for status, text, code in (("ACK_TIMEOUT_ERR", "no acknowledgement from the peer (status 9)", PEER_LOST),
                                       ("REM_OPERATION_ERR", "remote operation error (status 7)", FAILED)):
                yield f"perf, a request of the {victim} fails, {status}", (
                    lambda v=victim, s=status, t=text, c=code: self.perf_request_failed(v, s, t, c))
        for test in ("write_lat", "send_bw", "read_bw"):
            for victim in ("server", "client"):
                yield f"perf {test}, {victim} killed", lambda t=test, v=victim: self.perf_killed(t, v)
        for size in (0, 1, (1 << 20) + 3, 200 << 20):
            yield f"file_copy {size} bytes", lambda s=size: self.copy(s)
        yield "file_copy odd buffers", lambda: self.copy(3_000_001, "--iobuf", "4097", "--inflight", 3)
        yield "file_copy refused", self.copy_refused
        yield "file_copy keeps neighbours", self.copy_keeps_neighbours
        yield "file_copy, source without size", self.copy_without_size
        yield "file_copy, source shorter", lambda: self.copy_disturbed("source", 10, "became shorter")
        yield "file_copy, source longer", lambda: self.copy_disturbed("source", (256 << 20) + 1, "changed its size")
        for size in (0, 10, 2 << 30):
            yield f"file_copy, unfinished file cut to {size}", lambda s=size: self.copy_disturbed(
                "part", s, "was changed by another program")
        yield "file_copy, unfinished file removed", lambda: self.copy_disturbed(
            "part", None, "was removed by another program")
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for victim in ("sender", "receiver"):
                yield f"file_copy, {victim} gets {sig.name}", lambda v=victim, s=sig: self.copy_interrupted(v, s)
        yield "file_copy, sender stopped", self.copy_stopped
        for server in ("perf", "pingpong", "file_copy"):
            for client in ("perf", "pingpong", "file_copy"):
                if client != server:
                    yield f"{client} at a server of {server}", lambda s=server, c=client: self.wrong_server(s, c)
        yield "file_copy, sender killed", lambda: self.copy_killed("sender")
        yield "file_copy, receiver killed", lambda: self.copy_killed("receiver")
        yield "admin", self.admin
        yield "admin, live instance", self.admin_live
        yield "admin, a dead instance", self.admin_dead


MANY_INSTANCES = ("hello_write, few descriptors", "hello_write, mixed wires", "file_copy, sender stopped")
SHORT = ("hello_write", "hello_write, port number taken", "pingpong SEND", "pingpong WRITE", "perf write_lat rm",
         "perf read_bw rc", "perf send_bw rm", "perf atomic_lat rm", "perf write_bw 1 MiB", "perf send_bw -e",
         "perf read_lat, target block", "perf send_bw, client killed", "perf write_lat, server killed",
         "file_copy 1 bytes", "file_copy odd buffers", "file_copy 209715200 bytes", "admin, live instance")

# Tests of what instances do to each other, or that look at them.
INSTANCES = (*MANY_INSTANCES, "hello_write, port number taken", "admin, live instance", "admin, a dead instance")


def wanted(name, args):
    if args.wire in wires.DPDK_WIRES and name in MANY_INSTANCES:
        return False  # the wire has two ends
    if args.placement == "daemon" and name in INSTANCES:
        return False  # the instances are the daemons
    return args.only in name and (not args.short or name in SHORT)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    places = {"pingpong": "tools/pingpong/urma_pingpong", "perf": "tools/perf/urma_perf",
              "admin": "tools/admin/urma_admin", "file_copy": "apps/file_copy/file_copy",
              "hello": "apps/hello_write/hello_write"}
    parser.add_argument("--build", default="build", help="build directory, for the tools that are not named")
    for name in places:
        parser.add_argument("--" + name.replace("_", "-"), dest=name)
    parser.add_argument("--wire", choices=wires.NAMES, help="the wire, if not that of the environment")
    parser.add_argument("--placement", choices=("embedded", "daemon"), default="embedded",
                        help="daemon: two softubd with the wire between them")
    parser.add_argument("--softubd", help="the daemon")
    parser.add_argument("--plugin", help="the DPDK port's shared object")
    parser.add_argument("--only", default="", help="only tests whose name contains this")
    parser.add_argument("--short", action="store_true", help="only one test of each sort")
    parser.add_argument("--stop", action="store_true", help="stop at the first failure")
    args = parser.parse_args()
    tools = {n: getattr(args, n) or os.path.join(args.build, place) for n, place in places.items()}

    signal.signal(signal.SIGHUP, lambda *_: None)  # so that programs get the default, also under nohup
    if args.wire:
        plugin = args.plugin or os.path.join(args.build, "dataplane/dpdk/libsoftub_dpdk.so.0")
        try:
            Process.wire = wires.make(args.wire, os.path.abspath(plugin))
        except wires.Skip as why:
            print(f"not run over {args.wire}: {why}")
            return SKIPPED
    if args.placement == "daemon":
        softubd = args.softubd or os.path.join(args.build, "dataplane/softubd/softubd")
        Process.wire = daemons.Daemons(Process.wire, os.path.abspath(softubd))
    try:
        why = why_not_open(tools) if args.wire and wires.is_optional(args.wire) else ""
        if why:
            print(f"not run over {args.wire}: {why}")
            return SKIPPED
        return run(tools, args)
    finally:
        Process.wire.close()


def why_not_open(tools):
    """Of a wire that a kernel need not have."""
    program = Process([tools["hello"]])
    try:
        program.wait_for_text(r"(?m)^[0-9a-f]{80,}$")
        return ""
    except Failure as failure:
        return failure
    finally:
        program.kill()


def run(tools, args):
    results = []
    with tempfile.TemporaryDirectory(prefix="softub-e2e-") as directory:
        for name, test in Tests(tools, directory, args.placement).all():
            if not wanted(name, args):
                continue
            start = time.monotonic()
            try:
                test()
                error = ""
            except Failure as failure:
                error = str(failure)
            results.append((name, error))
            print(f"{'FAIL' if error else 'pass'}  {time.monotonic() - start:6.2f} s  {name}", flush=True)
            if error:
                print("      " + error.strip().replace("\n", "\n      "), flush=True)
                if args.stop:
                    break
    failed = [name for name, error in results if error]
    print(f"\nwire: {Process.wire.name}; "
          f"{len(results) - len(failed)} passed, {len(failed)} failed" + (": " + ", ".join(failed) if failed else ""))
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
