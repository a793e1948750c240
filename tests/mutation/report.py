# SPDX-License-Identifier: Apache-2.0
"""What became of the mutants: a table, the survivors and the score."""
import collections
import dataclasses
import os

COLUMNS = ("unit", "directed", "seeds", "crash", "timeout")
SURVIVED = {"survived": "survived", "no-effect": "no test makes it change a value",
            "never-reached": "no test reaches it"}


@dataclasses.dataclass
class Result:
    how: str  # failed, crash, timeout, survived, no-effect, never-reached
    kind: str  # of the test that noticed: unit, directed, seeds
    test: str
    cpu_ms: int

    @property
    def column(self):
        return self.kind if self.how == "failed" else self.how


def sentence(m):
    return f"{m.file}:{m.line}:{m.column}: {m.number} {m.function}: {m.kind}: {m.change}: {m.text}"


class Outcome:
    def __init__(self, mutants, results, equivalent, left_out):
        self.mutants, self.results, self.left_out = mutants, results, left_out
        self.equivalent = {n: reason for n, reason in equivalent.items() if n in results}

    def survivors(self):
        return [m for m in self.mutants if self.results[m.number].how in SURVIVED and m.number not in self.equivalent]

    def noticed_equivalents(self, path):
        return [f"{path}: not equivalent: {self.results[m.number].test} notices {sentence(m)}" for m in self.mutants
                if m.number in self.equivalent and self.results[m.number].how not in SURVIVED]

    def score(self, mutants=None):
        """Percent."""
        judged = [m for m in (self.mutants if mutants is None else mutants) if m.number not in self.equivalent]
        killed = sum(self.results[m.number].how not in SURVIVED for m in judged)
        return 100 * killed / len(judged) if judged else 100.0

    def row(self, name, mutants, left_out):
        counts = collections.Counter(self.results[m.number].column for m in mutants if m.number not in self.equivalent)
        equivalent = sum(m.number in self.equivalent for m in mutants)
        lost = [counts[how] for how in SURVIVED]
        cells = [len(mutants)] + [counts[c] for c in COLUMNS] + [equivalent] + lost
        return f"{name:30}" + "".join(f"{cell:>11}" for cell in cells) + f"{len(left_out):>11}{self.score(mutants):>8.1f}"

    def table(self):
        head = ("mutants",) + COLUMNS + ("equivalent", "survived", "no effect", "unreached", "no build")
        lines = [f"{'':30}" + "".join(f"{name:>11}" for name in head) + f"{'%':>8}"]
        for key, by_file in ((lambda m: os.path.dirname(m.file), True), (lambda m: m.kind, False)):
            groups = grouped(key, self.mutants, self.left_out)
            for name in sorted(groups):
                lines.append(self.row(short(name), *groups[name]))
                files = grouped(lambda m: m.file, *groups[name]) if by_file else {}
                lines += [self.row("  " + os.path.basename(file), *files[file]) for file in sorted(files)]
            lines += [self.row("all", self.mutants, self.left_out), ""]
        return lines

    def text(self, about):
        lines = [f"mutants of {about}", ""] + self.table()
        survivors = self.survivors()
        for how, words in SURVIVED.items():
            some = [m for m in survivors if self.results[m.number].how == how]
            if some:
                lines += [f"{len(some)} mutants: {words}"] + ["  " + sentence(m) for m in some] + [""]
        cpu = sum(result.cpu_ms for result in self.results.values()) / 1000
        lines.append(f"{self.score():.1f} % of {len(self.mutants) - len(self.equivalent)} mutants were noticed; "
                     f"{len(survivors)} survived; {len(self.equivalent)} more are equivalent; {cpu:.0f} s of CPU")
        return "\n".join(lines) + "\n"


def grouped(key, *lists):
    """{key: those of each list}"""
    groups = collections.defaultdict(lambda: [[] for _ in lists])
    for n, mutants in enumerate(lists):
        for m in mutants:
            groups[key(m)][n].append(m)
    return groups


def short(name):
    return "/".join(name.split("/")[-2:])
