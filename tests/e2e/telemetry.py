#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""urma_admin export and urma_admin top, while two programs talk over shared memory.

Every page of the exporter is read strictly (prometheus_text.py), and by promtool, too, where that is installed.

  tests/e2e/telemetry.py --build build
"""
import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import prometheus_text
import wires
from processes import FAILED, USAGE, Failure, Process, check, free_port
from terminals import Terminal

PROMTOOL = shutil.which("promtool")


def read_page(text):
    try:
        page = prometheus_text.Page(text)
    except prometheus_text.Fault as fault:
        raise Failure(f"the page is wrong: {fault}")
    if PROMTOOL:
        said = subprocess.run([PROMTOOL, "check", "metrics"], input=text, text=True, capture_output=True)
        check(said.returncode == 0 and not said.stderr, f"promtool: {said.stdout}{said.stderr}")
    return page


class Tests:
    def __init__(self, build, directory):
        self.admin = os.path.join(build, "tools/admin/urma_admin")
        self.perf = os.path.join(build, "tools/perf/urma_perf")
        self.directory = directory
        self.pages = os.path.join(directory, "pages")

    def pair(self):
        """Two programs that write until they are ended."""
        port = free_port()
        args = [self.perf, "write_bw", "-s", 4096, "-p", port, "-D", 600]
        server = Process(args)
        server.wait_for_text("TCP port")
        client = Process(args + [Process.wire.host()])
        client.wait_for_text("#bytes")
        time.sleep(1)  # pages are written now and then
        return server, client

    # ---- export ----
    def export_once(self, pids):
        page = read_page(Process([self.admin, "export", "--once"]).expect(0))
        check(page.get("softub_instances") == [2.0], "not two instances")
        for pid in pids:
            own = {"pid": str(pid), "program": "urma_perf"}
            check(page.get("softub_instance_up", **own) == [1.0], f"{pid} is not up")
            check(page.get("softub_tx_packets_total", **own)[0] > 0, f"{pid} sent nothing")
            check(page.get("softub_objects", kind="channels", **own)[0] > 0, f"{pid} has no channel")
            check(page.get("softub_channel_tx_packets_total", **own), f"{pid} shows no channel")
            check(page.get("softub_pool_size", pool="records", **own)[0] > 0, f"{pid} shows no pool")
        none = read_page(Process([self.admin, "export", "--once", "--channels", 0]).expect(0))
        check(not none.get("softub_channel_tx_packets_total"), "channels in spite of --channels 0")
        check(sum(none.get("softub_channels_unlisted")) >= 2, "unlisted channels are not counted")

    def serve(self, *options):
        """The exporter on a free port, and its address."""
        server = Process([self.admin, "export", "--port", 0, *options])
        return server, server.wait_for_text(r"http://\S+").group()

    def scrape(self, address):
        with urllib.request.urlopen(address, timeout=10) as answer:
            return read_page(answer.read().decode())

    def export_serves(self, pids):
        server, address = self.serve()
        try:
            own = {"pid": str(pids[1])}
            before = self.scrape(address).get("softub_tx_packets_total", **own)[0]
            time.sleep(0.5)
            check(self.scrape(address).get("softub_tx_packets_total", **own)[0] > before, "nothing grows")
        finally:
            server.kill(signal.SIGTERM)
        server.expect(0, 20)

    def export_sees_deaths(self, server, client):
        """Programs are killed during scrapes, and started anew."""
        exporter, address = self.serve()
        try:
            client.kill()
            server.kill()
            for _ in range(5):
                page = self.scrape(address)
            check(page.get("softub_instances") == [0.0], "the dead are counted")
            check(page.get("softub_instance_up", pid=str(client.popen.pid)) == [0.0], "the dead one is not shown")
            check(not page.get("softub_tx_packets_total"), "counters of the dead")
            for i in range(6):
                process = Process([self.perf, "write_bw", "-p", free_port()])
                for _ in range(3):
                    self.scrape(address)
                process.kill(signal.SIGKILL if i % 2 else signal.SIGTERM)
                for _ in range(3):
                    self.scrape(address)
                process.wait(20)
        finally:
            exporter.kill(signal.SIGINT)
        exporter.expect(0, 20)

    def export_reads_no_rubbish(self):
        """A page that is none is counted, and the others are shown."""
        with open(os.path.join(self.pages, "10.9.9.9-1.stats"), "w") as f:
            f.write("rubbish" * 1000)
        page = read_page(Process([self.admin, "export", "--once"]).expect(0))
        os.unlink(f.name)
        check(page.get("softub_pages_unreadable") == [1.0] and page.get("softub_instances") == [2.0], "rubbish matters")

    def export_bad_input(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            out = Process([self.admin, "export", "--port", s.getsockname()[1]]).expect(FAILED)
            check("cannot listen" in out and "already in use" in out.lower() and "--port" in out, out)
        out = Process([self.admin, "export", "--bind", "203.0.113.77"]).expect(FAILED)
        check("cannot listen" in out and "--bind" in out, out)
        for place in (__file__, "/nonexistent/pages"):
            for command in (["export"], ["export", "--once"], ["top"]):
                out = Process([self.admin, *command, "--dir", place]).expect(FAILED)
                check(f"the statistics directory {place} cannot be read" in out, out)
        for args in (["--port", 65536], ["--port", -1], ["--port", "http"], ["--bind", "nonsense"], ["--bind", "::1"],
                     ["--channels", 513], ["extra"]):
            out = Process([self.admin, "export", *args]).expect(USAGE)
            check(len(out) > 0, f"no message for {args}")
        not_yet = os.path.join(self.directory, "not_yet")
        page = read_page(Process([self.admin, "export", "--once", "--dir", not_yet]).expect(0))
        check(page.get("softub_instances") == [0.0], "instances of nowhere")
        with open("/dev/full", "w") as full:
            code = subprocess.run([self.admin, "export", "--once", "--dir", not_yet], stdout=full,
                                  stderr=subprocess.DEVNULL).returncode
        check(code == FAILED, f"a full disk: {code}")

    # ---- top ----
    def top_as_text(self, pids):
        """Where the output is no terminal: one page."""
        for options in ([], ["--once"]):
            out = Process([self.admin, "top", "--interval", 0.5, *options]).expect(0)
            check(all(str(pid) in out for pid in pids) and "CHANNEL" in out and "\x1b" not in out, out)
        out = Process([self.admin, "top", "--once", "-i", pids[0]]).expect(0)
        check(str(pids[0]) in out and str(pids[1]) not in out, out)

    def top_bad_input(self):
        for interval in ("0", "-1", "nan", "inf", "1e9", "x", ""):
            check("--interval" in Process([self.admin, "top", "--interval", interval]).expect(USAGE), interval)
        out = Process([self.admin, "top", "-i", "nobody"]).expect(FAILED)
        check("no instance nobody" in out and "urma_admin list" in out, out)
        empty = tempfile.mkdtemp(dir=self.directory)
        check("no instance runs" in Process([self.admin, "top", "--once", "--dir", empty]).expect(FAILED), "empty")

    def top(self, *options):
        environment = {**os.environ, **Process.wire.variables, "TERM": "xterm"}
        return Terminal([self.admin, "top", "--interval", 0.3, *options], environment)

    def top_live(self, pids):
        terminal = self.top()
        try:
            def has_rates(lines):
                return all(any(str(pid) in line and " - " not in line for line in lines) for pid in pids)

            lines = terminal.wait_for(has_rates, "both programs with their rates")
            check(len(lines) <= 24 and all(len(line) <= 80 for line in lines), "\n".join(lines))
            check("by TX+RX" in lines[0], lines[0])
            terminal.press("s")
            terminal.wait_for(lambda l: l and "by AGAIN" in l[0], "another order")
            terminal.press("p")
            paused = terminal.wait_for(lambda l: l and "PAUSED" in l[0], "a pause")
            terminal.read(1)
            check(terminal.screen() == paused, "a page that is paused changed")
            terminal.press("p")
            terminal.resize(50, 6)
            lines = terminal.wait_for(lambda l: l and len(l[0]) <= 50 and "PAUSED" not in l[0], "a small page")
            check(len(lines) <= 6 and all(len(line) <= 50 for line in lines), "\n".join(lines))
            first = lines[1:]
            terminal.press("p")
            terminal.press("j\x1b[B")  # two keys at once
            terminal.wait_for(lambda l: l and l[1:] != first, "rows further down")
            terminal.press("k\x1b[A\x1b[1;5Zk")  # one that is unknown, too
            terminal.wait_for(lambda l: l and l[1:] == first, "the first rows again")
            terminal.press("q")
            check(terminal.end() == 0 and terminal.is_as_before(), f"the terminal after q: {terminal.output[-60:]!r}")
        finally:
            terminal.close()

    def top_ends(self):
        """However it ends, the terminal is as before."""
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            terminal = self.top()
            try:
                terminal.wait_for(lambda l: len(l) > 1, "a page")
                terminal.popen.send_signal(how)
                code = terminal.end()
                check(code == 0 and terminal.is_as_before(), f"after {how.name}: {code}, {terminal.output[-60:]!r}")
            finally:
                terminal.close()

    def all(self):
        prometheus_text.check_reader()
        print(f"pages are read by promtool, too: {PROMTOOL}" if PROMTOOL else
              "there is no promtool (Debian package prometheus): pages are read by our own rules alone")
        server, client = self.pair()
        pids = server.popen.pid, client.popen.pid
        try:
            steps = (("export --once", lambda: self.export_once(pids)),
                     ("export serves", lambda: self.export_serves(pids)),
                     ("export, rubbish", self.export_reads_no_rubbish),
                     ("export, bad input", self.export_bad_input),
                     ("top, no terminal", lambda: self.top_as_text(pids)),
                     ("top, bad input", self.top_bad_input),
                     ("top, live", lambda: self.top_live(pids)),
                     ("top, ends", self.top_ends),
                     ("export, deaths", lambda: self.export_sees_deaths(server, client)))
            for name, step in steps:
                start = time.monotonic()
                step()
                print(f"ok {name} ({time.monotonic() - start:.1f} s)", flush=True)
        finally:
            client.kill()
            server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="softub-telemetry-") as directory:
        tests = Tests(args.build, directory)
        os.mkdir(tests.pages, 0o700)
        Process.wire = wires.Given({"SOFTUB_PORT_KINDS": "shm", "SOFTUB_PORT_SHM_DIR": tests.pages,
                                    "SOFTUB_LOG_STATS_DIR": tests.pages})
        try:
            tests.all()
        except Failure as failure:
            print(f"FAILED: {failure}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
