# SPDX-License-Identifier: Apache-2.0
"""A program as figures name it, and what came of running it once."""
import typing


class Skip(Exception):
    """Why a program cannot run here."""


class Program(typing.NamedTuple):
    kind: str       # how it is run and read: a key of programs.KINDS
    arguments: str

    def __str__(self):
        return f"{self.kind}: {self.arguments}"


class Sample(typing.NamedTuple):
    values: dict      # by the names of parsing.py
    distances: set    # of the CPUs that were seen before, in and after it; empty: it needs no other CPU
    noise: dict       # as noise.py has it
