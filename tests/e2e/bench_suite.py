#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/bench from its command line to its report: a short run of two groups, whose JSON and page are looked at. What the
numbers are decides nothing.

usage: bench_suite.py --build DIR
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "bench")
SKIPPED = 77
FIELDS = {"format", "machine", "started", "seconds", "options", "noise", "groups", "programs"}
FACTS = {"CPU", "memory", "kernel", "system", "SoftUB", "compiler", "build type", "pinning", "ports", "packages",
         "load before"}
DISTANCES = ("near", "far", None)


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def run(build, directory, only):
    """Exit status, the report, the page and the table."""
    json_file, html_file = (os.path.join(directory, f"bench.{kind}") for kind in ("json", "html"))
    done = subprocess.run([sys.executable, BENCH, "--build", build, "--quick", "--only", only, "--json", json_file, "--html",
                           html_file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    if done.returncode == SKIPPED:
        print(done.stderr.strip())
        sys.exit(SKIPPED)
    check(done.returncode == 0, f"bench --only {only!r} ended with {done.returncode}:\n{done.stderr}")
    with open(json_file, encoding="utf-8") as report, open(html_file, encoding="utf-8") as page:
        return json.load(report), page.read(), done.stdout


def check_figures(report, table):
    for group in report["groups"]:
        for row in group["figures"]:
            check(row["name"] in table, f"the table has no {row['name']}")
            check(row["distance"] in DISTANCES, f"{row['name']}: distance {row['distance']}")
            if row["rounds"] and not row["skipped"]:
                check(row["value"] > 0 and (not row["beside"] or row["ratio"] > 0), f"{row['name']}: {row}")
                check(set(row["noise"]) == {"foreign", "stolen", "switches"}, f"{row['name']}: noise {row['noise']}")
                low, high = row["middle_half"]
                check(low <= row["value"] <= high, f"{row['name']}: the median is not in the middle half")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    build = parser.parse_args().build
    with tempfile.TemporaryDirectory(prefix="softub-bench-") as directory:
        report, page, table = run(build, directory, "shared memory, 64 B")
        check(set(report) == FIELDS, f"the report has {sorted(report)}")
        check(FACTS == set(report["machine"]), f"machine: {sorted(report['machine'])}")
        check("unknown" not in (report["machine"]["compiler"], report["machine"]["build type"]), str(report["machine"]))
        check(report["options"] == {"only": "shared memory, 64 B", "rounds": 1, "quick": True}, str(report["options"]))
        check(all(program["runs"] > 0 and not program["skipped"] for program in report["programs"]),
              f"some program did not run: {report['programs']}")
        check_figures(report, table)
        for plot in report["groups"][0]["plots"]:
            check(all(points == sorted(points) for points in (series["points"] for series in plot["series"])),
                  f"{plot['title']}: no distribution")
        check(page.count("<svg") == len(report["groups"][0]["plots"]), "the page lacks a plot")

        absent, _, table = run(build, directory, "memory of one host, placed")
        check_figures(absent, table)
    print("bench: the report is complete")


if __name__ == "__main__":
    main()
