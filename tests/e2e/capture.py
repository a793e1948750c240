#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""urma_admin pcap, on each kind of port: programs that write to each other are captured, and tshark, with our dissector,
and capinfos read the files. Exit status 77: there is no tshark with Lua.

  tests/e2e/capture.py --build build
"""
import argparse
import collections
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

import daemons
import wires
from processes import FAILED, USAGE, Failure, Process, check, free_port

SKIPPED = 77
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/wireshark/softub.lua")
IN, OUT = 1, 2
FIELDS = ("frame.interface_name", "frame.packet_flags_direction", "frame.len", "frame.cap_len", "frame.comment",
          "ub.packet", "_ws.malformed", "_ws.lua.error")

Packet = collections.namedtuple("Packet", "interface direction length kept comment kind malformed error")


def why_not():
    """None: all is there."""
    if not shutil.which("tshark") or not shutil.which("capinfos"):
        return "there is no tshark (Debian package tshark)"
    said = subprocess.run(["tshark", "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    return None if "with Lua" in " ".join(said.split()) else "this tshark was built without Lua"


class Reader:
    """tshark and capinfos, in a home of their own."""

    def __init__(self, home):
        self.environment = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home}

    def run(self, *command, cut=False):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              env=self.environment, timeout=300)
        check(done.returncode == 0 or cut and "cut short" in done.stderr, f"{command}: {done.stderr}")
        return done.stdout

    def packets(self, path, cut=False):
        """Nothing in it may be malformed."""
        wanted = [word for field in FIELDS for word in ("-e", field)]
        text = self.run("tshark", "-n", "-X", f"lua_script:{SCRIPT}", "-r", path, "-T", "fields", "-E", "occurrence=f",
                        *wanted, cut=cut)
        rows = [Packet(*line.split("\t")) for line in text.splitlines()]
        rows = [r._replace(direction=int(r.direction, 0), length=int(r.length), kept=int(r.kept)) for r in rows]
        for row in rows:
            check(not row.malformed and not row.error, f"{path}: {row}")
        return rows

    def bytes_of(self, path, display_filter):
        """The frames that pass, each in hexadecimal."""
        text = self.run("tshark", "-n", "-r", path, "-Y", display_filter, "-T", "json", "-x")
        return [frame["_source"]["layers"]["frame_raw"][0] for frame in json.loads(text)]

    def interfaces(self, path):
        """Of capinfos: each as a dictionary."""
        parts = self.run("capinfos", "-M", path).split("Interface #")[1:]
        return [dict(re.findall(r"^\s+(\S[^=\n]*?) = (.*)$", part, re.M)) for part in parts]


class Tests:
    def __init__(self, args, directory):
        self.args = args
        self.directory = directory
        self.admin = os.path.join(args.build, "tools/admin/urma_admin")
        self.perf = os.path.join(args.build, "tools/perf/urma_perf")
        self.softubd = os.path.join(args.build, "dataplane/softubd/softubd")
        self.reader = Reader(directory)
        self.files = 0

    def path(self):
        self.files += 1
        return os.path.join(self.directory, f"{self.files}.pcapng")

    def pages(self):
        """A new directory, where instances are found."""
        return {"SOFTUB_LOG_STATS_DIR": tempfile.mkdtemp(dir=self.directory)}

    def ask(self, wire, pid, *words, code=0):
        """urma_admin pcap."""
        place = wire.variables["SOFTUB_LOG_STATS_DIR"]
        command = [self.admin, "pcap", *words, "-i", pid, "--dir", place]
        return Process(command, wires.Given({})).expect(code)

    def status(self, wire, pid, pattern, packets=0):
        """Waits until the status is so, with so many packets, and returns their number."""
        end = time.monotonic() + 30
        while True:
            said = self.ask(wire, pid, "status")
            count = int(re.search(r"(\d+) packets", said).group(1))
            if re.search(pattern, said) and count >= packets:
                return count
            check(time.monotonic() < end, f"the status never was {pattern!r} with {packets} packets: {said}")
            time.sleep(0.05)

    def start_pair(self, wire, test, *options):
        port = free_port()
        args = [self.perf, test, "-p", port, "-D", 600, *options]
        server = Process(args, wire)
        server.wait_for_text("TCP port")
        client = Process([*args, wire.host()], wire)
        client.wait_for_text("#bytes")
        return server, client

    def captured(self, wire, pid, path, *options, packets=200):
        """Captures until there are so many packets, and returns them; nothing may be missing."""
        said = self.ask(wire, pid, "on", path, *options)
        check("running: " in said and path in said, said)
        check(stat.S_IMODE(os.stat(path).st_mode) == 0o600, oct(os.stat(path).st_mode))
        self.status(wire, pid, "running", packets)
        said = self.ask(wire, pid, "off")
        found = re.search(r"ended: (\d+) packets, (\d+) bytes in (\S+), (\d+) missed; it was told to end", said)
        check(found and found.group(3) == path and int(found.group(2)) == os.path.getsize(path), said)
        read = self.reader.packets(path)
        check(len(read) == int(found.group(1)) >= packets, f"{len(read)} packets; {said}")
        return read, int(found.group(4))

    def with_pair(self, wire, test, options, look):
        server, client = self.start_pair(wire, test, *options)
        try:
            look(server, client)
        finally:
            client.kill()
            server.kill()
            wire.close()

    # ---- kinds of ports ----
    def wire(self, kind, variables=None):
        wire = wires.make(kind, self.args.plugin)
        wire.variables.update({**self.pages(), **(variables or {})})
        return wire

    def port(self, kind, name):
        """Requests leave, and answers come, on the interface of that name."""
        wire = self.wire(kind)

        def look(_server, client):
            path = self.path()
            packets, missed = self.captured(wire, client.popen.pid, path)
            check({p.interface.split(".")[0] for p in packets} == {name}, packets[:3])
            check({p.direction for p in packets} == {IN, OUT}, packets[:3])
            check(all(p.kept == p.length for p in packets) and any(p.length > 1024 for p in packets), packets[:3])
            check(all(p.kind for p in packets), [p for p in packets if not p.kind][:3])
            for interface in self.reader.interfaces(path):
                check(interface["Number of stat entries"] == "1" and interface["Time precision"] == "nanoseconds (9)",
                      interface)
            print(f"   {kind}: {len(packets)} packets, {missed} missed")

        self.with_pair(wire, "write_bw", ["-s", 4096, "-t", 4, "--verify"], look)

    def endpoint(self, wire, process):
        """Address and UDP port, which are its name."""
        said = Process([self.admin, "list", "--json", "--dir", wire.variables["SOFTUB_LOG_STATS_DIR"]],
                       wires.Given({})).expect(0)
        name = next(i["instance"] for i in json.loads(said) if i["pid"] == process.popen.pid)
        address, port = name.rsplit("-", 1)
        return address, int(port)

    def loopback(self):
        """Two programs of one daemon. Their payload is copied by their agents, later; what leaves is whole all the same:
        it is what comes in."""
        pages = self.pages()
        daemon = daemons.Daemon(self.softubd, self.directory, 0, {**pages, "SOFTUB_PORT_KINDS": "shm"})
        wire = wires.Given({**pages, **daemon.variables()})
        try:
            def look(_server, _client):
                path = self.path()
                self.ask(wire, daemon.process.pid, "on", path, "kind=ctp,rtp", "--size", "4M")
                self.status(wire, daemon.process.pid, "ended: .* as large as it may be")
                packets = self.reader.packets(path)
                check({p.interface.split(".")[0] for p in packets} == {"loopback"}, packets[:3])
                left, came = (self.reader.bytes_of(path, f"frame.packet_flags_direction == {d}") for d in (OUT, IN))
                # But for those that were on their way when the capture began and ended.
                both = set(left) & set(came)
                check(len(set(left)) > 100 and len(both) > 0.9 * len(set(left)),
                      f"{len(set(left))} left, {len(set(came))} came, {len(both)} are the same")

            self.with_pair(wire, "write_bw", ["-s", 4096, "-t", 4, "--verify", "--own-memory"], look)
        finally:
            check(daemon.stop() == 0, daemon.log())

    def lanes(self):
        wire = self.wire("shm")

        def look(server, _client):
            packets, _ = self.captured(wire, server.popen.pid, self.path(), "kind=bypass")
            check({p.interface.split(".")[0] for p in packets} == {"lane"}, packets[:3])
            check({p.direction for p in packets} == {IN, OUT}, packets[:3])

        self.with_pair(wire, "load_lat", ["-s", 64, "--path", "lane"], look)

    # ---- drops ----
    def drops(self):
        """Rubbish that comes to a UDP socket; a trace runs at the same time."""
        wire = self.wire("udp")

        server = Process([self.perf, "write_lat", "-p", free_port()], wire)
        try:
            server.wait_for_text("TCP port")
            pid, path, only = server.popen.pid, self.path(), self.path()
            there = self.endpoint(wire, server)
            trace = [self.admin, "trace", "add", 3, "stage=kPacketDropped", "-i", pid, "--dir",
                     wire.variables["SOFTUB_LOG_STATS_DIR"]]
            Process(trace, wires.Given({})).expect(0)
            for file, options in ((path, []), (only, ["dropped=rx.drop.*"])):
                self.ask(wire, pid, "on", file, *options)
                with socket.socket(type=socket.SOCK_DGRAM) as s:
                    for i in range(5):
                        s.sendto(bytes([7]) + bytes(100 + i), there)
                        time.sleep(0.02)
                self.status(wire, pid, "running", 5)
                self.ask(wire, pid, "off")
                packets = self.reader.packets(file)
                check(len(packets) == 5 and all(p.direction == IN for p in packets), packets)
                check({p.comment for p in packets} == {"dropped: rx.drop.bad_tp_opcode"}, packets)
                check([p.length - packets[0].length for p in packets] == [0, 1, 2, 3, 4], packets)
            said = Process([self.admin, "trace", "status", *trace[5:]], wires.Given({})).expect(0)
            check("3 of 3 notes, complete" in said, said)
        finally:
            server.kill()
            wire.close()

    def impaired(self):
        """The port sees what comes, the Core what is left of it."""
        wire = self.wire("udp", {"SOFTUB_IMPAIR_RECEIVE": "corrupt=5%"})

        def look(server, _client):
            path = self.path()
            packets, _ = self.captured(wire, server.popen.pid, path)
            behind = [p for p in packets if p.interface.endswith(".behind")]
            check(behind and all(p.comment.startswith("dropped: ") for p in behind), behind[:3])
            check(any(p.comment == "dropped: rx.drop.bad_icrc" for p in behind), behind[:3])
            check(not any(p.comment for p in packets if p.interface not in {b.interface for b in behind}
                          and "bad_icrc" in p.comment), "what came was good")

        self.with_pair(wire, "write_bw", ["-s", 1024, "-t", 4, "--verify"], look)

    # ---- limits ----
    def limits(self, wire, pid):
        path = self.path()
        self.ask(wire, pid, "on", path, "--size", "300k", "--snap", "100")
        self.status(wire, pid, "ended: .*the file is as large as it may be")
        packets = self.reader.packets(path)
        check(os.path.getsize(path) <= 300 << 10 and len(packets) > 1000, f"{os.path.getsize(path)}, {len(packets)}")
        check(all(p.kept == min(p.length, 100) for p in packets), packets[:3])
        ring = self.path()
        self.ask(wire, pid, "on", ring, "--size", "256k", "--files", "2")
        self.status(wire, pid, "running", 10000)
        self.ask(wire, pid, "off")
        files = [f for f in os.listdir(self.directory) if f.startswith(f"{self.files}_")]
        check(len(files) == 2 and f"{self.files}_00001.pcapng" not in files, files)
        for file in files:
            self.reader.packets(os.path.join(self.directory, file))

    def bad_input(self, wire, pid):
        path = self.path()
        for args, text in (([path, "link=x"], "a term is link=NUMBERS"), ([path, "nonsense"], "a term is"),
                           ([self.directory], "File exists"), ([os.path.join(self.directory, "no/x")], "No such file"),
                           ([path, "--size", "1000"], "at least 262144 bytes"),
                           ([path, "--size", "0", "--files", "3"], "there has to be a limit"),
                           (["/" + "x" * 9000], "too long")):
            said = self.ask(wire, pid, "on", *args, code=FAILED)
            check(text in said and len(said.splitlines()) == 1, said)
        for args in ([], [path, "--size", "x"], [path, "--files", "0"], [path, "--snap", "-1"]):
            self.ask(wire, pid, "on", *args, code=USAGE)
        check(not os.path.exists(path), "a file in spite of mistakes")
        self.ask(wire, pid, "on", path)
        said = self.ask(wire, pid, "on", self.path(), code=FAILED)
        check(f"there is a capture already, in {path}" in said, said)
        self.ask(wire, pid, "off")
        said = self.ask(wire, pid, "on", path, code=FAILED)
        check("File exists" in said, said)

    def relative_path(self, wire, pid):
        """It is one of the tool, not of the program that is captured."""
        place = tempfile.mkdtemp(dir=self.directory)
        command = [os.path.abspath(self.admin), "pcap", "on", "x y.pcapng", "direction=in", "-i", str(pid), "--dir",
                   wire.variables["SOFTUB_LOG_STATS_DIR"]]
        subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL)
        self.status(wire, pid, "running", 10)
        self.ask(wire, pid, "off")
        check(len(self.reader.packets(os.path.join(place, "x y.pcapng"))) > 9, "nothing was captured")

    def killed(self, wire, client):
        """What was written until then can be read."""
        path = self.path()
        self.ask(wire, client.popen.pid, "on", path, "direction=in")  # fewer than leave
        written = self.status(wire, client.popen.pid, "running", 100)
        client.kill()
        packets = self.reader.packets(path, cut=True)
        check(len(packets) >= written, f"{len(packets)} of {written}")

    def ends_with_program(self, wire):
        """A program that ends closes the file."""
        path, port = self.path(), free_port()
        args = [self.perf, "write_bw", "-s", 64, "-p", port, "-D", 4]
        server = Process(args, wire)
        server.wait_for_text("TCP port")
        client = Process([*args, wire.host()], wire)
        client.wait_for_text("#bytes")
        self.ask(wire, client.popen.pid, "on", path, "kind=record")
        client.expect(0)
        server.expect(0)
        check(self.reader.interfaces(path)[0]["Number of stat entries"] == "1", "no statistics")
        # The server may say so first; then we answer CLOSED, and have no other last words.
        last = self.reader.packets(path)[-2:]
        words = [(p.kind, p.direction) for p in last]
        check(("CLOSE", OUT) in words or words == [("CLOSE", IN), ("CLOSED", OUT)],
              f"the last words are missing: {last}")

    def all(self):
        steps = [("shared memory", lambda: self.port("shm", "shm")), ("UDP", lambda: self.port("udp", "udp")),
                 ("loopback, in a daemon", self.loopback), ("lanes", self.lanes), ("drops", self.drops),
                 ("impaired", self.impaired), ("limits and mistakes", self.with_one)]
        if self.args.plugin:
            steps.append(("memif", lambda: self.port("memif", "dpdk")))
        for name, step in steps:
            if self.args.only and self.args.only not in name:
                continue
            start = time.monotonic()
            step()
            print(f"ok {name} ({time.monotonic() - start:.1f} s)", flush=True)

    def with_one(self):
        wire = self.wire("shm")

        def look(_server, client):
            pid = client.popen.pid
            self.limits(wire, pid)
            self.bad_input(wire, pid)
            self.relative_path(wire, pid)
            self.killed(wire, client)

        self.with_pair(wire, "write_bw", ["-s", 64], look)
        self.ends_with_program(wire)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--plugin", help="the plugin of DPDK, for memif")
    parser.add_argument("--only", help="steps with that in their name")
    args = parser.parse_args()
    why = why_not()
    if why:
        print(why)
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="softub-capture-") as directory:
        try:
            Tests(args, directory).all()
        except Failure as failure:
            print(f"FAILED: {failure}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
