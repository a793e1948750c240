# SPDX-License-Identifier: Apache-2.0
"""What urma_admin says of programs at work, and of one that was killed: a part of run_tools.py."""
import json
import re
import signal
import time

import wires
from processes import Process, check, free_port

PATIENCE = 20  # seconds
TRANSPORTS = ("rtp", "ctp", "ctp with repeats")


def wait_until(is_so, otherwise):
    end = time.monotonic() + PATIENCE
    while not is_so():
        check(time.monotonic() < end, otherwise)
        time.sleep(0.05)


class AdminTests:
    """Of a class that has `tools`, `host` and transport_of()."""

    def admin(self):
        admin = self.tools["admin"]
        keys = json.loads(Process([admin, "config", "--json"]).expect(0))
        check(any(k["key"] == "port.kinds" for k in keys), "port.kinds is missing")
        devices = json.loads(Process([admin, "devices", "--caps", "--json"]).expect(0))
        check(devices and devices[0]["eids"], "no device with an EID")
        Process([admin, "list"]).expect(0)
        Process([admin, "show", "nonsense"]).expect(2)
        Process([admin, "show", "counters", "--instance", "nobody"]).expect(1)

    def admin_live(self):
        """An instance at work is listed, and its counters move."""
        port = free_port()
        args = [self.tools["perf"], "write_lat", "-p", port, "-D", 60]  # ended when all was seen
        server = Process(args)
        server.wait_for_text("TCP port")
        client = Process(args + [self.host])
        try:
            client.wait_for_text("#bytes")
            time.sleep(1)
            running = [i for i in json.loads(Process([self.tools["admin"], "list", "--json"]).expect(0))
                       if i["pid"] == client.popen.pid]
            check(len(running) == 1 and running[0]["state"] == "running", f"not listed: {running}")

            def shown(what):
                return json.loads(Process([self.tools["admin"], "show", what, "--json", "--instance",
                                           client.popen.pid]).expect(0))

            def packets():
                return shown("counters")["counters"]["tx.packets"]

            before = packets()
            time.sleep(0.5)
            check(packets() > before > 0, "tx.packets does not grow")
            if Process.wire.name in wires.DPDK_WIRES:
                counters = shown("counters")["counters"]
                check(running[0]["wires"] == "dpdk", f"wires: {running[0]['wires']}")
                check(counters["dpdk.tx.frames"] > 0 and counters["dpdk.link.changes"] == 1, str(counters))
            segments = shown("segments")["segments"]
            check(segments and segments[0]["length"] > 0, f"no segment is shown: {segments}")
            objects = shown("objects")["objects"]
            check(objects["segments"] == len(segments), f"{objects['segments']} segments, {len(segments)} are shown")
            for kind in ("jfc", "jetty", "targets", "peers", "channels", "links"):
                check(objects[kind] > 0, f"no {kind} is counted: {objects}")
            channels = shown("channels")["channels"]
            check(channels and all(c["counts"]["again_timeout"] >= 0 and c["congestion"] for c in channels), str(channels))
            transports = {c["transport"] for c in channels}
            check(self.transport_of("write") in transports <= set(TRANSPORTS), f"transports: {transports}")
            pools = shown("pools")["pools"]
            check(all(p["in_use"] <= p["highest"] <= p["size"] for p in pools) and len(pools) == 5, f"pools: {pools}")
            check(any(e["text"].endswith("is now open") for e in shown("events")["events"]), "no channel opened")
            self.trace(client.popen.pid)
            for what in ("channels", "pools"):
                Process([self.tools["admin"], "show", what, "--all", "--instance", client.popen.pid]).expect(0)
            Process([self.tools["admin"], "show", "objects", "--instance", client.popen.pid]).expect(0)
            client.popen.send_signal(signal.SIGINT)
            client.expect(130, 10)
            server.expect(3, 10)
        finally:
            server.kill()
            client.kill()

    def trace(self, pid):
        """Of an instance whose channel carries WRITEs."""
        of_it = ["--instance", pid]

        def ask(*words, code=0):
            return Process([self.tools["admin"], "trace", *words, *of_it]).expect(code)

        check("there is no trace" in ask("status"), "a trace before anybody asked for one")
        check("of 40 notes" in ask("add", 40, "stage=kPosted,kPacketSent*,kCompactSent"), "no trace begins")
        wait_until(lambda: "40 of 40 notes, complete" in ask("status"), "the trace is not complete")
        lines = ask("show").splitlines()
        check(len(lines) == 40 and all(re.match(r"\d\d:\d\d:\d\d\.\d{6}  \S", line) for line in lines), "\n".join(lines))
        rows = json.loads(ask("show", "--json"))
        check(len(rows) == 40 and rows == sorted(rows, key=lambda row: row["at"]), str(rows))
        check("a term is stage=NAME" in ask("add", 10, "chanel=1", code=1), "a wrong filter is taken")
        check("1 to 1000000 notes" in ask("add", 0, code=1), "an empty trace is taken")
        check("40 of 40" in ask("status"), "a wrong request ends a trace")
        ask("add", 1000000, "link=77")
        check("0 of 1000000 notes, running" in ask("status"), "it does not wait")
        ask("stop")
        check("there is no trace" in ask("clear"), "there is something left")

    def admin_dead(self):
        """What happened last in a program can be seen after it was killed."""
        server = Process([self.tools["perf"], "write_lat", "-p", free_port(), "-D", 60])
        client = None
        try:
            server.wait_for_text("TCP port")
            client = Process(server.args + [self.host])
            client.wait_for_text("#bytes")
            time.sleep(0.5)
            server.kill()
            show = [self.tools["admin"], "show", "events", "--instance", server.popen.pid]
            shown = json.loads(Process(show + ["--json"]).expect(0))
            check(not shown["running"], "it is said to run")
            check(any(e["text"].endswith("is now open") for e in shown["events"]), str(shown))
            trace = Process([self.tools["admin"], "trace", "status", "--instance", server.popen.pid]).expect(1)
            check("cannot be asked" in trace, trace)
            out = Process(show).expect(0)
            check("DEAD" in out and re.search(r"\d\d:\d\d:\d\d\.\d{6}  channel \d+ is now open", out), out)
        finally:
            server.kill()
            if client:
                client.kill()
