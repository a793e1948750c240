#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a packet capture (docs/capture.md) costs the NIC that it looks at: WRITEs of 64 bytes without a capture and with
some, in turn. Of the rounds the medians are printed, as rows of a Markdown table.

usage: measure_capture.py [--build DIR] [--rounds 5] [--only NAME] [--cpus 0,1]

A capture is of the client, for most of the run; its file is made where TMPDIR says, and removed.
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

TEST = "write_bw -s 64 -t 64 -D 3"
# What is asked of `urma_admin pcap on`; None: nothing.
CAPTURES = {
    "none": None,
    "all": ["--size", "0"],
    "--snap 96": ["--size", "0", "--snap", "96"],
    "kind=record": ["kind=record"],
    "dropped=rx.drop.*": ["dropped=rx.drop.*"],
}


class Bench:
    def __init__(self, build, cpus):
        self.build = build
        self.cpus = cpus
        self.port = 24000 + os.getpid() % 5000

    def admin(self, pid, *words):
        return subprocess.run([os.path.join(self.build, "tools/admin/urma_admin"), "pcap", *words, "-i", str(pid)],
                              stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout

    def run(self, wire, options, directory):
        """Millions of requests each second; frames that were kept, and that were missed."""
        self.port += 1
        environment = dict(os.environ, SOFTUB_PORT_KINDS=wire)
        command = [os.path.join(self.build, "tools/perf/urma_perf"), *TEST.split(), "-p", str(self.port)]
        near, far = (["taskset", "-c", cpu] for cpu in self.cpus)
        report, file = os.path.join(directory, "report.json"), os.path.join(directory, "x.pcapng")
        server = subprocess.Popen([*far, *command], env=environment, stdout=subprocess.DEVNULL)
        client = None
        try:
            time.sleep(0.5)
            client = subprocess.Popen([*near, *command, "--json", report, "127.0.0.1"], env=environment,
                                      stdout=subprocess.DEVNULL)
            kept = missed = 0
            time.sleep(0.3)
            if options is not None:
                self.admin(client.pid, "on", file, *options)
                time.sleep(2)
                said = self.admin(client.pid, "status")
                kept, missed = map(int, re.search(r"(\d+) packets, .* (\d+) missed", said).groups())
            if client.wait(60) + server.wait(60):
                raise OSError("urma_perf failed")
        finally:
            for process in (client, server):
                if process and process.poll() is None:
                    process.kill()
                    process.wait()
            if os.path.exists(file):
                os.unlink(file)
        with open(report, encoding="utf-8") as lines:
            return json.load(lines)["results"][0]["msg_rate_mpps"], kept, missed


def main():
    figures = [f"{wire} {name}" for wire in ("shm", "udp") for name in CAPTURES]
    options = options_of(__doc__, figures)
    bench = Bench(options.build, options.cpus.split(","))
    found = collections.defaultdict(list)
    for _ in range(options.rounds):
        for figure in figures:
            wire, name = figure.split(" ", 1)
            if options.only in figure or name == "none":
                with tempfile.TemporaryDirectory() as directory:
                    found[figure].append(bench.run(wire, CAPTURES[name], directory))
    print(f"`{TEST}`, median of {options.rounds} runs\n")
    print("| wire | capture | million WRITEs a second | of those without | frames missed, of all |")
    print("|---|---|--:|--:|--:|")
    for figure, runs in found.items():
        wire, name = figure.split(" ", 1)
        rates, kept, missed = map(statistics.median, zip(*runs))
        without = statistics.median(rate for rate, _, _ in found[f"{wire} none"])
        share = f"{100 * missed / (kept + missed):.0f} %" if kept else "-"
        print(f"| {wire} | {name} | {rates:.2f} | {100 * rates / without:.0f} % | {share} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
