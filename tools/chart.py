#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a line, bar or stacked bar chart as SVG, from JSON or CSV, without any library.

The background is transparent, and every colour has a contrast of at least 3 to 1 to white and to the dark pages of
code hosts, so that a chart can be read on both. Series differ by their marks as well as by their colours.

usage: chart.py INPUT.json|INPUT.csv [-o OUTPUT.svg] [--kind line|bar|stacked] [--title TEXT] [--x-label TEXT] [--x-unit TEXT]
                [--x-log] [--y-label TEXT] [--y-unit TEXT] [--y-log]

A JSON file has everything:

  {"title": "READ of 64 B", "kind": "line",
   "x": {"label": "loss", "unit": "%", "log": false}, "y": {"label": "latency", "unit": "us"},
   "series": [{"name": "median", "points": [[0, 12.5], [1, 13.1]]}]}

In place of "log" an axis may have "nines": true (percent, where from 90 to 99 it is as far as from 99 to 99.9) or "sizes":
true (bytes, by powers of 2).

A CSV file has a line of names, that of x and those of the series, then a line for each x; an empty cell is no point.
Options replace what the file says. An x that is text makes a category; the categories stand in the order in which they
come. With -o, or from another program, the file appears only when it is complete.

From Python: Chart(title, Axis("loss", "%"), Axis("latency", "us"), [Series("median", [(0, 12.5)])]).svg().
"""
import argparse
import csv
import dataclasses
import json
import math
import os
import sys
import tempfile
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP = 76, 20, 44
BELOW_AXIS = 46  # ticks and label of x
LEGEND_LINE = 20
LETTER = 7  # the width of a letter on average, in a font of 12 pixels

KINDS = ("line", "bar", "stacked")
INK = "#767676"  # text, axes and grid: as far from white as from black
COLOURS = ("#3b82c4", "#c8690a", "#2f9150", "#b25bc0", "#c9524a", "#5f8a8b")
MARKS = ("circle", "square", "triangle", "diamond", "ring", "cross")


class ChartError(Exception):
    """What is wrong with the data of a chart, in a sentence."""


@dataclasses.dataclass
class Axis:
    label: str
    unit: str = ""
    log: bool = False
    nines: bool = False
    sizes: bool = False

    def text(self):
        return f"{self.label}, {self.unit}" if self.unit else self.label


@dataclasses.dataclass
class Series:
    name: str
    points: list  # of (x, y)


@dataclasses.dataclass
class Chart:
    title: str
    x: Axis
    y: Axis
    series: list
    kind: str = "line"

    def svg(self):
        return Drawing(self).svg()

    def write(self, path):
        """Writes the SVG; the file is there when it is complete."""
        text = self.svg()
        with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path) or ".", suffix=".svg", delete=False,
                                         encoding="utf-8") as file:
            file.write(text)
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)


# ---- scales --------------------------------------------------------------------------------------------------------


def step_of(span, wanted):
    """The smallest of 1, 2 and 5 times a power of ten that divides `span` into no more than `wanted` parts."""
    power = 10.0 ** math.floor(math.log10(span / wanted))
    return next(step * power for step in (1, 2, 5, 10) if span / (step * power) <= wanted * (1 + 1e-9))


class Linear:
    """From a round number to a round number, with 0 if that is not far."""

    def __init__(self, values, wanted=6, with_zero=True):
        low, high = min(values), max(values)
        if with_zero:
            low, high = min(low, 0), max(high, 0)
        if low == high:
            low, high = (low, low + 1) if low >= 0 else (low - 1, low)
        self.step = step_of(high - low, wanted)
        self.first = math.floor(low / self.step + 1e-9)
        self.last = math.ceil(high / self.step - 1e-9)

    def place(self, value):
        return (value / self.step - self.first) / (self.last - self.first)

    def ticks(self):
        digits = max(0, -math.floor(math.log10(self.step) + 1e-9))
        return [(i * self.step, f"{i * self.step:.{digits}f}") for i in range(self.first, self.last + 1)]


class Log:
    """Whole decades, or from 1, 2 or 5 on if there are few."""

    def __init__(self, values):
        steps = sorted(m * 10.0 ** e for e in range(-15, 16) for m in (1, 2, 5))
        low, high = min(values), max(values)
        below = [s for s in steps if s <= low * (1 + 1e-9)]
        above = [s for s in steps if s >= high * (1 - 1e-9)]
        if not below or not above:
            raise ChartError(f"a logarithmic axis goes from 1e-15 to 1e15, but there are {low:g} and {high:g}")
        self.low, self.high = below[-1], above[0]
        if self.low == self.high:
            self.high = next(s for s in [*steps, 1e16] if s > self.low)
        self.steps = [s for s in steps if self.low <= s <= self.high]
        if len(self.steps) > 7:
            self.steps = [s for s in self.steps if math.isclose(math.log10(s), round(math.log10(s)), abs_tol=1e-9)]

    def place(self, value):
        return math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self):
        return [(step, number(step)) for step in self.steps]


class Sizes:
    """Bytes, from a power of 2 to a power of 2."""

    def __init__(self, values):
        self.low, self.high = math.floor(math.log2(min(values))), math.ceil(math.log2(max(values)))
        self.high = max(self.high, self.low + 1)
        self.step = math.ceil((self.high - self.low + 1) / 10)

    def place(self, value):
        return (math.log2(value) - self.low) / (self.high - self.low)

    def ticks(self):
        return [(2 ** power, size_name(2 ** power)) for power in range(self.low, self.high + 1, self.step)]


def size_name(count):
    for unit in ("", "K", "M", "G"):
        if count < 1024:
            break
        count /= 1024
    return f"{count:g}{unit}"


class Nines:
    """Percent from 0 on; each further nine takes as much room as the one before."""

    def __init__(self, values):
        self.digits = max(2, math.ceil(self.depth(max(values)) - 1e-9))
        self.steps = [0, 50] + [100 - 10 ** (2 - i) for i in range(1, self.digits + 1)]

    @staticmethod
    def depth(percent):
        return -math.log10(1 - percent / 100)

    def place(self, value):
        return self.depth(value) / self.digits

    def ticks(self):
        return [(step, f"{step:.{max(0, i - 3)}f}") for i, step in enumerate(self.steps)]


class Categories:
    """Each category has the middle of an equal part."""

    def __init__(self, names):
        self.names = list(dict.fromkeys(names))

    def place(self, name):
        return (self.names.index(name) + 0.5) / len(self.names)

    def ticks(self):
        return [(name, str(name)) for name in self.names]


def number(value):
    return f"{value:.0f}" if value >= 1 and value < 1e6 else f"{value:g}"


# ---- what is drawn -------------------------------------------------------------------------------------------------


class Drawing:
    def __init__(self, chart):
        check(chart)
        self.chart = chart
        points = [point for series in chart.series for point in series.points]
        self.x = self.scale_of_x([x for x, _ in points])
        self.y = self.scale_of_y(points)
        self.legend = self.rows_of_legend()
        self.bottom = HEIGHT - BELOW_AXIS - LEGEND_LINE * len(self.legend)

    def scale_of_y(self, points):
        ys = [y for _, y in points]
        if self.chart.kind == "stacked":
            ys = [sum(y for at, y in points if at == x) for x, _ in points]
        return self.scale(self.chart.y, ys) or Linear(ys)

    def scale_of_x(self, xs):
        if self.chart.kind != "line" or any(isinstance(x, str) for x in xs):
            return Categories(xs)
        return self.scale(self.chart.x, xs) or Linear(xs, with_zero=min(xs) >= 0 and min(xs) <= max(xs) / 2)

    @staticmethod
    def scale(axis, values):
        """None: it is linear."""
        kind = Log if axis.log else Nines if axis.nines else Sizes if axis.sizes else None
        return kind and kind(values)

    def at_x(self, x):
        return LEFT + self.x.place(x) * (WIDTH - LEFT - RIGHT)

    def at_y(self, y):
        return self.bottom - self.y.place(y) * (self.bottom - TOP)

    def svg(self):
        title = escape(self.chart.title)
        lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
                 f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif" font-size="12" fill="{INK}">',
                 f"<title>{title}</title>", text(WIDTH / 2, 24, title, "middle", ' font-size="15"')]
        lines += self.grid() + self.labels()
        draw = {"line": self.line, "bar": self.bars, "stacked": self.stack}[self.chart.kind]
        for index in range(len(self.chart.series)):
            lines += draw(index)
        return "\n".join(lines + self.drawn_legend() + ["</svg>"]) + "\n"

    def grid(self):
        out = []
        for value, name in self.y.ticks():
            at = self.at_y(value)
            out += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="{INK}" '
                    'stroke-opacity="0.35"/>', text(LEFT - 8, at + 4, name, "end")]
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{self.bottom}" y2="{self.bottom}" stroke="{INK}"/>')
        for value, name in self.x.ticks():
            at = self.at_x(value)
            out.append(text(at, self.bottom + 17, escape(name), "middle"))
            if not isinstance(self.x, Categories):
                out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{self.bottom}" y2="{self.bottom + 4}" '
                           f'stroke="{INK}"/>')
        return out

    def labels(self):
        middle = (TOP + self.bottom) / 2
        return [text((LEFT + WIDTH - RIGHT) / 2, self.bottom + 36, escape(self.chart.x.text()), "middle"),
                f'<text transform="translate(16 {middle:.1f}) rotate(-90)" text-anchor="middle">'
                f"{escape(self.chart.y.text())}</text>"]

    def line(self, index):
        points = self.chart.series[index].points
        if not isinstance(self.x, Categories):
            points = sorted(points)
        places = [(self.at_x(x), self.at_y(y)) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        colour = colour_of(index)
        return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
                *(mark(index, x, y) for x, y in places)]

    def bars(self, index):
        count = len(self.chart.series)
        part = (WIDTH - LEFT - RIGHT) / len(self.x.names)
        width = part * 0.8 / count
        zero = self.bottom if self.chart.y.log else self.at_y(0)
        out = []
        for x, y in self.chart.series[index].points:
            left = self.at_x(x) - part * 0.4 + index * width
            at = self.at_y(y)
            out.append(f'<rect x="{left:.1f}" y="{min(at, zero):.1f}" width="{width * 0.92:.1f}" '
                       f'height="{abs(zero - at):.1f}" fill="{colour_of(index)}"><title>{y:g}</title></rect>')
        return out

    def stack(self, index):
        """The part of each bar that is this series, on those before it."""
        width = (WIDTH - LEFT - RIGHT) / len(self.x.names) * 0.6
        out = []
        for x, y in self.chart.series[index].points:
            below = sum(value for series in self.chart.series[:index] for at, value in series.points if at == x)
            low, high = self.at_y(below), self.at_y(below + y)
            out.append(f'<rect x="{self.at_x(x) - width / 2:.1f}" y="{high:.1f}" width="{width:.1f}" '
                       f'height="{low - high:.1f}" fill="{colour_of(index)}"><title>{y:g}</title></rect>')
        return out

    def rows_of_legend(self):
        """Lists of (index, x): which series stand in which line of the legend, and where. One series has none."""
        rows, x = [], WIDTH
        if len(self.chart.series) == 1:
            return rows
        for index, series in enumerate(self.chart.series):
            width = 26 + LETTER * len(series.name)
            if x + width > WIDTH - RIGHT:
                rows.append([])
                x = LEFT
            rows[-1].append((index, x))
            x += width
        return rows

    def drawn_legend(self):
        out = []
        for row, entries in enumerate(self.legend):
            y = self.bottom + BELOW_AXIS + LEGEND_LINE * row + 8
            for index, x in entries:
                if self.chart.kind != "line":
                    out.append(f'<rect x="{x}" y="{y - 5:.1f}" width="10" height="10" fill="{colour_of(index)}"/>')
                else:
                    out.append(mark(index, x + 5, y))
                out.append(text(x + 15, y + 4, escape(self.chart.series[index].name), "start"))
        return out


def colour_of(index):
    return COLOURS[index % len(COLOURS)]


def text(x, y, content, anchor, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{content}</text>'


def mark(index, x, y):
    colour = colour_of(index)
    shape = MARKS[index % len(MARKS)]
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
    if shape == "ring":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="none" stroke="{colour}" stroke-width="2"/>'
    if shape == "cross":
        return (f'<path d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8" fill="none" stroke="{colour}" '
                'stroke-width="2"/>')
    steps = {"square": "M-4 -4h8v8h-8z", "triangle": "M0 -5l5 9h-10z", "diamond": "M0 -5l5 5l-5 5l-5 -5z"}[shape]
    return f'<path transform="translate({x:.1f} {y:.1f})" d="{steps}" fill="{colour}"/>'


# ---- input ---------------------------------------------------------------------------------------------------------


def check(chart):
    """Raises ChartError, which names the series and the point."""
    if chart.kind not in KINDS:
        raise ChartError(f'kind "{chart.kind}": a chart is one of {", ".join(KINDS)}')
    if any(axis.log + axis.nines + axis.sizes > 1 for axis in (chart.x, chart.y)):
        raise ChartError("an axis has one scale: log, nines or sizes")
    if chart.kind == "stacked" and (chart.y.log or chart.y.nines or chart.y.sizes):
        raise ChartError("parts of a stacked bar can only be added on a linear axis")
    if not any(series.points for series in chart.series):
        raise ChartError("there is nothing to draw: no series has a point")
    kinds = set()
    for series in chart.series:
        for x, y in series.points:
            kinds.add(isinstance(x, str))
            values = [("y", y, chart.y)] if isinstance(x, str) else [("x", x, chart.x), ("y", y, chart.y)]
            for name, value, axis in values:
                where = f'series "{series.name}", point ({x}, {y}): {name}'
                if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                    raise ChartError(f"{where} is not a finite number")
                if (axis.log or axis.sizes) and value <= 0 and (name == "y" or chart.kind == "line"):
                    raise ChartError(f"{where} is not above 0, as a logarithmic axis needs")
                if axis.nines and not 0 <= value < 100:
                    raise ChartError(f"{where} is not from 0 to below 100, as an axis of nines needs")
                if chart.kind == "stacked" and name == "y" and value < 0:
                    raise ChartError(f"{where} is below 0, and a part of a stacked bar cannot be")
    if len(kinds) == 2:
        raise ChartError("some x are numbers and some are text; a chart has one or the other")


def axis_of(fields, name):
    if not isinstance(fields, dict) or not isinstance(fields.get("label"), str):
        raise ChartError(f'"{name}" needs a "label"')
    known = [field.name for field in dataclasses.fields(Axis)]
    unknown = set(fields) - set(known)
    if unknown:
        raise ChartError(f'"{name}" has no field {", ".join(sorted(unknown))}; it has {", ".join(known)}')
    scales = (bool(fields.get(scale, False)) for scale in ("log", "nines", "sizes"))
    return Axis(fields["label"], fields.get("unit", ""), *scales)


def from_json(content):
    """The chart of a JSON text; raises ChartError."""
    try:
        return from_fields(json.loads(content))
    except json.JSONDecodeError as error:
        raise ChartError(f"line {error.lineno}: no JSON: {error.msg}") from None


def from_fields(fields):
    """The chart of an object of JSON; raises ChartError."""
    if not isinstance(fields, dict) or not isinstance(fields.get("series"), list):
        raise ChartError('a chart is an object with "title", "x", "y" and a list "series"')
    series = []
    for entry in fields["series"]:
        try:
            series.append(Series(str(entry["name"]), [(x, y) for x, y in entry["points"]]))
        except (KeyError, TypeError, ValueError):
            raise ChartError(f'series {len(series) + 1} needs a "name" and "points", a list of pairs') from None
    return Chart(str(fields.get("title", "")), axis_of(fields.get("x"), "x"), axis_of(fields.get("y"), "y"), series,
                 fields.get("kind", "line"))


def cell(value):
    try:
        return float(value)
    except ValueError:
        return value


def from_csv(content):
    """The chart of a CSV text, whose x and y have no units; raises ChartError."""
    rows = [row for row in csv.reader(content.splitlines()) if row]
    if not rows or len(rows[0]) < 2:
        raise ChartError("line 1: expected the name of x and of at least one series")
    series = [Series(name.strip(), []) for name in rows[0][1:]]
    for line, row in enumerate(rows[1:], 2):
        if len(row) != len(rows[0]):
            raise ChartError(f"line {line}: {len(row)} cells, but line 1 has {len(rows[0])} names")
        for one, value in zip(series, row[1:]):
            if value.strip():
                one.points.append((cell(row[0].strip()), cell(value.strip())))
    return Chart("", Axis(rows[0][0].strip()), Axis(series[0].name if len(series) == 1 else ""), series)


def overlay(chart, options):
    chart.title = options.title or chart.title
    chart.kind = options.kind or chart.kind
    for axis, name in (chart.x, "x"), (chart.y, "y"):
        axis.label = getattr(options, name + "_label") or axis.label
        axis.unit = getattr(options, name + "_unit") or axis.unit
        axis.log = getattr(options, name + "_log") or axis.log


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input")
    parser.add_argument("-o", "--output")
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--title")
    for axis in "xy":
        parser.add_argument(f"--{axis}-label")
        parser.add_argument(f"--{axis}-unit")
        parser.add_argument(f"--{axis}-log", action="store_true")
    options = parser.parse_args()
    try:
        with open(options.input, encoding="utf-8") as file:
            content = file.read()
        chart = from_csv(content) if options.input.endswith(".csv") else from_json(content)
        overlay(chart, options)
        if options.output:
            chart.write(options.output)
        else:
            sys.stdout.write(chart.svg())
    except (ChartError, OSError, UnicodeDecodeError) as error:
        print(f"chart.py: {options.input}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
