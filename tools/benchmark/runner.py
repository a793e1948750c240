# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of groups in rounds, so that all of what is compared meets the same machine.

Before and after each program the distance of the CPUs is probed, since it changes by itself and everything scales with it.
Every second round of a group goes backwards, so that a machine that becomes slower favours nobody. When all groups had
their rounds, those that lack rounds in near mode get more, as long as there is time.
"""
import subprocess
import sys
import time

from .noise import Watch
from .program import Sample, Skip
from .summary import rounds_in

NEAR = "near"
ATTEMPTS = 3        # times the rounds that are asked for
FAILURES = 2        # of a program: then it is left alone
MOST_LETTERS = 120  # of an error, in the table


def say(text):
    print(text, file=sys.stderr, flush=True)


def sentence_of(error):
    """Commands are long: what took too long is known by its program."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"{' '.join(map(str, error.cmd[:4]))} ... did not end within {error.timeout:.0f} s"
    return str(error).strip() or repr(error)


class Runner:
    def __init__(self, programs, rounds, deadline):
        """`programs`: programs.Programs or what stands for it; `deadline`: of time.monotonic()."""
        self.programs = programs
        self.rounds = rounds
        self.deadline = deadline
        self.samples = {}   # name of the group -> its rounds, each of which is a sample by program
        self.skipped = {}   # program -> why it cannot run
        self.failures = {}  # program -> what went wrong, each time
        self.noises = []    # of all samples

    def run(self, groups):
        for group in groups:
            if group.apart:
                say(f"apart: {group.name}")
                for _ in range(self.rounds_of(group)):
                    self.run_round(group)
                self.programs.close()
        together = [group for group in groups if not group.apart]
        for number in range(ATTEMPTS * self.rounds):
            wanted = [group for group in together if self.lacks_rounds(group)]
            if not wanted or number > 0 and self.is_late():
                break
            say(f"round {number + 1}: {len(wanted)} of {len(together)} groups")
            for group in wanted:
                if number == 0 or not self.is_late():
                    self.run_round(group)

    def is_late(self):
        return time.monotonic() >= self.deadline

    def rounds_of(self, group):
        return min(self.rounds, group.rounds or self.rounds)

    def samples_of(self, group):
        return self.samples.setdefault(group.name, [])

    def lacks_rounds(self, group):
        """Had it fewer than it should have, or some figure of it fewer in near mode?"""
        rounds, wanted = self.samples_of(group), self.rounds_of(group)
        if len(rounds) < wanted:
            return any(map(self.can_run, group.programs))
        for figure in group.figures:
            programs = [program for program in figure.programs if self.can_run(program)]
            if programs and max(len(rounds_in(rounds, programs, mode)) for mode in (NEAR, None)) < wanted:
                return True
        return False

    def can_run(self, program):
        return program not in self.skipped and len(self.failures.get(program, ())) < FAILURES

    def why_not(self, program):
        """Why a program did not run, or None."""
        if program in self.skipped:
            return self.skipped[program]
        return None if self.can_run(program) else f"failed: {self.failures[program][-1].splitlines()[-1][-MOST_LETTERS:]}"

    def run_round(self, group):
        rounds = self.samples_of(group)
        programs = group.programs if len(rounds) % 2 == 0 else group.programs[::-1]
        found = {}
        before = self.programs.distance()
        for program in filter(self.can_run, programs):
            watch = Watch(self.programs.cpus)
            try:
                values, distances = self.programs.run_program(program)
                if missing := group.values_of(program) - values.keys():
                    raise ValueError(f"its output has no {', '.join(sorted(missing))}")
            except Skip as cause:
                say(f"skipped: {program}: {cause}")
                self.skipped[program] = str(cause)
                continue
            except (subprocess.SubprocessError, OSError, ValueError, KeyError, RuntimeError) as error:
                text = sentence_of(error)
                say(f"failed: {program}: {text}")
                self.failures.setdefault(program, []).append(text)
                continue
            noise = watch.noise()
            after = self.programs.distance()
            found[program] = Sample(values, set() if distances is None else distances | {before, after}, noise)
            self.noises.append(noise)
            before = after
        rounds.append(found)
