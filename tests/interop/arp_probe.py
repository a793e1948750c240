#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks with ARP for an IPv4 address on an interface, five times within five seconds. Exit code 0: somebody answered; 1:
nobody did. Needs CAP_NET_RAW.

  tests/interop/arp_probe.py roce0 10.77.0.2
"""
import socket
import struct
import sys
import time

ETH_P_ARP = 0x0806
REQUEST, REPLY = 1, 2
ASKER = bytes.fromhex("02524f0000fe")  # a MAC address that nobody else here has


def request_for(address):
    header = b"\xff" * 6 + ASKER + struct.pack("!H", ETH_P_ARP)
    # The sender has no IP address (RFC 5227): nobody remembers it.
    return header + struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, REQUEST, ASKER, bytes(4), bytes(6), address)


def is_reply_from(frame, address):
    return frame[20:22] == struct.pack("!H", REPLY) and frame[28:32] == address


def answers(interface, address, seconds=5):
    wanted = socket.inet_aton(address)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ARP)) as wire:
        wire.bind((interface, ETH_P_ARP))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            wire.send(request_for(wanted))
            ask_again = time.monotonic() + 1
            while (left := ask_again - time.monotonic()) > 0:
                wire.settimeout(left)
                try:
                    if is_reply_from(wire.recv(2048), wanted):
                        return True
                except TimeoutError:
                    pass
    return False


if __name__ == "__main__":
    sys.exit(0 if answers(*sys.argv[1:3]) else 1)
