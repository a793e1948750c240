#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What arp_probe.py asks, and which answers it takes: those of the address that it asks for, and no others."""
import os
import socket
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import arp_probe  # noqa: E402

WANTED, OTHER = socket.inet_aton("10.77.0.2"), socket.inet_aton("10.77.0.1")
REQUEST = bytes.fromhex("ffffffffffff" "02524f0000fe" "0806" "0001" "0800" "06" "04" "0001"
                        "02524f0000fe" "00000000" "000000000000" "0a4d0002")


def reply(sender):
    return bytes.fromhex("02524f0000fe" "02524f000002" "0806" "0001" "0800" "06" "04" "0002"
                         "02524f000002") + sender + bytes.fromhex("02524f0000fe" "00000000")


class ArpProbe(unittest.TestCase):
    def test_asks_everybody_for_the_address(self):
        self.assertEqual(arp_probe.request_for(WANTED), REQUEST)

    def test_takes_a_reply_of_that_address(self):
        self.assertTrue(arp_probe.is_reply_from(reply(WANTED), WANTED))

    def test_takes_no_reply_of_another_one(self):
        self.assertFalse(arp_probe.is_reply_from(reply(OTHER), WANTED))

    def test_takes_no_request_and_nothing_that_is_cut_off(self):
        asked_by_it = bytearray(reply(WANTED))
        asked_by_it[21] = 1
        for frame in (bytes(asked_by_it), REQUEST, reply(WANTED)[:30], b""):
            self.assertFalse(arp_probe.is_reply_from(frame, WANTED))


if __name__ == "__main__":
    unittest.main()
