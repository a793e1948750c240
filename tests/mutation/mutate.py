#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: which changes of the protocol core does no test notice?

Every mutant of lib/transport/{cc,tp,ta,setup,resource} goes into one build, each behind a number: a comparison that is
shifted or turned round, a condition negated, an operand of && or || that decides nothing, a number one larger, another
arithmetic operator, a call or an assignment left out. Unit tests, directed simulation tests and seeds of the swarm run
against each mutant in a process of its own. Printed are a table and the survivors. Mutants that change nothing are kept
in equivalents*.def, each with its reason. They meet unit tests alone: what nothing notices meets everything to the end,
and so would take nearly all of the time.

The status is 0 if the score, the share of the mutants which a test noticed of those that are not equivalent, is not
below --score; 1 if it is, or if an entry of those is stale; 2 if the runner cannot be built or a test fails
without any mutant.
"""
import argparse
import pathlib
import subprocess
import sys

import build  # finds sim_sources
import equivalents
import report
import sim_sources

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
UNIT = ("transport", "cc", "tp", "ta", "setup", "resource", "roce")


def globbed(root, *patterns):
    return sorted({str(p.relative_to(root)) for pattern in patterns for p in pathlib.Path(root).glob(pattern)})


class Project:
    """What is mutated, and what the runner is built from; paths relative to root."""

    def __init__(self, root=ROOT):
        self.root = pathlib.Path(root)
        layers = "{cc,tp,ta,setup,resource}"
        self.about = f"lib/transport/{layers}"
        self.mutated = globbed(root, *(f"lib/transport/{d}/**/*.{e}" for d in ("cc", "tp", "ta", "setup", "resource")
                                       for e in ("h", "cc")))
        sim = [p for p in globbed(root, "tests/sim/*.cc") if "\nint main(" not in (self.root / p).read_text()]
        units = globbed(root, *(f"tests/unit/{part}/*.cc" for part in UNIT))
        self.sources = globbed(root, *(f"{part}/**/*.cc" for part in (*sim_sources.LIBRARIES, "tests/mutation"))) + sim + units
        self.equivalents = "tests/mutation/equivalents*.def"


def arguments(argv, project):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT",
                        help="only mutants of files whose path contains one of these")
    parser.add_argument("--without", nargs="*", default=[], metavar="KIND", help="leave out mutants of these kinds")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only each K-th of them, for a first look")
    parser.add_argument("--mutant", type=int, metavar="N", help="run one, with what its tests print")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--seeds", type=int, default=300, help="of the swarm, and of the programs about order (default: %(default)s)")
    parser.add_argument("--equivalents", action="store_true", help="those of equivalents*.def meet all tests, too")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument("--score", type=float, default=90, help="percent that must be noticed (default: %(default)s)")
    parser.add_argument("--build", type=pathlib.Path, default=project.root / "build-mutation",
                        help="directory of the build and the report (default: %(default)s)")
    parser.add_argument("--cxx", default="g++")
    return parser.parse_args(argv)


def run(runner, built, args, chosen, listed):
    """{number: Result} of the mutants chosen. What is known so far stands in `results` of the build directory."""
    numbers = args.build / "chosen"
    numbers.write_text("".join(f"{m.number} {int(args.equivalents or m.number not in listed)}\n" for m in chosen))
    command = [runner, "--count", str(built.count), "--mutants", numbers, "--seeds", str(args.seeds),
               "--jobs", str(args.jobs)]
    results = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, \
            open(args.build / "results", "w", buffering=1) as so_far:
        for line in process.stdout:
            so_far.write(line)
            number, how, kind, test, cpu_ms = line.rstrip("\n").split("\t")
            results[int(number)] = report.Result(how, kind, test, int(cpu_ms))
            if sys.stderr.isatty():
                print(f"\r{len(results)} of {len(chosen)}", end="", file=sys.stderr)
    if process.returncode != 0:
        raise build.BuildError("the tests do not pass without a mutant" if process.returncode == 3 else
                               f"the runner ended with status {process.returncode}")
    return results


def replay(runner, built, args):
    mutant = next((m for m in built.mutants if m.number == args.mutant), None)
    if mutant is None or mutant.number in built.left_out:
        print(f"there is no mutant {args.mutant}" if mutant is None else f"mutant {args.mutant} does not compile")
        return 2
    print(report.sentence(mutant), flush=True)
    return subprocess.run([runner, "--count", str(built.count), "--replay", str(args.mutant),
                           "--seeds", str(args.seeds)], check=False).returncode


def main(argv=None, project=None):
    project = project or Project()
    args = arguments(argv, project)
    args.build.mkdir(parents=True, exist_ok=True)
    built = build.Build(project.root, args.build, project.mutated, project.sources, args.cxx, args.jobs)
    wanted = [m for m in built.mutants if m.kind not in args.without and
              (not args.only or any(text in m.file for text in args.only))]
    if args.list:
        for mutant in wanted[::args.every]:
            print(report.sentence(mutant))
        return 0
    try:
        listed, stale = equivalents.read(project.root / project.equivalents, built.mutants)
        runner = built.make()
        if args.mutant is not None:
            return replay(runner, built, args)
        chosen = [m for m in wanted if m.number not in built.left_out][::args.every]
        results = run(runner, built, args, chosen, listed)
    except build.BuildError as error:
        print(f"mutate: {error}", file=sys.stderr)
        return 2
    left_out = [m for m in wanted if m.number in built.left_out]
    outcome = report.Outcome(chosen, results, listed, left_out)
    text = outcome.text(project.about)
    (args.build / "report.txt").write_text(text)
    print(text, end="")
    stale += outcome.noticed_equivalents(project.equivalents)
    for line in stale:
        print(line)
    if outcome.score() < args.score:
        print(f"the score is below {args.score:g} %")
    return 1 if stale or outcome.score() < args.score else 0


if __name__ == "__main__":
    sys.exit(main())
