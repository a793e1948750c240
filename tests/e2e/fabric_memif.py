#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose NICs are joined by the fabric of tools/fabric over memif: all completes, whoever comes first or goes, and
its counters are true. Without root, hugepages or a network; the part `mixed` takes network namespaces.

  tests/e2e/fabric_memif.py memif --build build --plugin build/dataplane/dpdk/libsoftub_dpdk.so.0
  tests/e2e/fabric_memif.py mixed --build build --plugin build/dataplane/dpdk/libsoftub_dpdk.so.0
"""
import os
import subprocess
import sys
import time

from fabric import PATIENCE, Fabric, Pair, Within, check_share, options_of, run_tests
from network_namespaces import NetworkNamespace
from processes import Process, check


class Memif:
    """A fabric's arguments and the surroundings of its programs, by the name of the NIC. Both find the plugin alike."""

    def __init__(self, args, directory, names, *more, command=()):
        self.args, self.directory = args, directory
        self.variables = {"SOFTUB_DPDK_PLUGIN": args.plugin, "SOFTUB_LOG_STATS_DIR": directory}
        self.arguments = []
        for name in names:
            self.arguments += ["--nic", f"{name}=memif softub-{os.getpid()}-{name}"]
        self.arguments += more
        self.command = list(command)

    def start(self):
        """The fabric."""
        return Fabric(self.args.build, self.directory, self.arguments, Within(self.command, self.variables))

    def nic(self, name):
        program = os.path.join(self.args.build, "tools/fabric/ub_fabric")
        shown = subprocess.run([program, *self.arguments, "--environment", name], stdout=subprocess.PIPE, text=True,
                               check=True, timeout=20)
        return Within(self.command, {**dict(line.split("=", 1) for line in shown.stdout.split()), **self.variables})

    def pair(self, test, server, client, host="localhost"):
        return Pair(self.args.build, test, self.nic(server), self.nic(client), host)


def losses(args, directory):
    """One packet goes by CTP, which repeats its requests, and several by RTP."""
    memif = Memif(args, directory, "ab", "--set", "*>* loss=1% delay=50us")
    for test, transport in ("write_bw -s 4096 -n 3000 --verify", "ctp with repeats"), ("write_bw -s 65536 -n 200 --verify", "rtp"):
        with memif.start() as fabric, memif.pair(test, "b", "a") as pair:
            pair.complete(120)
            check(f"transport: {transport}" in pair.client.text(), pair.client.text())
            links = fabric.end()
        check_share(links["a>b"], "lost_random", 0.01)
        check(links["b>a"]["delivered"] > 0, links)


def hostile_links(args, directory):
    """A damaged ARP or Ethernet address costs time, and no more."""
    memif = Memif(args, directory, "ab", "--set", "*>* loss=2% duplicate=2% corrupt=1% reorder=8")
    with memif.start() as fabric, memif.pair("write_bw -s 16384 -n 300 --verify", "b", "a") as pair:
        pair.complete(120)
        links = fabric.end()
    check(links["a>b"]["corrupted"] > 0 and links["a>b"]["duplicated"] > 0, links)


def four_nics(args, directory):
    """Each finds the others by ARP, and the switch learns where they are."""
    memif = Memif(args, directory, "abcd", "--set", "*>* delay=20us")
    test = "write_bw -s 4096 -n 1000 --verify"
    with memif.start() as fabric:
        with memif.pair(test, "b", "a") as left, memif.pair(test, "d", "c") as right:
            left.complete(120)
            right.complete(120)
        with memif.pair(test, "c", "b") as across:
            across.complete(120)
        medium = fabric.links()[1]
        links = fabric.end()
    for link in "a>b", "c>d", "b>c":
        check(links[link]["delivered"] >= 1000, f"{link}: {links[link]}")
    check(0 < medium["flooded"] < 100, f"the switch does not learn: {medium}")
    check(links["a>d"]["offered"] < 100, f"what is for b goes to d: {links['a>d']}")


def program_before_fabric(args, directory):
    memif = Memif(args, directory, "ab")
    with memif.pair("write_bw -s 4096 -D 3", "b", "a") as pair, memif.start() as fabric:
        pair.complete(120)
        check(fabric.end()["a>b"]["delivered"] > 0, "nothing went through the fabric")


def wait_for_traffic(fabric):
    before = fabric.links()[0]["a>b"]["delivered"]
    end = time.monotonic() + PATIENCE
    while fabric.links()[0]["a>b"]["delivered"] < before + 100:
        check(time.monotonic() < end, "no traffic came")
        time.sleep(0.05)


def fabric_comes_back(args, directory):
    """Killed under way. Requests outlive that, as they outlive a partition."""
    memif = Memif(args, directory, "ab")
    with memif.start() as fabric, memif.pair("write_bw -s 65536 -D 6", "b", "a") as pair:
        wait_for_traffic(fabric)
        fabric.process.kill()
        with memif.start() as again:
            pair.complete(120)
            check(again.end()["a>b"]["delivered"] > 0, "nothing went through the second fabric")


