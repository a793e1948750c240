#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records every Core of many seeds of the simulator, and replays each recording.

  tests/sim/replay_seeds.py build/tests/sim/ub_sim build/tools/replay/urma_replay --seeds 200

Seeds come from each kind of world in turn. A recording has some hundred kilobytes, so a few seeds are recorded at a time.
"""
import argparse
import os
import subprocess
import sys
import tempfile

KINDS = ([], ["--paths"], ["--repeated"], ["--rol-by-ctp"], ["--apertures"])
AT_A_TIME = 20


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("simulator")
    parser.add_argument("replay")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    recordings = bad = 0
    for part, first in enumerate(range(args.first, args.first + args.seeds, AT_A_TIME)):
        count = min(AT_A_TIME, args.first + args.seeds - first)
        kind = KINDS[part % len(KINDS)]
        with tempfile.TemporaryDirectory(prefix="softub-seeds-") as directory:
            command = [args.simulator, *kind, "--from", str(first), "--seeds", str(count), "--jobs", "2", "--brief",
                       "--record", directory]
            good, said = run(command)
            files = sorted(os.path.join(directory, f) for f in os.listdir(directory))
            replayed, told = run([args.replay, "--check", "--quiet", *files]) if files else (False, "nothing recorded")
        recordings += len(files)
        if not good or not replayed:
            bad += 1
            print(" ".join(command), said, told, sep="\n")
    print(f"{args.seeds} seeds, {recordings} recordings; {bad} parts failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
