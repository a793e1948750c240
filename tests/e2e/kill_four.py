#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two daemons with a wire between them, two applications under load (survivor.cc), and one of the four is killed at a
random moment, again and again. After each kill the other three must be the same processes, see nothing wrong, and have
verified traffic with the one that was started again. In the end nothing is left over.

  tests/e2e/kill_four.py --build build                              # 40 kills over shm
  tests/e2e/kill_four.py --build build --wire udp --kills 1000 --seed 7

Phases: any of the four dies; then one daemon and the other one's application are spared, so that they see many deaths
and can be compared with what they were before; then the other two. At last two more applications use both daemons
while those of the first pair are killed, or stopped for 100 to 400 ms: they must not notice.

A seed draws victims and moments; what they hit differs from run to run.
"""
import argparse
import collections
import ctypes
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import daemons
import wires

SKIPPED = 77
RECOVERY = 40.0       # seconds until there is verified traffic again; a silent peer costs about 5, twice at worst
SETTLED = 6           # rounds of each survivor that make it so
WARM_UP = 4           # kills of a phase before the spared daemon is looked at for the first time
LONGEST_PAUSE = 3.0   # seconds for those that are not meant: agent_patience is 0.25, the rest is a busy machine
# What a daemon may have more of than before. Two daemons that connect at the same time have a second link, with two
# descriptors and 16 MiB of rings. Ids are not soon used again, so tables are touched up to their end, and malloc keeps
# what came and went. All that is bounded; one application that is not cleaned up leaves 4 MiB of addresses behind.
TOLERANCE = {"descriptors": 2, "mappings": 8, "KiB of addresses": 24 << 10, "KiB of private memory": 4 << 10}
OBJECTS = ("jfc", "jfr", "jfs", "jetty", "segments", "targets")
STATUSES = ("ok", "opcode", "loc_len", "loc_operation", "loc_access", "rem_resp_len", "rem_unsupported",
            "rem_operation", "rem_access_abort", "ack_timeout", "rnr", "flushed", "suspend", "flush_done", "unhandled",
            "poison")


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


class Page(ctypes.Structure):
    """struct Page of survivor.cc."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("pid", "self", "with_", "turns", "rounds", "lives", "losses",
                                                     "pause_us", "receives_failed")]
    _fields_ += [("statuses", ctypes.c_uint64 * 16), ("violation", ctypes.c_char * 512)]


class Survivor:
    """One application; it keeps its name and its page when it is started again."""

    def __init__(self, world, number, peer, side, options=()):
        self.world = world
        self.name = f"survivor{number}"
        self.daemon = world.daemons[side]
        self.log_path = os.path.join(world.directory, self.name + ".log")
        self.command = world.wire.command(side) + [
            world.survivor, "--directory", world.directory, "--name", self.name, "--peer", f"survivor{peer}", *options]
        path = os.path.join(world.directory, self.name + ".page")
        with open(path, "w+b") as file:
            file.truncate(ctypes.sizeof(Page))
            self.page = Page.from_buffer(mmap.mmap(file.fileno(), ctypes.sizeof(Page)))
        self.allowed_losses = 0
        self.process = None

    def start(self):
        seed = str(self.world.dice.getrandbits(32))
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command + ["--seed", seed], stdout=log, stderr=log,
                                            env={**os.environ, **self.daemon.variables()})

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} does not end") from None
        check(code == 0, f"{self.name} ended with {code}: {self.page.violation.decode(errors='replace')}")

    def check_alive(self):
        code = self.process.poll()
        check(code is None, f"{self.name} ended with {code}: {self.page.violation.decode(errors='replace')}")

    def describe(self):
        p = self.page
        return (f"{self.name}: process {p.pid}, address {p.self:016x}, with {p.with_:016x}, {p.turns} turns, "
                f"{p.rounds} rounds, {p.lives} lives, {p.losses} daemons lost\n" + tail(self.log_path))


