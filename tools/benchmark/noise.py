# SPDX-License-Identifier: Apache-2.0
"""What else went on while programs ran: time of the CPUs that others took, and how often the programs had to wait."""
import os
import resource
import time

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_times(text, cpus):
    """(busy, stolen) seconds of these CPUs together, of the text of /proc/stat."""
    busy = stolen = 0
    for line in text.splitlines():
        name, *ticks = line.split()
        if name in {f"cpu{cpu}" for cpu in cpus}:
            user, nice, system, _, _, irq, softirq, steal = map(int, ticks[:8])
            busy += user + nice + system + irq + softirq
            stolen += steal
    return busy / TICKS_PER_SECOND, stolen / TICKS_PER_SECOND


class Watch:
    """From its making on. Of programs only those count that were waited for."""

    def __init__(self, cpus):
        self.cpus = cpus
        self.begin = self.look()

    def look(self):
        with open("/proc/stat", encoding="ascii") as file:
            busy, stolen = cpu_times(file.read(), self.cpus)
        children, own = (resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
        used = children.ru_utime + children.ru_stime + own.ru_utime + own.ru_stime
        return time.monotonic(), busy - used, stolen, children.ru_nivcsw

    def noise(self):
        """foreign, stolen: the share of the CPUs' time that others took, and the host of a virtual machine; switches: how
        often a second the programs had to leave a CPU. CPUs count time in ticks, so shares are rough."""
        (start, *before), (now, *after) = self.begin, self.look()
        foreign, stolen, switches = (b - a for a, b in zip(before, after))
        seconds = max(now - start, 1e-9)
        all_time = seconds * len(self.cpus)
        return {"foreign": min(max(foreign / all_time, 0), 1), "stolen": min(max(stolen / all_time, 0), 1),
                "switches": switches / seconds}
