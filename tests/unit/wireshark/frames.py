# SPDX-License-Identifier: Apache-2.0
"""Frames of SoftUB, written from docs/wire.md and not with the code under lib/, and pcap files of them."""
import struct
import zlib

UB_PORT = 4792
ETHERTYPE = 0x88B5
ETHERNET, USER0 = 1, 147  # link types of a pcap file
DATA, ACK, ACK_CC, SACK, SACK_CC, CNP = 1, 2, 3, 5, 6, 8
(SEND, SEND_IMM, SEND_INV, WRITE, WRITE_IMM, WRITE_NOTIFY, READ, CAS, SWAP, ATOMIC_STORE, ATOMIC_LOAD,
 FETCH_ADD) = range(12)
MGMT, TAACK, READ_RESP, ATOMIC_RESP, WRITE_BE, PREFETCH = range(0x10, 0x16)
RECORDS = ("REQ", "REP", "CONF", "REJ", "CLOSE", "CLOSED", "PING", "PONG", "RESET", "SC_FREE", "FIND", "FOUND")


def u16(value):
    return value.to_bytes(2, "big")


def u24(value):
    return value.to_bytes(3, "big")


def u32(value):
    return value.to_bytes(4, "big")


def u64(value):
    return value.to_bytes(8, "big")


def icrc(covered):
    return zlib.crc32(covered).to_bytes(4, "little")


class Host:
    """An instance: its addresses on each wire."""

    def __init__(self, ip, port=UB_PORT):
        self.ip, self.port = bytes(ip), port
        self.mac = b"\x02" + self.ip[-4:] + bytes([port & 0xFF])
        self.cna = self.ip[-3:]

    def __str__(self):
        return ".".join(map(str, self.ip)) + f":{self.port}"


A, B = Host((10, 0, 0, 1)), Host((10, 0, 0, 2))
A6, B6 = (Host(b"\xfd" + bytes(14) + bytes([last])) for last in (1, 2))


# ---- network ---------------------------------------------------------------------------------------------------------

