#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ub_emu as a program: the same bytes from any number of processes and shards, and what becomes of a run if one of its
processes is killed, or if somebody presses Ctrl-C.

usage: ub_emu_runs.py UB_EMU [--all]

--all: the same bytes of all experiments, not only of some of each kind.
"""
import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time

SOME = ("F12", "F26", "F28", "F18", "T5", "F49", "F35-core", "F44-64k")

LONG = """id = "long"
title = "many reads"
class = "X"
workload = "bulk_read"
operations = 1000000
measure = "mean_ns"
stacks = ["urma"]
sweep = "payload"
values = [64]
"""


def check(condition, what):
    if not condition:
        sys.exit(what)


def output_of(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    check(done.returncode == 0, f"{command}: code {done.returncode}\n{done.stderr}{done.stdout}")
    return done.stdout


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def check_same_bytes(ub_emu, directory, command):
    one, two = (os.path.join(directory, name) for name in ("one.json", "two.json"))
    lines = output_of(ub_emu, *command, "--jobs", "1", "-o", one)
    check(output_of(ub_emu, *command, "--jobs", "2", "-o", two) == lines, "two processes print other lines than one")
    check(text_of(one) == text_of(two), "two processes write other data than one")
    check(output_of(ub_emu, *command, "--results", two) == lines, "the lines of a file are not those of its run")


def check_shards(ub_emu, directory):
    some = ["run", *SOME]
    whole, merged = (os.path.join(directory, name) for name in ("whole.json", "merged.json"))
    lines = output_of(ub_emu, *some, "-o", whole)
    parts = [os.path.join(directory, f"part{number}.json") for number in (1, 2, 3)]
    for number, part in enumerate(parts, 1):
        printed = output_of(ub_emu, *some, "--shard", f"{number}/3", "-o", part)
        check(printed == "", "a shard prints results of its own")
    output_of(ub_emu, "merge", *reversed(parts), "-o", merged)
    check(text_of(merged) == text_of(whole), "joined shards are other data than those of one run")
    check(output_of(ub_emu, *some, "--results", merged) == lines, "joined shards print other lines than one run")


def start_long_run(ub_emu, directory):
    """The run, and the process of its only point."""
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "long.toml"), "w", encoding="utf-8") as file:
        file.write(LONG)
    run = subprocess.Popen([ub_emu, "--experiments", directory, "all"], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    children = f"/proc/{run.pid}/task/{run.pid}/children"
    for _ in range(1000):
        found = text_of(children).split()
        if found:
            return run, int(found[0])
        time.sleep(0.01)
    sys.exit("no worker process was started")


def check_killed(ub_emu, directory):
    run, worker = start_long_run(ub_emu, directory)
    os.kill(worker, signal.SIGKILL)
    printed, errors = run.communicate(timeout=60)
    check("INVALID       its process was ended by signal 9" in printed, f"not invalid:\n{printed}{errors}")
    check(run.returncode == 1, f"code {run.returncode} after a worker was killed")


def check_interrupted(ub_emu, directory):
    run, worker = start_long_run(ub_emu, directory)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    check(run.returncode == 128 + signal.SIGINT, f"code {run.returncode} after Ctrl-C:\n{errors}")
    check(not os.path.exists(f"/proc/{worker}"), "a worker process is left after Ctrl-C")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ub_emu")
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    ub_emu = os.path.abspath(arguments.ub_emu)
    with tempfile.TemporaryDirectory() as directory:
        check_same_bytes(ub_emu, directory, ["all"] if arguments.all else ["run", *SOME])
        check_shards(ub_emu, directory)
        check_killed(ub_emu, os.path.join(directory, "long"))
        check_interrupted(ub_emu, os.path.join(directory, "long"))
    print("ok")


if __name__ == "__main__":
    main()
