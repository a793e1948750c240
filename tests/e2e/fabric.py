#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two programs with the fabric of tools/fabric between them: all completes whatever it does, and its counters are true.

  tests/e2e/fabric.py udp --build build          NICs over UDP: losses, a partition that heals, two paths, C-AQM
  tests/e2e/fabric.py ethernet --build build     a switch between network namespaces, with losses
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import wires
from network_namespaces import NetworkNamespace, Unavailable
from nic_counters import NicCounters
from processes import Failure, Process, check, free_port


PATIENCE = 60  # seconds until packets flow: urma_perf measures the CPUs first, which takes long on a busy machine


class Within(wires.Wire):
    """A network namespace, and an environment."""

    def __init__(self, command, variables):
        super().__init__()
        self.prefix, self.variables = command, variables

    def start(self, args, **options):
        return subprocess.Popen([*self.prefix, *args], env={**os.environ, **self.variables}, **options)


class Fabric:
    """Runs ub_fabric, and tells it what to do. Where it has to run is told by `wire`."""

    def __init__(self, build, directory, arguments, wire=None):
        self.program = os.path.join(build, "tools/fabric/ub_fabric")
        self.socket = os.path.join(directory, f"fabric-{time.monotonic_ns()}.sock")
        self.arguments = arguments
        self.process = Process([self.program, *arguments, "--control", self.socket], wire)
        try:
            self.process.wait_for_text("(?m)^ready$")
        except Failure:
            self.process.kill()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()

    def environment(self, nic):
        shown = subprocess.run([self.program, *self.arguments, "--environment", nic], stdout=subprocess.PIPE, text=True,
                               check=True, timeout=20)
        return dict(line.split("=", 1) for line in shown.stdout.split())

    def tell(self, command):
        told = subprocess.run([self.program, "--tell", self.socket, command], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=20)
        check(told.returncode == 0, f"{command}: {told.stderr}")
        return told.stdout

    def links(self):
        """Counters by "a>b", summed over the paths; and those of the medium."""
        report = json.loads(self.tell("json"))
        links = {}
        for link in report["links"]:
            sums = links.setdefault(f'{link["from"]}>{link["to"]}', {})
            for name, value in link["counters"].items():
                sums[name] = sums.get(name, 0) + value
        return links, report["medium"]

    def end(self):
        """Ends it; it must have kept its books, and handed on all that did not get lost."""
        links, medium = self.links()
        for name, c in links.items():
            lost = sum(value for key, value in c.items() if key.startswith("lost_"))
            check(c["offered"] + c["duplicated"] == c["delivered"] + lost, f"{name}: {c}")
        check(medium["refused"] == 0, medium)
        self.process.kill(signal.SIGTERM)
        said = self.process.expect(0, 20)
        check("offered" in said and not os.path.exists(self.socket), said)
        return links


class Pair:
    """urma_perf twice, server first, each in its own surroundings. Neither polls, so that the fabric gets its CPU."""

    def __init__(self, build, test, server_wire, client_wire, host="localhost"):
        port = str(free_port())
        command = [os.path.join(build, "tools/perf/urma_perf"), *test.split(), "-e", "-p", port]
        self.server = Process([*command, "--target-mode", "block"], server_wire)
        self.client = None
        self.server.wait_for_text("TCP port")
        self.client = Process([*command, host], client_wire)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in filter(None, (self.server, self.client)):
            process.kill()

    def complete(self, timeout):
        self.client.expect(0, timeout)
        self.server.expect(0, 20)


def over_udp(build, directory, *arguments):
    """A fabric between NICs a and b, and their surroundings."""
    first = 2 * (os.getpid() % 100) + 1  # so that several can run on a host
    nics = [f"{name}=udp 127.78.1.{first + i} 127.78.2.{first + i}" for i, name in enumerate("ab")]
    fabric = Fabric(build, directory, ["--nic", nics[0], "--nic", nics[1], *arguments])
    own = {"SOFTUB_LOG_STATS_DIR": directory}
    return fabric, *(wires.Given({**fabric.environment(name), **own}) for name in "ab")


def check_share(counters, name, share):
    """Was about that share lost?"""
    found = counters[name] / counters["offered"]
    check(share / 3 < found < share * 3, f"{name}: {found:.4f} of {counters['offered']}, wanted {share}")


def losses(build, directory):
    fabric, a, b = over_udp(build, directory, "--set", "*>* loss=1% delay=50us")
    with fabric, Pair(build, "write_bw -s 4096 -n 3000 --verify", b, a) as pair:
        pair.complete(120)
        links = fabric.end()
    check_share(links["a>b"], "lost_random", 0.01)
    check(links["b>a"]["delivered"] > 0, links)


def counters_agree(build, directory):
    """A NIC sent all that the fabric was offered, and the fabric delivered all that a NIC received."""
    fabric, a, b = over_udp(build, directory, "--set", "*>* loss=1%")
    with fabric, Pair(build, "write_bw -s 4096 -D 90", b, a) as pair:
        nics = NicCounters(os.path.join(build, "tools/admin/urma_admin"), a.variables, PATIENCE)
        for _ in range(3):
            offered = fabric.links()[0]["a>b"]["offered"]
            nics.wait(pair.client, lambda c: c["tx.packets"] >= max(offered, 100))
            received = nics.wait(pair.server, lambda c: c["rx.packets"] > 0)["rx.packets"]
            delivered = fabric.links()[0]["a>b"]["delivered"]
            check(received <= delivered, f"{received} packets received, {delivered} delivered")


