#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What reads captures finds right ICRCs right and wrong ones wrong. The frame was sent by Linux's Soft-RoCE NIC."""
import os
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import captures  # noqa: E402

# An acknowledgement: Ethernet, IPv4, UDP, BTH, AETH, ICRC.
FRAME = bytes.fromhex(
    "02524f00000302524f00000208004500003047a540004011de790a4d00020a4d0003c13212b7001c0000"
    "1100ffff00000012005f25681f000001850d4f7e")
ROUTERS_CHANGE = {15: "TOS", 22: "TTL", 24: "IP checksum", 25: "IP checksum", 40: "UDP checksum", 41: "UDP checksum",
                  46: "BTH congestion bits"}


def changed(at):
    frame = bytearray(FRAME)
    frame[at] ^= 1
    return bytes(frame)


def is_right(frame):
    return captures.right_icrc(frame, *captures.masked_network_header(frame))


class Captures(unittest.TestCase):
    def test_right(self):
        self.assertTrue(is_right(FRAME))

    def test_what_routers_change_does_not_count(self):
        for at, name in ROUTERS_CHANGE.items():
            self.assertTrue(is_right(changed(at)), name)

    def test_every_other_byte_counts(self):
        framing = {14, 23, *range(36, 40)}  # with others it is a packet of another shape, or none
        for at in set(range(14, len(FRAME))) - set(ROUTERS_CHANGE) - framing:
            self.assertFalse(is_right(changed(at)), at)

    def test_what_is_not_roce_is_not_counted(self):
        for frame in changed(13), changed(23), changed(37):
            self.assertIsNone(captures.masked_network_header(frame))

    def test_a_file(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
            for frame in FRAME, changed(50), changed(13):
                file.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
            file.flush()
            self.assertEqual(captures.count_icrcs(file.name), (2, 1))


if __name__ == "__main__":
    unittest.main()
