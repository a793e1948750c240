#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A bad wire between two interfaces: RoCE packets are lost, doubled and delayed; everything else passes.

  tests/interop/relay.py roce0 far0 --loss 0.01 --duplicate 0.01 --delay 0.02 --seed 7

What is delayed holds up what is behind it, as a queue in a network does; with --reorder it is overtaken. The seed gives
the same choices for the same sequence of packets. --capture NAME writes what each interface saw to
NAME-<interface>.pcap. Ended by SIGTERM or SIGINT it prints how many packets met which fate. Needs CAP_NET_RAW.
"""
import argparse
import collections
import json
import random
import select
import signal
import socket
import struct
import sys
import time

ETH_P_ALL = 3
ROCE_PORT = 4791


def is_roce(frame):
    if frame[12:14] == b"\x08\x00":
        return frame[23] == 17 and frame[36:38] == ROCE_PORT.to_bytes(2, "big")
    return frame[12:14] == b"\x86\xdd" and frame[20] == 17 and frame[56:58] == ROCE_PORT.to_bytes(2, "big")


class Capture:
    """A pcap file; None for a name writes nothing."""

    def __init__(self, name):
        self.file = open(name, "wb") if name else None
        if self.file:
            self.file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))

    def add(self, frame):
        if self.file:
            now = time.time_ns() // 1000
            self.file.write(struct.pack("<IIII", now // 1000000, now % 1000000, len(frame), len(frame)) + frame)

    def close(self):
        if self.file:
            self.file.close()


class Port:
    def __init__(self, interface, capture):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.socket.bind((interface, ETH_P_ALL))
        self.socket.setblocking(False)
        self.capture = Capture(f"{capture}-{interface}.pcap" if capture else None)
        self.held = collections.deque()  # (when, frame), to be sent

    def receive(self):
        """The next frame that came in, or None."""
        while True:
            try:
                frame, address = self.socket.recvfrom(65536)
            except BlockingIOError:
                return None
            except OSError:  # the interface went down
                return None
            if address[2] != socket.PACKET_OUTGOING:
                self.capture.add(frame)
                return frame

    def send(self, frame):
        try:
            self.socket.send(frame)
        except OSError:  # no room, or down: lost, as on a wire
            return
        self.capture.add(frame)


class Relay:
    def __init__(self, args):
        self.args = args
        self.random = random.Random(args.seed)
        self.ports = [Port(name, args.capture) for name in args.interface]
        self.fates = {"passed": 0, "lost": 0, "doubled": 0, "delayed": 0}
        self.stopped = False

    def judge(self, frame, to):
        if not is_roce(frame):
            return to.send(frame)
        draw = self.random.random()
        if draw < self.args.loss:
            self.fates["lost"] += 1
            return None
        draw -= self.args.loss
        if draw < self.args.delay:
            self.fates["delayed"] += 1
            to.held.append((time.monotonic() + self.random.uniform(0, self.args.delay_ms / 1000), frame))
            return None
        copies = 2 if draw - self.args.delay < self.args.duplicate else 1
        self.fates["doubled" if copies == 2 else "passed"] += 1
        for _ in range(copies):
            if to.held and not self.args.reorder:
                to.held.append((0, frame))
            else:
                to.send(frame)
        return None

    def send_held(self):
        """Those whose time has come; returns the seconds until the next one's."""
        wait = 0.2
        for port in self.ports:
            while port.held and port.held[0][0] <= time.monotonic():
                port.send(port.held.popleft()[1])
            if port.held:
                wait = min(wait, max(0, port.held[0][0] - time.monotonic()))
        return wait

    def run(self):
        while not self.stopped:
            select.select([port.socket for port in self.ports], [], [], self.send_held())
            for at, port in enumerate(self.ports):
                for _ in range(64):
                    frame = port.receive()
                    if frame is None:
                        break
                    self.judge(frame, self.ports[1 - at])
        for port in self.ports:
            port.capture.close()
        print(json.dumps(self.fates), flush=True)

    def stop(self, *_):
        self.stopped = True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("interface", nargs=2)
    parser.add_argument("--loss", type=float, default=0, help="part of the packets (0)")
    parser.add_argument("--duplicate", type=float, default=0, help="part of the packets (0)")
    parser.add_argument("--delay", type=float, default=0, help="part of the packets (0)")
    parser.add_argument("--delay-ms", type=float, default=5, help="longest delay (5)")
    parser.add_argument("--reorder", action="store_true", help="what is delayed is overtaken")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--capture", help="beginning of the names of the files")
    args = parser.parse_args()
    try:
        relay = Relay(args)
    except OSError as error:
        print(f"relay: {error}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, relay.stop)
    signal.signal(signal.SIGINT, relay.stop)
    print("ready", flush=True)
    relay.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
