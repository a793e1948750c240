#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden captures: what SoftUB puts on its wires, for the test of the dissector and for trying it.

usage: captures.py DIRECTORY      writes one pcap file of each

Frames of `opcodes`, `loads` and part of `records` are the golden ones of tests/fuzz/corpus, which the codecs of
lib/transport/wire wrote; the others are written by frames.py.
"""
import os
import sys

import frames as ub
from frames import A, A6, B, B6

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fuzz", "corpus")
RTPH_SIZE, HEADERS_V4, HEADERS_V6, LINK_HEADERS = 16, 42, 62, 28
ALICE, BOB = ub.Life(A, 0xA11CE, 0x123412B8), ub.Life(B, 0xB0B, 0x567812B8)


class Capture:
    """A list of frames, some of them with a name by which a test refers to them."""

    def __init__(self, link_type=ub.ETHERNET):
        self.frames, self.numbers, self.link_type = [], {}, link_type

    def add(self, frame, name=None):
        self.frames.append(frame)
        if name:
            self.numbers[name] = len(self.frames)

    def write(self, path):
        ub.write_pcap(path, self.frames, self.link_type)


def corpus(target):
    directory = os.path.join(CORPUS, target)
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), "rb") as file:
            yield name, file.read()


# ---- every operation on every wire -----------------------------------------------------------------------------------

def transport_of(frame):
    """What is between UDP and the ICRC; None: it is a frame of a UB link."""
    size = {b"\x08\x00": HEADERS_V4, b"\x86\xdd": HEADERS_V6}.get(frame[12:14])
    return frame[size:-4] if size else None


def with_psn(transport, psn):
    return transport[:9] + ub.u24(psn) + transport[12:]


def is_data(transport):
    return transport[0] & 0x7F == ub.DATA and not transport[8] & 0x40


def opcodes():
    """Each frame as it is in the corpus, then what it carries on the other wires. Names: WIRE-FILE."""
    capture = Capture()
    golden = [(name, frame) for name, frame in corpus("fuzz_packet") if transport_of(frame)]
    for psn, (name, frame) in enumerate(golden):
        transport = transport_of(frame)
        capture.add(frame, f"corpus-{name}")
        if transport[0] & 0x7F == 0:
            continue
        if is_data(transport):
            transport = with_psn(transport, 1000 + psn)
        capture.add(ub.uboe(A, B, transport), f"ipv4-{name}")
        capture.add(ub.uboe(A6, B6, transport), f"ipv6-{name}")
        capture.add(ub.uboe(A, B, with_psn(transport, 5000 + psn), vlan=7), f"vlan-{name}")
        capture.add(ub.rtp_over_cna(A, B, transport, 0x0520), f"cna-{name}")
        if is_data(transport):
            content = transport[RTPH_SIZE:len(transport) - (transport[1] >> 4 & 3)]
            if name == "read":
                content = content[:12] + content[20:]  # a READ by CTP has no TAIDETAH and OFSTETAH
            capture.add(ub.ctp(A, B, 0x123456, 0xABCDEF, content), f"ctp-{name}")
    return capture


def loads():
    """Loads and stores; then the same without Ethernet are `loads_raw`."""
    capture = Capture()
    for name, frame in corpus("fuzz_bypass_packet"):
        capture.add(frame, name)
    request = ub.compact_request(ub.READ, 5, 0x1000, token=0xDEADBEEF, code=1)
    capture.add(ub.bypass(A, B, request), "asked")
    capture.add(ub.bypass(B, A, ub.compact_answer(ub.READ_RESP, 5) + bytes(range(128)), 0xA0B0, 0x0102), "answered")
    capture.add(ub.bypass(A, B, ub.compact_request(ub.WRITE, 6, 0x1040) + bytes(64)), "stored")
    capture.add(ub.bypass(B, A, ub.compact_answer(ub.TAACK, 6, status=1), 0xA0B0, 0x0102), "refused")
    return capture


def loads_raw():
    capture = Capture(ub.USER0)
    for frame in loads().frames:
        capture.add(frame[14:])
    return capture


def records():
    capture = Capture()
    for name, payload in corpus("fuzz_control_record"):
        capture.add(ub.uboe(A, B, ub.in_datagram(payload)), f"corpus-{name}")
    for kind in ub.RECORDS:
        more = {"scid": 77} if kind == "SC_FREE" else {}
        payload = ub.record(kind, ALICE, BOB, attempt=0x42, sender_tpn=0x010001, receiver_tpn=0x030001, **more)
        capture.add(ub.uboe(A, B, ub.in_datagram(payload)), kind)
    for reason in range(8):
        payload = ub.record("REJ", BOB, ALICE, attempt=0x43, reason=reason)
        capture.add(ub.uboe(B, A, ub.in_datagram(payload)), f"reason-{reason}")
    payload = ub.record("REQ", ALICE, BOB, attempt=0x44, application=9, mode=0x32, flags=0xFF, selective=False)
    capture.add(ub.uboe(A, B, ub.in_datagram(payload + bytes(900))), "all-flags")
    payload = ub.record("FIND", ALICE, BOB, attempt=0x45, receiver_tpn=1026, flags=1)
    capture.add(ub.uboe(A, B, ub.in_datagram(payload)), "find")
    payload = ub.record("FOUND", BOB, ALICE, attempt=0x45, receiver_tpn=1026, flags=1)
    capture.add(ub.uboe(B, A, ub.in_datagram(payload)), "found")
    return capture


# ---- conversations ---------------------------------------------------------------------------------------------------

class Channel:
    """Both ends of a channel of RTP. Messages and PSNs are counted."""

    def __init__(self, capture, tpns=(0x010001, 0x030001), first_psns=(0xFFFFFE, 100), wire=ub.uboe):
        self.capture, self.wire = capture, wire
        self.tpn = dict(zip((A, B), tpns))
        self.psn = dict(zip((A, B), first_psns))
        self.message = {A: 0, B: 0}

    def other(self, host):
        return B if host is A else A

    def put(self, host, transport, name=None):
        self.capture.add(self.wire(host, self.other(host), transport), name)

    def record(self, kind, host, name=None, known=True, **more):
        life, peer = (ALICE, BOB) if host is A else (BOB, ALICE)
        peer_tpn = self.tpn[self.other(host)] if known else 0
        payload = ub.record(kind, life, peer, sender_tpn=self.tpn[host], receiver_tpn=peer_tpn, known=known,
                            psn=self.psn[host], **more)
        self.capture.add(ub.uboe(host, self.other(host), ub.in_datagram(payload)), name or kind.lower())

    def set_up(self, prefix="", **more):
        self.record("REQ", A, prefix + "req", known=False, **more)
        self.record("REP", B, prefix + "rep", **more)
        self.record("CONF", A, prefix + "conf", **more)

    def data(self, host, content, name=None, last=True, **more):
        tpns = self.tpn[host], self.tpn[self.other(host)]
        packet = ub.data(*tpns, self.psn[host], content, self.message[host], last, **more)
        self.psn[host] += 1
        self.message[host] += last
        self.put(host, packet, name)
        return packet

    def fake(self, host, name=None, **more):
        tpns = self.tpn[host], self.tpn[self.other(host)]
        self.put(host, ub.rtph(ub.DATA, *tpns, self.psn[host], self.message[host] - 1, True, True, True, **more), name)
        self.psn[host] += 1

    def ack(self, host, name=None, psn=None, opcode=ub.ACK, rest=b"", message=None, **more):
        """Of all that the other one sent, unless `psn` says otherwise."""
        peer = self.other(host)
        psn = self.psn[peer] - 1 if psn is None else psn
        message = self.message[peer] - 1 if message is None else message
        self.put(host, ub.rtph(opcode, self.tpn[host], self.tpn[peer], psn, message, **more) + rest, name)


def conversation():
    """A life of a channel: set-up, loss and retransmission over the wrap of PSNs, answers of all kinds, the end."""
    capture = Capture()
    ch = Channel(capture)
    ch.set_up(attempt=0x11111111)
    body = bytes(range(256)) * 4
    ch.data(A, ub.write(7, 1025, 0x1000, body, 2500), "write", last=False, asks=True)
    lost = ch.data(A, ub.write(7, 1025, 0x1400, body, 2500), "lost", last=False)
    ch.data(A, ub.write(7, 1025, 0x1800, body[:452], 2500), "write-end")
    ch.data(A, ub.write(8, 1025, 0x7F0000001000, b"hello", token=False), "hello", asks=True)
    ch.ack(B, "sack", 0xFFFFFE, ub.SACK, ub.sack(0xFFFFFE, {2, 3}), message=0xFFFFFF)
    ch.put(A, lost[:8] + b"\x80" + lost[9:], "again")
    ch.data(B, ub.atah(ub.TAACK, 7, 1025, info=1), "taack")
    ch.ack(B, "ack")
    ch.ack(A, "ack-of-taack")
    ch.data(A, ub.read(9, 1025, 0x2000, 2048), "read")
    ch.data(B, ub.atah(ub.READ_RESP, 9, 1025) + ub.u32(0) + ub.u32(0) + body, "resp-0", last=False)
    ch.data(B, ub.atah(ub.READ_RESP, 9, 1025) + ub.u32(0) + ub.u32(1) + body, "resp-1")
    ch.ack(B)
    ch.ack(A)
    ch.data(A, ub.send(10, 1025, 1026, b"message"), "send")
    ch.data(B, ub.atah(ub.TAACK, 10, 1025, status=1, info=6), "rnr")
    ch.data(A, ub.send(10, 1025, 1026, b"message", retry=True), "send-again")
    ch.data(B, ub.atah(ub.TAACK, 10, 1025), "sent")
    operands = (7).to_bytes(8, "little") + (5).to_bytes(8, "little")
    ch.data(A, ub.btah(ub.CAS, 11, 1025) + ub.maetah(0x3000, 1, 8) + operands, "cas")
    ch.data(B, ub.atah(ub.ATOMIC_RESP, 11, 1025) + ub.u64(5), "old")
    ch.data(A, ub.write(12, 1025, 0x4000, b"x" * 8), "forbidden")
    ch.data(B, ub.atah(ub.TAACK, 12, 1025, status=3, info=2), "failed")
    ch.data(A, ub.write(13, 1025, 0x5000, b"y" * 8, alloc=True, order=2), "alloc")
    ch.data(B, ub.atah(ub.TAACK, 5, 1025, sv=True), "granted")
    ch.data(A, ub.write(0, 5, 0x5000, b"z" * 8, rc_type=2, order=2), "in-context")
    ch.data(B, ub.atah(ub.TAACK, 0, 1025, rc_type=2), "context-done")
    ch.fake(A, "keep-alive")
    ch.ack(B)
    ch.ack(B, "cnp", opcode=ub.CNP, rest=bytes([0xE0]) + bytes(15))
    ch.record("CLOSE", A, attempt=0x11111111)
    ch.record("CLOSED", B, attempt=0x11111111)
    ch.data(A, ub.write(14, 1025, 0x1000, b"too late"), "too-late")
    ch.record("RESET", B, attempt=0, reason=5)
    ch.record("PING", A, attempt=0x11111111)
    ch.record("PONG", B, attempt=0x11111111, reason=5)
    return capture


def ordered():
    """A channel of ROL with LDCP, where acknowledgements are answers, and one of Go-Back-N."""
    capture = Capture()
    ch = Channel(capture)
    ch.set_up(attempt=0x22222222, flags=0x0F, mode=2)
    for number in range(3):
        ch.data(A, ub.write(20 + number, 1025, 0x1000, b"w" * 8, order=1), f"write-{number}")
    ch.data(A, ub.send(23, 1025, 1026, b"s" * 8, order=1), "send")
    ldcp = ub.u32(100) + ub.u32(10)
    ch.ack(B, "sack-cc", 0xFFFFFE, ub.SACK_CC, ldcp + ub.sack(0xFFFFFE, {2, 3}), message=0)
    ch.ack(B, "executed", 0, ub.ACK_CC, ldcp, message=2, status=5, info=2)
    ch.ack(B, "refused", 1, ub.ACK_CC, ldcp, message=3, status=1, info=6)
    ch.psn[A] -= 1
    ch.fake(A, "confirms", status=1, info=6)
    ch.data(A, ub.send(23, 1025, 1026, b"s" * 8, order=1, retry=True), "send-again")
    ch.ack(B, "all-executed", opcode=ub.ACK_CC, rest=ldcp, status=5, info=2)
    back = Channel(capture, tpns=(0x010002, 0x030002), first_psns=(500, 600))
    back.set_up("back-", attempt=0x33333333, selective=False)
    first = back.data(A, ub.write(30, 1025, 0x1000, b"w" * 8), "first")
    second = back.data(A, ub.write(31, 1025, 0x1000, b"w" * 8), "second")
    back.ack(B, "nak", 500, message=0xFFFFFF, status=3, info=0)
    back.put(A, first, "first-again")
    back.put(A, second, "second-again")
    back.ack(B, "back-ack")
    return capture


def other_wires():
    """Channels that are set up over UDP and use other headers: RTP over NTH24, CTP; and one with a second path."""
    capture = Capture()
    ch = Channel(capture, first_psns=(1, 2))
    ch.set_up("cna-", attempt=0x44444444, flags=0x1E, mode=0x11)
    ch.wire = lambda source, target, transport: ub.rtp_over_cna(source, target, transport, 0x0520)
    ch.data(A, ub.write(40, 1025, 0x1000, b"w" * 8), "cna-write")
    ch.ack(B, "cna-ack", opcode=ub.ACK_CC, rest=ub.caqm(20, marks=2, hint=32))
    ch.data(B, ub.atah(ub.TAACK, 40, 1025), "cna-taack")

    compact = Channel(capture, tpns=(0x010003, 0x030003))
    compact.set_up("ctp-", attempt=0x55555555, flags=0x20, mode=0xC0)

    def put(host, content, name, **more):
        peer = compact.other(host)
        capture.add(ub.ctp(host, peer, compact.tpn[host], compact.tpn[peer], content, **more), name)
    put(A, ub.write(50, 1025, 0x1000, b"hello"), "ctp-write", sealed=False)
    put(A, ub.write(50, 1025, 0x1000, b"hello", retry=True), "ctp-repeat")
    put(B, ub.atah(ub.TAACK, 50, 1025), "ctp-taack")
    put(A, ub.read(51, 1025, 0x1000, 64, meta=False), "ctp-read")
    put(B, ub.atah(ub.READ_RESP, 51, 1025) + bytes(64), "ctp-resp")

    paths = Channel(capture, tpns=(0x010004, 0x030004), first_psns=(10, 20))
    paths.set_up("path-", attempt=0x66666666, mode=0x20)
    second = {A: ub.Host((10, 9, 0, 1)), B: ub.Host((10, 9, 0, 2))}
    for kind, host in (("PING", A), ("PONG", B)):
        life, peer = (ALICE, BOB) if host is A else (BOB, ALICE)
        payload = ub.record(kind, life, peer, attempt=0x66666666, sender_tpn=paths.tpn[host], mode=0x20, psn=0x777,
                            receiver_tpn=paths.tpn[paths.other(host)])
        capture.add(ub.uboe(second[host], second[paths.other(host)], ub.in_datagram(payload)), f"path-{kind.lower()}")
    paths.data(A, ub.write(60, 1025, 0x1000, b"w" * 8), "path-write")
    paths.wire = lambda source, target, transport: ub.uboe(second[source], second[target], transport)
    paths.data(B, ub.atah(ub.TAACK, 60, 1025), "path-taack")
    stranger = ub.data(0x020009, paths.tpn[B], 10, ub.write(61, 1025, 0x1000, b"w" * 8))
    capture.add(ub.uboe(A, B, stranger), "stranger")
    return capture


def other_ports():
    """Instances that are not the first of their address: nothing but the ICRC says what it is."""
    capture = Capture()
    first, second = ub.Host((10, 0, 0, 1), 61450), ub.Host((10, 0, 0, 2), 62000)
    packet = ub.data(1, 2, 5, ub.write(1, 1025, 0x1000, b"hello"))
    capture.add(ub.uboe(first, second, packet), "found")
    capture.add(ub.uboe(second, first, ub.rtph(ub.ACK, 2, 1, 5), sealed=False), "conversation")
    capture.add(ub.uboe(ub.Host((10, 0, 0, 3), 61451), second, packet, sealed=False), "unknown")
    capture.add(ub.uboe(ub.Host((10, 0, 0, 3), 4793), ub.Host((10, 0, 0, 4), 4794), packet, sealed=False), "preferred")
    return capture


# ---- what is dropped -------------------------------------------------------------------------------------------------

def unsealed(frame, at, value):
    return frame[:at] + bytes([value]) + frame[at + 1:]


def fragments(frame):
    """The same IPv4 packet in two pieces."""
    cut = 24
    for offset, piece in ((0, frame[34:34 + cut]), (cut, frame[34 + cut:])):
        flags = (0x2000 if offset == 0 else 0) | offset // 8
        yield frame[:14] + ub.ipv4_header(frame[26:30], frame[30:34], 20 + len(piece), flags=flags) + piece


def drops():
    """One frame and more for each cause. The name is that of the cause, a number after `-` makes several different."""
    capture = Capture()
    counts = {}

    def add(cause, frame):
        counts[cause] = counts.get(cause, 0) + 1
        capture.add(frame, f"{cause}-{counts[cause]}")

    good = ub.write(1, 1025, 0x1000, b"hello")
    whole = ub.uboe(A, B, ub.data(1, 2, 3, good))

    def rtp(content, **more):
        return ub.uboe(A, B, ub.data(1, 2, 3, content, **more))

    def load(content, **more):
        return ub.bypass(A, B, content, **more)

    add("too_short", ub.uboe(A, B, bytes([1, 0, 0, 0])))
    add("too_short", ub.cna24(A, B, A.cna, B.cna, 2, b"")[:20])
    add("too_short", load(b"\x06\x10"))
    sealed = bytearray(whole)
    sealed[24] ^= 1
    add("bad_ip_header", bytes(sealed))
    for first in fragments(whole):
        capture.add(first, "fragment-1")
    add("bad_udp_length", whole[:38] + ub.u16(len(whole) - 38) + whole[40:])
    add("bad_icrc", unsealed(whole, 80, 0xFF))
    add("bad_icrc", ub.uboe(A, B, ub.in_datagram(ub.record("REQ", ALICE, BOB)), sealed=False))
    add("bad_icrc", ub.uboe(A, B, ub.data(1, 2, 3, good))[:-1] + b"\x00")
    add("bad_link_type", ub.bypass(A, B, bytes(40), cfg=6))
    add("bad_link_type", ub.bypass(A, B, bytes(40), cfg=3))
    add("bad_tp_version", rtp(good, version=1))
    add("bad_tp_version", ub.uboe(A, B, ub.utp(ub.send(1, 2, 3, b""), version=2)))
    add("bad_tp_opcode", ub.uboe(A, B, ub.rtph(4, 1, 2, 3)))
    add("bad_tp_opcode", ub.rtp_over_cna(A, B, ub.utp(ub.send(1, 2, 3, b""))))
    add("bad_tp_opcode", ub.ctp(A, B, 1, 2, good, opcode=1))
    add("bad_tp_opcode", ub.ctp(A, B, 1, 2, good, opcode=3))
    entities = ub.u32(5) + bytes(15) + b"\x01" + bytes(15) + b"\x02"
    add("bad_nlp", rtp(entities + good, nlp=1))
    add("bad_nlp", rtp(good, nlp=3))
    add("bad_nlp", ub.uboe(A, B, ub.utp(entities + ub.send(1, 2, 3, b""), nlp=1)))
    add("bad_nlp", ub.ctp(A, B, 1, 2, bytes(7) + good, nlp=2))
    add("bad_nlp", ub.cna24(A, B, A.cna, B.cna, 5, ub.data(1, 2, 3, good)))
    add("bad_nlp", load(ub.compact_request(ub.READ, 1, 0x1000), last=1))
    add("bad_ta_version", rtp(ub.btah(ub.WRITE, 1, 2, version=1) + ub.maetah(0, 1, 0)))
    add("bad_ta_version", load(ub.compact_request(ub.READ, 1, 0x1000, version=3)))
    add("unknown_opcode", rtp(ub.btah(0x16, 1, 2)))
    add("unknown_opcode", load(ub.compact_request(0x40, 1, 0x1000)))
    add("truncated_header", rtp(ub.btah(ub.WRITE, 1, 2) + bytes(8)))
    add("truncated_header", rtp(b"\x03\x10\x00\x01"))
    add("truncated_header", ub.uboe(A, B, ub.rtph(ub.SACK, 1, 2, 3) + ub.sack(3, {1})[:8]))
    add("truncated_header", ub.uboe(A, B, ub.rtph(ub.ACK_CC, 1, 2, 3) + bytes(4)))
    add("truncated_header", ub.uboe(A, B, ub.rtph(ub.CNP, 1, 2, 3) + bytes(12)))
    add("truncated_header", load(ub.compact_request(ub.READ, 1, 0x1000)[:-4]))
    add("bad_header_flags", rtp(ub.btah(ub.WRITE, 1, 2, target=True) + ub.maetah(0, 1, 0)))
    add("bad_header_flags", rtp(ub.btah(ub.PREFETCH, 1, 2, token=True) + ub.maetah(0, 1, 0) + bytes(4)))
    add("bad_header_flags", load(ub.compact_request(ub.PREFETCH, 1, 0x1000, token=5)))
    add("bad_byte_enable", rtp(ub.btah(ub.WRITE_BE, 1, 2) + ub.maetah(0, 1, 65) + bytes(80)))
    add("bad_byte_enable", rtp(ub.btah(ub.WRITE_BE, 1, 2) + ub.maetah(0, 1, 64) + bytes(8 + 60)))
    add("unexpected_payload", rtp(ub.atah(ub.TAACK, 1, 2) + b"data"))
    add("unexpected_payload", rtp(ub.atah(ub.READ_RESP, 1, 2, status=3, info=2) + bytes(8) + b"data"))
    add("unexpected_payload", load(ub.compact_request(ub.PREFETCH, 1, 0x1000) + bytes(30)))
    add("not_load_store", load(ub.compact_request(ub.CAS, 1, 0x1000) + bytes(64)))
    add("bad_length", load(ub.compact_request(ub.WRITE, 1, 0x1000) + bytes(63)))
    add("bad_length", load(ub.compact_answer(ub.READ_RESP, 1) + bytes(65)))
    add("management", load(ub.compact_request(ub.READ, 1, 0x1000), last=8))
    add("bad_padding", ub.uboe(A, B, ub.rtph(ub.DATA, 1, 2, 3, last=True) + good))
    add("bad_padding", ub.uboe(A, B, ub.rtph(ub.DATA, 1, 2, 3, last=True, padding=3) + ub.atah(ub.TAACK, 1, 2)))
    add("bad_sack_size", ub.uboe(A, B, ub.rtph(ub.SACK, 1, 2, 3) + bytes([5, 0, 0, 3]) + bytes(256)))
    add("bad_record_magic", ub.uboe(A, B, ub.in_datagram(b"ABC1" + bytes(92))))
    add("bad_record_magic", ub.uboe(A, B, ub.in_datagram(ub.record("REQ", ALICE, BOB)[:60])))
    add("bad_record_version", ub.uboe(A, B, ub.in_datagram(ub.record("REQ", ALICE, BOB, version=b"2"))))
    add("bad_record_type", ub.uboe(A, B, ub.in_datagram(ub.record(13, ALICE, BOB))))
    add("um_operation", ub.uboe(A, B, ub.utp(good)))
    add("um_malformed", ub.uboe(A, B, ub.utp(ub.send(1, 1025, 1026, b"hello"))))
    return capture


CAPTURES = {one.__name__: one for one in (opcodes, loads, loads_raw, records, conversation, ordered, other_wires,
                                          other_ports, drops)}


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    os.makedirs(arguments[0], exist_ok=True)
    for name, make in CAPTURES.items():
        make().write(os.path.join(arguments[0], f"{name}.pcap"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
