# SPDX-License-Identifier: Apache-2.0
"""What figures.py is made of."""
import typing

from chart import Axis

from .goals import Goal
from .program import Program

# As urma_perf and the floors report them.
PERCENTS = (0.1, 1, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99, 99.999)


class Figure(typing.NamedTuple):
    """A row of the table: a value of one program, and the same value of what it is compared with."""
    name: str
    ours: Program
    value: str                  # its name in parsing.py
    unit: str
    beside: Program = None      # the baseline
    beside_value: str = None    # None: that of the same name
    goal: Goal = None           # None: it is only shown

    @property
    def programs(self):
        return [program for program in (self.beside, self.ours) if program]

    @property
    def values(self):
        """Pairs of a program and the name of a value."""
        yield self.ours, self.value
        if self.beside:
            yield self.beside, self.beside_value or self.value


class Curve(typing.NamedTuple):
    """A line of a plot: at each x a value of a program."""
    name: str
    points: list  # of (x, program, name of the value)


class Plot(typing.NamedTuple):
    title: str
    x: Axis
    y: Axis
    curves: list
    kind: str = "line"
    inverted: bool = False  # the values go along x

    @property
    def programs(self):
        return [program for curve in self.curves for _, program, _ in curve.points]


class Group(typing.NamedTuple):
    """What runs one after the other in a round, so that it is compared: each program once."""
    name: str
    figures: list
    plots: list = []
    rounds: int = None   # None: as many as are asked for
    apart: bool = False  # before all others, its rounds in a row, because it keeps something running

    @property
    def programs(self):
        parts = [*self.figures, *self.plots]
        return list(dict.fromkeys(program for part in parts for program in part.programs))

    def values_of(self, program):
        """What of the program its figures show."""
        return {value for figure in self.figures for one, value in figure.values if one == program}


def distribution(name, program, prefix=""):
    return Curve(name, [(percent, program, f"{prefix}p{percent:g}") for percent in PERCENTS])


def latencies(title, curves):
    """How many operations take how long: the tail is stretched."""
    return Plot(title, Axis("time", "us", log=True), Axis("operations that take no longer", "%", nines=True),
                [distribution(*curve) for curve in curves], inverted=True)


def selected(groups, text):
    """What of them has `text` in its name, or in that of its group."""
    for group in groups:
        if text in group.name:
            yield group
            continue
        figures = [figure for figure in group.figures if text in figure.name]
        plots = [plot for plot in group.plots if text in plot.title]
        if figures or plots:
            yield group._replace(figures=figures, plots=plots)
