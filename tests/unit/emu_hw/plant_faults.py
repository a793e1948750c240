#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is the protocol core in the loop of the emulation? A fault in it must change the numbers that it decides.

Each fault of planted_faults.def is planted in a copy of lib/transport. Only the files that it is in are compiled, with
the commands of the build, and linked with all other objects of ub_emu. Then the lines of results that are named with the
fault must differ from those of the sound core; where there are published data, the line must be out of class or invalid.

  plant_faults.py BUILD [--only NAME ...]
"""
import argparse
import importlib.machinery
import importlib.util
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
RUN_LIMIT_S = 120
LINE = re.compile(r"(\S+) +(\S+) +[XRSF] +(in class|no data|beside|explained|OUT OF CLASS|INVALID) +(.*)")


def load_planting():
    """tests/sim/plant_bugs, which reads and plants bugs."""
    loader = importlib.machinery.SourceFileLoader("plant_bugs", str(ROOT / "tests/sim/plant_bugs"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("plant_bugs", loader))
    loader.exec_module(module)
    return module


class Emulation:
    """ub_emu of a build directory, and variants of it."""

    def __init__(self, build, scratch):
        self.build, self.scratch = build, scratch
        text = subprocess.run(["ninja", "-C", build, "-t", "commands", "emu_hw/ub_emu"], check=True, text=True,
                              capture_output=True).stdout
        self.commands = [line for line in text.splitlines() if not line.startswith("ninja: ")]

    def compile(self, file):
        """A file of the copy in place of the one of lib/transport."""
        command = next(c for c in self.commands if c.endswith(f"lib/transport/{file}")).split(" -MD ")[0]
        words = [word for word in shlex.split(command) if word != "ccache"]
        first = next(i for i, word in enumerate(words) if word.startswith("-I"))
        words.insert(first, f"-I{self.scratch}")
        out = self.scratch / (file.replace("/", "_") + ".o")
        source = self.scratch / "lib/transport" / file
        subprocess.run(words + ["-w", "-c", str(source), "-o", str(out)], cwd=self.build, check=True)
        return str(out)

    def link(self, objects):
        words = shlex.split(self.commands[-1])
        at = words.index("emu_hw/ub_emu")
        program = self.scratch / "ub_emu"
        words[at:at + 1] = [str(program)] + objects  # before the libraries, whose members of that name are left out
        subprocess.run(words, cwd=self.build, check=True)
        return program


def results(program, experiments):
    """By experiment and series: the verdict, and the values."""
    text = subprocess.run([program, "run", *sorted(experiments)], text=True, capture_output=True,
                          timeout=RUN_LIMIT_S).stdout
    return {f"{m[1]}:{m[2]}": (m[3], m[4]) for m in map(LINE.match, text.splitlines()) if m}


def what_is_wrong(key, sound, faulty):
    if key not in sound or key not in faulty:
        return "there is no such line"
    if sound[key] == faulty[key]:
        return "is as it was: " + faulty[key][1]
    if sound[key][0] == "in class" and faulty[key][0] not in ("OUT OF CLASS", "INVALID"):
        return "is still in class: " + faulty[key][1]
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--only", nargs="*")
    args = parser.parse_args()
    planting = load_planting()
    faults = planting.read_bugs(HERE / "planted_faults.def")
    if missing := "\n".join(planting.check_texts(faults)):
        sys.exit(missing)
    failed = 0
    for fault in faults:
        name, *keys = fault["name"].split()
        if args.only and name not in args.only:
            continue
        experiments = {key.split(":")[0] for key in keys}
        with tempfile.TemporaryDirectory(prefix="planted-") as directory:
            scratch = pathlib.Path(directory)
            shutil.copytree(ROOT / "lib/transport", scratch / "lib/transport")
            planting.plant(scratch, fault)
            emulation = Emulation(args.build, scratch)
            program = emulation.link([emulation.compile(file) for file in sorted({edit["file"] for edit in fault["edits"]})])
            sound = results(args.build / "emu_hw/ub_emu", experiments)
            faulty = results(program, experiments)
        for key in keys:
            wrong = what_is_wrong(key, sound, faulty)
            failed += bool(wrong)
            print(f"{name:36} {key:16} {wrong or ': '.join(faulty[key])[:110]}", flush=True)
    sys.exit(f"{failed} lines do not show the fault" if failed else 0)


if __name__ == "__main__":
    main()
