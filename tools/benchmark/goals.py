# SPDX-License-Identifier: Apache-2.0
"""Goals of figures: what is wanted of a value, or of a value and of what stands beside it."""
import typing


class Goal(typing.NamedTuple):
    text: str
    is_met: typing.Callable  # of the value and of what stands beside it
    compares: bool = False   # False: the value alone decides


def at_most_times(factor):
    return Goal(f"at most {factor:g}x", lambda value, beside: value <= factor * beside, True)


def at_least_times(factor):
    return Goal(f"at least {factor:g}x", lambda value, beside: value >= factor * beside, True)


def at_least(least, unit=""):
    return Goal(f"at least {least:g} {unit}".strip(), lambda value, _: value >= least)


def at_most(most, unit=""):
    return Goal(f"at most {most:g} {unit}".strip(), lambda value, _: value <= most)


def either(one, other):
    """One of the two is enough."""
    return Goal(f"{one.text}, or {other.text}",
                lambda value, beside: any(goal.is_met(value, beside) for goal in (one, other)
                                          if beside is not None or not goal.compares))