def tail(path, lines=15):
    try:
        with open(path, errors="replace") as file:
            return "".join("    " + line for line in file.readlines()[-lines:] if "no NIC" not in line)
    except OSError:
        return ""


def measure(daemon):
    """What must not grow. ThreadSanitizer keeps five bytes of its own for each byte that the daemon touched."""
    process = f"/proc/{daemon.process.pid}"
    with open(process + "/maps") as maps, open(process + "/status") as status:
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in status if line.endswith(" kB\n")}
        mappings = maps.readlines()
        bytes_for_each = 6 if any("libtsan" in line for line in mappings) else 1
        return {"descriptors": len(os.listdir(process + "/fd")), "mappings": len(mappings),
                "KiB of addresses": sizes["VmSize"], "KiB of private memory": sizes["RssAnon"] // bytes_for_each}


class World:
    def __init__(self, args, directory):
        self.args = args
        self.directory = directory
        self.dice = random.Random(args.seed)
        self.survivor = args.survivor
        self.wire = wires.make(args.wire, args.plugin)
        shared = {"SOFTUB_PORT_SHM_DIR": directory, "SOFTUB_LOG_STATS_DIR": directory}
        self.daemons = []
        for end in range(2):
            variables = {**self.wire.environment(end), **shared}
            self.daemons.append(daemons.Daemon(args.softubd, directory, end, variables, self.wire.command(end)))
        self.survivors = [Survivor(self, 0, 1, 0), Survivor(self, 1, 0, 1)]
        self.running = []
        self.kills = collections.Counter()
        self.slowest = 0.0

    # ---- survivors ----
    def start_survivors(self, survivors):
        for survivor in survivors:
            survivor.start()
            self.running.append(survivor)
        self.wait_for_traffic()

    def stop_survivors(self):
        for survivor in self.running:
            survivor.process.send_signal(signal.SIGTERM)
        for survivor in self.running:
            survivor.stop()
        self.running.clear()

    def pairs(self):
        return [self.running[i:i + 2] for i in range(0, len(self.running), 2)]

    def check_processes(self):
        for survivor in self.running:
            survivor.check_alive()
            check(survivor.page.losses <= survivor.allowed_losses,
                  f"{survivor.name} lost its daemon {survivor.page.losses} times, killed: {survivor.allowed_losses}")
        for number, daemon in enumerate(self.daemons):
            check(daemon.process.poll() is None, f"softubd {number} ended with {daemon.process.poll()}")

    def wait_for_traffic(self, old=()):
        """Until both of each pair have new rounds with each other, as they are now and were not in `old`."""
        begin = time.monotonic()
        seen = {}
        for pair in self.pairs():
            while True:
                self.check_processes()
                a, b = (s.page for s in pair)
                ends = (a.self, b.self)
                good = (all(ends) and (a.with_, b.with_) == (b.self, a.self) and not set(ends) & set(old) and
                        all(s.page.pid == s.process.pid for s in pair))
                if good and ends in seen:
                    if all(s.page.rounds >= then + SETTLED for s, then in zip(pair, seen[ends])):
                        break
                elif good:
                    seen[ends] = (a.rounds, b.rounds)
                check(time.monotonic() < begin + RECOVERY, f"no traffic for {RECOVERY:.0f} s")
                time.sleep(0.002)
        self.slowest = max(self.slowest, time.monotonic() - begin)

    # ---- deaths ----
    def kill(self, victim):
        """Kills and starts one of the four; returns the addresses that nobody may have any more."""
        kind, number = victim[0], int(victim[1])
        self.kills[victim] += 1
        if kind == "a":
            survivor = self.survivors[number]
            survivor.check_alive()
            survivor.kill()
            old = {survivor.page.self} - {0}
            survivor.start()
            return old
        daemon = self.daemons[number]
        of_it = [s for s in self.running if s.daemon is daemon]
        for survivor in of_it:
            survivor.allowed_losses += 1
        old = {s.page.self for s in of_it} - {0}
        daemon.kill()
        daemon.start()
        return old

    def stall(self, victim):
        """Stops an application for a moment."""
        process = self.survivors[int(victim[1])].process
        process.send_signal(signal.SIGSTOP)
        time.sleep(self.dice.uniform(0.1, 0.4))
        process.send_signal(signal.SIGCONT)
        self.kills["stall of " + victim] += 1

    def deaths(self, count, victims):
        for _ in range(count):
            time.sleep(self.dice.uniform(0.001, 0.060))
            old = set()
            while True:
                victim = self.dice.choice(victims)
                moment = self.dice.uniform(0, 0.1)
                again = self.dice.random() < 0.15  # in the middle of the recovery
                if self.args.verbose:
                    print(f"{time.monotonic():.3f} {victim}{' and then' if again else ''}", flush=True)
                if victim.startswith("stall"):
                    self.stall(victim[6:])
                else:
                    old |= self.kill(victim)
                if not again:
                    break
                time.sleep(moment)
            self.wait_for_traffic(old)

    # ---- what is left ----
    def show(self, what, daemon):
        environment = {**os.environ, "SOFTUB_LOG_STATS_DIR": self.directory}
        out = subprocess.run([self.args.admin, "show", what, "--json", "--instance", str(daemon.process.pid)],
                             env=environment, capture_output=True, text=True, timeout=60)
        check(out.returncode == 0, f"urma_admin: {out.stderr}")
        return json.loads(out.stdout)[what]

    def in_flight(self):
        return [row["in_flight"] for daemon in self.daemons for row in self.show("channels", daemon) if row["in_flight"]]

    def wait_until_empty(self, daemon):
        """Without applications; the statistics page lags a little, and dead peers are remembered for a while."""
        end = time.monotonic() + 20
        while True:
            objects = self.show("objects", daemon)
            left = {kind: n for kind, n in objects.items() if n and kind in OBJECTS}
            if not left and objects["peers"] <= 2 and objects["links"] <= 3 and not self.in_flight():
                return
            check(time.monotonic() < end, f"left in softubd: {objects}, in flight: {self.in_flight()}")
            time.sleep(0.1)

    def spare(self, spared, count):
        """One daemon sees deaths on all sides. What does it look like afterwards?"""
        daemon = self.daemons[spared]
        victims = [f"a{spared}", f"d{1 - spared}"]
        looks = []
        for kills in (min(WARM_UP, count), count):
            self.start_survivors(self.survivors)
            self.deaths(kills, victims)
            self.stop_survivors()
            self.wait_until_empty(daemon)
            looks.append(measure(daemon))
        before, after = looks
        print(f"softubd {spared} before and after {count} deaths around it: " + ", ".join(
            f"{after[what]} {what} ({after[what] - before[what]:+})" for what in after), flush=True)
        for what, more in TOLERANCE.items():
            check(after[what] <= before[what] + more, f"{after[what]} {what} are left, {before[what]} before")

    def bystanders(self, count):
        """Two more applications, while those of the first pair are killed or stalled."""
        first = [Survivor(self, 2, 3, 0, ["--may-stall"]), Survivor(self, 3, 2, 1, ["--may-stall"])]
        others = [Survivor(self, 4, 5, 0), Survivor(self, 5, 4, 1)]
        self.survivors, before = first, self.survivors
        self.start_survivors(first + others)
        for what, victims in (("killed", ("a0", "a1")), ("stopped", ("stall a0", "stall a1"))):
            for survivor in others:
                survivor.page.pause_us = 0
            self.deaths(count, victims)
            pause = max(s.page.pause_us for s in others) / 1e6
            print(f"applications beside them were {what}: longest pause of the others {pause:.3f} s", flush=True)
            check(pause < LONGEST_PAUSE, "others paused for too long")
        failed = {STATUSES[i] for s in others for i, n in enumerate(s.page.statuses) if n and i}
        check(not failed, f"requests of the others failed: {failed}")
        self.stop_survivors()
        self.survivors = before
        return first + others

    def run(self):
        kills = self.args.kills
        self.start_survivors(self.survivors)
        self.deaths(kills - 2 * (kills // 4), ("a0", "a1", "d0", "d1"))
        self.stop_survivors()
        for spared in range(2):
            self.spare(spared, kills // 4)
        statuses = collections.Counter()
        rounds = 0
        everybody = self.survivors + self.bystanders(max(3, kills // 20))
        for survivor in everybody:
            rounds += survivor.page.rounds
            for name, n in zip(STATUSES, survivor.page.statuses):
                statuses[name] += n
        for daemon in self.daemons:
            self.wait_until_empty(daemon)
        for number, daemon in enumerate(self.daemons):
            check(daemon.stop() == 0, f"softubd {number} ended with {daemon.process.returncode}")
        self.check_logs()
        self.check_files()
        total = sum(n for victim, n in self.kills.items() if not victim.startswith("stall"))
        print(f"kill_four over {self.wire.name}: {total} kills, "
              f"{', '.join(f'{n} {victim}' for victim, n in sorted(self.kills.items()))}; {rounds} rounds verified; "
              f"requests: {', '.join(f'{n} {name}' for name, n in statuses.items() if n)}; "
              f"slowest recovery {self.slowest:.2f} s")

    def check_logs(self):
        """Survivors do not lie, whenever they die."""
        for daemon in self.daemons:
            for line in daemon.log().splitlines():
                check("cannot be" not in line and "malformed" not in line and "no request" not in line, line)

    def check_files(self):
        ours = (".log", ".page", ".address", ".new", ".lock", ".stats.tmp")  # the last: swept after a minute
        left = [name for name in os.listdir(self.directory) if not name.endswith(ours)]
        check(not left, f"files are left: {left}")

    def report(self):
        for survivor in self.survivors + [s for s in self.running if s not in self.survivors]:
            print(survivor.describe())
        for number, daemon in enumerate(self.daemons):
            print(f"softubd {number}: {daemon.process.pid}\n{tail(daemon.log_path)}")
            for what in ("objects", "channels", "counters"):
                subprocess.run([self.args.admin, "show", what, "--instance", str(daemon.process.pid)],
                               env={**os.environ, "SOFTUB_LOG_STATS_DIR": self.directory}, timeout=10)

    def close(self):
        for survivor in self.running:
            if survivor.process.poll() is None:
                survivor.kill()
        for daemon in self.daemons:
            if daemon.process.poll() is None:
                daemon.kill()
        self.wire.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build directory, for the programs that are not named")
    parser.add_argument("--softubd")
    parser.add_argument("--survivor")
    parser.add_argument("--admin")
    parser.add_argument("--plugin", help="the DPDK port's shared object")
    parser.add_argument("--wire", choices=wires.NAMES, default="shm")
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--verbose", action="store_true", help="print each victim")
    args = parser.parse_args()
    places = {"softubd": "dataplane/softubd/softubd", "survivor": "tests/e2e/survivor",
              "admin": "tools/admin/urma_admin", "plugin": "dataplane/dpdk/libsoftub_dpdk.so.0"}
    for name, place in places.items():
        setattr(args, name, os.path.abspath(getattr(args, name) or os.path.join(args.build, place)))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("kill_four: ended by a signal"))
    print(f"kill_four: {args.kills} kills over {args.wire}, seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="softub-kill-") as directory:
        try:
            world = World(args, directory)
        except wires.Skip as why:
            print(f"not run over {args.wire}: {why}")
            return SKIPPED
        try:
            world.run()
            return 0
        except (Failure, RuntimeError, subprocess.TimeoutExpired) as failure:
            print(f"kill_four: FAIL: {failure}")
            world.report()
            return 1
        finally:
            world.close()


if __name__ == "__main__":
    sys.exit(main())
