#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records every Core of many seeds of the simulator, and replays each recording. A few are made smaller, to what belongs to
one channel (urma_replay --minimise), and replayed, too: most of these send the packets of that channel as they were. (Where
memory is slow or ports are full, what happens to one channel depends on others.)

  tests/sim/replay_seeds.py build/tests/sim/ub_sim build/tools/replay/urma_replay --seeds 200

Seeds come from each kind of world in turn. A recording has some hundred kilobytes, so a few seeds are recorded at a time.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

KINDS = ([], ["--paths"], ["--repeated"], ["--rol-by-ctp"], ["--apertures"])
AT_A_TIME = 20
SMALLER_OF = 6     # one of so many recordings is made smaller
LEAST_SAME = 0.6  # of those send the same packets


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout


class Smaller:
    """Recordings that were made smaller."""

    def __init__(self, replay):
        self.replay, self.made, self.same, self.bad = replay, 0, 0, []

    def make(self, files):
        for number, file in enumerate(files):
            channel = str(1 + number % 3)
            good, said = run([self.replay, file, "--minimise", file + ".smaller", "--channel", channel])
            if not good and "there is no channel" in said:
                continue
            replayed, told = run([self.replay, "--check", "--quiet", file + ".smaller"]) if good else (False, "")
            self.made += 1
            self.same += bool(re.search(r"their packets +(\d+) +\1\n", said))
            if not replayed:
                self.bad.append(f"{file} --channel {channel}: {said}{told}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("simulator")
    parser.add_argument("replay")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    recordings = bad = 0
    smaller = Smaller(args.replay)
    for part, first in enumerate(range(args.first, args.first + args.seeds, AT_A_TIME)):
        count = min(AT_A_TIME, args.first + args.seeds - first)
        kind = KINDS[part % len(KINDS)]
        with tempfile.TemporaryDirectory(prefix="softub-seeds-") as directory:
            command = [args.simulator, *kind, "--from", str(first), "--seeds", str(count), "--jobs", "2", "--brief",
                       "--record", directory]
            good, said = run(command)
            files = sorted(os.path.join(directory, f) for f in os.listdir(directory))
            replayed, told = run([args.replay, "--check", "--quiet", *files]) if files else (False, "nothing recorded")
            smaller.make(files[::SMALLER_OF])
        recordings += len(files)
        if not good or not replayed:
            bad += 1
            print(" ".join(command), said, told, sep="\n")
    print(f"{args.seeds} seeds, {recordings} recordings; {bad} parts failed")
    print(f"{smaller.made} made smaller, {smaller.same} of them send the same packets; {len(smaller.bad)} failed")
    print(*smaller.bad, sep="\n", end="")
    return 1 if bad or smaller.bad or smaller.same < LEAST_SAME * smaller.made else 0


if __name__ == "__main__":
    sys.exit(main())