def partition_heals(build, directory):
    fabric, a, b = over_udp(build, directory)
    with fabric, Pair(build, "write_bw -s 4096 -D 6", b, a) as pair:
        end = time.monotonic() + PATIENCE
        while fabric.links()[0]["a>b"]["delivered"] < 100:
            check(time.monotonic() < end, "no traffic came")
            time.sleep(0.05)
        fabric.tell("set a<>b down")
        before = fabric.links()[0]
        time.sleep(2)
        after = fabric.links()[0]
        fabric.tell("set a<>b up")
        for link in "a>b", "b>a":
            check(after[link]["delivered"] == before[link]["delivered"], f"frames pass through a partition: {before} {after}")
        pair.complete(60)
        links = fabric.end()
    check(links["a>b"]["lost_down"] > 0, links)
    check(links["a>b"]["delivered"] > after["a>b"]["delivered"] + 100, f"little came after the partition: {links}")


def two_paths(build, directory):
    """Every second packet takes a slower way, and is overtaken."""
    fabric, a, b = over_udp(build, directory, "--paths", "2", "--spray", "packet", "--set", "a<>b/2 delay=200us")
    with fabric, Pair(build, "write_bw -s 65536 -n 100 --verify", b, a) as pair:
        pair.complete(120)
        shown = fabric.tell("show a>b")
        fabric.end()
    check("a>b/1  clear" in shown and "a>b/2  delay=200us" in shown, shown)


def caqm(build, directory):
    """The links are hops of C-AQM: they grant what programs ask for while few bytes wait, then refuse or mark."""
    fabric, a, b = over_udp(build, directory, "--set", "*>* rate=200M caqm=40KiB/1ms")
    for nic in a, b:
        nic.variables["SOFTUB_CONGESTION_ALGORITHM"] = "caqm"
    with fabric, Pair(build, "write_bw -s 65536 -n 200 --verify", b, a) as pair:
        pair.complete(120)
        shown = fabric.tell("show a>b")
        links = fabric.end()
    check("rate=200M caqm=40KiB/1ms" in shown, shown)
    c = links["a>b"]
    check(c["granted"] > 0 and c["refused"] + c["marked"] > 0, links)


def mistakes(build, directory):
    """Each is named."""
    program = os.path.join(build, "tools/fabric/ub_fabric")

    def refused(code, words, *arguments):
        said = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20)
        check(said.returncode == code and words in said.stdout, f"{arguments}: {said.returncode}\n{said.stdout}")

    two = ["--nic", "a", "--nic", "b"]
    refused(2, "not 1", "--nic", "a")
    refused(2, '--set: there is no NIC "c"; there are a, b', *two, "--set", "a>c loss=1%")
    refused(2, "known are rate=", *two, "--set", "a>b lss=1%")
    refused(2, "caqm= needs rate=", *two, "--set", "a>b caqm=40KiB")
    refused(1, "no fabric listens", "--tell", os.path.join(directory, "nobody.sock"), "show")
    refused(1, "there is no such interface", "--nic", "a=interface nowhere0", "--nic", "b=interface nowhere1")
    with open(os.path.join(directory, "f.toml"), "w", encoding="utf-8") as file:
        file.write('[nics]\na = "udp"\nb = "udp"\n[links]\n"a>b" = "loss=1"\n')
    refused(2, "f.toml:5:", os.path.join(directory, "f.toml"))


def between_namespaces(build, directory):
    """The fabric in the middle one of three network namespaces. All goes through it, also the programs' TCP."""
    middle = NetworkNamespace()
    ends = []
    try:
        for number, name in enumerate("ab", 1):
            ends.append(NetworkNamespace(beside=middle))
            middle.ip("link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth", "netns", str(ends[-1].holder.pid))
            middle.ip("link", "set", f"to-{name}", "up")
            ends[-1].ip("addr", "add", f"10.11.0.{number}/24", "dev", "eth")
            for interface in "lo", "eth":
                ends[-1].ip("link", "set", interface, "up")
        # Which address is used is said, since an interface may not have its carrier yet.
        surroundings = [Within(end.command(), {"SOFTUB_PORT_KINDS": "udp", "SOFTUB_LOG_STATS_DIR": directory,
                                               "SOFTUB_DEVICE_EIDS": f"10.11.0.{number}"})
                        for number, end in enumerate(ends, 1)]
        nics = ["--nic", "a=interface to-a", "--nic", "b=interface to-b"]
        with Fabric(build, directory, [*nics, "--set", "*>* loss=1%"], Within(middle.command(), {})) as fabric:
            with Pair(build, "write_bw -s 4096 -n 2000 --verify", surroundings[1], surroundings[0], "10.11.0.2") as pair:
                pair.complete(120)
                links = fabric.end()
        check_share(links["a>b"], "lost_random", 0.01)
        check(links["a>b"]["delivered"] >= 4 * 2000, f"packets of 1024 bytes did not go through the fabric: {links}")
    finally:
        for end in [*ends, middle]:
            end.close()


PARTS = {"udp": (mistakes, losses, counters_agree, partition_heals, two_paths, caqm), "ethernet": (between_namespaces,)}


def options_of(description, parts):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=parts)
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", help="the name of a test")
    return parser


def run_tests(tests, only, surroundings):
    """Each with its surroundings and a directory. Returns the exit code."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # all of them sleep; so urma_perf measures no distance of CPUs
    with tempfile.TemporaryDirectory(prefix="softub-fabric-") as directory:
        for test in tests:
            if only not in (None, test.__name__):
                continue
            begin = time.monotonic()
            try:
                test(surroundings, directory)
            except Unavailable as why:
                print(f"not run: {why}")
                return 77
            except Failure as failure:
                print(f"{test.__name__}: {failure}", file=sys.stderr)
                return 1
            print(f"{test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
    return 0


def main():
    args = options_of(__doc__, PARTS).parse_args()
    return run_tests(PARTS[args.part], args.only, args.build)


if __name__ == "__main__":
    sys.exit(main())