def ipv4_header(source, target, length, tos=0, flags=0x4000):
    header = bytearray(b"\x45" + bytes([tos]) + u16(length) + u16(0) + u16(flags) + bytes([64, 17]) + bytes(2)
                       + source + target)
    total = sum(struct.unpack(">10H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    header[10:12] = u16(~total & 0xFFFF)
    return bytes(header)


def masked_ip(ip, udp):
    """IP and UDP headers, with ones where a hop may write."""
    head = bytearray(ip + udp)
    if len(ip) == 20:
        head[1] = head[8] = head[10] = head[11] = head[26] = head[27] = 0xFF
    else:
        head[0] |= 0x0F
        head[1] = head[2] = head[3] = head[7] = head[46] = head[47] = 0xFF
    return bytes(head)


def uboe(source, target, transport, tos=0, vlan=None, sealed=True):
    """`transport`: RTPH or UTPH up to the last byte of padding. `sealed`: with the right ICRC, else with zeros."""
    size = 8 + len(transport) + 4
    udp = u16(source.port) + u16(target.port) + u16(size) + u16(0)
    if len(source.ip) == 4:
        kind, ip = 0x0800, ipv4_header(source.ip, target.ip, 20 + size, tos)
    else:
        kind, ip = 0x86DD, u32(6 << 28 | tos << 20) + u16(size) + bytes([17, 64]) + source.ip + target.ip
    ethernet = target.mac + source.mac + (u16(0x8100) + u16(vlan) if vlan else b"") + u16(kind)
    end = icrc(masked_ip(ip, udp) + transport) if sealed else bytes(4)
    return ethernet + ip + udp + transport + end


def lph(cfg):
    return bytes([0, cfg, 0, 0])


def nth24(scna, dcna, nlp, cci=0):
    return scna + dcna + u16(cci) + bytes([0, nlp])


def cna24(source, target, scna, dcna, nlp, transport, cci=0, sealed=True):
    nth = nth24(scna, dcna, nlp, cci)
    masked = nth[:6] + b"\xff\xff\xff" + nth[9:]
    end = icrc(masked + transport) if sealed else bytes(4)
    return target.mac + source.mac + u16(ETHERTYPE) + lph(7) + nth + transport + end


def rtp_over_cna(source, target, transport, cci=0):
    return cna24(source, target, source.cna, target.cna, 2, transport, cci)


def ctp(source, target, scna, dcna, content, sealed=True, opcode=0, nlp=0):
    """`content`: BTAH or ATAH up to the end of the payload; padding follows."""
    padding = -(1 + len(content)) % 4
    head = bytes([opcode << 6 | padding << 4 | nlp])
    return cna24(source, target, u24(scna), u24(dcna), 0, head + content + bytes(padding), sealed=sealed)


def bypass(source, target, content, scna=0x0102, dcna=0xA0B0, last=0, cfg=9):
    nth = u16(scna) + u16(dcna) + u16(0) + bytes([0, last])
    return target.mac + source.mac + u16(ETHERTYPE) + lph(cfg) + nth + content


# ---- transport -------------------------------------------------------------------------------------------------------

def rtph(opcode, src, dst, psn, tpmsn=0, last=False, asks=False, fake=False, status=0, info=0, padding=0, nlp=0,
         version=0):
    return (bytes([last << 7 | opcode, version << 6 | padding << 4 | nlp]) + u24(src) + u24(dst)
            + bytes([asks << 7 | fake << 6]) + u24(psn % 2**24) + bytes([status << 5 | info]) + u24(tpmsn % 2**24))


def data(src, dst, psn, content, tpmsn=0, last=True, **more):
    padding = -len(content) % 4
    return rtph(DATA, src, dst, psn, tpmsn, last, padding=padding, **more) + content + bytes(padding)


def sack(psn, bits, size_code=0, newest=None):
    """SAETPH: bits are offsets from `psn`."""
    bitmap = sum(1 << bit for bit in {0, *bits}).to_bytes(8 << size_code, "little")
    newest = max(bits, default=0) + psn if newest is None else newest
    return bytes([size_code]) + u24(newest % 2**24) + bitmap


def caqm(ack_seq, marks=0, hint=0):
    return u32(ack_seq) + bytes([hint > 0, marks]) + u16(hint)


def utp(content, nlp=0, version=0):
    padding = -len(content) % 4
    return bytes([0, version << 6 | padding << 4 | nlp]) + bytes(14) + content + bytes(padding)


# ---- transactions ----------------------------------------------------------------------------------------------------

def btah(opcode, tassn, rc_id, token=False, ud=False, target=False, poison=False, order=0, retry=False, alloc=False,
         no_taack=False, rc_type=1, version=0):
    return (bytes([opcode, version << 6 | 1 << 4 | token << 3 | poison << 2 | ud]) + u16(tassn)
            + bytes([no_taack << 7 | order << 4 | target << 3 | retry << 1 | alloc]) + u24(rc_type << 20 | rc_id))


def atah(opcode, tassn, rc_id, status=0, info=0, sv=False, rc_type=1):
    return bytes([opcode, sv << 3]) + u16(tassn) + bytes([status << 5 | info]) + u24(rc_type << 20 | rc_id)


def maetah(address, token_id, length):
    return u64(address) + u32(token_id << 8) + u32(length)


def mtetah(tc_id, group=False):
    return u32((2 if group else 1) << 20 | tc_id)


def write(tassn, rc_id, address, payload, length=None, **more):
    return btah(WRITE, tassn, rc_id, **more) + maetah(address, 1, len(payload) if length is None else length) + payload


def read(tassn, rc_id, address, length, meta=True, offset_kib=0):
    extra = u32(0) + u32(offset_kib) if meta else b""
    return btah(READ, tassn, rc_id) + extra + maetah(address, 1, length)


def send(tassn, rc_id, queue, payload, offset_kib=0, **more):
    return btah(SEND, tassn, rc_id, target=True, **more) + mtetah(queue) + u32(offset_kib) + payload


def compact_request(opcode, tassn, address, token_id=7, code=0, token=None, strong=False, **more):
    """BTAH, MAETAH and TVETAH of a load or store of 64 << code bytes."""
    base = btah(opcode, tassn, 0, token=token is not None, **more)[:4]
    return base + u64(address | strong << 3 | code) + u32(token_id) + (b"" if token is None else u32(token))


def compact_answer(opcode, tassn, status=0):
    return bytes([opcode, status << 4]) + u16(tassn)


# ---- control records -------------------------------------------------------------------------------------------------

class Life:
    """An instance in control records."""

    def __init__(self, host, incarnation, uasid):
        self.host, self.incarnation, self.uasid = host, incarnation, uasid
        self.eid = bytes(10) + b"\xff\xff" + host.ip if len(host.ip) == 4 else host.ip


def record(kind, sender, receiver, attempt=1, reason=0, flags=0x0E, sender_tpn=0, receiver_tpn=0, mode=0, psn=0,
           mtu=1024, window=512, known=True, selective=True, application=None, version=b"1", scid=None):
    """`kind`: a name of RECORDS, or a number. `mode`: byte 36. `known`: is the incarnation of the receiver known?"""
    number = RECORDS.index(kind) + 1 if isinstance(kind, str) else kind
    tail = u24(scid) + bytes(5) if scid is not None else u32(sender.uasid) + u32(receiver.uasid)
    return (b"UBC" + version + bytes([number, reason]) + u16(96 if application is None else 100)
            + u64(sender.incarnation) + u64(receiver.incarnation if known else 0) + u32(attempt) + bytes([flags])
            + u24(sender_tpn) + bytes([selective << 7 | 3]) + u24(receiver_tpn) + bytes([mode]) + u24(psn % 2**24)
            + u16(mtu) + u16(window) + u32(4000) + bytes([0x17, 32]) + u16(1000) + u32(1) + sender.eid + receiver.eid
            + tail + (b"" if application is None else u32(application)))


def in_datagram(payload):
    """A control record as the payload of an unreliable SEND to Jetty 0."""
    return utp(send(0, 0, 0, payload))


# ---- files -----------------------------------------------------------------------------------------------------------

def write_pcap(path, frames, link_type=ETHERNET, step_us=10):
    """`frames`: bytes, or (bytes, length on the wire) of frames that the capture cut."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link_type))
        for index, frame in enumerate(frames):
            frame, length = frame if isinstance(frame, tuple) else (frame, len(frame))
            seconds, us = divmod(index * step_us, 1000000)
            file.write(struct.pack("<IIII", 1000000000 + seconds, us, len(frame), length) + frame)
