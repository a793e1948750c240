#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/wireshark/softub.lua, as tshark runs it over golden captures (captures.py) and over damaged ones.

usage: test_dissector.py [--judge PROGRAM] [names of cases]      77: there is no tshark with Lua
       test_dissector.py --sentences                             prints what sentences.txt should say

PROGRAM says what the decoders of the library think of each frame (judge.cc).
"""
import atexit
import functools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import captures
import frames as ub

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
SCRIPT = os.path.join(ROOT, "tools", "wireshark", "softub.lua")
WIRE = os.path.join(ROOT, "lib", "transport", "wire")
FIELDS = """frame.number ub.transport ub.packet ub.drop ub.icrc.status ub.opcode ub.channel ub.request_in ub.response_in
 ub.response_time ub.retransmission_of ub.reported_missing_in ub.acked_in ub.acks_count ub.acks_frame
ub.retry_of ub.setup_in ub.saetph.received ub.saetph.missing ub.cetph.ack_seq ub.cetph.ce_seq ub.cetph.hint ub.cci.hint
ub.record.type ub.record.application ub.payload_length ub.atomic.operand1 ub.atomic.operand2 ub.atomic.old
ub.maetah.length ub.ofstetah.offset _ws.lua.error _ws.malformed _ws.expert.message""".split()
HEADERS = {b"\x08\x00": captures.HEADERS_V4, b"\x86\xdd": captures.HEADERS_V6, b"\x81\x00": captures.HEADERS_V4 + 4}
JUDGE = None
TOLD_AS_SENTENCES = ("conversation", "ordered", "other_wires", "other_ports", "loads", "records")


class Tshark:
    """Runs in a home of its own, where nobody has preferences or plugins."""

    def __init__(self, home):
        self.home = home

    def run(self, *arguments, script=True):
        command = ["tshark", *(arguments[:2] if arguments[0] == "-G" else ())]
        command += ["-n"] * (arguments[0] != "-G") + ["-X", f"lua_script:{SCRIPT}"] * script
        command += arguments[2 if arguments[0] == "-G" else 0:]
        environment = dict(os.environ, HOME=self.home, XDG_CONFIG_HOME=self.home)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, errors="replace", env=environment, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    @functools.cached_property
    def info(self):
        """The field of the column of information has another name since 4.2."""
        version = re.search(r"(\d+)\.(\d+)", self.run("--version", script=False))
        return "_ws.col.info" if tuple(map(int, version.groups())) >= (4, 2) else "_ws.col.Info"

    @functools.lru_cache  # several cases look at the same frames
    def dissect(self, name, *options):
        """(capture, rows by name of the frame), of one of captures.py. Nothing in it may be malformed."""
        capture = captures.CAPTURES[name]()
        path = os.path.join(self.home, f"{name}.pcap")
        capture.write(path)
        rows = self.rows(path, *options)
        for row in rows:
            if row["_ws.lua.error"] + row["_ws.malformed"]:
                raise RuntimeError(f"malformed, or an error of Lua: {row}")
        return capture, {frame: rows[number - 1] for frame, number in capture.numbers.items()}

    def rows(self, path, *options):
        """A dictionary of each frame: field -> text, several of them with | in between."""
        names = [*FIELDS, self.info]
        wanted = [word for name in names for word in ("-e", name)]
        text = self.run("-r", path, "-2", "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=|", *wanted, *options)
        rows = [dict(zip(names, line.split("\t"))) for line in text.splitlines()]
        for row in rows:
            row["info"] = row[self.info]
        return rows


@functools.lru_cache
def shared_tshark():
    directory = tempfile.TemporaryDirectory(prefix="softub-wireshark-")
    atexit.register(directory.cleanup)
    return Tshark(directory.name)


def why_there_is_no_tshark():
    """None: there is one that runs Lua."""
    if not shutil.which("tshark"):
        return "there is no tshark"
    said = subprocess.run(["tshark", "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout
    return None if "with Lua" in " ".join(said.split()) else "this tshark was built without Lua"


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def enumeration(header, name):
    """(NAME, number) of an enum of a header: kSomeThing = 1 is SOME_THING."""
    body = re.search(rf"enum class {name}\b[^{{]*{{(.*?)}};", read(WIRE, header), re.S).group(1)
    return [(re.sub(r"(?<!^)([A-Z])", r"_\1", word).upper(), int(number))
            for word, number in re.findall(r"\bk(\w+) = (\d+)", body)]


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tshark = shared_tshark()
        cls.dissect = cls.tshark.dissect

    def path(self, name):
        return os.path.join(self.tshark.home, name)

    def check(self, capture, rows, frame, **expected):
        """Fields of a frame; the value of one that points to a frame is the name of that."""
        for field, value in expected.items():
            key = "ub." + field.replace("__", ".")
            if field.endswith(("_in", "_of", "_frame")) and value:
                value = capture.numbers[value]
            self.assertEqual(rows[frame][key], str(value), f"{key} of {frame}: {rows[frame]}")


class Names(Case):
    def test_opcodes_are_those_of_the_library(self):
        ours = dict(re.findall(r'X\(\w+, (0x[0-9A-F]{2}), "(\w+)"', read(WIRE, "opcodes.h")))
        values = re.findall(r"^V\tub\.opcode\t(\d+)\t(\w+)$", self.tshark.run("-G", "values"), re.M)
        theirs = {int(number): name for number, name in values}
        self.assertEqual(theirs, {int(code, 16): name for code, name in ours.items()})

    def test_records_are_those_of_the_library(self):
        text = self.tshark.run("-G", "values")
        types = {name: int(number) for number, name in re.findall(r"^V\tub\.record\.type\t(\d+)\t(\w+)$", text, re.M)}
        self.assertEqual(types, dict(enumeration("control_record.h", "RecordType")))
        reasons = re.findall(r"^V\tub\.record\.reason\t(\d+)\t(.+)$", text, re.M)
        self.assertEqual(sorted(int(number) for number, _ in reasons),
                         [number for _, number in enumeration("control_record.h", "RecordReason")])

    def test_each_drop_of_a_decoder_has_a_message(self):
        drops = re.findall(r"^  X\((\w+)\)", read(WIRE, "drop.h"), re.M)
        ours = {re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in drops}
        messages = set(re.findall(r"\tub\.drop\.(\w+)\t", self.tshark.run("-G", "fields")))
        others = {"not_ip", "not_udp"}  # these are not given to the dissector
        self.assertEqual(ours - others, {name for name in messages if not name.startswith("um_")})
        counters = read(ROOT, "lib", "base", "counters.def")
        for name in messages:
            self.assertIn(f'"rx.drop.{name}"', counters)


class Golden(Case):
    def test_every_operation_on_every_wire(self):
        capture, rows = self.dissect("opcodes")
        seen = {}
        for frame, row in rows.items():
            wire, name = frame.split("-", 1)
            transport = "UTP" if name.startswith("um_") or name == "control" else "CTP" if wire == "ctp" else "RTP"
            self.check(capture, rows, frame, drop="", icrc__status="good", transport=transport)
            seen.setdefault(wire, set()).add(row["ub.opcode"])
        all_opcodes = {str(int(code, 16)) for code in re.findall(r"X\(\w+, (0x..),", read(WIRE, "opcodes.h"))}
        for wire in ("ipv4", "ipv6", "vlan", "cna", "ctp"):
            self.assertEqual(seen[wire] - {""}, all_opcodes, wire)
        self.check(capture, rows, "cna-write", cci__hint=32)
        self.check(capture, rows, "corpus-tpsack_cc", saetph__received="12, 74", saetph__missing="11, 13-73")

    def check_loads(self, name, *options):
        capture, rows = self.dissect(name, *options)
        for frame, row in rows.items():
            self.check(capture, rows, frame, transport="TP bypass", drop="not_load_store" if frame == "atomic" else "")
        return capture, rows

    def test_loads_and_stores(self):
        capture, rows = self.check_loads("loads")
        opcodes = {row["ub.opcode"] for row in rows.values()}
        self.assertEqual(opcodes, {"3", "6", "11", "17", "18", "20", "21", "23", "24"})
        self.check(capture, rows, "asked", response_in="answered", maetah__length=128)
        self.check(capture, rows, "answered", request_in="asked", response_time="0.000010000")
        self.check(capture, rows, "refused", request_in="stored")
        self.assertIn("authentication failed", rows["refused"]["_ws.expert.message"])

    def test_frames_of_a_link_without_ethernet(self):
        capture = captures.loads_raw()
        capture.write(self.path("raw.pcap"))
        rows = self.tshark.rows(self.path("raw.pcap"), "-o", 'uat:user_dlts:"User 0 (DLT=147)","ub_link","0","","0",""')
        self.assertEqual([row["ub.transport"] for row in rows], ["TP bypass"] * len(capture.frames))

    def test_records(self):
        capture, rows = self.dissect("records")
        for number, kind in enumerate(ub.RECORDS, 1):
            self.check(capture, rows, kind, record__type=number, packet=kind, drop="", icrc__status="good")
        self.check(capture, rows, "corpus-version2", drop="bad_record_version")
        self.check(capture, rows, "all-flags", record__application=9)
        self.check(capture, rows, "find", response_in="found")
        self.assertIn("unknown entity", rows["reason-4"]["_ws.expert.message"])
        self.assertEqual(rows["reason-3"]["_ws.expert.message"], "")  # glare is no trouble

    def test_sentences(self):
        self.maxDiff = None
        self.assertEqual(sentences(self.tshark), read(HERE, "sentences.txt"))

    def test_each_cause_of_a_drop(self):
        capture, rows = self.dissect("drops")
        for frame, row in rows.items():
            cause = frame.rsplit("-", 1)[0]
            self.check(capture, rows, frame, drop=cause)
            self.assertIn(f"rx.drop.{cause}", row["_ws.expert.message"])
        causes = {frame.rsplit("-", 1)[0] for frame in rows} | {"unknown_tpn", "wrong_peer"}  # these two are in others
        self.assertEqual(causes, set(re.findall(r"\tub\.drop\.(\w+)\t", self.tshark.run("-G", "fields"))))


class Conversation(Case):
    def test_loss_is_told_and_repaired(self):
        capture, rows = self.dissect("conversation")
        self.check(capture, rows, "sack", saetph__received="0-1", saetph__missing="16777215", acks_count=3,
                   acks_frame="hello")
        self.assertIn("1 packet is missing: PSN 16777215", rows["sack"]["_ws.expert.message"])
        self.check(capture, rows, "again", retransmission_of="lost", reported_missing_in="sack", acked_in="ack")
        self.check(capture, rows, "lost", acked_in="ack", retransmission_of="")
        self.check(capture, rows, "write", acked_in="sack")
        self.check(capture, rows, "ack", acks_count=1, acks_frame="lost")
        self.check(capture, rows, "ack-of-taack", acks_frame="taack")
        self.assertEqual([frame for frame, row in rows.items() if row["ub.retransmission_of"]], ["again"])

    def test_answers_are_found(self):
        capture, rows = self.dissect("conversation")
        for request, answer in (("write", "taack"), ("again", "taack"), ("hello", "taack"), ("read", "resp-0"),
                                ("send", "rnr"), ("send-again", "sent"), ("cas", "old"), ("forbidden", "failed"),
                                ("alloc", "granted"), ("in-context", "context-done"), ("req", "rep"), ("rep", "conf"),
                                ("close", "closed"), ("ping", "pong")):
            self.check(capture, rows, request, response_in=answer)
        self.check(capture, rows, "resp-1", request_in="read", ofstetah__offset=1, response_time="0.000020000")
        self.check(capture, rows, "send-again", retry_of="send")
        self.check(capture, rows, "cas", atomic__operand1=7, atomic__operand2=5)
        self.check(capture, rows, "old", atomic__old=5)
        for frame, text in (("rnr", "retry after 128 us"), ("failed", "remote abort"), ("cnp", "congested")):
            self.assertIn(text, rows[frame]["_ws.expert.message"])

    def test_a_channel_begins_and_ends(self):
        capture, rows = self.dissect("conversation")
        self.assertEqual({row["ub.channel"] for frame, row in rows.items() if frame not in ("req", "reset")}, {"0"})
        self.check(capture, rows, "write", setup_in="rep")
        self.check(capture, rows, "too-late", drop="unknown_tpn")
        self.check(capture, rows, "reset", request_in="too-late")
        self.assertEqual([frame for frame, row in rows.items() if row["ub.drop"]], ["too-late"])

    def test_acknowledgements_of_rol_are_answers(self):
        capture, rows = self.dissect("ordered")
        for number in range(3):
            self.check(capture, rows, f"write-{number}", response_in="executed")
        self.check(capture, rows, "send", response_in="refused")
        self.check(capture, rows, "send-again", response_in="all-executed", retry_of="send")
        self.check(capture, rows, "confirms", retransmission_of="", packet="fake")
        self.check(capture, rows, "sack-cc", cetph__ack_seq=100, cetph__ce_seq=10)

    def test_going_back_n_is_told_from_nak(self):
        capture, rows = self.dissect("ordered")
        self.check(capture, rows, "first-again", retransmission_of="first", reported_missing_in="nak")
        self.check(capture, rows, "second-again", retransmission_of="second", acked_in="back-ack")

    def test_a_channel_is_one_on_all_its_wires(self):
        capture, rows = self.dissect("other_wires")
        for channel, names in enumerate((("cna-write", "cna-ack", "cna-taack"), ("ctp-write", "ctp-taack", "ctp-resp"),
                                         ("path-ping", "path-pong", "path-write", "path-taack"))):
            for name in names:
                self.check(capture, rows, name, channel=channel, drop="")
        self.check(capture, rows, "cna-ack", cetph__hint=32, acks_frame="cna-write")
        self.check(capture, rows, "cna-taack", request_in="cna-write")
        self.check(capture, rows, "ctp-repeat", retransmission_of="ctp-write", response_in="ctp-taack")
        self.check(capture, rows, "ctp-write", icrc__status="off")
        self.check(capture, rows, "path-taack", request_in="path-write")
        self.check(capture, rows, "stranger", drop="wrong_peer")


class Options(Case):
    def test_other_ports_are_recognised_by_the_icrc(self):
        capture, rows = self.dissect("other_ports")
        self.check(capture, rows, "found", transport="RTP", icrc__status="good")
        self.check(capture, rows, "conversation", transport="RTP", icrc__status="off")
        for frame in ("unknown", "preferred"):
            self.check(capture, rows, frame, transport="")
        capture, rows = self.dissect("other_ports", "-o", "ub.udp_ports:4792-4794")
        self.check(capture, rows, "preferred", transport="RTP")

    def test_icrc_can_be_left_unchecked(self):
        capture, rows = self.dissect("drops", "-o", "ub.check_icrc:FALSE")
        self.check(capture, rows, "bad_icrc-1", drop="", icrc__status="not checked")

    def test_packets_can_be_left_alone(self):
        capture, rows = self.dissect("conversation", "-o", "ub.track:FALSE")
        for row in rows.values():
            self.assertEqual(row["ub.channel"] + row["ub.request_in"] + row["ub.retransmission_of"], "")

    def test_feedback_without_set_up_is_as_preferred(self):
        for form, field in ((1, "hint"), (2, "ce_seq")):
            _, rows = self.dissect("opcodes", "-o", f"ub.feedback:{('C-AQM', 'LDCP')[form - 1]}")
            self.assertNotEqual(rows["corpus-tpsack_cc"][f"ub.cetph.{field}"], "", form)

    def test_wireshark_loads_it_from_its_folder_of_plugins(self):
        plugins = self.path(".local/lib/wireshark/plugins")
        os.makedirs(plugins)
        os.symlink(os.path.dirname(os.path.abspath(SCRIPT)), os.path.join(plugins, "softub"))
        try:
            for script in (False, True):  # twice is once
                self.assertIn("\tub.icrc\t", self.tshark.run("-G", "fields", script=script))
        finally:
            os.unlink(os.path.join(plugins, "softub"))


class Damaged(Case):
    FRAMES = 2500

    def frames(self, rng, fates=(0, 1, 2, 3)):
        """Frames that are cut by the capture (fate 0), short (1) or flipped, some with the right ICRC (all but 3)."""
        names = [name for name in captures.CAPTURES if name != "loads_raw"]
        whole = [frame for name in names for frame in captures.CAPTURES[name]().frames]
        for _ in range(self.FRAMES):
            frame = bytearray(rng.choice(whole))
            begin = HEADERS.get(bytes(frame[12:14]), 14)
            fate = rng.choice(fates)
            if fate == 0:
                yield bytes(frame[:rng.randrange(len(frame))]), len(frame)
                continue
            if fate == 1 and len(frame) > begin:
                del frame[rng.randrange(begin, len(frame)):]
            for _ in range(rng.choice((0, 1, 3, 10))):
                if len(frame) > begin:
                    frame[min(begin + int(rng.expovariate(1 / 20)), len(frame) - 1)] ^= 1 << rng.randrange(8)
            yield self.resealed(frame, begin) if fate != 3 else bytes(frame)

    @staticmethod
    def resealed(frame, begin):
        if begin != 14:
            return ub.uboe(captures.A, captures.B, bytes(frame[begin:-4] if len(frame) > begin + 4 else frame[begin:]))
        if frame[15:16] == b"\x07" and len(frame) > 32:
            masked = bytes(frame[18:24]) + b"\xff\xff\xff" + bytes(frame[27:28])
            frame[-4:] = ub.icrc(masked + bytes(frame[28:-4]))
        return bytes(frame)

    def test_frames_never_stop_the_dissector(self):
        seed, path = self.write_damaged()
        rows = self.tshark.rows(path)
        self.assertEqual(len(rows), self.FRAMES)
        for row in rows:
            self.assertEqual(row["_ws.lua.error"], "", f"seed {seed} (UB_WIRESHARK_SEED): {row}")
        said = re.findall(r".*(?:Lua Error|Malformed Packet: UB).*", self.tshark.run("-r", path, "-V"))
        self.assertEqual(said, [], f"seed {seed} (UB_WIRESHARK_SEED)")
        self.assertGreater(len({row["ub.drop"] for row in rows}), 15)

    def write_damaged(self, **more):
        """(seed, path)"""
        seed = int(os.environ.get("UB_WIRESHARK_SEED", "1"))
        path = self.path("damaged.pcap")
        ub.write_pcap(path, list(self.frames(random.Random(seed), **more)))
        return seed, path

    def check_as_the_library_judges(self, path, what):
        """How many frames could be compared."""
        ours = subprocess.run([JUDGE, path], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
        compared = 0
        for row, drop in zip(self.tshark.rows(path, "-o", "ub.track:FALSE"), ours):
            if row["ub.transport"] == "" or drop == "":  # it is given to another dissector; it is a datagram
                continue
            compared += 1
            self.assertEqual(row["ub.drop"] or "none", drop, f"{what}: {row}")
        return compared

    def test_frames_are_judged_as_the_library_does(self):
        if JUDGE is None:
            self.skipTest("without --judge")
        seed, path = self.write_damaged(fates=(1, 2, 3))
        compared = self.check_as_the_library_judges(path, f"seed {seed} (UB_WIRESHARK_SEED)")
        self.assertGreater(compared, self.FRAMES * 0.8)
        for name in ("opcodes", "loads", "records", "drops"):
            path = self.path(f"{name}.pcap")
            captures.CAPTURES[name]().write(path)
            self.assertGreater(self.check_as_the_library_judges(path, name), 0)

    def test_what_the_capture_cut_is_no_drop(self):
        whole = captures.conversation().frames[3]
        ub.write_pcap(self.path("cut.pcap"), [(whole[:size], len(whole)) for size in range(42, len(whole))])
        for row in self.tshark.rows(self.path("cut.pcap")):
            self.assertEqual(row["ub.drop"] + row["_ws.lua.error"] + row["ub.icrc.status"], "", row)


def sentences(tshark):
    """The sentence of each frame, behind its number and its name."""
    parts = []
    for name in TOLD_AS_SENTENCES:
        capture, rows = tshark.dissect(name)
        lines = [f"{number:3} {frame:16} {rows[frame]['info']}" for frame, number in capture.numbers.items()]
        parts.append("\n".join([f"{name}.pcap", *lines, ""]))
    return "\n".join(parts)


def main():
    problem = why_there_is_no_tshark()
    if problem:
        print(f"skipped: {problem}")
        return 77
    global JUDGE
    if sys.argv[1:2] == ["--judge"]:
        JUDGE = sys.argv[2]
        del sys.argv[1:3]
    if sys.argv[1:] == ["--sentences"]:
        sys.stdout.write(sentences(shared_tshark()))
        return 0
    return unittest.main()


if __name__ == "__main__":
    sys.exit(main())
