#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every RDMA tool of a Linux guest against tools/roce_peer, in both roles, by size and MTU, on a good wire and on a bad
one; then what the captures say. Prints a table.

  tests/interop/matrix.py --build build                  all of it, some minutes
  tests/interop/matrix.py --build build --only write_bw --verbose
  tests/interop/matrix.py --build build --list

The wire is the guest's tap, which our NIC opens as DPDK's af_packet; the bad one has relay.py in between. Exit code 0:
all passed; 77: nothing could be run here, with the cause.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import captures
import guest as guests
from guest import Skip

OUR_TCP, OUR_ADDRESS = "10.78.0.1", "10.77.0.1"
GUEST_MTU = 4200  # for a path MTU of 4096
BAD = {"loss": 0.01, "duplicate": 0.01, "delay": 0.01}  # parts of the packets
MOST_REBOOTS = 2  # of guests that broke
TIMEOUT = 17  # 0.5 s; seven times that is more than a guest without KVM ever stands still
PERFTESTS = ["send_lat", "send_bw", "write_lat", "write_bw", "read_lat", "read_bw", "atomic_lat", "atomic_bw"]
# Of rxe0; how often each side had to ask again.
GUEST_COUNTERS = ("duplicate_request", "completer_retry_err", "out_of_seq_request", "rcvd_rnr_err")


class Case:
    def __init__(self, test, we_serve, size, mtu, count, bad=False):
        self.test, self.we_serve, self.size, self.mtu, self.count, self.bad = test, we_serve, size, mtu, count, bad
        self.port = 0
        self.result, self.cause, self.seconds, self.notes = "not run", "", 0.0, ""

    def name(self):
        role = "guest asks" if self.we_serve else "guest serves"
        return f"{self.test:<15} {role:<12} {self.size:>8} {self.mtu or '':>5} {'bad' if self.bad else 'good':<4}"

    def guest_command(self, network):
        """What runs in the guest, as a client of ours or as the server."""
        peer = f" {OUR_TCP}" if self.we_serve else ""
        if self.test.endswith("pingpong"):
            mtu = f" -m {self.mtu}" if self.mtu else ""
            return f"ibv_{self.test} -d rxe0 -g 1 -p {self.port} -s {self.size} -n {self.count}{mtu}{peer}"
        if self.test == "rping":
            role = f"-c -V -a {OUR_ADDRESS}" if self.we_serve else f"-s -a {network.address}"
            return f"rping {role} -p {self.port} -S {self.size} -C {self.count}"
        size = "" if self.test.startswith("atomic") else f" -s {self.size}"
        return f"ib_{self.test} -d rxe0 -x 1 -F -p {self.port}{size} -n {self.count} -m {self.mtu}{peer}"

    def our_arguments(self, guest_machine):
        arguments = [*self.test.split(), "-p", self.port, "-s", self.size, "-n", self.count, "--qp-timeout", TIMEOUT]
        arguments += ["--linger", 1.0 if self.bad else 0.1]
        if self.mtu:
            arguments += ["-m", self.mtu]
        if not self.we_serve:
            arguments.append(guest_machine.address if self.test == "rping" else guest_machine.tcp_address)
        return [str(argument) for argument in arguments]


