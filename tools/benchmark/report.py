# SPDX-License-Identifier: Apache-2.0
"""The report: all that was measured, as one JSON object, of which the table and the page are made.

  format     1
  machine    sentences by name (machine.py)
  started    local time, ISO 8601;  seconds  how long it took
  options    what the command line chose
  noise      medians and worst of all runs: foreign, stolen (shares of the CPUs), switches (a second)
  groups     [{name, figures: [summary.row_of()], plots: [summary.plot_of()]}]
  programs   [{name, runs, skipped or null, failures: [sentence]}]
"""
import json
import os
import statistics
import tempfile

from .summary import plot_of, row_of

FORMAT = 1
NOISY = 0.05  # share of the CPUs that others may have


def group_report(group, runner):
    rounds = runner.samples_of(group)
    plots = [plot_of(plot, rounds) for plot in group.plots]
    return {"name": group.name, "figures": [row_of(figure, rounds, runner.why_not) for figure in group.figures],
            "plots": [plot for plot in plots if plot]}


def noise_report(noises):
    def both(name):
        values = [noise[name] for noise in noises]
        return {"median": statistics.median(values), "worst": max(values)}

    return {name: both(name) for name in ("foreign", "stolen", "switches")} if noises else {}


def program_report(program, groups, runner):
    runs = sum(program in samples for group in groups for samples in runner.samples_of(group))
    return {"name": str(program), "runs": runs, "skipped": runner.skipped.get(program),
            "failures": runner.failures.get(program, [])}


def make(groups, runner, machine, started, seconds, options):
    programs = dict.fromkeys(program for group in groups for program in group.programs)
    return {"format": FORMAT, "machine": machine, "started": started, "seconds": round(seconds, 1), "options": options,
            "noise": noise_report(runner.noises), "groups": [group_report(group, runner) for group in groups],
            "programs": [program_report(program, groups, runner) for program in programs]}


def counts(report):
    """Of figures with a goal: how many met it, how many did not, how many could not be judged."""
    rows = [row for group in report["groups"] for row in group["figures"] if row["goal"]]
    met, missed = (sum(row["verdict"] == verdict for row in rows) for verdict in ("met", "no"))
    return met, missed, len(rows) - met - missed


def warnings(report):
    """Sentences about why the numbers say little."""
    if report["options"]["quick"]:
        yield "This was a quick run: it shows that all programs run, and its numbers say nothing."
    others = sum(report["noise"][name]["median"] for name in ("foreign", "stolen")) if report["noise"] else 0
    if others > NOISY:
        yield f"This run was disturbed: others had {100 * others:.0f} % of the CPUs' time. Repeat it on a quiet machine."


def write(path, text):
    """The file is there when it is complete."""
    directory = os.path.dirname(os.path.abspath(path))
    with tempfile.NamedTemporaryFile("w", dir=directory, delete=False, encoding="utf-8") as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def write_json(path, report):
    write(path, json.dumps(report, indent=1) + "\n")
