#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the conformance programs on every combination of placement and wire, and prints a table.

  tests/conformance/run.py --build build                      all that is to pass, some minutes
  tests/conformance/run.py --build build --only life --placement daemon --wire udp
  tests/conformance/run.py --build build --wire shm --case "wrong token"

We and the peer hold a NIC each (embedded), or use a softubd each (daemon). What cannot be had here is named with the
cause. Exit code 0: nothing failed; 77: nothing could be had.
"""
import argparse
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import daemons
import matrix
import wires

WIRES = ("shm", "udp", "memif")
# Each with what its command line begins with.
PROGRAMS = {
    "completions": ["--processes"],
    "requests": ["--processes"],
    "order": ["--processes"],
    "errors": ["--processes"],
    "faults": ["--processes"],
    "life": ["--processes"],
    "events": ["--processes"],
    "flows": ["--processes"],
    "apertures": ["--processes"],
    "windows": ["--processes"],
    "shared_windows": ["--processes"],
    "same_host": ["--processes"],
    "names": ["--processes"],
    "bad_input": ["--processes"],
    "receive_queues": [],
    "steps": [],
    "async_connect": [],
    "out_of_memory": [],
    "unreliable": ["--processes"],
    "errno_kept": ["--processes"],
    "cancelled": ["--processes"],
}
NOT_YET = ()  # known to fail, left out unless named
SKIPPED = 77


class Result:
    def __init__(self, verdict, reason, output="", seconds=0.0):
        self.verdict, self.reason, self.output, self.seconds = verdict, reason, output, seconds


def reason_not_to(program, placement, wire):
    if program == "out_of_memory" and (placement != "embedded" or wire != "shm"):
        return "one process that has used up its memory, with a NIC of its own: once is enough"
    if program == "shared_windows" and wire != "shm":
        return "memory is mapped within one host, where NICs meet by shared memory"
    if program == "names" and wire in wires.DPDK_WIRES:
        return "three programs look for names, and these wires have two ends"
    return None


def arguments(program, placement, wire):
    two_ends = placement == "embedded" and wire in wires.DPDK_WIRES
    if program == "bad_input" and two_ends:
        return ["--two"]
    return PROGRAMS[program]


def name_socket_file(environment, directory):
    """The memif driver never closes its listener at an abstract socket, so a process could start only once."""
    for key in ("SOFTUB_DPDK_DEVICE", "PEER_SOFTUB_DPDK_DEVICE"):
        environment[key] = re.sub("socket=[^,]*", f"socket={directory}/memif.sock,socket-abstract=no", environment[key])


def count(output):
    passed = len(re.findall("^ok ", output, re.M))
    failed = len(set(re.findall("^FAIL ([^:,]*)", output, re.M)))
    return passed, failed


def judge(code, output):
    passed, failed = count(output)
    if code == SKIPPED:
        return "skip", output.strip()
    if code == 0 and failed == 0 and passed > 0:
        return "pass", f"{passed} cases"
    why = "still ran when its time was over" if code is None else f"exit code {code}"
    return "FAIL", f"{failed} of {passed + failed} cases, {why}"


def run(args, program, placement, wire):
    reason = reason_not_to(program, placement, wire)
    if reason:
        return Result("skip", reason)
    combination = matrix.Combination(args, placement, wire)
    begin = time.monotonic()
    try:
        place = combination.make_wire()
    except wires.Skip as why:
        return Result("skip", str(why))
    except RuntimeError as error:
        return Result("FAIL", "the daemons do not start", str(error))
    try:
        command, environment = combination.ends(place)
        if placement == "embedded" and isinstance(place, wires.Memif):
            name_socket_file(environment, place.directory.name)
        # Daemons reach memory of softub_alloc alone, and that of these programs is their own.
        environment["BEST_PATH"] = "queue" if placement == "daemon" else wires.best_path(placement, wire)
        options = arguments(program, placement, wire)
        # A part of a name stands behind the mode.
        names = [args.case] if args.case and options else []
        code, output = matrix.run([*command, combination.path(f"tests/conformance/{program}"), *options, *names],
                                  environment, timeout=200)
        verdict, reason = judge(code, output)
        if verdict == "FAIL" and isinstance(place, daemons.Daemons):
            output += place.log()
    finally:
        error = close(place)
    if error:
        verdict, reason, output = "FAIL", "a daemon did not end well", output + error
    return Result(verdict, reason, output, time.monotonic() - begin)


def close(place):
    try:
        place.close()
    except RuntimeError as error:
        return str(error)
    return ""


def table(results, combinations, programs):
    width = max(len(name) for name in programs)
    print("\n" + " " * width + "".join(f"  {f'{placement}/{wire}':14}" for placement, wire in combinations))
    for program in programs:
        cells = [results[program, placement, wire] for placement, wire in combinations]
        texts = [f"pass {count(cell.output)[0]}" if cell.verdict == "pass" else cell.verdict for cell in cells]
        print(f"{program:{width}}" + "".join(f"  {text:14}" for text in texts))
    reasons = {}
    for (program, placement, wire), cell in results.items():
        if cell.verdict != "pass":
            reasons.setdefault((cell.verdict, cell.reason), []).append(f"{program} on {placement}/{wire}")
    for (verdict, reason), names in reasons.items():
        print(f"{verdict}: {', '.join(names)}: {reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", metavar="PROGRAM", action="append", choices=list(PROGRAMS), help="may be repeated")
    parser.add_argument("--case", metavar="TEXT", help="only the cases whose name contains it")
    parser.add_argument("--placement", choices=matrix.PLACEMENTS, help="only this one")
    parser.add_argument("--wire", choices=wires.NAMES, help="only this one; also those beside " + ", ".join(WIRES))
    parser.add_argument("--verbose", action="store_true", help="outputs of what passes, too")
    args = parser.parse_args()
    combinations = [(placement, wire)
                    for placement in ([args.placement] if args.placement else matrix.PLACEMENTS)
                    for wire in ([args.wire] if args.wire else WIRES)]
    programs = args.only or [name for name in PROGRAMS if name not in NOT_YET]
    results = {}
    for placement, wire in combinations:
        for program in programs:
            result = results[program, placement, wire] = run(args, program, placement, wire)
            print(f"{result.verdict} {program} on {placement}/{wire}: {result.reason}  ({result.seconds:.1f} s)",
                  flush=True)
            if result.verdict == "FAIL" or args.verbose:
                print("    " + result.output.strip().replace("\n", "\n    "), flush=True)
    table(results, combinations, programs)
    failed = sum(result.verdict == "FAIL" for result in results.values())
    skipped = sum(result.verdict == "skip" for result in results.values())
    print(f"{len(results)} runs, {failed} failed, {skipped} skipped")
    return 1 if failed else SKIPPED if skipped == len(results) else 0


if __name__ == "__main__":
    sys.exit(main())