def count_for(size, bandwidth):
    """Messages, so that a test takes about a second."""
    return max(5, min(1000 if bandwidth else 200, (4 << 20) // size))


def cases():
    every = []

    def add(test, size, mtu, count, bad=False):
        every.extend(Case(test, we_serve, size, mtu, count, bad) for we_serve in (True, False))

    for size, mtu in (5, 1024), (4096, 256), (4096, 512), (4096, 1024), (65536, 2048), (65536, 4096), (1 << 20, 1024):
        add("rc_pingpong", size, mtu, max(5, min(200, (2 << 20) // size)))
    for size in 8, 1024, 2048:
        add("ud_pingpong", size, 0, 200)
    # One message at a time: a flood has no limit here, and what is lost is missed. Of WRITEs nobody counts them.
    for size, mtu in (5, 1024), (4096, 256), (65536, 4096):
        for test in "uc_pingpong", "send_lat -c UC", "write_lat -c UC":
            add(test, size, mtu, 100)
    for size, mtu in (8, 1024), (65536, 4096):
        add("write_bw -c UC", size, mtu, count_for(size, True))
    for test in PERFTESTS:
        if test.startswith("atomic"):
            add(test, 8, 1024, 200)
            continue
        bandwidth = test.endswith("bw")
        for size, mtu in (8, 1024), (4096, 256), (65536, 1024), (65536, 4096), (1 << 20, 2048):
            add(test, size, mtu, count_for(size, bandwidth))
    for size in 64, 65000:
        add("rping", size, 1024, 30)
    for test, size, count in ("rc_pingpong", 4096, 200), ("rc_pingpong", 65536, 30), ("send_bw", 65536, 50), \
            ("write_bw", 65536, 50), ("read_bw", 65536, 50), ("write_lat", 64, 200), ("send_lat", 64, 200), \
            ("read_lat", 4096, 200), ("atomic_bw", 8, 300), ("rping", 4096, 20):
        add(test, size, 1024, count, bad=True)
    return every


# ---- our side ---------------------------------------------------------------------------------------------------


class Peer:
    """tools/roce_peer, running."""

    def __init__(self, bench, case, machine):
        self.lines = []
        command = [*bench.network.command(), bench.args.peer, *case.our_arguments(machine), "--time-limit",
                   str(bench.args.limit)]
        self.process = subprocess.Popen(command, env={**os.environ, **bench.environment()}, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.listens = threading.Event()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())
            if line.startswith("listening"):
                self.listens.set()
        self.listens.set()

    def wait(self, seconds):
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        return status


class Bench:
    """Namespace, guest, and the wire between it and us."""

    def __init__(self, args, bad):
        self.args, self.bad = args, bad
        self.directory = tempfile.TemporaryDirectory(prefix="softub-interop-")
        self.captures = args.keep or self.directory.name
        self.guest = self.relay = self.recorder = None
        self.reboots = 0
        self.network = guests.Network()
        try:
            self.guest = guests.Guest(self.network, mtu=GUEST_MTU, cache=args.cache, say=guests.say)
            self.interface = self.guest.tap
            if bad:
                self.start_relay()
            elif captures.can_record():
                self.recorder = captures.Recorder(self.network, self.guest.tap, self.capture_path("good.pcap"))
        except BaseException:
            self.close()
            raise

    def capture_path(self, name):
        return os.path.join(self.captures, name)

    def start_relay(self):
        self.network.add_pair("nic0", "far0", GUEST_MTU)
        self.interface = "nic0"
        faults = ["--reorder"] if self.args.reorder else []
        faults += [text for name, part in BAD.items() for text in (f"--{name}", str(part))]
        relay = os.path.join(os.path.dirname(os.path.abspath(__file__)), "relay.py")
        command = [*self.network.command(), sys.executable, relay, self.guest.tap, "far0", "--seed",
                   str(self.args.seed), "--capture", self.capture_path("bad"), *faults]
        self.relay = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if self.relay.stdout.readline() != "ready\n":
            raise RuntimeError("the relay did not start")

    def environment(self):
        return {
            "SOFTUB_PORT_KINDS": "dpdk", "SOFTUB_PORT_MTU": "4096", "SOFTUB_DPDK_PLUGIN": self.args.plugin,
            "SOFTUB_DPDK_DEVICE": f"net_af_packet0,iface={self.interface},framesz=5120,blocksz=20480,framecnt=512,qdisc_bypass=0",
            "SOFTUB_DPDK_ADDRESSES": f"{OUR_ADDRESS}/24", "SOFTUB_LOG_STATS_DIR": self.directory.name,
        }

    def run(self, case):
        """If the case fails and the guest does not answer ARP any more, it is the guest that broke: another one gets the
        case once more."""
        self.run_once(case)
        if case.result == "pass":
            return
        print(f"{case.name()} {case.result}: {case.cause}\n    What the guest says:\n{self.state_of_guest()}", flush=True)
        if self.guest.answers():
            return
        print("    The guest's card answers nobody any more; booted anew.", flush=True)
        self.reboots += 1
        if self.reboots > MOST_REBOOTS:
            raise RuntimeError(f"{self.reboots} guests broke")
        self.guest.reboot()
        case.cause = ""
        self.run_once(case)
        case.notes = "; ".join(filter(None, [case.notes, "with a new guest"]))

    def state_of_guest(self):
        """What both sides of the card counted, and what the guest is busy with."""
        asked = ("cat /proc/net/dev; grep virtio /proc/interrupts; cat /proc/softirqs; top -b -n 1 | head -n 12; "
                 "dmesg | tail -n 5")
        tap = subprocess.run([*self.network.command(), "ip", "-s", "link", "show", self.guest.tap], text=True,
                             stdout=subprocess.PIPE).stdout
        return self.guest.run(asked).output + tap

    def run_once(self, case):
        before = self.guest.counters()
        started = time.monotonic()
        limit = self.args.limit
        if case.we_serve:
            peer = Peer(self, case, self.guest)
            peer.listens.wait(limit)
            remote = self.guest.run(case.guest_command(self.guest), limit)
        else:
            running = self.guest.start(case.guest_command(self.guest), limit)
            if case.test == "rping":  # who asks too early is rejected
                self.guest.run("until rdma resource show cm_id | grep -q LISTEN; do usleep 50000; done", limit)
            peer = Peer(self, case, self.guest)
            remote = running.wait() if peer.wait(limit + 5) == 0 else None
        status = peer.wait(limit + 5)
        if remote is None:
            self.guest.run(f"pkill -KILL -f -- '-p {case.port}'")
            remote = running.wait()
        case.seconds = time.monotonic() - started
        after = self.guest.counters()
        self.judge(case, status, remote, peer.lines)
        again = [f"{name} {after[name] - before[name]}" for name in GUEST_COUNTERS if after.get(name, 0) != before.get(name, 0)]
        case.notes = "; ".join([*peer_counters(peer.lines), *(["guest: " + ", ".join(again)] if again else [])])

    def judge(self, case, status, remote, lines):
        if status == 0 and remote.status == 0:
            case.result = "pass"
            return
        case.result = "FAIL"
        said = [line for line in lines if not line.startswith("listening")] or ["nothing"]
        guest_said = [line for line in remote.output.strip().splitlines() if line.strip(" -")] or ["nothing"]
        guest_end = "killed at the time limit" if remote.timed_out else f"status {remote.status}"
        case.cause = f"roce_peer {status}: {said[-1]}; guest {guest_end}: {guest_said[-1]}"
        if self.args.verbose:
            print("\n".join(["  roce_peer:", *lines, "  guest:", remote.output, "  its console:", self.guest.console()]))

    def stop_recording(self):
        """The files that were written."""
        if self.recorder:
            return [self.recorder.stop()]
        if self.relay:
            self.relay.terminate()
            print(f"relay: {self.relay.stdout.read().strip()}")
            self.relay.wait()
            return [self.capture_path(f"bad-{name}.pcap") for name in (self.guest.tap, "far0")]
        return []

    def close(self):
        for process in (self.relay, self.recorder and self.recorder.process):
            if process and process.poll() is None:
                process.kill()
                process.wait()
        if self.guest:
            self.guest.close()
        self.network.close()
        self.directory.cleanup()


def peer_counters(lines):
    """Of those that roce_peer prints at the end: what went twice."""
    wanted = re.findall(r"(tx\.retransmit|rx\.duplicate|rx\.out_of_sequence|timeout) (\d+)", lines[-1] if lines else "")
    return [f"{name} {count}" for name, count in wanted]


# ---- all of it --------------------------------------------------------------------------------------------------


def check_captures(paths):
    """Prints a line for each file; True: they are in order."""
    good = True
    for path in paths:
        packets, wrong = captures.count_icrcs(path)
        lines = captures.malformed(path)
        said = "no tshark here" if lines is None else f"tshark calls {len(lines)} malformed"
        print(f"{os.path.basename(path)}: {packets} RoCE packets, {wrong} with a wrong ICRC, {said}", flush=True)
        for line in (lines or [])[:5]:
            print(f"  {line}")
        good = good and packets != 0 and wrong == 0 and not lines
    return good


def run_bench(args, bad, chosen):
    bench = Bench(args, bad)
    try:
        for case in chosen:
            bench.run(case)
            print(f"{case.name()} {case.result:<5} {case.seconds:5.1f} s  {case.notes}", flush=True)
            if case.cause:
                print(f"    {case.cause}", flush=True)
        return check_captures(bench.stop_recording())
    finally:
        bench.close()


def choose(args):
    every = [case for _ in range(args.repeat) for case in cases()]
    chosen = [case for case in every if not args.only or re.search(args.only, case.name())]
    for number, case in enumerate(chosen):
        case.port = 20000 + number % 10000  # its own: the kernels keep a used one for a while
        if case.mtu > args.mtu:
            case.result, case.cause = "not run", f"path MTU {case.mtu} is above --mtu {args.mtu}"
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build directory")
    parser.add_argument("--plugin", help="libsoftub_dpdk.so.0 (of the build directory)")
    parser.add_argument("--peer", help="roce_peer (of the build directory)")
    parser.add_argument("--cache", help="of packages and the guest's image")
    parser.add_argument("--only", help="regular expression: part of a line of --list")
    parser.add_argument("--mtu", type=int, default=4096, help="largest path MTU to try (4096)")
    parser.add_argument("--keep", metavar="DIR", help="leave the captures there")
    parser.add_argument("--repeat", type=int, default=1, help="run each case so often (1)")
    parser.add_argument("--limit", type=float, default=30, help="seconds for each case (30)")
    parser.add_argument("--seed", type=int, default=1, help="of what the bad wire does (1)")
    parser.add_argument("--reorder", action="store_true", help="on the bad wire, what is delayed is overtaken")
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    parser.add_argument("-v", "--verbose", action="store_true", help="all that was said in a case that failed")
    args = parser.parse_args()
    args.plugin = args.plugin or os.path.join(args.build, "dataplane/dpdk/libsoftub_dpdk.so.0")
    args.peer = args.peer or os.path.join(args.build, "tools/roce_peer/roce_peer")
    args.plugin, args.peer = os.path.abspath(args.plugin), os.path.abspath(args.peer)
    chosen = choose(args)
    if args.list:
        print("\n".join(case.name() for case in chosen))
        return 0
    signal.signal(signal.SIGTERM, guests.end_as_interrupted)
    good = True
    try:
        if not os.path.exists(args.plugin):
            raise Skip("the DPDK port is not built: libdpdk was not found, or -Ddpdk=disabled")
        for bad in False, True:
            some = [case for case in chosen if case.bad == bad and not case.cause]
            if some:
                good = run_bench(args, bad, some) and good
    except Skip as reason:
        print(f"skipped: {reason}")
        return 77
    except KeyboardInterrupt:
        return 130
    passed = sum(case.result == "pass" for case in chosen)
    failed = [case for case in chosen if case.result == "FAIL"]
    skipped = [case for case in chosen if case.result == "not run"]
    print(f"\n{passed} pass, {len(failed)} fail, {len(skipped)} not run")
    for case in failed + skipped:
        print(f"{case.name()} {case.result}: {case.cause}")
    return 0 if good and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
