#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what `meson test` ran: every case of a GoogleTest program, and every other test as one.

Prints the end of what failed tests said, the failed and the skipped ones (with their reasons) and, last,
"N passed, N failed, N skipped".
usage: test_summary.py testlog.json status-of-meson-test
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


def main(log_path, meson_status):
    passed, failed, skipped = 0, [], []
    try:
        with open(log_path, encoding="utf-8") as log:
            tests = [json.loads(line) for line in log if line.strip()]
    except FileNotFoundError:
        tests = []
    for test in tests:
        name, result = test["name"], test["result"]
        output = (test.get("stdout") or "") + "\n" + (test.get("stderr") or "")
        if result == "SKIP":
            skipped.append((name, last_line(output)))
            continue
        good = result in ("OK", "EXPECTEDFAIL")
        cases = len(PASSED.findall(output)), FAILED.findall(output), SKIPPED.findall(output)
        if not any(cases):
            cases = (1 if good else 0), [], []
        passed += cases[0]
        failed += [(f"{name}: {case}", "") for case in cases[1]]
        skipped += [(f"{name}: {case}", gtest_skip_reason(output, case)) for case in cases[2]]
        if not good:
            print_end(name, test)
        if not good and not cases[1]:  # crashed, timed out, or not a GoogleTest program
            failed.append((name, f"{result.lower()}, status {test.get('returncode')}"))
        if good and cases[1]:  # the output of a program that runs others: the status decides
            del failed[-len(cases[1]):]
    if meson_status != 0 and not failed:
        failed.append(("meson test", f"status {meson_status}"))
    print()
    for kind, entries in (("skipped", skipped), ("FAILED", failed)):
        for name, reason in entries:
            print(f"{kind}: {name}" + (f": {reason}" if reason else ""))
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
