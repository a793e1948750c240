#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Applications of a daemon that are healthy and get hardly any CPU (survivor.cc): none of their requests fails.

  tests/e2e/starved.py crowd --build build
  tests/e2e/starved.py crowd --build build --seconds 60 --nice 0 --usual    # as the nightly run does
  tests/e2e/starved.py beside --build build
  tests/e2e/starved.py held --build build

crowd: sixteen applications at one daemon, in pairs, and twelve processes that do nothing but burn CPU, all on two CPUs;
they attach under that load, too. The applications are nicer than the burners, so that they starve on any machine; with
--nice 0 as many as there are compete as equals. Their requests have 34 s for each sign of progress, with --usual 4 s.
It goes on until nicer ones have been waited for; where equals never starved, the last line says that nothing is proved.

beside: at one daemon an application that is starved for good (lowest priority, on one CPU with burners), hostile ones
that leave copies undone (hostile_app.cc: asleep, stopped, running, or looking starved on purpose), and an honest pair
with a CPU of its own. The starved one loses nothing; the hostile ones are found out, and nothing is left of them
when they have ended; the honest pair goes on. Its rate is printed, before and meanwhile.

held: what starves is who drives. A daemon is stopped for longer than a request has without a sign of progress, while
its applications have requests under way to each other; then once more together with them, and with embedded pairs. Time
in which nobody drove is nobody's silence: no request fails, and the daemon has counted how long it was away.

