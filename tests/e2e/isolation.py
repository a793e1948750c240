#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two daemons, an honest application at each with verified traffic to the other (survivor.cc), and beside them one
misbehaving application after the other (hostile_app.cc): runs to its end, then killed at random moments. After each:
the daemons are the same processes, the honest pair lost nothing and saw no wrong byte, no request of theirs failed,
what the hostile one had is gone within a second, and the daemon's log names it where it was thrown out.

  tests/e2e/isolation.py --build build
  tests/e2e/isolation.py --build build --compare 40 --only bells

The rate of the honest pair (rounds of WRITE, READ, atomic and SEND) is printed: alone, beside a process that burns as
much CPU and leaves the daemon alone, beside the hostile one, and their ratio. Medians of slices of 50 ms. The honest
pair and the daemons' workers have one core, the hostile ones and the daemons' control threads another: so the ratio
says what the daemon loses and not what the scheduler gives away; --no-pin leaves that to the system.

--compare N measures nothing but that ratio, and better: both live at the same time, one of them is always stopped, and
they change places N times a case, so what the machine does in between strikes both. The ratio is that of the medians
of each one's N turns; printed beside it is what the same gives for two that do nothing wrong.
"""
import argparse
import os
import re
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import kill_four
import wires
from kill_four import Failure, check

SLICE = 0.05
HONEST_CORE, OTHER_CORE = "0", "1"
LONGEST_START = 100  # seconds until it has attached
GONE = 1.0  # seconds until nothing is left of a dead application
QUOTA = 1000
LIMITS = {f"SOFTUB_DAEMON_APP_{kind}": str(QUOTA) for kind in ("JETTIES", "JFRS", "JFCS", "SEGMENTS", "TARGETS")}
LIMITS["SOFTUB_DAEMON_APP_MEMORY"] = "1GiB"

# What the daemon must say of it, and what it must hear (regular expressions).
CASES = {
    "rubbish": (["bytes that are no request", "speaks version .* this softubd version", "malformed request",
                 "request before its hello", "said hello twice"], ["refused: .*version"]),
    "silent": (["said no hello|made room"], ["1000 connections"]),
    "requests": (["gone"], ["requests"]),
    "mute": (["does not read its answers"], []),
    "scribble": (["gone|cannot be"], []),
    "memfd": (["gone"], []),
    "indices": (["gone|cannot be"], []),
    "bells": (["gone"], []),
    "empty_queues": (["gone"], []),
    "nothing": (["gone"], []),
    "long_ring": (["gone"], ["slots"]),
    "full_eventfd": (["gone"], []),
    "deaf": (["gone"], []),
    "ring_all": (["gone"], []),
    "greedy": (["gone"], [f"daemon.app_{kind} = " for kind in ("segments", "jfcs", "jfrs", "jetties", "targets",
                                                                 "memory")]),
    "attach": (["gone"], []),
    "crowd": (["gone"], ["200 applications"]),
    "slow": (["gone"], []),
    "lazy": (["gone"], []),
    "stopped": (["gone"], []),
    "spin": (["gone"], []),
    "restless": (["gone"], []),
}
WITH_WRITER = ("slow", "lazy", "stopped", "spin")
WITH_SERVER = ("restless",)
ENDS_BY_ITSELF = ("greedy",)
WITH_TRAFFIC = ("deaf",)  # beside what they do wrong: to be compared with somebody who has as much


def pin(core):
    """What is started from now on runs there."""
    os.sched_setaffinity(0, {int(core)})


class Hostile:
    """One misbehaving application at a daemon, and its accomplice at the other one if it needs one."""

    def __init__(self, world, case, seconds, prefix=()):
        self.parts = []
        self.case = case
        name = "slow" if case == "stopped" else case
        if case in WITH_SERVER:
            server = self.start(world, "slow", 1, seconds)
            self.main = self.start(world, name, 0, seconds, "--to", self.address_of(server))
            return
        self.main = self.start(world, name, 0, seconds, prefix=prefix)
        if case not in WITH_WRITER:
            return
        self.start(world, "writer", 1, seconds, "--to", self.address_of(self.main))
        if case == "stopped":
            time.sleep(0.05)
            self.main.send_signal(signal.SIGSTOP)

    def address_of(self, part):
        readable, _, _ = select.select([part.stdout], [], [], LONGEST_START)
        check(readable, f"{self.case} has not attached after {LONGEST_START} s")
        line = part.stdout.readline()
        check(line.startswith("address "), f"{self.case} says {line}")
        return line.split(maxsplit=1)[1]

    def start(self, world, name, side, seconds, *more, prefix=()):
        if name in ENDS_BY_ITSELF:
            seconds = 60
        command = [*prefix, world.args.hostile, name, "--socket", world.daemons[side].socket, "--seconds", str(seconds),
                   "--seed", str(world.dice.getrandbits(32)), *more]
        self.parts.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return self.parts[-1]

    def end(self):
        """What it says; it must end by itself."""
        if self.case == "stopped":
            self.main.send_signal(signal.SIGCONT)
        said = [part.communicate(timeout=60)[0] for part in self.parts]
        for part, text in zip(self.parts, said):
            check(part.returncode == 0, f"{self.case} ended with {part.returncode}: {text}")
        return "".join(said)

    def kill(self):
        for part in self.parts:
            part.kill()
            part.communicate(timeout=60)


class Isolation(kill_four.World):
    def __init__(self, args, directory):
        os.environ.update(LIMITS)
        if args.pin:
            os.environ["SOFTUB_DAEMON_CORES"] = HONEST_CORE
            pin(OTHER_CORE)
        super().__init__(args, directory)

    def rounds(self):
        return sum(s.page.rounds for s in self.survivors)

    def rates(self, seconds):
        """Rounds a second, slice by slice."""
        rates = []
        end = time.monotonic() + seconds
        then, rounds = time.monotonic(), self.rounds()
        while then < end:
            time.sleep(SLICE)
            now, more = time.monotonic(), self.rounds()
            rates.append((more - rounds) / (now - then))
            then, rounds = now, more
        return rates

    def beside(self, case, seconds):
        hostile = Hostile(self, case, seconds)
        rates = self.rates(seconds)
        return rates, hostile.end()

    # ---- one case ----
    def check_honest(self):
        self.check_processes()
        for survivor in self.survivors:
            failed = {kill_four.STATUSES[i]: n for i, n in enumerate(survivor.page.statuses) if n and i}
            check(not failed, f"requests of {survivor.name} failed: {failed}")
            check(survivor.page.lives == 1, f"{survivor.name} attached {survivor.page.lives} times")

    def wait_until_gone(self, daemon, honest):
        """Seconds until only the objects of the honest one are left."""
        begin = time.monotonic()
        while True:
            objects = self.show("objects", daemon)
            left = {kind: objects[kind] - honest[kind] for kind in kill_four.OBJECTS if objects[kind] != honest[kind]}
            if not left:
                return time.monotonic() - begin
            check(time.monotonic() < begin + self.args.patience * GONE, f"left of the hostile application: {left}")
            time.sleep(0.02)

    def run_case(self, case, honest):
        log_from = len(self.daemons[0].log())
        seconds, alone, burning, hostile, said = self.args.seconds, [], [], [], ""
        alone += self.rates(seconds / 2)
        for _ in range(self.args.repeat):
            burning += self.beside("burn", seconds)[0]
            rates, text = self.beside(case, seconds)
            hostile += rates
            said += text
        self.wait_until_gone(self.daemons[0], honest)
        after = self.rates(seconds / 2)
        slowest = 0
        for _ in range(self.args.kills):
            victim = Hostile(self, case, 30)
            time.sleep(self.dice.uniform(0.001, 0.3))
            victim.kill()
            slowest = max(slowest, self.wait_until_gone(self.daemons[0], honest))
        self.check_honest()
        log = self.daemons[0].log()[log_from:]
        logged, told = CASES[case]
        for pattern in logged:
            check(re.search(r"process \d+ \(\S+\), user \d+: .*(" + pattern + ")", log),
                  f"the daemon's log does not say '{pattern}':\n{log[-3000:]}")
        for pattern in told:
            check(re.search(pattern, said), f"{case} did not hear '{pattern}':\n{said[-3000:]}")
        a, b, h, l = (statistics.median(rates) for rates in (alone, burning, hostile, after))
        print(f"{case:14}{a:9.0f}{b:9.0f}{h:9.0f}{l:9.0f}{h / max(b, 1):8.2f}{slowest:8.2f}  "
              + " ".join(said.split("\n")[-2:]).strip()[:60], flush=True)

    def turns(self, one, other, count):
        """Median rates of the honest pair beside two hostile applications that run in turn."""
        rates = {one: [], other: []}
        for part in (one, other):
            part.main.send_signal(signal.SIGSTOP)
        for turn in range(2 * count):
            active = (one, other)[turn % 2]
            active.main.send_signal(signal.SIGCONT)
            time.sleep(0.02)
            rounds, then = self.rounds(), time.monotonic()
            time.sleep(0.2)
            rates[active].append((self.rounds() - rounds) / (time.monotonic() - then))
            active.main.send_signal(signal.SIGSTOP)
        return [statistics.median(rates[part]) for part in (one, other)]

    def compare(self, case):
        seconds = 1 + 0.6 * self.args.compare
        rates = {}
        peaceful = "modest" if case in WITH_TRAFFIC else "burn"
        for name in (peaceful, case):
            burner, rival = Hostile(self, peaceful, seconds), Hostile(self, name, seconds)
            time.sleep(0.2)
            rates[name] = self.turns(burner, rival, self.args.compare)
            for part in (burner, rival):
                part.kill()
        ratios = {name: rival / burner for name, (burner, rival) in rates.items()}
        print(f"{case:14}{rates[case][0]:9.0f}{rates[case][1]:9.0f}{ratios[case]:8.3f}{ratios[peaceful]:12.3f}", flush=True)

    def run(self):
        if self.args.pin:
            pin(HONEST_CORE)
        self.start_survivors(self.survivors)
        if self.args.pin:
            pin(OTHER_CORE)
        time.sleep(0.5)
        honest = self.show("objects", self.daemons[0])
        if self.args.compare:
            print(f"{'':14}rounds a second of the honest pair\n{'case':14}{'burner':>9}{'hostile':>9}{'h / b':>8}"
                  f"{'two peaceful':>12}")
            for case in self.args.only or [case for case in CASES if case not in (*WITH_WRITER, *ENDS_BY_ITSELF)]:
                self.compare(case)
            self.stop_survivors()
            return
        print(f"{'':14}rounds a second of the honest pair\n{'case':14}{'alone':>9}{'burner':>9}{'hostile':>9}{'after':>9}"
              f"{'h / b':>8}{'gone s':>8}", flush=True)
        for case in self.args.only or CASES:
            self.run_case(case, honest)
        self.stop_survivors()
        for daemon in self.daemons:
            self.wait_until_empty(daemon)
        for number, daemon in enumerate(self.daemons):
            check(daemon.stop() == 0, f"softubd {number} ended with {daemon.process.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build directory, for the programs that are not named")
    for program in ("softubd", "survivor", "hostile", "admin", "plugin"):
        parser.add_argument("--" + program)
    parser.add_argument("--wire", choices=wires.NAMES, default="shm")
    parser.add_argument("--only", choices=CASES, action="append", help="only this one; may be repeated")
    parser.add_argument("--seconds", type=float, default=0.6, help="of each run")
    parser.add_argument("--repeat", type=int, default=2, help="runs of each case, and of the burner")
    parser.add_argument("--kills", type=int, default=3, help="more runs of each, which are killed")
    parser.add_argument("--compare", type=int, metavar="N", help="only the ratio, of so many turns each")
    parser.add_argument("--patience", type=float, default=3, help="factor for slow machines")
    parser.add_argument("--no-pin", dest="pin", action="store_false", help="leave processes where the system puts them")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.verbose = args.hold = False
    places = {"softubd": "dataplane/softubd/softubd", "survivor": "tests/e2e/survivor",
              "hostile": "tests/e2e/hostile_app", "admin": "tools/admin/urma_admin",
              "plugin": "dataplane/dpdk/libsoftub_dpdk.so.0"}
    args.pin = args.pin and {0, 1} <= os.sched_getaffinity(0)
    for name, place in places.items():
        setattr(args, name, os.path.abspath(getattr(args, name) or os.path.join(args.build, place)))
    with tempfile.TemporaryDirectory(prefix="softub-isolation-") as directory:
        try:
            world = Isolation(args, directory)
        except wires.Skip as why:
            print(f"not run over {args.wire}: {why}")
            return kill_four.SKIPPED
        try:
            world.run()
            return 0
        except (Failure, RuntimeError, subprocess.TimeoutExpired) as failure:
            print(f"isolation: FAIL: {failure}")
            world.report()
            return 1
        finally:
            world.close()


if __name__ == "__main__":
    sys.exit(main())
