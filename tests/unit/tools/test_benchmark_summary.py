#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/bench: which rounds count, what is judged, and what becomes of programs that are absent or fail."""
import contextlib
import io
import os
import subprocess
import sys
import time
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
from benchmark import report, summary, table  # noqa: E402
from benchmark.goals import at_least, at_least_times, at_most, at_most_times, either  # noqa: E402
from benchmark.plan import Axis, Curve, Figure, Group, Plot, latencies, selected  # noqa: E402
from benchmark.program import Program, Sample, Skip  # noqa: E402
from benchmark.runner import Runner  # noqa: E402

OURS, FLOOR = Program("shm", "read_lat"), Program("floor", "spsc")
QUIET = {"foreign": 0.1, "stolen": 0.0, "switches": 3}
READ = Figure("READ", OURS, "p50", "us", FLOOR, goal=at_most_times(3))


def sample(value, *distances, **noise):
    return Sample({"p50": value}, set(distances), {**QUIET, **noise})


def a_round(ours, floor, *distances):
    return {OURS: sample(ours, *distances), FLOOR: sample(floor, *distances)}


def nothing_absent(_):
    return None


class Machine:
    """Stands for the programs: each call gives the next of its values, or raises it."""

    cpus = ["0", "1"]

    def __init__(self, values, distances=()):
        self.values = {program: iter(of) for program, of in values.items()}
        self.distances = iter(distances)
        self.order = []

    def close(self):
        self.closed_after = len(self.order)

    def distance(self):
        return next(self.distances, "near")

    def run_program(self, program):
        self.order.append(program)
        value = next(self.values[program])
        if isinstance(value, Exception):
            raise value
        return value, set()


def run(groups, machine, rounds=2, seconds=60):
    runner = Runner(machine, rounds, time.monotonic() + seconds)
    with contextlib.redirect_stderr(io.StringIO()):
        runner.run(groups)
    return runner


def made(groups, runner):
    return report.make(groups, runner, {"SoftUB": "v", "CPU": "c"}, "now", 1.0, {"rounds": 2, "quick": False, "only": ""})


class Goals(unittest.TestCase):
    def test_each_is_met_at_its_limit(self):
        for goal, value, beside, worse in ((at_most_times(3), 3, 1, 3.1), (at_least_times(0.5), 1, 2, 0.9),
                                           (at_most(2, "us"), 2, None, 2.1), (at_least(5, "M/s"), 5, None, 4.9)):
            self.assertTrue(goal.is_met(value, beside))
            self.assertFalse(goal.is_met(worse, beside))

    def test_either_needs_no_baseline_if_its_first_part_is_met(self):
        goal = either(at_least(5, "M/s"), at_least_times(0.35))
        self.assertTrue(goal.is_met(1, 2))
        self.assertTrue(goal.is_met(6, None))
        self.assertFalse(goal.is_met(1, None))
        self.assertEqual(goal.text, "at least 5 M/s, or at least 0.35x")


class Rows(unittest.TestCase):
    def test_medians_of_near_rounds_are_judged(self):
        rounds = [a_round(2.0, 1.0, "near"), a_round(9.0, 1.0, "far"), a_round(4.0, 1.0, "near"), a_round(3.0, 1.0, "near")]
        row = summary.row_of(READ, rounds, nothing_absent)
        self.assertEqual((row["value"], row["beside_value"], row["ratio"], row["rounds"], row["distance"], row["verdict"]),
                         (3.0, 1.0, 3.0, 3, "near", "met"))
        self.assertEqual((row["middle_half"], row["values"], row["beside_values"]), ([2.0, 4.0], [2.0, 4.0, 3.0], [1.0] * 3))

    def test_what_is_missed_is_said(self):
        row = summary.row_of(READ, [a_round(3.2, 1.0, "near")], nothing_absent)
        self.assertEqual(row["verdict"], "no")
        self.assertIn("| **no** | near (1) |", table.line_of(row))

    def test_a_round_whose_distance_changed_does_not_count(self):
        changed = {OURS: sample(1.0, "near"), FLOOR: sample(1.0, "near", "far")}
        row = summary.row_of(READ, [changed], nothing_absent)
        self.assertEqual((row["value"], row["rounds"], row["verdict"]), (None, 0, ""))
        self.assertIn("no steady round", table.line_of(row))

    def test_far_rounds_are_shown_and_not_judged(self):
        row = summary.row_of(READ, [a_round(2.0, 1.0, "far")], nothing_absent)
        self.assertEqual((row["value"], row["distance"], row["verdict"]), (2.0, "far", ""))
        self.assertIn("not judged", table.line_of(row))

    def test_a_program_that_needs_no_other_cpu_has_no_distance(self):
        figure = Figure("instructions", OURS, "p50", "", goal=at_most(900))
        row = summary.row_of(figure, [{OURS: sample(800)}], nothing_absent)
        self.assertEqual((row["distance"], row["verdict"]), (None, "met"))

    def test_where_we_are_absent_the_baseline_is_still_there(self):
        row = summary.row_of(READ, [{FLOOR: sample(1.0, "near")}], {OURS: "not built", FLOOR: None}.get)
        self.assertEqual((row["value"], row["beside_value"], row["ratio"], row["verdict"]), (None, 1.0, None, ""))
        self.assertIn("skipped (not built)", table.line_of(row))

    def test_where_the_baseline_is_absent_a_ratio_is_not_judged_but_a_number_is(self):
        rounds, absent = [{OURS: sample(6.0, "near")}], {FLOOR: "not installed", OURS: None}.get
        self.assertEqual(summary.row_of(READ, rounds, absent)["verdict"], "")
        self.assertEqual(summary.row_of(READ._replace(goal=at_least(5)), rounds, absent)["verdict"], "met")

    def test_noise_is_that_of_the_noisier_program(self):
        rounds = [{OURS: sample(1.0, "near", foreign=0.3), FLOOR: sample(1.0, "near", foreign=0.5)}]
        self.assertEqual(summary.row_of(READ, rounds, nothing_absent)["noise"]["foreign"], 0.5)


