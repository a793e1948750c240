#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Latencies inside, and what else instances say of their work: urma_admin latency, telemetry and show work, while two
programs talk over shared memory, and while a trace runs, too.

  tests/e2e/latency.py --build build
"""
import argparse
import json
import os
import sys
import tempfile
import time

import prometheus_text
import wires
from processes import FAILED, USAGE, Failure, Process, check, free_port

STAGES = ["posted_to_sent", "sent_to_acknowledged", "received_to_placed", "completed_to_polled", "posted_to_completed"]


class Tests:
    def __init__(self, build, pages):
        self.admin_path = os.path.join(build, "tools/admin/urma_admin")
        self.perf = os.path.join(build, "tools/perf/urma_perf")
        self.pages = pages

    def admin(self, *args, code=0):
        return Process([self.admin_path, *args]).expect(code)

    def ask(self, command, pid):
        return json.loads(self.admin("telemetry", command, "-i", pid))[command.partition(",")[0]]

    def latency(self, pid):
        return json.loads(self.admin("latency", "show", "--json", "-i", pid))

    def pair(self, *options):
        """Two programs that write one by one until they are ended: the server's instance and the client's."""
        args = [self.perf, "write_lat", "-s", 64, "-p", free_port(), "-D", 600, *options]
        server = Process(args)
        server.wait_for_text("TCP port")
        client = Process(args + [Process.wire.host()])
        client.wait_for_text("#bytes")
        return server, client

    # ---- latencies ----
    def off_at_first(self, pid):
        shown = self.latency(pid)
        check(shown["on"] == 0 and all(not shown["stages"][s]["classes"] for s in STAGES), f"it measures: {shown}")
        check("not measured" in self.admin("latency", "show", "-i", pid), "nothing says that it is off")

    def measures(self, client, server):
        for pid in client, server:
            check("latencies are measured" in self.admin("latency", "on", "-i", pid), "on")
        time.sleep(1)
        at_client, at_server = self.latency(client)["stages"], self.latency(server)["stages"]

        def only_class(stages, stage):
            check(len(stages[stage]["classes"]) == 1, f"{stage}: {stages[stage]}")
            return next(iter(stages[stage]["classes"].values()))

        completed = only_class(at_client, "posted_to_completed")
        for stage in "posted_to_sent", "sent_to_acknowledged", "posted_to_completed", "completed_to_polled":
            figures = only_class(at_client, stage)
            check(figures["count"] > 100, f"{stage}: {figures}")
            order = [figures[name] for name in ("min_ns", "p50_ns", "p99_ns", "p99_9_ns", "max_ns")]
            check(order == sorted(order) and figures["max_ns"] < 60e9, f"{stage}: {figures}")
        check(only_class(at_client, "sent_to_acknowledged")["p50_ns"] <= completed["p50_ns"], "parts exceed the whole")
        check(only_class(at_server, "received_to_placed")["count"] > 100, f"{at_server}")
        ended = self.latency(client)["ended"]
        check(ended["write"] > 100 and ended["read"] == 0, f"{ended}")
        table = self.admin("latency", "show", "-i", client)
        check("posted_to_completed" in table and "p99_9_ns" in table, table)

    def counts_what_it_measures(self, client):
        """Counts of stages and of requests agree, while both grow."""
        before = self.latency(client)
        requests = self.ask("/softub/work", client)["operations"]["requests"]
        time.sleep(0.5)
        later = self.ask("/softub/work", client)["operations"]["requests"]
        after = self.latency(client)

        def completed(shown):
            of = shown["stages"]["posted_to_completed"]
            return sum(c["count"] for c in of["classes"].values()) + of["no_start"]

        most, least = completed(after) - completed(before), later - requests
        check(most >= least > 0, f"{least} requests ended, and {most} were measured")

    def with_a_trace(self, pid):
        self.admin("trace", "add", 500, "-i", pid)
        time.sleep(0.5)
        check("500 of 500 notes, complete" in self.admin("trace", "status", "-i", pid), "the trace is not complete")
        before = self.latency(pid)["stages"]["posted_to_completed"]["classes"]
        time.sleep(0.3)
        after = self.latency(pid)["stages"]["posted_to_completed"]["classes"]
        check(after != before, "a trace that ended takes the latencies with it")

    def clears_and_stops(self, pid):
        self.admin("latency", "clear", "-i", pid)
        self.admin("latency", "off", "-i", pid)
        kept = self.latency(pid)
        check(kept["on"] == 0, f"{kept}")
        time.sleep(0.3)
        check(self.latency(pid) == kept, "it measures, though it is off")
        self.admin("latency", "clear", "-i", pid)
        shown = self.latency(pid)
        check(shown["since_ns"] == 0 and not any(shown["stages"][s]["classes"] for s in STAGES), f"{shown}")

    # ---- the rest ----
    def exported(self, pid):
        page = prometheus_text.Page(self.admin("export", "--once"))
        own = {"pid": str(pid)}
        check(page.get("softub_operations_total", kind="requests", **own)[0] > 0, "no requests")
        check(page.get("softub_latency_measured", **own) == [1.0], "not measured")
        of = {"stage": "posted_to_completed", **own}
        check(page.get("softub_stage_latency_samples", **of)[0] > 0, "no samples")
        check(0 < page.get("softub_stage_latency_seconds", quantile="0.5", **of)[0] < 60, "no median")
        spent = page.get("softub_driver_seconds_total", driver="application", **own)
        check(len(spent) == 6 and sum(spent) > 0, f"application threads spend {spent}")
        top = self.admin("top", "--once", "--interval", 1)
        check("OPS/s" in top and "BUSY %" in top and "P99 us" in top, top)

    def shows_work(self, pid):
        work = json.loads(self.admin("show", "work", "--json", "-i", pid))["work"]
        check(work["requests"] > 0 and work["completions"] > 0, f"{work}")
        check(work["application_busy_ns"] > 0 and work["own_asleep_ns"] > 0, f"{work}")
        check("OWN THREAD" in self.admin("show", "work", "-i", pid), "no table")

    def answers(self, pid):
        commands = json.loads(self.admin("telemetry", "-i", pid))["/"]
        check("/softub/counters" in commands and len(commands) == 8, f"{commands}")
        check(self.ask("/softub/info", pid)["pid"] == pid, "info is of another one")
        check(self.ask("/softub/counters", pid)["tx_packets"] > 0, "no counters")
        check(self.ask("/softub/ports", pid)["wires"] == ["shm"], "other wires")
        page = self.ask("/softub/channels,0", pid)
        check(page["total"] >= 1 and page["channels"]["0"]["tx_packets"] > 0, f"{page}")
        check(self.ask("/softub/apps", pid)["total"] == 0, "an embedded NIC has applications")
        for wrong in "/softub/none", "/softub/info,1", "/softub/channels,x", "softub", "x" * 2000:
            out = self.admin("telemetry", wrong, "-i", pid, code=FAILED)
            check(out.startswith("urma_admin: "), out)
        check("on" in self.admin("latency", "-i", pid, code=USAGE), "no usage")
        check(self.admin("latency", "on", "-i", "nobody", code=FAILED), "no message")

    def by_configuration(self):
        Process.wire.variables["SOFTUB_LOG_LATENCY"] = "true"
        server, client = self.pair()
        del Process.wire.variables["SOFTUB_LOG_LATENCY"]
        try:
            time.sleep(0.5)
            shown = self.latency(client.popen.pid)
            check(shown["on"] == 1 and shown["ended"]["write"] > 0, f"{shown}")
            misses = [shown["stages"][s]["no_start"] for s in ("sent_to_acknowledged", "posted_to_completed")]
            check(misses == [0, 0], f"from the start nothing is missed, but {misses}")
        finally:
            client.kill()
            server.kill()

    def held_back(self):
        """A window of few packets is what a sender of long messages waits for."""
        Process.wire.variables["SOFTUB_TRANSPORT_WINDOW_PACKETS"] = "128"
        args = [self.perf, "write_bw", "-s", 1 << 20, "-t", 16, "-p", free_port(), "-D", 600]
        server = Process(args)
        server.wait_for_text("TCP port")
        client = Process(args + [Process.wire.host()])
        del Process.wire.variables["SOFTUB_TRANSPORT_WINDOW_PACKETS"]
        try:
            client.wait_for_text("#bytes")
            for _ in range(40):
                work = json.loads(self.admin("show", "work", "--json", "-i", client.popen.pid))["work"]
                if work["application_held_ns"] + work["application_no_room_ns"] > 0:
                    return
                time.sleep(0.5)
            raise Failure(f"nobody is ever held back: {work}")
        finally:
            client.kill()
            server.kill()

    def all(self):
        server, client = self.pair()
        c, s = client.popen.pid, server.popen.pid
        try:
            for name, step in (("off at first", lambda: self.off_at_first(c)),
                               ("measures", lambda: self.measures(c, s)),
                               ("counts", lambda: self.counts_what_it_measures(c)),
                               ("with a trace", lambda: self.with_a_trace(c)),
                               ("export and top", lambda: self.exported(c)),
                               ("show work", lambda: self.shows_work(c)),
                               ("telemetry", lambda: self.answers(c)),
                               ("clears and stops", lambda: self.clears_and_stops(c)),
                               ("by configuration", self.by_configuration),
                               ("held back", self.held_back)):
                begin = time.monotonic()
                step()
                print(f"ok {name} ({time.monotonic() - begin:.1f} s)", flush=True)
        finally:
            client.kill()
            server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="softub-latency-") as pages:
        Process.wire = wires.Given({"SOFTUB_PORT_KINDS": "shm", "SOFTUB_PORT_SHM_DIR": pages,
                                    "SOFTUB_LOG_STATS_DIR": pages})
        try:
            Tests(args.build, pages).all()
        except Failure as failure:
            print(f"FAILED: {failure}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
