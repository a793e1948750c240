# SPDX-License-Identifier: Apache-2.0
"""Medians over rounds, and whether they meet the goals.

A round counts for a figure if its programs ran in it and all probes of the distance said the same. Of the distances, the
near one is judged; a figure that saw only the far one is shown and not judged.
"""
import statistics

DISTANCES = ("near", "far", None)  # None: of programs that need no other CPU. The first that a figure saw is shown.
MET, MISSED, NOT_JUDGED = "met", "no", ""


def rounds_in(rounds, programs, distance):
    """Those in which all these programs ran at this distance."""
    wanted = {distance} if distance else set()
    return [samples for samples in rounds
            if all(program in samples for program in programs)
            and set().union(*(samples[program].distances for program in programs)) == wanted]


def rounds_to_show(rounds, programs):
    """The rounds that count, and their distance; no rounds and None if there are none."""
    for distance in DISTANCES:
        if found := rounds_in(rounds, programs, distance):
            return found, distance
    return [], None


def middle_half(values):
    """Between which values the middle half lies; of fewer than four values, the least and the most."""
    if len(values) < 4:
        return [min(values), max(values)]
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return [first, third]


def values_of(rounds, program, value):
    return [samples[program].values[value] for samples in rounds]


def noise_of(rounds, programs):
    """Medians; of the shares, the largest of what is compared."""
    return {name: max(statistics.median(samples[program].noise[name] for samples in rounds) for program in programs)
            for name in ("foreign", "stolen", "switches")}


def verdict(goal, value, beside, distance):
    if goal is None or distance == "far" or (goal.compares and beside is None):
        return NOT_JUDGED
    return MET if goal.is_met(value, beside) else MISSED


def row_of(figure, rounds, why_not):
    """The figure as a row of the report. `why_not`: of a program that did not run."""
    absent = {program: why_not(program) for program in figure.programs if why_not(program)}
    present = [program for program in figure.programs if program not in absent]
    counted, distance = rounds_to_show(rounds, present) if present else ([], None)
    row = {"name": figure.name, "unit": figure.unit, "goal": figure.goal.text if figure.goal else "",
           "ours": str(figure.ours), "beside": str(figure.beside) if figure.beside else "",
           "rounds": len(counted), "distance": distance,
           "skipped": {str(program): cause for program, cause in absent.items()}, "value": None, "beside_value": None,
           "values": [], "beside_values": [], "ratio": None, "middle_half": None, "noise": None, "verdict": NOT_JUDGED}
    if not counted:
        return row
    row["noise"] = noise_of(counted, present)
    if figure.ours in present:
        values = values_of(counted, figure.ours, figure.value)
        row.update(values=values, value=statistics.median(values), middle_half=middle_half(values))
    if figure.beside in present:
        values = values_of(counted, figure.beside, figure.beside_value or figure.value)
        row.update(beside_values=values, beside_value=statistics.median(values))
    if row["value"] is not None:
        row["verdict"] = verdict(figure.goal, row["value"], row["beside_value"], distance)
        if row["beside_value"]:
            row["ratio"] = row["value"] / row["beside_value"]
    return row


def plot_of(plot, rounds):
    """The plot in the form of chart.py; None if nothing of it ran. Each curve has its own rounds."""
    series, distances = [], set()
    for curve in plot.curves:
        points = []
        for x, program, value in curve.points:
            counted, distance = rounds_to_show(rounds, [program])
            if counted and value in counted[0][program].values:
                y = statistics.median(values_of(counted, program, value))
                points.append([y, x] if plot.inverted else [x, y])
                distances.add(distance)
        if points:
            series.append({"name": curve.name, "points": points})
    if not series:
        return None
    return {"title": plot.title, "kind": plot.kind, "x": vars(plot.x), "y": vars(plot.y), "series": series,
            "distances": sorted(distances - {None})}
