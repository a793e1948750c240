#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""urma_ycsb against one store: the six workloads with every value checked, what it says when things go wrong, and its
logs, which HdrHistogram's own tool reads, too, where it is installed.

Exit status 77: the server of the store is not installed, or urma_ycsb was built without it.

  tests/e2e/run_ycsb.py --build build --store tcp
"""
import argparse
import base64
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib

from processes import FAILED, USAGE, Failure, Process, check, free_port

SKIPPED = 77
PEER_LOST, WRONG_DATA, INTERRUPTED = 3, 4, 130
WORKLOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/ycsb/workloads")
HDR_JAR = "/usr/share/java/hdrhistogram.jar"
OPERATIONS = {"a": {"READ", "UPDATE"}, "b": {"READ", "UPDATE"}, "c": {"READ"}, "d": {"READ", "INSERT"},
              "e": {"SCAN", "INSERT"}, "f": {"READ", "UPDATE", "READ-MODIFY-WRITE"}}
CANNOT_SCAN = {"memcached"}
OPERATION_COUNT = 500


class Skip(Exception):
    pass


def program(name):
    path = shutil.which(name)
    if path is None:
        raise Skip(f"{name} is not installed")
    return path


def wait_for_listener(port):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.02)
    raise Failure(f"nobody listens on port {port}")


class Store:
    """A server, and the properties by which a client finds it."""

    def __init__(self, name, build, directory):
        self.name = name
        self.server = None
        self.properties = []
        port = free_port()
        if name == "tcp":
            self.start([os.path.join(build, "tools/ycsb/urma_ycsb"), "--serve-tcp", "0"], r"TCP port (\d+)")
        elif name in ("urma", "aperture"):
            self.start([os.path.join(build, "apps/kv_store/kv_store"), "serve", "-p", "0", "-m", "64m"], r"TCP port (\d+)")
        elif name == "redis":
            self.start([program("redis-server"), "--port", port, "--save", "", "--dir", directory], "eady to accept", port)
        elif name == "memcached":
            self.start([program("memcached"), "-v", "-l", "127.0.0.1", "-p", port, "-u", "nobody"], None, port)

    def start(self, command, ready, port=None):
        self.server = Process(command)
        if ready is not None:
            found = self.server.wait_for_text(ready)
            port = port or found.group(1)
        else:
            wait_for_listener(port)
        self.properties = ["-p", f"{self.name}.port={port}"]

    def close(self):
        if self.server:
            self.server.kill()


class Tests:
    def __init__(self, build, store, directory):
        self.build = build
        self.program = os.path.join(build, "tools/ycsb/urma_ycsb")
        self.store = store
        self.directory = directory
        self.json_file = os.path.join(directory, "result.json")

    def start(self, store, *arguments):
        return Process([self.program, "-db", store.name, *store.properties, "--json", self.json_file, *arguments])

    def run(self, *arguments, code=0):
        """What it printed, and the phases of its JSON file."""
        text = self.start(self.store, *arguments).expect(code)
        with open(self.json_file, encoding="utf-8") as file:
            return text, json.load(file)["phases"]

    @staticmethod
    def workload(letter):
        return ["-P", os.path.join(WORKLOADS, "workload" + letter), "-p", "dataintegrity=true"]

    # ---- each store ----
    def workloads(self):
        """Loaded by one program and run by another one (basic: by the same one)."""
        for letter, operations in OPERATIONS.items():
            if "SCAN" in operations and self.store.name in CANNOT_SCAN:
                text = self.start(self.store, "-run", *self.workload(letter)).expect(USAGE)
                check("cannot scan" in text, text)
                continue
            common = [*self.workload(letter), "-threads", "2", "-p", "window=4", "-p", "maxscanlength=20", "-p",
                      f"operationcount={OPERATION_COUNT}"]
            if self.store.server:
                self.run("-load", *common)
                text, (phase,) = self.run("-run", *common)
            else:
                text, (_, phase) = self.run("-load", "-run", *common)
            self.check_phase(f"workload {letter}", text, phase, operations)

    def check_phase(self, name, text, phase, operations):
        returns = phase["returns"]
        check(set(returns) == operations, f"{name} did {returns}")
        check(all(set(by_status) == {"OK"} for by_status in returns.values()), f"{name} ended with {returns}")
        count = sum(by_status["OK"] for by_status in returns.values())
        if "READ-MODIFY-WRITE" in operations:  # its parts count, too
            count -= 2 * returns["READ-MODIFY-WRITE"]["OK"]
        check(count == phase["operations"] == OPERATION_COUNT, f"{name} did {count} operations")
        check(phase["verified"] == returns.get("READ", {}).get("OK", 0) and phase["wrong"] == 0, f"{name}: {phase}")
        for operation in operations:
            line = rf"(?m)^\[{operation}\], 99thPercentileLatency\(us\), [\d.]+$"
            check(re.search(line, text), f"{name} has no line {line}\n{text}")
            check(f"[{operation}], Return=OK, {returns[operation]['OK']}\n" in text, text)

    def shapes_of_records(self):
        mix = [*self.workload("f"), "-p", "operationcount=500"]
        for shape in (["fieldcount=1"], ["readallfields=false"], ["writeallfields=true"],
                      ["fieldcount=3", "fieldlength=5000"], ["window=1"], ["insertorder=ordered", "zeropadding=12"]):
            options = [word for pair in shape for word in ("-p", pair)]
            options += ["-p", "recordcount=200"]
            self.fresh()
            _, (_, phase) = self.run("-load", "-run", *mix, *options)
            check(phase["wrong"] == 0 and phase["verified"] == 500, f"{shape}: {phase}")

    def fresh(self):
        """An empty store."""
        self.store.close()
        self.store = Store(self.store.name, self.build, self.directory)

    def wrong_data_is_noticed(self):
        self.fresh()
        self.run("-load", "-P", os.path.join(WORKLOADS, "workloadc"))  # random values
        text, (phase,) = self.run("-run", *self.workload("c"), code=WRONG_DATA)
        check(phase["wrong"] == 1000 and "Return=UNEXPECTED_STATE, 1000" in text and "the first of them user" in text, text)

    def what_is_not_there_is_not_found(self):
        self.fresh()
        text, (phase,) = self.run("-run", *self.workload("c"))
        check(phase["returns"] == {"READ": {"NOT_FOUND": 1000}}, f"{phase}")
        check("[READ-NOT_FOUND], Operations, 1000" in text and "[READ], Return=NOT_FOUND, 1000" in text, text)

    def server_dies(self):
        if not self.store.server:
            return
        self.fresh()
        self.run("-load", *self.workload("a"))
        client = self.start(self.store, "-run", *self.workload("a"), "-p", "operationcount=0", "-p", "maxexecutiontime=60",
                            "-s", "-p", "status.interval=0.1")
        client.wait_for_text("current ops/sec")
        self.store.close()
        text = client.expect(PEER_LOST, 30)
        check(re.search(r"(?m)^urma_ycsb: .", text), text)

    def another_server_is_noticed(self):
        """One that answers each line with a sentence of its own."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = Process([self.program, "-load", "-db", self.store.name, *self.workload("a"), "-p",
                              f"{self.store.name}.port={listener.getsockname()[1]}"])
            with listener.accept()[0] as connection:
                connection.recv(1024)
                connection.sendall(b"500 who are you, and what is it that you want?\r\n")
                text = client.expect(FAILED, 20)
            check(f"is no server for -db {self.store.name}" in text, text)

    # ---- what no store changes ----
    def command_line(self):
        def says(code, sentence, *arguments):
            text = Process([self.program, *arguments]).expect(code)
            check(sentence in text, f"{arguments}: {text}")
        workload = ["-P", os.path.join(WORKLOADS, "workloada")]
        says(0, "Examples:", "--help")
        says(USAGE, "say what to do", "-db", "basic", *workload)
        says(USAGE, "say which store", "-load", *workload)
        says(USAGE, "no such store, but basic", "-load", "-db", "oracle", *workload)
        says(USAGE, "recordcount is missing", "-load", "-db", "basic")
        says(USAGE, "-P nowhere: cannot be read", "-load", "-db", "basic", "-P", "nowhere")
        says(USAGE, "threadcount=none (-threads)", "-load", "-db", "basic", *workload, "-threads", "none")
        says(USAGE, "more than 1", "-load", "-db", "basic", *workload, "-p", "scanproportion=0.5")
        says(USAGE, "for the client", "-load", "--serve-tcp", "0")
        says(0, "recordcuont=5 (command line) means nothing here", "-load", "-db", "basic", *workload, "-p", "recordcuont=5")
        says(FAILED, "cannot connect", "-load", "-db", "tcp", *workload, "-p", f"tcp.port={free_port()}")

    def target_is_kept(self):
        text, (_, phase) = self.run("-load", "-run", *self.workload("a"), "-target", "4000", "-threads", "3")
        check(phase["seconds"] > 0.99 * 1000 / 4000 - 0.001, f"1000 operations in {phase['seconds']} s")
        check("[Intended-READ], AverageLatency(us)" in text, text)

    def stopped(self):
        client = self.start(self.store, "-load", "-run", *self.workload("a"), "-p", "operationcount=0", "-p",
                            "maxexecutiontime=60", "-s", "-p", "status.interval=0.1")
        client.wait_for_text(r"sec: \d+ operations; .*\[UPDATE: Count")
        client.kill(signal.SIGINT)
        check("[READ], Return=OK" in client.expect(INTERRUPTED), "it prints nothing of what it did")

    def logs(self):
        """Sums of the intervals, decoded here and by the tool of HdrHistogram."""
        prefix = os.path.join(self.directory, "log-")
        _, (_, phase) = self.run("-load", "-run", *self.workload("a"), "-target", "4000", "-p", "operationcount=2000", "-p",
                                 "status.interval=0.2", "-p", "hdrhistogram.fileoutput=true", "-p",
                                 f"hdrhistogram.output.path={prefix}")
        for name, latencies in phase["latencies"].items():
            path = f"{prefix}{name}.hlog"
            with open(path, encoding="ascii") as file:
                lines = [line for line in file if line[0] not in '#"']
            check(len(lines) >= 2, f"{path} has {len(lines)} intervals")
            count = sum(decoded_count(line.strip().split(",")[3]) for line in lines)
            check(count == latencies["operations"], f"{path} has {count} operations, not {latencies['operations']}")
            self.read_by_its_own_tool(path, latencies)

    @staticmethod
    def read_by_its_own_tool(path, latencies):
        if not (shutil.which("java") and os.path.exists(HDR_JAR)):
            print(f"{os.path.basename(path)} is decoded here alone: no java, or no {HDR_JAR} (libhdrhistogram-java)")
            return
        said = subprocess.run(["java", "-cp", HDR_JAR, "org.HdrHistogram.HistogramLogProcessor", "-i", path,
                               "-outputValueUnitRatio", "1000"], capture_output=True, text=True, check=True).stdout
        mean, count = re.search(r"Mean += +([\d.]+)", said), re.search(r"Total count += +(\d+)", said)
        check(mean and count and int(count.group(1)) == latencies["operations"], said)
        check(abs(float(mean.group(1)) - latencies["average_us"]) < 0.002 * latencies["average_us"], said)


