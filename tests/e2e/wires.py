# SPDX-License-Identifier: Apache-2.0
"""The wires that tests run programs over: an environment for each program and, if need be, a place to run it in.

shm and udp connect any number of programs. The DPDK wires have two ends: a program takes a free one when it starts
and leaves it when it has ended. They run as an ordinary process without hugepages; af_packet needs network namespaces,
which an ordinary user has where user namespaces are allowed; af_xdp needs root.
"""
import os
import socket
import subprocess
import tempfile
import uuid

from network_namespaces import NetworkNamespace, Unavailable, is_root_of_host

ROCE_PORT = 4791


class Skip(Exception):
    """Why the wire cannot be had here."""


class Wire:
    """Of the environment: shm, udp, or what somebody has set."""

    def __init__(self, kinds=None):
        self.name = kinds or os.environ.get("SOFTUB_PORT_KINDS", "(default)")
        self.variables = {"SOFTUB_PORT_KINDS": kinds} if kinds else {}

    def environment(self, end):
        """Of a program at that end."""
        return dict(self.variables)

    def command(self, end):
        """What its command line begins with."""
        return []

    def network_namespace(self, end):
        """The file of that which a program at that end runs in; None: of ours."""
        return None

    def start(self, args, **options):
        return subprocess.Popen(args, env={**os.environ, **self.variables}, **options)

    def host(self):
        """Where the first program is reached by TCP."""
        return "localhost"

    def close(self):
        pass


class Given(Wire):
    """An environment of the test's own."""

    def __init__(self, variables):
        super().__init__()
        self.variables = variables


def best_path(placement, wire):
    """How loads and stores are to reach the peer, unless they ask for another way (softub_aperture.h)."""
    if wire in ("shm", "(default)"):
        return "lane"
    return "frames" if (placement, wire) == ("embedded", "memif") else "queue"


class Addresses(Wire):
    """shm or udp between two programs that have an address each, as RoCE needs it, and meet nobody else."""

    def __init__(self, kinds):
        super().__init__(kinds)
        self.started = 0
        self.directory = tempfile.TemporaryDirectory(prefix="softub-wire-")
        if kinds == "udp":
            for end in range(2):
                self.look_for_port(self.address(end))

    @staticmethod
    def address(end):
        return f"127.{64 + os.getpid() // 250 % 128}.{os.getpid() % 250}.{end + 1}"

    @staticmethod
    def look_for_port(address):
        try:
            with socket.socket(type=socket.SOCK_DGRAM) as s:
                s.bind((address, ROCE_PORT))
        except OSError as error:
            raise Skip(f"UDP port {ROCE_PORT} of {address}: {error.strerror}")

    def environment(self, end):
        return {
            **self.variables,
            "SOFTUB_DEVICE_EIDS": self.address(end),
            "SOFTUB_PORT_MTU": "4096",  # of its own accord it takes more at 127.0.0.1 than elsewhere
            "SOFTUB_PORT_SHM_DIR": self.directory.name,
            "SOFTUB_LOG_STATS_DIR": self.directory.name,
        }

    def close(self):
        self.directory.cleanup()

    def start(self, args, **options):
        end = self.started % 2
        self.started += 1
        return subprocess.Popen(args, env={**os.environ, **self.environment(end)}, **options)


class DpdkWire(Wire):
    """Two ends; self.device(end) has the devargs of each."""

    mtu = 4096
    prefix = 24

    def __init__(self, plugin):
        if not plugin or not os.path.exists(plugin):
            raise Skip("the DPDK port is not built: libdpdk was not found, or -Ddpdk=disabled")
        super().__init__("dpdk")
        self.name = next(name for name, kind in DPDK_WIRES.items() if kind is type(self))
        self.plugin = plugin
        self.id = uuid.uuid4().hex[:8]
        self.directory = tempfile.TemporaryDirectory(prefix="softub-wire-")
        self.programs = [None, None]

    def environment(self, end):
        return {
            "SOFTUB_PORT_KINDS": "dpdk",
            "SOFTUB_PORT_MTU": str(self.mtu),
            "SOFTUB_DPDK_PLUGIN": self.plugin,
            "SOFTUB_DPDK_DEVICE": self.device(end),
            "SOFTUB_DPDK_ADDRESSES": f"{self.address(end)}/{self.prefix}",
            "SOFTUB_LOG_STATS_DIR": self.directory.name,
            **self.variables,  # of the test
        }

    @staticmethod
    def address(end):
        return f"10.9.0.{end + 1}"

    def free_end(self):
        for end, program in enumerate(self.programs):
            if program is None or program.poll() is not None:
                return end
        return None

    def start(self, args, **options):
        """At a free end. With none, the program can look at the others, but has no wire of its own."""
        end = self.free_end()
        environment = {**os.environ, **self.environment(end or 0)}
        program = subprocess.Popen(self.command(end or 0) + args, env=environment, **options)
        if end is not None:
            self.programs[end] = program
        return program

    def close(self):
        self.directory.cleanup()


