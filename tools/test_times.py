#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the tests of the last `meson test` took: the sum of each suite, then the slowest tests.

usage: test_times.py [testlog.json]       default: build/meson-logs/testlog.json
"""
import collections
import json
import sys

SLOWEST = 10


def main(log_path="build/meson-logs/testlog.json"):
    with open(log_path, encoding="utf-8") as log:
        tests = [json.loads(line) for line in log if line.strip()]
    suites, slowest = collections.defaultdict(list), []
    for test in tests:  # a name is "project:suite+suite / test"
        where, _, name = test["name"].rpartition(" / ")
        slowest.append((test["duration"], name))
        for suite in where.rpartition(":")[2].split("+"):
            suites[suite].append(test["duration"])
    for suite, durations in sorted(suites.items()):
        print(f"{sum(durations):8.1f} s  {suite}, {len(durations)} tests")
    print()
    for duration, name in sorted(slowest, reverse=True)[:SLOWEST]:
        print(f"{duration:8.1f} s  {name}")


if __name__ == "__main__":
    if len(sys.argv) > 2 or any(argument.startswith("-") for argument in sys.argv[1:]):
        sys.exit(__doc__)
    main(*sys.argv[1:])
