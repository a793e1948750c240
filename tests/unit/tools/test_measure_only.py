#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A name of a figure that there is not is an error, which lists the names; a part of a name chooses all that have it."""
import contextlib
import io
import os
import sys
import unittest
from unittest import mock

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import measure  # noqa: E402
import measure_aperture  # noqa: E402
import measure_compact  # noqa: E402
import measure_unattended  # noqa: E402

NAMES = ["READ 64 B, shm", "WRITE 64 B, shm"]


def outcome(call, *arguments):
    """Exit status, output and errors of a program with these arguments."""
    out, errors = io.StringIO(), io.StringIO()
    with mock.patch.object(sys, "argv", ["measure", *arguments]), contextlib.redirect_stdout(out), \
            contextlib.redirect_stderr(errors):
        try:
            call()
        except SystemExit as end:
            return end.code, out.getvalue(), errors.getvalue()
    return 0, out.getvalue(), errors.getvalue()


class Only(unittest.TestCase):
    def test_a_name_that_no_figure_has_is_wrong_usage(self):
        status, _, errors = outcome(lambda: measure.options_of("", NAMES), "--only", "nonsense")
        self.assertEqual(status, 2)
        self.assertIn("--only nonsense", errors)
        for name in NAMES:
            self.assertIn(name, errors)

    def test_a_part_of_a_name_is_enough(self):
        self.assertEqual(outcome(lambda: measure.options_of("", NAMES), "--only", "READ")[0], 0)
        self.assertEqual(outcome(lambda: measure.options_of("", NAMES))[0], 0)

    def test_help_lists_the_names(self):
        status, out, _ = outcome(lambda: measure.options_of("", NAMES), "--help")
        self.assertEqual(status, 0)
        for name in NAMES:
            self.assertIn(name, out)

    def test_every_program_tells_its_own_figures_and_begins_no_table(self):
        for program, name in ((measure, "READ 64 B, shm"), (measure_compact, "WRITE 64 B, window 64, memif"),
                              (measure_aperture, "explicit, target polls"),
                              (measure_unattended, "shm write_lat -s 8 -n 20000 --wait spin")):
            status, out, errors = outcome(program.main, "--only", "nonsense")
            self.assertEqual((status, out), (2, ""))
            self.assertIn(name, errors)


if __name__ == "__main__":
    unittest.main()