class Memif(DpdkWire):
    """Shared memory between two DPDK processes, met at an abstract socket."""

    def device(self, end):
        role = ("server", "client")[end]
        return f"net_memif0,role={role},socket=softub-{self.id},bsize=8192,mac=02:00:00:00:00:0{end + 1}"


class MemifV6(Memif):
    """With neighbour discovery in place of ARP."""

    prefix = 64

    @staticmethod
    def address(end):
        return f"fd09::{end + 1}"


class Vhost(DpdkWire):
    """The two sides of a virtual machine's network card, both of them ordinary processes."""

    def device(self, end):
        socket = os.path.join(self.directory.name, "vhost.sock")
        if end == 0:
            return f"net_vhost0,iface={socket}"
        return f"net_virtio_user0,path={socket},queue_size=1024,mac=02:00:00:00:00:02"

    def start(self, args, **options):
        if self.free_end() == 0:  # one that was killed leaves it behind
            socket = os.path.join(self.directory.name, "vhost.sock")
            if os.path.exists(socket):
                os.unlink(socket)
        return super().start(args, **options)


class Namespaces:
    """Two network namespaces with a veth pair between them, `eth` in both, and another one for TCP, if it is to be
    another. An ordinary user gets them, too, where user namespaces are allowed. Raises Skip."""

    def __init__(self, tcp_interface="eth"):
        self.ends = []
        try:
            self.ends.append(NetworkNamespace())
            self.ends.append(NetworkNamespace(beside=self.ends[0]))
            left, right = self.ends
            interfaces = {"eth", tcp_interface}
            for name in interfaces:
                left.ip("link", "add", name, "type", "veth", "peer", "name", name, "netns", str(right.holder.pid))
            for number, end in enumerate(self.ends):
                end.ip("addr", "add", f"{self.address(number)}/24", "dev", tcp_interface)
                for name in {"lo", *interfaces}:
                    end.ip("link", "set", name, "up")
        except Unavailable as error:
            self.close()
            raise Skip(f"no network namespaces: {error}") from None

    @staticmethod
    def address(end):
        return f"10.10.0.{end + 1}"

    def command(self, end):
        """What a command line there begins with."""
        return self.ends[end].command()

    def path(self, end):
        """A file that setns() takes, in a program at either end."""
        return self.ends[end].path()

    def close(self):
        for end in self.ends:
            end.close()


class AfPacket(DpdkWire):
    """Between two network namespaces, whose kernels use the interfaces at the same time."""

    mtu = 1024  # the driver takes no more than frames of an MTU of 1500
    tcp_interface = "eth"

    def __init__(self, plugin):
        super().__init__(plugin)
        self.namespaces = Namespaces(self.tcp_interface)

    def device(self, end):
        return "net_af_packet0,iface=eth,framesz=2048,framecnt=512,qdisc_bypass=1"

    def command(self, end):
        return self.namespaces.command(end)

    def network_namespace(self, end):
        return self.namespaces.path(end)

    def host(self):
        return self.namespaces.address(0)

    def close(self):
        self.namespaces.close()
        super().close()


class AfXdp(AfPacket):
    """As af_packet, but the interface is lost for the kernel: TCP has another one."""

    mtu = 2048  # a frame must fit in a page
    tcp_interface = "tcp"

    def __init__(self, plugin):
        if not is_root_of_host():
            raise Skip("needs root of the host: the kernel loads XDP programs for nobody else (CAP_BPF, CAP_NET_ADMIN)")
        super().__init__(plugin)

    def device(self, end):
        return "net_af_xdp0,iface=eth"


DPDK_WIRES = {"memif": Memif, "vhost": Vhost, "af_packet": AfPacket, "af_xdp": AfXdp, "memif_v6": MemifV6}
NAMES = ["shm", "udp", *DPDK_WIRES]
VARIANTS = ("memif_v6",)  # of another one: only where named


def is_optional(name):
    """May the kernel lack it?"""
    return name == "af_xdp"


def make(name, plugin=None):
    """Raises Skip."""
    return DPDK_WIRES[name](plugin) if name in DPDK_WIRES else Wire(name)


def make_for_roce(name, plugin=None):
    """Whose ends have addresses of their own, `address(end)`. Raises Skip."""
    return DPDK_WIRES[name](plugin) if name in DPDK_WIRES else Addresses(name)
