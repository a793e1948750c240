#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ub_emu with commands, options and files that are wrong: one message that says what to do, the exit code 2, and at once,
not after the experiments have run. No part of a file is left where it could not be written.

usage: ub_emu_command_line.py UB_EMU [--sanitized]
"""
import os
import resource
import signal
import subprocess
import sys
import tempfile

ONE = """id = "one"
title = "a read"
class = "X"
workload = "bulk_read"
measure = "mean_ns"
stacks = ["urma"]
sweep = "payload"
values = [64]
"""

NONE_OF_THAT_NAME = ": there is no experiment of that name; `ub_emu list` lists all"
REFUSED = (  # options, and the message
    (["bogus"], "bogus: there is no such command; `ub_emu --help` lists all"),
    ([], "A subcommand is required"),
    (["--bogus", "all"], "The following argument was not expected: --bogus"),
    (["run"], "id is required"),
    (["run", ""], '""' + NONE_OF_THAT_NAME),
    (["run", "two"], '"two"' + NONE_OF_THAT_NAME),
    (["all", "--jobs", "0"], "--jobs: Value 0 not in range 1 to 1024"),
    (["all", "--shard", "2/1", "-o", "part"], "--shard 2/1: give I/N with I from 1 to N"),
    (["all", "--shard", "1/2"], "--shard: name a file for its results, too"),
    (["--set", "link_dely=1", "list"], "--set link_dely: there is no parameter of that name"),
    (["--set", "link_delay=-1", "list"], "--set link_delay = -1: give a number from 0 to"),
    (["--set", "payload=8", "all"], "sweeps"),
    (["run", "one", "-o", "one.toml/results.json"], "one.toml/results.json: Not a directory"),
    (["--experiments", "none", "list"], '"none": No such file or directory; name the directory by --experiments'),
    (["--profiles", "", "list"], '"": No such file or directory; name the directory by --experiments or --profiles'),
    (["all", "--results", "."], ".: Is a directory"),
    (["all", "-o", "none/file"], "none/file: No such file or directory"),
    (["all", "-o", "."], ".: is a directory; name a file"),
    (["report", "-o", "one.toml"], "one.toml/figures: Not a directory; name another directory by -o"),
)


class Program:
    """ub_emu in a directory with an experiment."""

    def __init__(self, ub_emu, directory):
        self.directory = directory
        self.ub_emu = ub_emu
        with open(os.path.join(directory, "one.toml"), "w", encoding="utf-8") as file:
            file.write(ONE)

    def run(self, *options, **how):
        how = {"stdout": subprocess.PIPE, **how}
        where = [] if "--experiments" in options else ["--experiments", self.directory]
        return subprocess.run([self.ub_emu, *where, *options], stderr=subprocess.PIPE, text=True, timeout=60,
                              cwd=self.directory, check=False, **how)


def check(condition, what):
    if not condition:
        sys.exit(what)


def check_refused(program, options, message):
    done = program.run(*options)
    told = f"{options}: code {done.returncode}, {done.stderr!r}"
    check(done.returncode == 2 and message in done.stderr, told + f", not {message!r}")
    check("events" not in done.stderr, told + ": said only after the experiments had run")


def check_that_output_is_not_lost(program):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = program.run("all", stdout=full)
    check(done.returncode == 2 and "the output cannot be written: No space left" in done.stderr,
          f"a full disk: code {done.returncode}, {done.stderr!r}")
    closed = program.run("all", "-o", "closed.json", stdout=None, preexec_fn=lambda: [os.close(each) for each in (0, 1)])
    check(closed.returncode == 2 and "cannot be written: Bad file descriptor" in closed.stderr,
          f"closed: code {closed.returncode}, {closed.stderr!r}")


def limit_files():
    """Much as a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def check_that_no_part_is_left(program):
    before = sorted(os.listdir(program.directory))
    done = program.run("all", "-o", "part.json", preexec_fn=limit_files)
    check(done.returncode == 2 and "part.json: File too large" in done.stderr,
          f"a file too large: code {done.returncode}, {done.stderr!r}")
    check(sorted(os.listdir(program.directory)) == before, f"there is more than {before}")


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (60 << 20, 60 << 20))


def check_that_a_lack_of_memory_is_said(program):
    done = program.run("all", preexec_fn=limit_memory)
    check("more memory than there is" in done.stdout or "not enough memory" in done.stderr,
          f"little memory: code {done.returncode}, {done.stdout!r} {done.stderr!r}")


def check_doctor(program):
    check("a point of one in a process of its own" in program.run("doctor").stdout, "doctor runs no point")


def main():
    with tempfile.TemporaryDirectory() as directory:
        program = Program(os.path.abspath(sys.argv[1]), directory)
        for options, message in REFUSED:
            check_refused(program, options, message)
        check_that_output_is_not_lost(program)
        check_that_no_part_is_left(program)
        if "--sanitized" in sys.argv:
            print("not run: a lack of memory, since sanitizers need more than the limit")
        else:
            check_that_a_lack_of_memory_is_said(program)
        check_doctor(program)
    print("ok")


if __name__ == "__main__":
    main()