All of them use memory of their own beside that of softub_alloc, so that the daemon needs their hands.
"""
import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

import isolation
import kill_four
import wires
from kill_four import Failure, check

LONGEST_START = 100  # seconds to the first round, under the load
LONGEST_RUN = 400    # seconds beside those that were asked for
PARTS = ("crowd", "beside", "held")
MOST_BURNERS = 64
HELD = 6  # seconds; requests end after 4.3 s without a sign of progress
OF_A_SURVIVOR = {"jetty": 1, "segments": 2, "targets": 1}  # what each makes

# What hostile applications do, how nice they are, and what the daemon's log says of them.
HOSTILE = (
    ("lazy", 0, None),
    ("stopped", 0, "it is stopped"),
    ("spin", 0, "runs and does not copy|gets no CPU"),  # what the machine is busy with besides, nobody knows
    ("spin", 19, "gets no CPU"),
)


def pin(cpus):
    """What is started from now on runs there."""
    os.sched_setaffinity(0, cpus)


def threads_of(process):
    return [int(thread) for thread in os.listdir(f"/proc/{process.pid}/task")]


def give_up(seconds):
    """Ends the test after so long with a sentence, whatever it waits for."""

    def on_alarm(_, frame):
        where = " in ".join(reversed([f"{f.name}, line {f.lineno}" for f in traceback.extract_stack(frame)]))
        raise Failure(f"has not ended after {seconds} s; it waited in {where}")

    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(seconds)


class Embedded:
    """In place of a daemon: the application has a NIC of its own."""

    def __init__(self, wire):
        self.wire = wire

    def variables(self):
        return {**self.wire.environment(0), "SOFTUB_PLACEMENT_MODE": "embedded", "SOFTUB_DEVICE_EIDS": "127.0.0.1"}


class Starved(isolation.Isolation):
    def __init__(self, args, directory):
        self.cpus = sorted(os.sched_getaffinity(0))[:2]
        self.burners = []
        pin(self.cpus)
        if args.part == "beside":
            os.environ["SOFTUB_DAEMON_CORES"] = str(self.cpus[-1])
        super().__init__(args, directory)

    def survivor_of(self, number, peer, side, nice=0):
        survivor = kill_four.Survivor(self, number, peer, side, ["--unhurried" if self.args.usual else "--patient"])
        survivor.command = ["nice", "-n", str(nice), *survivor.command]
        return survivor

    def burn(self, count, cpus, seconds):
        pin(cpus)
        command = [self.args.hostile, "burn", "--socket", "-", "--seconds", str(seconds)]
        self.burners += [subprocess.Popen(command) for _ in range(count)]
        pin(self.cpus)

    def quench(self):
        for burner in self.burners:
            burner.kill()
            burner.wait()
        self.burners.clear()

    def row_of(self, survivor):
        """What the daemon says of it."""
        return next(row for row in self.show("apps", survivor.daemon) if row["pid"] == survivor.process.pid)

    def check_unharmed(self, survivors):
        """Nothing failed, and the daemon gave up none of them."""
        self.check_processes()
        for survivor in survivors:
            failed = {kill_four.STATUSES[i]: n for i, n in enumerate(survivor.page.statuses) if n and i}
            check(not failed, f"requests of {survivor.name} failed: {failed}")
            check(survivor.page.lives == 1, f"{survivor.name} attached {survivor.page.lives} times")
            check(survivor.page.receives_failed == 0, f"{survivor.name}: {survivor.page.receives_failed} receives failed")
            if survivor.daemon not in self.daemons:
                continue
            stalls = self.row_of(survivor)["agent_stalls"]
            check(stalls == 0, f"{survivor.name} was given up {stalls} times")

    def wait_for_rounds(self, survivors, rounds):
        begin = time.monotonic()
        while any(survivor.page.rounds < rounds for survivor in survivors):
            self.check_processes()
            check(time.monotonic() < begin + LONGEST_START, f"no traffic for {LONGEST_START} s")
            time.sleep(0.1)

    # ---- parts ----
    def crowd(self):
        survivors = [self.survivor_of(n, n ^ 1, 0, self.args.nice) for n in range(self.args.apps)]
        self.burn(self.args.burners, self.cpus, 10 * self.args.seconds + 600)
        begin = time.monotonic()
        for survivor in survivors:
            survivor.start()
            self.running.append(survivor)
        self.wait_for_rounds(survivors, 1)
        attached = time.monotonic() - begin
        end = time.monotonic() + self.args.seconds
        while time.monotonic() < end or (self.args.nice > 0 and not self.waited_for(survivors)):
            check(time.monotonic() < end + LONGEST_START,
                  f"no application was waited for in {self.args.seconds + LONGEST_START:.0f} s: the test tests nothing")
            time.sleep(0.5)
            self.check_processes()
        rounds = [survivor.page.rounds for survivor in survivors]
        pause = max(survivor.page.pause_us for survivor in survivors) / 1e6
        self.check_unharmed(survivors)
        rows = [self.row_of(survivor) for survivor in survivors]
        waits, longest = sum(row["agent_starved"] for row in rows), max(row["longest_starved_ms"] for row in rows)
        self.quench()
        self.stop_survivors()
        print(f"crowd: {len(survivors)} applications and {self.args.burners} burners on {len(self.cpus)} CPUs for "
              f"{self.args.seconds:.0f} s, first rounds after {attached:.1f} s: {sum(rounds)} rounds, fewest {min(rounds)}, "
              f"longest pause {pause:.2f} s; waited for {waits} times, for {longest / 1000:.2f} s at most; "
              "no request failed", flush=True)
        if waits == 0:
            print("crowd: this machine starved nobody, so nothing is proved", flush=True)

    def waited_for(self, survivors):
        return any(self.row_of(survivor)["agent_starved"] for survivor in survivors)

    def beside(self):
        burnt, free = self.cpus[:1], self.cpus[-1:]
        pin(free)
        honest = [self.survivor_of(0, 1, 0), self.survivor_of(1, 0, 1)]
        self.start_survivors(honest)
        starved = [self.survivor_of(2, 3, 0, nice=19), self.survivor_of(3, 2, 1)]
        self.start_survivors(starved)
        for thread in threads_of(starved[0].process):
            os.sched_setaffinity(thread, burnt)
        objects = self.objects_of(honest[0], starved[0])
        alone = self.rates_of(honest, self.args.seconds)
        self.burn(8, burnt, 600)
        for case, nice, reason in HOSTILE:
            self.one_beside(case, nice, reason, objects, honest, starved, alone, burnt)
        end = time.monotonic() + LONGEST_START
        while not self.waited_for(starved[:1]):
            check(time.monotonic() < end, "the starved application was never waited for: the test tests nothing")
            if len(self.burners) < MOST_BURNERS:
                self.burn(4, burnt, 600)  # among more of them it waits longer for its turn
            time.sleep(0.5)
            self.check_processes()
        self.check_unharmed(honest + starved)
        row = self.row_of(starved[0])
        print(f"the starved one: {starved[0].page.rounds} rounds, waited for {row['agent_starved']} times, for "
              f"{row['longest_starved_ms'] / 1000:.2f} s at most; no request failed", flush=True)
        self.quench()
        self.stop_survivors()

    def held(self):
        guests = [self.survivor_of(n, n ^ 1, 0) for n in range(6)]
        embedded = [self.survivor_of(n, n ^ 1, 0) for n in range(6, 10)]
        for survivor in embedded:
            survivor.daemon = Embedded(self.wire)
        self.start_survivors(guests + embedded)
        daemon = self.daemons[0]
        for name, processes in (("the daemon", [daemon.process]),
                                ("everybody", [daemon.process, *(s.process for s in guests + embedded)])):
            before = self.seconds_away(daemon)
            self.hold(processes)
            self.wait_for_traffic()
            self.check_unharmed(guests + embedded)
            away = self.seconds_away(daemon) - before
            check(away >= 1, f"{name} was held for {HELD} s, and the daemon was away for {away:.3f} s: nothing was tested")
            print(f"held: {name} for {HELD} s; the daemon counted {away:.3f} s away; no request failed", flush=True)
        self.stop_survivors()

    def hold(self, processes):
        for process in processes:
            process.send_signal(signal.SIGSTOP)
        time.sleep(HELD)
        for process in processes:
            process.send_signal(signal.SIGCONT)

    def seconds_away(self, daemon):
        time.sleep(0.5)  # what is shown may be old by that much
        return self.show("counters", daemon)["core.away_us"] / 1e6

    def objects_of(self, *survivors):
        """What the daemon has when all that they made is shown, which lags a little."""
        end = time.monotonic() + LONGEST_START
        whole = {kind: n * len(survivors) for kind, n in OF_A_SURVIVOR.items()}
        while (objects := self.show("objects", survivors[0].daemon)) | whole != objects:
            check(time.monotonic() < end, f"the daemon shows {objects} of {len(survivors)} applications")
            time.sleep(0.1)
        return objects

    def rates_of(self, pair, seconds):
        """Their rounds a second, slice by slice."""
        before, self.survivors = self.survivors, pair
        rates = self.rates(seconds)
        self.survivors = before
        return statistics.median(rates)

    def one_beside(self, case, nice, reason, objects, honest, starved, alone, burnt):
        log_from = len(self.daemons[0].log())
        pin(burnt)
        hostile = isolation.Hostile(self, case, 10 * LONGEST_START)
        pin(self.cpus)
        for thread in threads_of(hostile.main):
            os.setpriority(os.PRIO_PROCESS, thread, nice)
        rounds = [survivor.page.rounds for survivor in honest]
        rate = self.rates_of(honest, self.args.seconds)
        if reason:
            self.wait_for_log(reason, log_from, case)
        check(all(s.page.rounds > then for s, then in zip(honest, rounds)), f"{case}: the honest pair stood still")
        for thread in threads_of(hostile.main):  # to die takes some CPU, too
            os.sched_setaffinity(thread, self.cpus)
        hostile.kill()
        self.wait_until_gone(self.daemons[0], objects)
        self.wait_for_log("gone", log_from, case)
        self.check_unharmed(honest + starved)
        print(f"beside {case}, nice {nice}: {rate:.0f} rounds a second of the honest pair, {alone:.0f} before", flush=True)

    def wait_for_log(self, pattern, log_from, case):
        line = re.compile(r"process \d+ \(hostile_app\), user \d+: .*(" + pattern + ")")
        end = time.monotonic() + LONGEST_START
        while not line.search(self.daemons[0].log()[log_from:]):
            self.check_processes()
            check(time.monotonic() < end,
                  f"the daemon's log does not say '{pattern}' of {case}:\n{self.daemons[0].log()[log_from:][-3000:]}")
            time.sleep(0.05)

    def run(self):
        getattr(self, self.args.part)()
        for daemon in self.daemons:
            self.wait_until_empty(daemon)
        for number, daemon in enumerate(self.daemons):
            check(daemon.stop() == 0, f"softubd {number} ended with {daemon.process.returncode}")

    def close(self):
        self.quench()
        super().close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--build", default="build", help="build directory, for the programs that are not named")
    for program in ("softubd", "survivor", "hostile", "admin"):
        parser.add_argument("--" + program)
    parser.add_argument("--seconds", type=float, default=2, help="of the load, beside: of each hostile application")
    parser.add_argument("--usual", action="store_true", help="requests have the usual time")
    parser.add_argument("--apps", type=int, default=16, help="of the crowd")
    parser.add_argument("--burners", type=int, default=12, help="beside the crowd")
    parser.add_argument("--nice", type=int, default=19, help="of the crowd; the burners and the daemon have 0")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.verbose = args.pin = False
    args.usual |= args.part == "held"
    args.wire, args.plugin, args.patience = "shm", None, 30  # seconds to clean up: the machine is busy
    places = {"softubd": "dataplane/softubd/softubd", "survivor": "tests/e2e/survivor",
              "hostile": "tests/e2e/hostile_app", "admin": "tools/admin/urma_admin"}
    for name, place in places.items():
        setattr(args, name, os.path.abspath(getattr(args, name) or os.path.join(args.build, place)))
    give_up(LONGEST_RUN + int(10 * args.seconds))
    with tempfile.TemporaryDirectory(prefix="softub-starved-") as directory:
        world = Starved(args, directory)
        try:
            world.run()
            return 0
        except (Failure, RuntimeError, subprocess.TimeoutExpired) as failure:
            print(f"starved: FAIL: {failure}")
            signal.alarm(0)
            world.report()
            return 1
        finally:
            world.close()


if __name__ == "__main__":
    sys.exit(main())
