#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what `meson test` ran: every case of a GoogleTest program, and every other test as one.

Prints the end of what failed tests said, the failed and the skipped ones (with their reasons) and, last,
"N passed, N failed, N skipped".
usage: test_summary.py testlog.json status-of-meson-test [and the same of further runs]
"""
import json
import re
import sys

PASSED = re.compile(r"^\[       OK \] (\S+)", re.M)
FAILED = re.compile(r"^\[  FAILED  \] (\S+?),? .*\(\d+ ms\)$", re.M)
SKIPPED = re.compile(r"^\[  SKIPPED \] (\S+) \(\d+ ms\)$", re.M)

LINES_OF_A_FAILURE = 20


def gtest_skip_reason(output, case):
    """What the case printed after "file:line: Skipped"."""
    start = output.find(f"[ RUN      ] {case}\n")
    end = output.find(f"[  SKIPPED ] {case} (", start)
    lines = [line.strip() for line in output[start:end].splitlines()[1:]]
    return " ".join(line for line in lines if line and not line.endswith(": Skipped")) or "no reason given"


def last_line(output):
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def print_end(name, test):
    for stream in ("stdout", "stderr"):
        lines = (test.get(stream) or "").splitlines()
        if not lines:
            continue
        print(f"\n---- {name}: {stream}, the last {min(len(lines), LINES_OF_A_FAILURE)} of {len(lines)} lines")
        print("\n".join(lines[-LINES_OF_A_FAILURE:]))


class Counts:
    """Of one run after the other."""

    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []

    def add_run(self, log_path, meson_status):
        failed_before = len(self.failed)
        try:
            with open(log_path, encoding="utf-8") as log:
                tests = [json.loads(line) for line in log if line.strip()]
        except FileNotFoundError:
            tests = []
        for test in tests:
            self.add_test(test)
        if meson_status != 0 and len(self.failed) == failed_before:
            self.failed.append(("meson test", f"status {meson_status}"))

    def add_test(self, test):
        name, result = test["name"], test["result"]
        output = (test.get("stdout") or "") + "\n" + (test.get("stderr") or "")
        if result == "SKIP":
            self.skipped.append((name, last_line(output)))
            return
        good = result in ("OK", "EXPECTEDFAIL")
        cases = len(PASSED.findall(output)), FAILED.findall(output), SKIPPED.findall(output)
        if not any(cases):
            cases = (1 if good else 0), [], []
        self.passed += cases[0]
        self.skipped += [(f"{name}: {case}", gtest_skip_reason(output, case)) for case in cases[2]]
        if good:  # what FAILED then is of a program that the test runs: the status decides
            return
        print_end(name, test)
        self.failed += [(f"{name}: {case}", "") for case in cases[1]]
        if not cases[1]:  # crashed, timed out, or not a GoogleTest program
            self.failed.append((name, f"{result.lower()}, status {test.get('returncode')}"))


def main(*runs):
    counts = Counts()
    for log_path, meson_status in zip(runs[::2], runs[1::2]):
        counts.add_run(log_path, int(meson_status))
    print()
    for kind, entries in (("skipped", counts.skipped), ("FAILED", counts.failed)):
        for name, reason in entries:
            print(f"{kind}: {name}" + (f": {reason}" if reason else ""))
    print(f"{counts.passed} passed, {len(counts.failed)} failed, {len(counts.skipped)} skipped")
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
