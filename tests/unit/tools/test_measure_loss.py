#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What measure_loss.py makes of the reports of urma_perf, and what it says when one fails. Scripts stand in for urma_perf
and ub_fabric."""
import contextlib
import io
import json
import os
import stat
import sys
import tempfile
import unittest
from unittest import mock

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import measure_loss  # noqa: E402

# Answers as a client with --json; its latency is that of the losses it was told of. A server says nothing.
PERF = """#!/bin/sh
case "$(cat "$LINK")" in *loss=5%*) [ -z "$FAIL" ] || { echo no route >&2; exit 1; }; us=40;; *) us=10;; esac
while [ $# -gt 0 ]; do
  [ "$1" != --json ] || echo "{\\"results\\": [{\\"bw_average_mib_s\\": 20, \\"msg_rate_mpps\\": 0.1, \\"p99_us\\": 90,
    \\"t_typical_us\\": $us}]}" > "$2"
  shift
done
"""
# Keeps what it was told of its links in a file, whose name is the environment of its NICs.
FABRIC = """#!/bin/sh
for last; do :; done
case "$*" in *--environment*) echo "LINK=$0.link"; exit;; esac
echo "$last" > "$0.link"
echo ready
exec sleep 100
"""


class MeasureLoss(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="softub-measure-")
        self.addCleanup(directory.cleanup)
        self.build = directory.name
        self.program("tools/perf/urma_perf", PERF)
        self.program("tools/fabric/ub_fabric", FABRIC)

    def program(self, name, text):
        path = os.path.join(self.build, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, stat.S_IRWXU)

    def run_main(self, *arguments):
        out, errors = io.StringIO(), io.StringIO()
        command = ["measure_loss.py", "--build", self.build, "--rounds", "2", *arguments]
        with mock.patch.object(sys, "argv", command), mock.patch.object(measure_loss.time, "sleep"), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            return measure_loss.main(), out.getvalue(), errors.getvalue()

    def test_every_fault_has_a_row_beside_the_link_without_faults(self):
        status, said, _ = self.run_main()
        self.assertEqual(status, 0)
        for fault in measure_loss.FAULTS:
            latency = "40.0" if fault == "loss 5 %" else "10.0"
            self.assertIn(f"| {fault} | 167.8 | 51.2 | {latency} | 90.0 | 1.00 | 1.00 |", said)

    def test_json_has_medians_and_rounds_and_the_charts_are_drawn(self):
        path = os.path.join(self.build, "out")
        self.assertEqual(self.run_main("--json", path + ".json", "--plot", path)[0], 0)
        with open(path + ".json", encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual(len(result["rounds"]), 2)
        self.assertEqual(result["medians"]["loss 5 %"][measure_loss.READ_MEDIAN], 40)
        for ending in "goodput", "latency":
            with open(f"{path}-{ending}.svg", encoding="utf-8") as file:
                self.assertIn("reordered within 64", file.read())

    def test_medians_are_those_of_each_column(self):
        rounds = [{"none": dict.fromkeys(measure_loss.COLUMNS, value)} for value in (1, 9, 2)]
        self.assertEqual(measure_loss.medians(rounds)["none"][measure_loss.WRITE_64], 2)

    def test_a_program_that_fails_ends_it_with_what_that_one_said(self):
        with mock.patch.dict(os.environ, {"FAIL": "1"}):
            status, _, errors = self.run_main("--only", "loss 5 %")
        self.assertEqual(status, 1)
        self.assertIn("no route", errors)

    def test_a_fabric_that_does_not_start_ends_it(self):
        self.program("tools/fabric/ub_fabric", "#!/bin/sh\nexit 1\n")
        status, _, errors = self.run_main()
        self.assertEqual(status, 1)
        self.assertIn("ub_fabric did not start", errors)


if __name__ == "__main__":
    unittest.main()
