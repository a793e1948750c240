#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many applications at one daemon, each with many jettys: how long it takes until all are there, what memory the daemon
has for each application and each jetty, how many small WRITEs a second go between pairs of them, and whether
everything is given back, after they ended or, with --kill, were killed. Exit status 1: a WRITE failed, or objects are
left.

  tests/bench/ub_apps.py --build build --apps 100 --jettys 100

Memory is the resident memory of the daemon; "private" is its own, the rest are the queues and pages that it shares
with the applications. In each pair, one writes 64 bytes at a time to the other, up to 64 under way, round its jettys,
and sleeps while nothing completes. The other one does nothing.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
import daemons  # noqa: E402

OBJECTS = ("jfc", "jfr", "jfs", "jetty", "segments", "targets")
PATIENCE = 20  # seconds until what is gone must be freed


class App:
    def __init__(self, args, daemon):
        command = [args.app] + (["--own-memory"] if args.own_memory else [])
        self.process = subprocess.Popen(command, env={**os.environ, **daemon.variables()}, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"an application ended with {self.process.wait()}")
        return line


def all_of(apps, line):
    """Every application does it at the same time; their answers, and the seconds until the last one."""
    begin = time.monotonic()
    for app in apps:
        app.tell(line)
    return [app.answer() for app in apps], time.monotonic() - begin


class Memory:
    """Of the daemon, KiB."""

    def __init__(self, daemon):
        with open(f"/proc/{daemon.process.pid}/status", encoding="utf-8") as status:
            sizes = {line.split(":")[0]: int(line.split()[1]) for line in status if line.endswith(" kB\n")}
        self.resident, self.private = sizes["VmRSS"], sizes["RssAnon"]
        self.descriptors = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))

    def __str__(self):
        return f"{self.resident} KiB resident, {self.private} KiB private, {self.descriptors} descriptors"


def per(count, before, after):
    return (f"{(after.resident - before.resident) / count:.1f} KiB resident, "
            f"{(after.private - before.private) / count:.1f} KiB private")


def objects_left(args, daemon, directory):
    out = subprocess.run([args.admin, "show", "objects", "--json", "--instance", str(daemon.process.pid)], check=True,
                         env={**os.environ, "SOFTUB_LOG_STATS_DIR": directory}, stdout=subprocess.PIPE, text=True)
    objects = json.loads(out.stdout)["objects"]
    return {kind: objects[kind] for kind in OBJECTS if objects[kind]}


def wait_until_freed(args, daemon, directory, descriptors):
    """Seconds until no object and no descriptor is left. The statistics page lags a little."""
    begin = time.monotonic()
    while (left := objects_left(args, daemon, directory)) or Memory(daemon).descriptors > descriptors:
        if time.monotonic() - begin > PATIENCE:
            raise RuntimeError(f"left in the daemon: {left}, {Memory(daemon).descriptors - descriptors} descriptors")
        time.sleep(0.05)
    return time.monotonic() - begin


def row(what, value):
    print(f"| {what} | {value} |", flush=True)


def end_all(args, apps):
    if args.kill:
        for app in apps:
            app.process.kill()
            app.process.wait()
        return
    all_of(apps, "end")
    if any(app.process.wait() != 0 for app in apps):
        raise RuntimeError("an application did not end well")


def measure(args, daemon, directory, apps):
    jettys = args.apps * args.jettys
    idle = Memory(daemon)
    begin = time.monotonic()
    apps += [App(args, daemon) for _ in range(args.apps)]
    all_of(apps, "attach")
    attached, attach_s = Memory(daemon), time.monotonic() - begin
    addresses, make_s = all_of(apps, f"make {args.jettys}")
    made = Memory(daemon)
    begin = time.monotonic()
    writers = apps[::2]
    for app, address in zip(writers, addresses[1::2]):
        app.tell(f"import {address}")
    for app in writers:
        app.answer()
    import_s = time.monotonic() - begin
    results, _ = all_of(writers, f"run {args.seconds}")
    used = Memory(daemon)
    done, failed = (sum(int(line.split()[i]) for line in results) for i in range(2))
    slowest = min(int(line.split()[0]) for line in results)
    begin = time.monotonic()
    end_all(args, apps)
    end_s = time.monotonic() - begin
    freed_s = wait_until_freed(args, daemon, directory, idle.descriptors)

    print(f"| {args.apps} applications x {args.jettys} jettys | |\n|---|---|")
    row("start and attach all", f"{attach_s:.2f} s")
    row("make all jettys", f"{make_s:.2f} s, {make_s / jettys * 1e6:.0f} us each")
    row("import all targets", f"{import_s:.2f} s")
    row("daemon without applications", idle)
    row("per application", per(args.apps, idle, attached))
    row("per jetty with a queue of 16, before it is used", per(jettys, attached, made))
    row("more per writing jetty, with its target, once used", per(len(writers) * args.jettys, made, used))
    row(f"WRITEs of 64 B, {len(writers)} pairs", f"{done / args.seconds / 1e6:.3f} M/s, {failed} failed")
    row("slowest pair, share of the mean", f"{slowest * len(writers) / max(done, 1):.2f}")
    row("killed" if args.kill else "ended", f"{end_s:.2f} s; no objects, no descriptors left {freed_s:.2f} s later")
    row("daemon afterwards", Memory(daemon))
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build directory, for the programs that are not named")
    places = {"softubd": "dataplane/softubd/softubd", "app": "tests/bench/bench_apps", "admin": "tools/admin/urma_admin"}
    for program in places:
        parser.add_argument("--" + program)
    parser.add_argument("--apps", type=int, default=100)
    parser.add_argument("--jettys", type=int, default=100, help="of each application")
    parser.add_argument("--seconds", type=float, default=2, help="of WRITEs")
    parser.add_argument("--idle", choices=("poll", "adaptive", "sleep"), default="adaptive")
    parser.add_argument("--own-memory", action="store_true", help="memory that the daemon cannot see")
    parser.add_argument("--kill", action="store_true", help="the applications do not end by themselves")
    args = parser.parse_args()
    if args.apps < 2 or args.apps % 2 or args.jettys < 1:
        parser.error("an even number of applications, at least 2, and at least one jetty")
    for name, place in places.items():
        setattr(args, name, os.path.abspath(getattr(args, name) or os.path.join(args.build, place)))
    apps = []
    with tempfile.TemporaryDirectory(prefix="ub-apps-") as directory:
        variables = {"SOFTUB_PORT_KINDS": "shm", "SOFTUB_PORT_SHM_DIR": directory, "SOFTUB_LOG_STATS_DIR": directory,
                     "SOFTUB_DAEMON_IDLE": args.idle}
        daemon = daemons.Daemon(args.softubd, directory, 0, variables)
        try:
            return measure(args, daemon, directory, apps)
        except (RuntimeError, subprocess.SubprocessError, BrokenPipeError) as error:
            print(f"ub_apps: {error}\n{daemon.log()[-3000:]}", file=sys.stderr)
            return 1
        finally:
            for app in apps:
                app.process.kill()
                app.process.wait()
            daemon.stop()


if __name__ == "__main__":
    sys.exit(main())
