# SPDX-License-Identifier: Apache-2.0
"""Builds the runner: the rewritten sources, everything else from the tree. Mutants that do not compile are left out."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import rewrite

TOOL_ROOT = pathlib.Path(__file__).resolve().parent.parent.parent  # of mutants.h
sys.path.insert(0, str(TOOL_ROOT / "tests/sim"))
import sim_sources  # noqa: E402

FLAGS = ["-std=c++20", "-O1", "-g1", "-D_GNU_SOURCE", "-fno-strict-aliasing", "-fwrapv", "-w", "-fmax-errors=0"]
FLAGS += [f"-D{name}='\"{value}\"'" for name, value in sim_sources.DEFINED.items()]
ERROR = re.compile(r"^(\S+?):(\d+):(\d+): (?:fatal )?error:", re.M)
NAMED = re.compile(r"In instantiation of .*ub::mut::.*unsigned int N = (\d+)")  # gcc and the mutant's own template
MAX_ROUNDS = 30


def object_of(source):
    return "obj/" + source.lstrip("/") + ".o"


class BuildError(Exception):
    """What keeps the runner from being built; a sentence for people."""


class Build:
    """`mutated` and `sources`: files relative to root."""

    def __init__(self, root, directory, mutated, sources, cxx="g++", jobs=2):
        self.root, self.dir = pathlib.Path(root).resolve(), pathlib.Path(directory).resolve()
        self.cxx, self.jobs = cxx, jobs
        self.objects = [str(s) for s in sources]
        self.sources = {}
        number = 0
        for path in mutated:
            text = (self.root / path).read_text()
            self.sources[path] = rewrite.Source(path, text, number)
            number = self.sources[path].number
        self.count = number
        self.mutants = [m for s in self.sources.values() for m in s.mutants]
        digest = hashlib.sha256("".join(s.text for s in self.sources.values()).encode())
        digest.update(pathlib.Path(rewrite.__file__).read_bytes())
        self.digest = digest.hexdigest()
        self.left_out = self.remembered()

    # ---- mutants that do not compile ----

    @property
    def memory(self):
        return self.dir / "left_out.json"

    def remembered(self):
        try:
            known = json.loads(self.memory.read_text())
        except (OSError, ValueError):
            return set()
        return set(known["left_out"]) if known["digest"] == self.digest else set()

    def remember(self):
        self.memory.write_text(json.dumps({"digest": self.digest, "left_out": sorted(self.left_out)}))

    def blame(self, output):
        """The mutants that the errors are about."""
        found = set()
        for line in output.splitlines():
            named = NAMED.search(line)
            if named:
                found |= self.of_the_same_place(int(named[1]))
        for match in ERROR.finditer(output):
            source = self.mutated_source(match[1])
            if source is not None:
                found |= self.mutants_at(source, int(match[2]), int(match[3]))
        return found

    def of_the_same_place(self, number):
        return {n for s in self.sources.values() for i in s.insertions if number in i[5] for n in i[5]}

    def mutated_source(self, path):
        prefix = str(self.dir / "src") + os.sep
        return self.sources.get(os.path.abspath(os.path.join(self.dir, path))[len(prefix):]) if \
            os.path.abspath(os.path.join(self.dir, path)).startswith(prefix) else None

    def mutants_at(self, source, line, column):
        text = source.rewritten(frozenset(self.left_out))
        offset = sum(len(l) + 1 for l in text.split("\n")[:line - 1]) + column - 1
        active = [m for m in source.mutants if m.span]
        around = [m for m in active if m.span[0] - 3 <= offset <= m.span[1]]
        if around:
            least = min(m.span[1] - m.span[0] for m in around)
            return {m.number for m in around if m.span[1] - m.span[0] == least}
        after = [m for m in active if m.line >= line]  # of an expression of several lines, its begin is named
        return {m.number for m in after if m.line == after[0].line}

    # ---- the build ----

    def write_sources(self):
        for path, source in self.sources.items():
            target = self.dir / "src" / path
            text = source.rewritten(frozenset(self.left_out))
            if not target.exists() or target.read_text() != text:  # others keep their times
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)

    def write_ninja(self):
        compiler = " ".join((["ccache"] if shutil.which("ccache") else []) + [self.cxx])
        lines = [f"cxx = {compiler} {' '.join(FLAGS)} -I{self.dir}/src -I{self.root} -I{TOOL_ROOT}",
                 "rule compile", "  command = $cxx -MMD -MF $out.d -c $in -o $out", "  depfile = $out.d", "  deps = gcc",
                 "rule link", f"  command = {self.cxx} -o $out $in -lgtest -lpthread"]
        objects = []
        for path in self.objects:
            object_ = object_of(path)
            place = self.dir / "src" if path in self.sources else self.root
            lines.append(f"build {object_}: compile {place / path}")
            objects.append(object_)
        lines += [f"build runner: link {' '.join(objects)}", ""]
        (self.dir / "build.ninja").write_text("\n".join(lines))

    def make(self):
        """The runner's path."""
        self.dir.mkdir(parents=True, exist_ok=True)
        self.write_ninja()
        first = [object_of(path) for path in self.objects if path in self.sources or path.endswith("core_instance.cc")]
        for targets in first, ["runner"]:  # where errors are found with few files
            self.make_targets(targets)
        return self.dir / "runner"

    def make_targets(self, targets):
        for _ in range(MAX_ROUNDS):
            self.write_sources()
            run = subprocess.run(["ninja", "-C", self.dir, f"-j{self.jobs}", "-k0"] + targets, capture_output=True,
                                 text=True, errors="replace", check=False)
            if run.returncode == 0:
                return
            blamed = self.blame(run.stdout) - self.left_out
            if not blamed:
                errors = [line for line in run.stdout.splitlines() if "error" in line or "required from" in line]
                raise BuildError("the build fails, and no mutant is to blame:\n" + "\n".join(errors[:20]))
            self.left_out |= blamed
            self.remember()
        raise BuildError(f"after {MAX_ROUNDS} rounds there are still mutants that do not compile")