class Plots(unittest.TestCase):
    def test_a_distribution_goes_along_x(self):
        plot = latencies("L", [("ours", OURS)])
        drawn = summary.plot_of(plot, [{OURS: Sample({"p50": 2.0, "p99": 5.0}, {"near"}, QUIET)}])
        self.assertEqual(drawn["series"], [{"name": "ours", "points": [[2.0, 50], [5.0, 99]]}])
        self.assertTrue(drawn["y"]["nines"])

    def test_a_plot_without_any_point_is_left_out(self):
        plot = Plot("P", Axis("size"), Axis("time"), [Curve("ours", [(1, OURS, "p50")])])
        self.assertIsNone(summary.plot_of(plot, [{}]))


class Rounds(unittest.TestCase):
    group = Group("g", [READ])

    def test_each_program_runs_once_a_round_and_every_second_round_backwards(self):
        machine = Machine({OURS: [{"p50": 2.0}] * 9, FLOOR: [{"p50": 1.0}] * 9})
        run([Group("g", [READ, READ._replace(name="again")])], machine)
        self.assertEqual(machine.order, [FLOOR, OURS, OURS, FLOOR])

    def test_far_rounds_are_made_up_for(self):
        machine = Machine({OURS: [{"p50": 2.0}] * 9, FLOOR: [{"p50": 1.0}] * 9}, ["far"] * 3)
        runner = run([self.group], machine)
        self.assertEqual(made([self.group], runner)["groups"][0]["figures"][0]["rounds"], 2)

    def test_but_not_after_the_deadline(self):
        machine = Machine({OURS: [{"p50": 2.0}] * 9, FLOOR: [{"p50": 1.0}] * 9}, ["far"] * 3)
        run([self.group], machine, seconds=-1)
        self.assertEqual(len(machine.order), 2)

    def test_what_is_skipped_is_not_tried_again_and_named(self):
        machine = Machine({OURS: [Skip("not built")], FLOOR: [{"p50": 1.0}] * 9})
        result = made([self.group], run([self.group], machine))
        self.assertEqual(machine.order.count(OURS), 1)
        self.assertEqual(result["programs"][1]["skipped"], "not built")
        self.assertEqual(report.counts(result), (0, 0, 1))

    def test_what_fails_twice_is_left_alone_and_named(self):
        machine = Machine({OURS: [ValueError("broken")] * 9, FLOOR: [{"p50": 1.0}] * 9})
        result = made([self.group], run([self.group], machine, rounds=3))
        self.assertEqual(machine.order.count(OURS), 2)
        self.assertEqual(result["programs"][1]["failures"], ["broken", "broken"])
        self.assertIn("failed: broken", table.markdown(result))

    def test_of_an_error_the_table_has_its_end(self):
        error = ValueError("a command: " + "x" * 500 + "\nno such device")
        machine = Machine({OURS: [error] * 2, FLOOR: [{"p50": 1.0}] * 9})
        self.assertEqual(run([self.group], machine).why_not(OURS), "failed: no such device")
        late = Machine({OURS: [subprocess.TimeoutExpired(["taskset", "-c", "0", "urma_perf", "read_lat"], 60)] * 2,
                        FLOOR: [{"p50": 1.0}] * 9})
        self.assertIn("urma_perf ... did not end within 60 s", run([self.group], late).why_not(OURS))

    def test_output_that_lacks_a_value_is_a_failure(self):
        machine = Machine({OURS: [{"p99": 1.0}] * 9, FLOOR: [{"p50": 1.0}] * 9})
        self.assertIn("p50", run([self.group], machine).failures[OURS][0])

    def test_what_keeps_something_running_comes_first_and_is_ended(self):
        other = Program("soft-roce", "read")
        apart = Group("a", [Figure("R", other, "p50", "us")], rounds=1, apart=True)
        machine = Machine({OURS: [{"p50": 2.0}] * 9, FLOOR: [{"p50": 1.0}] * 9, other: [{"p50": 1.0}]})
        run([self.group, apart], machine)
        self.assertEqual((machine.order[0], machine.closed_after), (other, 1))


class Selection(unittest.TestCase):
    def test_a_part_of_a_name_chooses_groups_figures_and_plots(self):
        groups = [Group("alpha", [READ, READ._replace(name="WRITE")]),
                  Group("beta", [], [latencies("Latency", [("a", OURS)])])]
        self.assertEqual([group.name for group in selected(groups, "")], ["alpha", "beta"])
        self.assertEqual([[figure.name for figure in group.figures] for group in selected(groups, "READ")], [["READ"]])
        self.assertEqual([group.name for group in selected(groups, "Latency")], ["beta"])
        self.assertEqual(list(selected(groups, "nonsense")), [])


if __name__ == "__main__":
    unittest.main()