def decoded_count(text):
    """All counts of an encoded histogram together."""
    outer = base64.b64decode(text, validate=True)
    inner = zlib.decompress(outer[8:])
    check(outer[:4].hex() == "1c849314" and inner[:4].hex() == "1c849313", "other cookies")
    count, zigzag, shift = 0, 0, 0
    for byte in inner[40:]:
        last = shift == 56 or byte < 0x80
        zigzag |= (byte if shift == 56 else byte & 0x7F) << shift
        shift += 7
        if last:
            count += 0 if zigzag & 1 else zigzag >> 1  # odd: so many empty buckets
            zigzag, shift = 0, 0
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--store", default="basic",
                        choices=("basic", "tcp", "urma", "aperture", "redis", "memcached"))
    args = parser.parse_args()
    steps = ["workloads", "shapes_of_records", "wrong_data_is_noticed", "what_is_not_there_is_not_found", "server_dies"]
    if args.store == "basic":
        steps = ["command_line", "workloads", "shapes_of_records", "what_is_not_there_is_not_found", "target_is_kept",
                 "stopped", "logs"]
    elif args.store in ("tcp", "redis", "memcached"):
        steps.append("another_server_is_noticed")
    tests = None
    with tempfile.TemporaryDirectory(prefix="softub-ycsb-") as directory, contextlib.ExitStack() as stack:
        try:
            tests = Tests(os.path.abspath(args.build), None, directory)
            if args.store == "redis" and "no such store" in Process([tests.program, "-load", "-db", "redis"]).expect(USAGE):
                raise Skip("urma_ycsb was built without hiredis")
            tests.store = Store(args.store, tests.build, directory)
            stack.callback(lambda: tests.store.close())
            for step in steps:
                start = time.monotonic()
                getattr(tests, step)()
                print(f"ok {step} ({time.monotonic() - start:.1f} s)", flush=True)
        except Skip as cause:
            print(f"skipped: {cause}")
            return SKIPPED
        except Failure as failure:
            print(f"FAILED: {failure}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
