# SPDX-License-Identifier: Apache-2.0
"""RoCE in Linux's kernel between two guests, and in SoftUB between two processes: tests/interop/soft_roce.py."""
import os
import sys

from .program import Skip

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "interop"))
import guest  # noqa: E402
import soft_roce  # noqa: E402
import wires  # noqa: E402

COUNT = 500  # messages of a run: each instruction of a guest is emulated


class Guests:
    """Two guests that are booted when they are first needed, and two processes on a veth pair."""

    def __init__(self, build):
        self.opened = []
        try:
            self.ours = self.keep(soft_roce.Ours(build))
            self.guests = self.keep(soft_roce.SoftRoce(self.keep(guest.Network()), None))
        except (guest.Skip, wires.Skip) as cause:
            self.close()
            raise Skip(str(cause)) from None
        except BaseException:
            self.close()
            raise

    def keep(self, opened):
        self.opened.insert(0, opened)
        return opened

    def latency(self, who, verb):
        """`who`: "ours" or "guests". The time of a whole operation; perftest counts half of a ping-pong."""
        return {"p50": getattr(self, who).latency(verb, COUNT) * (1 if verb == "read" else 2)}

    def close(self):
        while self.opened:
            self.opened.pop(0).close()