def program_comes_back(args, directory):
    """Killed under way, both of them; the next ones have their NICs, and the fabric minds nothing."""
    memif = Memif(args, directory, "ab")
    with memif.start() as fabric:
        for _ in range(3):
            with memif.pair("write_bw -s 65536 -D 60", "b", "a"):
                wait_for_traffic(fabric)
        with memif.pair("write_bw -s 4096 -n 1000 --verify", "b", "a") as pair:
            pair.complete(120)
        fabric.end()


def cpu_seconds(process):
    with open(f"/proc/{process.popen.pid}/stat", encoding="ascii") as file:
        times = file.read().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def sleeps(args, directory):
    """It looks for frames now and then, and does not spin, with idle NICs or without any."""
    memif = Memif(args, directory, "ab")

    def share(fabric):
        time.sleep(0.5)
        before, begin = cpu_seconds(fabric.process), time.monotonic()
        time.sleep(3)
        return (cpu_seconds(fabric.process) - before) / (time.monotonic() - begin)

    with memif.start() as fabric:
        alone = share(fabric)
        server = Process([os.path.join(args.build, "tools/perf/urma_perf"), "write_bw", "-e", "--target-mode", "block",
                          "-p", "0"], memif.nic("b"))
        try:
            time.sleep(1)
            idle = share(fabric)
        finally:
            server.kill()
    print(f"  of a core: {alone:.3f} without NICs, {idle:.3f} with an idle one")
    check(alone < 0.1 and idle < 0.1, f"the fabric spins: {alone:.2f} without NICs, {idle:.2f} with an idle one")


def no_plugin(args, directory):
    memif = Memif(args, directory, "ab")
    memif.variables["SOFTUB_DPDK_PLUGIN"] = "/nonexistent/plugin.so"
    said = Process([os.path.join(args.build, "tools/fabric/ub_fabric"), *memif.arguments], Within([], memif.variables)).expect(1)
    for words in f'NIC "a", memif socket softub-{os.getpid()}-a: ', "its plugin cannot be loaded", "dpdk.plugin":
        check(words in said, said)


def socket_is_taken(args, directory):
    memif = Memif(args, directory, "ab")
    with memif.start():
        said = Process([os.path.join(args.build, "tools/fabric/ub_fabric"), *memif.arguments], Within([], memif.variables)).expect(1)
        for words in f'NIC "a", memif socket softub-{os.getpid()}-a: ', "give the NIC another socket":
            check(words in said, said)


def memif_and_interface(args, directory):
    """NIC a is over memif beside the fabric, NIC b is a kernel's in another network namespace. Their TCP goes elsewhere."""
    middle = NetworkNamespace()
    end = None
    try:
        end = NetworkNamespace(beside=middle)
        for far, near in ("eth", "to-b"), ("tcp", "tcp"):
            middle.ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", str(end.holder.pid))
            middle.ip("link", "set", near, "up")
            end.ip("link", "set", far, "up")
        end.ip("addr", "add", "10.77.1.2/24", "dev", "eth")
        end.ip("addr", "add", "10.12.0.2/24", "dev", "tcp")
        middle.ip("addr", "add", "10.12.0.1/24", "dev", "tcp")
        for namespace in middle, end:
            namespace.ip("link", "set", "lo", "up")
        memif = Memif(args, directory, "a", "--nic", "b=interface to-b", "--set", "*>* loss=1%", command=middle.command())
        over_udp = Within(end.command(), {"SOFTUB_PORT_KINDS": "udp", "SOFTUB_LOG_STATS_DIR": directory,
                                          "SOFTUB_DEVICE_EIDS": "10.77.1.2"})
        a = memif.nic("a")
        a.variables["SOFTUB_PORT_MTU"] = "1024"  # or it tries longer packets first, which the interface refuses
        with memif.start() as fabric:
            with Pair(args.build, "write_bw -s 4096 -n 1000 --verify", over_udp, a, "10.12.0.2") as pair:
                pair.complete(120)
                links = fabric.end()
        check_share(links["a>b"], "lost_random", 0.01)
        check(links["a>b"]["delivered"] >= 4 * 1000, f"packets of 1024 bytes did not go through the fabric: {links}")
    finally:
        for namespace in filter(None, (end, middle)):
            namespace.close()


PARTS = {"memif": (no_plugin, socket_is_taken, losses, hostile_links, four_nics, program_before_fabric, fabric_comes_back,
                   program_comes_back, sleeps),
         "mixed": (memif_and_interface,)}


def main():
    parser = options_of(__doc__, PARTS)
    parser.add_argument("--plugin", default="")
    args = parser.parse_args()
    args.plugin = os.path.abspath(args.plugin) if args.plugin else ""
    if not os.path.exists(args.plugin):
        print("not run: the DPDK port is not built: libdpdk was not found, or -Ddpdk=disabled")
        return 77
    return run_tests(PARTS[args.part], args.only, args)


if __name__ == "__main__":
    sys.exit(main())
