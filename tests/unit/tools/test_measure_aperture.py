#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What measure_aperture.py makes of the results of its programs, which stand-ins give here."""
import contextlib
import io
import os
import sys
import tempfile
import unittest
from unittest import mock

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import measure_aperture  # noqa: E402
from measure_aperture import Figure, Row, at_least, at_most_times, of  # noqa: E402

WINDOW = """\
                                       bare p50   bare p99        p50        p99   us
read, missing                              4.10       5.20       6.30      17.40
read, in a row                                                    1.05   each page, seven loaded ahead
"""
UNCACHED = """\
SIGSEGV, the handler steps over it   p50     900   p99    1500
load, 8 bytes                        p50    1350   p99    2000
"""


def gives(values, *modes):
    """A program that gives these values, and one of these distances after the other."""
    seen = iter(modes)
    return lambda bench: (values, {next(seen)})


def outcome(figures, *arguments):
    """Exit status and output of the tool with other figures."""
    out = io.StringIO()
    with mock.patch.object(measure_aperture, "FIGURES", figures), \
            mock.patch.object(sys, "argv", ["measure_aperture.py", *arguments]), \
            contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        return measure_aperture.main(), out.getvalue()


class Programs(unittest.TestCase):
    def test_faults_are_read_from_complete_lines_alone(self):
        self.assertEqual(measure_aperture.faults_of(WINDOW), {
            "bare read, missing": 4.1, "bare read, missing p99": 5.2, "read, missing": 6.3, "read, missing p99": 17.4})

    def test_traps_are_in_microseconds(self):
        values = measure_aperture.traps_of(UNCACHED)
        self.assertEqual(values["load, 8 bytes"], 1.35)
        self.assertEqual(values["SIGSEGV, the handler steps over it p99"], 1.5)


class Table(unittest.TestCase):
    def test_limits_that_are_met_and_those_that_are_not_are_told_apart(self):
        figure = Figure("one", {"load": gives({"p50": 2.0, "rate": 9}, "near"), "read": gives({"p50": 4.0}, "near")}, [
            Row("a", "us", of("load"), "READ", of("read"), at_most_times(0.5)),
            Row("b", "us", of("load"), "READ", of("read"), at_most_times(0.4)),
            Row("c", "M/s", of("load", "rate"), limit=at_least(8, "M/s")),
        ])
        status, out = outcome([figure], "--rounds", "1", "--only", "one")
        self.assertEqual(status, 0)
        self.assertIn("| a | near (1) | 2.00 us | READ | 4.00 us | 0.50 | at most 0.5x | yes |", out)
        self.assertIn("| b | near (1) | 2.00 us | READ | 4.00 us | 0.50 | at most 0.4x | **no** |", out)
        self.assertIn("| c | near (1) | 9.00 M/s |  |  |  | at least 8 M/s | yes |", out)

    def test_a_round_whose_distance_changed_does_not_count(self):
        programs = {"load": gives({"p50": 1.0}, "near", "near"), "read": gives({"p50": 1.0}, "far", "near")}
        _, out = outcome([Figure("one", programs, [Row("a", "us", of("load"))])], "--rounds", "1", "--only", "one")
        self.assertIn("| a | near (1) |", out)

    def test_a_bench_of_one_process_has_no_say_in_the_distance(self):
        programs = {"load": gives({"p50": 1.0}, "far"), "bench": gives({}, measure_aperture.ONE_PROCESS)}
        _, out = outcome([Figure("one", programs, [Row("a", "us", of("load"))])], "--rounds", "1", "--only", "one")
        self.assertIn("| a | far (1) |", out)

    def test_a_figure_that_fails_is_named_and_the_others_go_on(self):
        figures = [Figure("bad", {"load": gives({}, "near")}, [Row("a", "us", of("load"))]),
                   Figure("bad one", {"load": mock.Mock(side_effect=ValueError("no such wire"))}, []),
                   Figure("bad but one", {"load": gives({"p50": 1.0}, "near")}, [Row("b", "us", of("load"))])]
        status, out = outcome(figures, "--rounds", "1", "--only", "bad")
        self.assertEqual(status, 1)
        self.assertIn("bad: KeyError('p50')", out)
        self.assertIn("bad one: ValueError('no such wire')", out)
        self.assertIn("| b | near (1) |", out)


class Plot(unittest.TestCase):
    def test_it_is_drawn_from_loads_and_reads_of_each_size(self):
        programs = {f"{verb} {n}": gives({"p50": n / 8}, "near") for n in measure_aperture.SIZES
                    for verb in ("load", "read")}
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "sizes.svg")
            outcome([Figure("sizes", programs, [])], "--rounds", "1", "--only", "sizes", "--plot", path)
            with open(path, encoding="utf-8") as file:
                svg = file.read()
        self.assertIn(">64K</text>", svg)
        self.assertIn(">READ</text>", svg)

    def test_it_needs_its_figure(self):
        with self.assertRaises(SystemExit):
            outcome([Figure("one", {}, [])], "--only", "one", "--plot", "x.svg")


if __name__ == "__main__":
    unittest.main()
