# SPDX-License-Identifier: Apache-2.0
"""What was on a wire: recorded by dumpcap, read by tshark, and its ICRCs computed again by zlib.

tshark shows an ICRC and does not check it. It takes small SENDs for RPC over RDMA, which they are not.
"""
import shutil
import struct
import subprocess
import zlib

ROCE_PORT = 4791
RECORD = struct.Struct("<IIII")


class Recorder:
    """Records an interface of a namespace until stop()."""

    def __init__(self, network, interface, path, megabytes=400):
        command = ["dumpcap", "-q", "-P", "-i", interface, "-B", "16", "-a", f"filesize:{megabytes * 1000}", "-w", path]
        self.process = subprocess.Popen([*network.command(), *command], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.path = path
        said = []
        for line in self.process.stderr:
            said.append(line)
            if line.startswith("File:"):
                return
        raise RuntimeError(f"dumpcap: {''.join(said)}")

    def stop(self):
        self.process.terminate()
        self.process.communicate()
        return self.path


def can_record():
    return shutil.which("dumpcap") is not None


def frames(path):
    with open(path, "rb") as file:
        file.read(24)
        while len(head := file.read(RECORD.size)) == RECORD.size:
            _, _, length, original = RECORD.unpack(head)
            frame = file.read(length)
            if length == original and len(frame) == length:
                yield frame


def masked_network_header(frame):
    """The headers of a RoCE packet over IP with the fields that routers change set to ones, and where UDP begins;
    None: it is no RoCE packet."""
    if frame[12:14] == b"\x08\x00":
        udp = 14 + (frame[14] & 15) * 4
        ip = bytearray(frame[14:udp])
        protocol, ip[1], ip[8], ip[10:12] = ip[9], 0xFF, 0xFF, b"\xff\xff"
    elif frame[12:14] == b"\x86\xdd":
        udp = 54
        ip = bytearray(frame[14:udp])
        protocol = ip[6]
        ip[0] |= 0x0F
        ip[1:4] = b"\xff\xff\xff"
        ip[7] = 0xFF
    else:
        return None
    if protocol != 17 or frame[udp + 2:udp + 4] != ROCE_PORT.to_bytes(2, "big"):
        return None
    return bytes(ip), udp


def right_icrc(frame, ip, udp):
    end = udp + int.from_bytes(frame[udp + 4:udp + 6], "big")
    head = bytearray(frame[udp:udp + 20])  # UDP and BTH
    head[6:8] = b"\xff\xff"
    head[12] = 0xFF
    covered = b"\xff" * 8 + ip + head + frame[udp + 20:end - 4]
    return zlib.crc32(covered) == int.from_bytes(frame[end - 4:end], "little")


def count_icrcs(path):
    """(RoCE packets, those with a wrong ICRC)"""
    packets = wrong = 0
    for frame in frames(path):
        found = masked_network_header(frame)
        if found:
            packets += 1
            wrong += not right_icrc(frame, *found)
    return packets, wrong


def malformed(path):
    """Lines about packets that tshark calls malformed; None: there is no tshark."""
    if not shutil.which("tshark"):
        return None
    done = subprocess.run(["tshark", "-r", path, "--disable-protocol", "rpcordma", "-Y", "_ws.malformed"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return [f"tshark failed: {done.stderr.strip()}"]
    return done.stdout.splitlines()
