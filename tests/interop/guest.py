#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Linux guest with the kernel's Soft-RoCE NIC and the tools of rdma-core and perftest, as Debian has them: a RoCEv2
peer that shares no code with SoftUB. Without KVM, too.

  tests/interop/guest.py build                        only the kernel and the initramfs
  tests/interop/guest.py run 'ibv_devinfo -v'         boots, runs each command, hands its output and status on
  tests/interop/guest.py pair                         ibv_rc_pingpong between two guests: is the guest itself all right?

The guest's RoCE NIC, rxe0, is on a tap `roce0` (10.77.0.2), its GID 1 is that address. A second card on the bridge
`tcp` (10.78.0.2, the host has 10.78.0.1) is for what the tools tell each other over TCP. All of it lies in a network
namespace without a name, which goes with the last process in it. Needs qemu-system-x86, apt, and root or user
namespaces.
"""
import argparse
import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import guest_image  # noqa: E402
from guest_image import Skip  # noqa: E402
from network_namespaces import NetworkNamespace, Unavailable  # noqa: E402

CHANNELS = 4  # commands at a time


class Network(NetworkNamespace):
    """A namespace with the bridge `tcp`, on which the host is 10.78.0.1."""

    def __init__(self):
        if not os.path.exists("/dev/net/tun"):
            raise Skip("there is no /dev/net/tun")
        try:
            super().__init__()
        except Unavailable as why:
            raise Skip(f"no network namespace: {why}") from None
        try:
            self.ip("link", "set", "lo", "up")
            self.add_bridge("tcp")
            self.ip("address", "add", "10.78.0.1/24", "dev", "tcp")
        except BaseException:
            self.close()
            raise

    def ip(self, *args):
        try:
            return super().ip(*args)
        except Unavailable as why:
            raise Skip(str(why)) from None

    def add_bridge(self, name):
        self.ip("link", "add", name, "type", "bridge")
        self.ip("link", "set", name, "up")

    def add_tap(self, name, mtu, bridge=None):
        self.ip("tuntap", "add", name, "mode", "tap")
        self.ip("link", "set", name, "mtu", str(mtu), "addrgenmode", "none", *(["master", bridge] if bridge else []))
        self.ip("link", "set", name, "up")

    def add_pair(self, name, other, mtu):
        """Two interfaces, each the other end of the other."""
        self.ip("link", "add", name, "mtu", str(mtu), "type", "veth", "peer", "name", other, "mtu", str(mtu))
        for end in name, other:
            self.ip("link", "set", end, "addrgenmode", "none", "up")


class Result:
    def __init__(self, status, output, seconds):
        self.status, self.output, self.seconds = status, output, seconds
        self.timed_out = status == 137


class Running:
    """A command in the guest that was started. One thread waits for it."""

    def __init__(self, guest, channel, limit):
        self.guest, self.channel, self.limit = guest, channel, limit
        self.started = time.monotonic()
        self.result = None

    def wait(self):
        """The Result. The guest kills the command after its limit; silence long after that means a dead guest."""
        if self.result is None:
            self.channel.settimeout(self.limit + 30)
            answer = b""
            while not answer.endswith(b"\n"):
                try:
                    part = self.channel.recv(1 << 16)
                except TimeoutError:
                    part = b""
                if not part:
                    raise RuntimeError(f"the guest does not answer any more\n{self.guest.console()}")
                answer += part
            status, _, output = answer.decode().strip().partition(" ")
            text = base64.b64decode(output).decode(errors="replace")
            self.result = Result(int(status), text, time.monotonic() - self.started)
            self.guest.release(self.channel)
        return self.result


class Guest:
    """Boots in __init__; `close` ends it. number: the last byte of its addresses is 2 + number.

    wire: the bridge that its RoCE card joins; None: the tap roce<number> stands alone, for whoever opens it.
    """

    def __init__(self, network, number=0, mtu=1500, wire=None, cache=None, say=lambda sentence: None):
        if not shutil.which("qemu-system-x86_64"):
            raise Skip("there is no qemu-system-x86_64 (Debian package qemu-system-x86)")
        self.kernel, self.initramfs = guest_image.build(cache, say)
        self.network, self.say = network, say
        self.number, self.mtu = number, mtu
        self.tap = f"roce{number}"
        self.address, self.tcp_address = f"10.77.0.{2 + number}", f"10.78.0.{2 + number}"
        self.mac = f"02:52:4f:00:00:{2 + number:02x}"
        self.directory = tempfile.TemporaryDirectory(prefix="softub-guest-")
        self.channels, self.free = [], []
        self.lock = threading.Lock()
        self.qemu = None
        try:
            network.add_tap(self.tap, mtu, wire)
            network.add_tap(f"tcp{number}", 1500, "tcp")
            self.boot()
        except BaseException:
            self.close()
            raise

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def boot(self):
        started = time.monotonic()
        tcp_mac = f"02:54:43:00:00:{2 + self.number:02x}"
        told = (f"guest.roce={self.mac},{self.address}/24 guest.tcp={tcp_mac},{self.tcp_address}/24 "
                f"guest.mtu={self.mtu}")
        arguments = [
            "setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
            "-no-reboot", "-machine", "q35", "-accel", "tcg", "-cpu", "max", "-m", "512", "-kernel", self.kernel,
            "-initrd", self.initramfs, "-append",
            f"console=ttyS0 quiet panic=-1 mitigations=off nokaslr net.ifnames=0 tsc=reliable {told}",
            "-serial", f"file:{self.path('console')}", "-device", "virtio-serial-pci",
            "-netdev", f"tap,id=roce,ifname={self.tap},script=no,downscript=no",
            "-device", f"virtio-net-pci,netdev=roce,mac={self.mac},host_mtu={self.mtu},romfile=",
            "-netdev", f"tap,id=tcp,ifname=tcp{self.number},script=no,downscript=no",
            "-device", f"virtio-net-pci,netdev=tcp,mac={tcp_mac},romfile=",
        ]
        listeners = []
        for index in range(CHANNELS):
            listener = socket.socket(socket.AF_UNIX)
            pathlib.Path(self.path(f"channel{index}")).unlink(missing_ok=True)
            listener.bind(self.path(f"channel{index}"))
            listener.listen()
            listeners.append(listener)
            arguments += ["-chardev", f"socket,id=c{index},path={self.path(f'channel{index}')}",
                          "-device", f"virtserialport,chardev=c{index}"]
        with open(self.path("qemu.log"), "wb") as log:
            self.qemu = subprocess.Popen([*self.network.command(), *arguments], stdin=subprocess.DEVNULL, stdout=log,
                                         stderr=log, start_new_session=True)
        for listener in listeners:
            self.channels.append(self.accept(listener))
            listener.close()
        self.free = list(self.channels)
        gids = "/sys/class/infiniband/rxe0/ports/1/gids/1"
        up = self.run(f"until grep -q ffff {gids}; do usleep 50000; done", 90)
        if up.status != 0:
            raise RuntimeError(f"the guest has no RoCE NIC: {up.output}\n{self.console()}")
        took = time.monotonic() - started
        self.say(f"guest {self.number} is up after {took:.1f} s: {self.address} on {self.tap}")

    def answers(self):
        """Does its RoCE card still answer ARP? No code of SoftUB asks."""
        probe = os.path.join(os.path.dirname(os.path.abspath(__file__)), "arp_probe.py")
        return subprocess.run([*self.network.command(), sys.executable, probe, self.tap, self.address],
                              stdin=subprocess.DEVNULL).returncode == 0

    def reboot(self):
        self.stop()
        self.boot()

    def accept(self, listener):
        listener.settimeout(0.2)
        while True:
            try:
                return listener.accept()[0]
            except TimeoutError:
                if self.qemu.poll() is not None:
                    raise Skip(f"qemu ended: {self.console()}") from None

    def console(self):
        """What kernel and qemu said last."""
        text = ""
        for name in ("console", "qemu.log"):
            if os.path.exists(self.path(name)):
                with open(self.path(name), "rb") as file:
                    text += file.read().decode(errors="replace")[-2000:]
        return text.strip()

    def start(self, command, limit):
        """Runs a shell command for `limit` seconds at most."""
        with self.lock:
            channel = self.free.pop()
        channel.settimeout(30)
        channel.sendall(f"{limit:.0f} {base64.b64encode(command.encode()).decode()}\n".encode())
        return Running(self, channel, limit)

    def run(self, command, limit=30):
        return self.start(command, limit).wait()

    def release(self, channel):
        with self.lock:
            self.free.append(channel)

    def counters(self):
        """Of rxe0: name > count."""
        directory = "/sys/class/infiniband/rxe0/ports/1/hw_counters"
        lines = self.run(f"cd {directory} && grep -H . *").output.split()
        return {name: int(count) for name, _, count in (line.partition(":") for line in lines)}

    def stop(self):
        if self.qemu:
            self.qemu.kill()
            self.qemu.wait()
        for channel in self.channels:
            channel.close()
        self.channels, self.free = [], []

    def close(self):
        self.stop()
        self.directory.cleanup()


# ---- command line -----------------------------------------------------------------------------------------------


def run_commands(args):
    network = Network()
    guest = None
    try:
        guest = Guest(network, mtu=args.mtu, cache=args.cache, say=say)
        status = 0
        for command in args.command or ["ibv_devinfo"]:
            result = guest.run(command, args.limit)
            sys.stdout.write(result.output)
            status = status or result.status
        return status
    finally:
        if guest:
            guest.close()
        network.close()


def run_pair(args):
    """Verified traffic between two guests: what fails here is not for SoftUB to mend."""
    network, guests = Network(), []
    try:
        network.add_bridge("wire")
        network.ip("link", "set", "wire", "mtu", str(args.mtu))
        for number in range(2):
            guests.append(Guest(network, number, args.mtu, "wire", args.cache, say))
        server = guests[0].start("ibv_rc_pingpong -d rxe0 -g 1 -n 200 -c", args.limit)
        client = f"until ibv_rc_pingpong -d rxe0 -g 1 -n 200 -c {guests[0].tcp_address}; do usleep 100000; done"
        results = [guests[1].run(client, args.limit), server.wait()]
        for result in results:
            sys.stdout.write(result.output)
        return max(result.status for result in results)
    finally:
        for guest in guests:
            guest.close()
        network.close()


def build_only(args):
    print(json.dumps(dict(zip(("kernel", "initramfs"), guest_image.build(args.cache, say)))))
    return 0


def say(sentence):
    print(sentence, file=sys.stderr, flush=True)


def end_as_interrupted(*_):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("build", "run", "pair"))
    parser.add_argument("command", nargs="*", help="of run: shell commands in the guest (ibv_devinfo)")
    parser.add_argument("--cache", help="directory for packages and image (%s)" % guest_image.cache_directory())
    parser.add_argument("--mtu", type=int, default=1500, help="of the RoCE card: 4200 for a path MTU of 4096 (1500)")
    parser.add_argument("--limit", type=float, default=60, help="seconds for each command (60)")
    args = parser.parse_intermixed_args()
    signal.signal(signal.SIGTERM, end_as_interrupted)
    try:
        return {"build": build_only, "run": run_commands, "pair": run_pair}[args.action](args)
    except Skip as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return 77
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
