#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of tools/bench: complete, by itself, and with each verdict where it belongs; and the plan that it shows."""
import contextlib
import html.parser
import io
import os
import re
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
from benchmark import figures, page, programs  # noqa: E402

VOID = ("meta", "rect", "line", "circle", "path", "polyline", "br")
IMPLIED = ("tr", "td", "th")  # may stay open


def row(**fields):
    return {"name": "READ", "unit": "us", "ours": "shm: read_lat", "beside": "floor: spsc", "goal": "at most 3x",
            "rounds": 3, "distance": "near", "skipped": {}, "value": 2.5, "beside_value": 1.0, "ratio": 2.5,
            "middle_half": [2.0, 3.0],
            "noise": {"foreign": 0.25, "stolen": 0, "switches": 3}, "verdict": "met", **fields}


ABSENT = {"value": None, "ratio": None, "middle_half": None, "noise": None, "verdict": "",
          "skipped": {"shm: read_lat": "a <b> & c"}}
PLOT = {"title": "By size", "kind": "line", "x": {"label": "size", "log": True}, "y": {"label": "time", "unit": "us"},
        "series": [{"name": "READ", "points": [[8, 1.0], [64, 2.0]]}], "distances": ["near"]}


def result(*rows, plots=(), **fields):
    return {"format": 1, "machine": {"SoftUB": "v1", "CPU": "a CPU"}, "started": "now", "seconds": 5.0,
            "options": {"rounds": 3, "quick": False, "only": ""},
            "noise": {name: {"median": 0.1, "worst": 0.2} for name in ("foreign", "stolen", "switches")},
            "groups": [{"name": "g", "figures": list(rows), "plots": list(plots)}],
            "programs": [{"name": "shm: read_lat", "runs": 3, "skipped": None, "failures": ["it broke"]}], **fields}


class Reader(html.parser.HTMLParser):
    """Fails if elements do not close in order; keeps texts and attributes."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.links = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.links += [value for name, value in attributes if name in ("src", "href")]
        if tag not in VOID + IMPLIED:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID + IMPLIED:
            assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        self.texts.append(data)


class Page(unittest.TestCase):
    def test_it_is_complete_and_needs_nothing_else(self):
        text = page.html(result(row(), plots=[PLOT]))
        reader = Reader(text)
        self.assertEqual((reader.open, reader.links), ([], []))
        self.assertNotIn("<script", text)
        self.assertNotIn("@import", text)
        self.assertEqual(text.count("<svg"), 1)

    def test_verdicts_are_counted_and_marked(self):
        text = page.html(result(row(), row(verdict="no"), row(**ABSENT), row(goal="", verdict="")))
        for words in ("<b>1</b> met", "<b>1</b> not met", "<b>1</b> not judged"):
            self.assertIn(words, text)
        self.assertEqual(re.findall(r"<td class='(met|no|faint)'>([^<]*)</td>", text),
                         [("met", "met"), ("no", "no"), ("faint", "skipped"), ("faint", "")])

    def test_what_programs_say_is_escaped(self):
        self.assertIn("a &lt;b&gt; &amp; c", page.html(result(row(**ABSENT))))

    def test_troubles_of_programs_are_there(self):
        self.assertIn("it broke", page.html(result(row())))

    def test_a_quick_run_says_that_it_is_one(self):
        quick = {"rounds": 1, "quick": True, "only": ""}
        self.assertIn("a quick run", page.html(result(row(), options=quick)))
        self.assertNotIn("a quick run", page.html(result(row())))

    def test_a_run_that_was_disturbed_says_so(self):
        def noise(share):
            return {name: {"median": share, "worst": 1} for name in ("foreign", "stolen", "switches")}

        self.assertIn("others had 8 % of the CPUs", page.html(result(row(), noise=noise(0.04))))
        self.assertNotIn("disturbed", page.html(result(row(), noise=noise(0.02))))

    def test_a_report_without_runs_has_a_page_too(self):
        self.assertEqual(Reader(page.html(result(noise={}))).open, [])


class Plan(unittest.TestCase):
    def test_each_program_is_of_a_kind_that_can_be_run(self):
        for group in figures.GROUPS:
            for program in group.programs:
                self.assertIn(program.kind, programs.KINDS)

    def test_names_tell_figures_apart(self):
        names = [figure.name for group in figures.GROUPS for figure in group.figures]
        self.assertEqual(len(names), len(set(names)))

    def test_a_goal_that_compares_has_a_baseline(self):
        for group in figures.GROUPS:
            for figure in group.figures:
                if figure.goal and figure.goal.compares:
                    self.assertIsNotNone(figure.beside, figure.name)


class CommandLine(unittest.TestCase):
    @staticmethod
    def outcome(*arguments):
        from importlib.machinery import SourceFileLoader
        from importlib.util import module_from_spec, spec_from_loader
        loader = SourceFileLoader("bench", os.path.join(ROOT, "tools", "bench"))
        bench = module_from_spec(spec_from_loader("bench", loader))
        loader.exec_module(bench)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                return bench.main(list(arguments)), out.getvalue()
            except SystemExit as end:
                return end.code, out.getvalue()

    def test_list_has_figures_with_goals_and_programs(self):
        status, out = self.outcome("--list", "--only", "READ 64 B, shm, p50")
        self.assertEqual((status, out.splitlines()[1:]), (0, [
            "  READ 64 B, shm, p50 (at most 3x)", "      floor: spsc", "      shm: read_lat -s 64"]))

    def test_wrong_usage_is_told(self):
        with tempfile.TemporaryDirectory(prefix="softub-bench-") as empty:
            for arguments, words in ((["--only", "nonsense"], "--list"), (["--rounds", "0"], "--rounds"),
                                     (["--cpus", "1,1"], "--cpus"), (["--build", "/no/such"], "/no/such"),
                                     (["--build", empty, "--json", "/no/such/file"], "/no/such/file"),
                                     (["--build", empty], "ub_floor is not there")):
                status, out = self.outcome(*arguments)
                self.assertEqual(status, 2, arguments)
                self.assertIn(words, out)


if __name__ == "__main__":
    unittest.main()
