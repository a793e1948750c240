#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds docs/api.md to the tree: a row for every call, and every case that a row names exists.

usage: check_document.py ROOT
"""
import os
import re
import sys

HELPERS = ("urma_log", "urma_log_drop")  # calls for other programs of the family, not of the interface
CASE = re.compile(r"`([a-z_]+(?:\.cc)?)`/([^;|]+)")


def calls(root):
    with open(os.path.join(root, "tests/unit/urma_api/exports.txt")) as file:
        return {line.strip() for line in file if line.startswith("urma_")} - set(HELPERS)


def source_of(root, name):
    folders = ("tests/unit/urma_api", "tests/unit/urma") if name.endswith(".cc") else ("tests/conformance",)
    paths = [os.path.join(root, folder, name if name.endswith(".cc") else name + ".c") for folder in folders]
    path = next((path for path in paths if os.path.exists(path)), None)
    if path is None:
        return None
    with open(path) as file:
        return file.read()


def case_exists(source, name, case):
    if name.endswith(".cc"):
        return re.search(rf"TEST(_F)?\(\w+, {re.escape(case)}\)", source) is not None
    return f'{{"{case}",' in source or f'begin_case("{case}")' in source


def main():
    root = sys.argv[1]
    with open(os.path.join(root, "docs/api.md")) as file:
        lines = file.read().split("\n")
    rows = {match[1]: line for line in lines if (match := re.match(r"\| `(urma_\w+)` \|", line))}
    faults = [f"{call} has no row" for call in sorted(calls(root) - set(rows))]
    faults += [f"{call} is no call" for call in sorted(set(rows) - calls(root))]
    for call, line in rows.items():
        for name, case in CASE.findall(line):
            source = source_of(root, name)
            if source is None:
                faults.append(f"{call}: there is no {name}")
            elif not case_exists(source, name, case.strip()):
                faults.append(f"{call}: {name} has no case {case.strip()}")
    print("\n".join(faults) if faults else f"{len(rows)} calls")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
