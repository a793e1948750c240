#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a recording (docs/recording.md) costs: WRITEs between two processes of which none, the one that asks, or both are
recorded for the whole run, in turn. Of the rounds the medians are printed, as rows of a Markdown table.

usage: measure_recording.py [--build DIR] [--rounds 5] [--only NAME] [--cpus 0,1]

The files are made where TMPDIR says, and removed. Each recording is replayed, too, and timed.
"""
import collections
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from measure import options_of

TESTS = {"64 B, million/s": ("write_bw -s 64 -t 64 -D 3", "msg_rate_mpps"),
         "64 KiB, million/s": ("write_bw -s 65536 -t 16 -D 3", "msg_rate_mpps")}
ENDS = {"none": 0, "one": 1, "both": 2}


class Bench:
    def __init__(self, build, cpus):
        self.build = build
        self.cpus = cpus
        self.port = 24000 + os.getpid() % 5000

    def tool(self, *words):
        return subprocess.run([os.path.join(self.build, "tools", words[0]), *words[1:]], stdout=subprocess.PIPE,
                              text=True, check=True, timeout=300).stdout

    def run(self, test, wire, ends, directory):
        """What the test says; bytes of the recording without its image; seconds recorded; seconds of the replay."""
        arguments, what = TESTS[test]
        self.port += 1
        environment = dict(os.environ, SOFTUB_PORT_KINDS=wire)
        command = [os.path.join(self.build, "tools/perf/urma_perf"), *arguments.split(), "-p", str(self.port)]
        near, far = (["taskset", "-c", cpu] for cpu in self.cpus)
        report = os.path.join(directory, "report.json")
        server = subprocess.Popen([*far, *command], env=environment, stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        client = subprocess.Popen([*near, *command, "--json", report, "127.0.0.1"], env=environment,
                                  stdout=subprocess.DEVNULL)
        began, files = [], []
        time.sleep(0.2)
        start = time.monotonic()
        for process in (client, server)[:ends]:
            files.append(os.path.join(directory, f"{process.pid}.rec"))
            said = self.tool("admin/urma_admin", "record", "on", files[-1], "--size", "8G", "-i", str(process.pid))
            began.append(int(re.search(r"(\d+) bytes in it", said).group(1)))
        if client.wait(60) + server.wait(60):
            raise OSError("urma_perf failed")
        recorded = time.monotonic() - start
        replayed, grown = 0, 0
        if ends:
            start = time.monotonic()
            self.tool("replay/urma_replay", "--check", files[0])
            replayed, grown = time.monotonic() - start, os.path.getsize(files[0]) - began[0]
        for file in files:
            os.unlink(file)
        with open(report, encoding="utf-8") as lines:
            return json.load(lines)["results"][0][what], grown, recorded, replayed


def main():
    figures = [f"{wire} {test}|{ends}" for wire in ("shm", "udp") for test in TESTS for ends in ENDS]
    options = options_of(__doc__, figures)
    bench = Bench(options.build, options.cpus.split(","))
    found = collections.defaultdict(list)
    for _ in range(options.rounds):
        for figure in figures:
            wire, rest = figure.split(" ", 1)
            test, ends = rest.split("|")
            if options.only in figure:
                with tempfile.TemporaryDirectory() as directory:
                    found[figure].append(bench.run(test, wire, ENDS[ends], directory))
    print(f"medians of {options.rounds} runs\n")
    print("| wire | WRITE | ends recorded | rate | of that without | MB of file a second | seconds of replay for one recorded |")
    print("|---|---|---|--:|--:|--:|--:|")
    for figure, runs in found.items():
        wire, rest = figure.split(" ", 1)
        test, ends = rest.split("|")
        rate, grown, recorded, replayed = map(statistics.median, zip(*runs))
        without = statistics.median(run[0] for run in found.get(f"{wire} {test}|none", runs))
        tail = f"{grown / 1e6 / recorded:.1f} | {replayed / recorded:.2f}" if ends != "none" else "- | -"
        print(f"| {wire} | {test} | {ends} | {rate:.3f} | {100 * rate / without:.0f} % | {tail} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
