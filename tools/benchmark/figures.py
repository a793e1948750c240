# SPDX-License-Identifier: Apache-2.0
"""What tools/bench measures: each figure with its baseline and its goal. docs/benchmarks.md says why the two of a figure
are like with like. A new figure is a line here; parsing.py names the values of programs."""
from chart import Axis

from .goals import at_least, at_least_times, at_most, at_most_times, either
from .plan import Curve, Figure, Group, Plot, latencies
from .program import Program

PACKET = 4144  # 4 KiB and what SoftUB puts before it
SIZES = [1 << i for i in range(3, 21)]
SOME_SIZES = (64, 1024, 8192, 32768)
WINDOWS = (1, 4, 16, 64, 256)

# ---- programs that several figures have ------------------------------------------------------------------------------

SPSC = Program("floor", "spsc")
STREAM = Program("floor", "spsc-bw")
MEMIF = Program("floor", "memif")
MEMIF_STREAM = Program("floor", f"memif --bw --size {PACKET} --copied")
COPY, SMALL_COPY = Program("floor", "copy --size 65536"), Program("floor", "copy --size 64")
UDP = Program("floor", "udp --unconnected")
CONNECTED_UDP = Program("floor", "udp")
BLOCKING_UDP = Program("floor", "udp --blocking")
UDP_STREAM = Program("floor", f"udp --bw --unconnected --size {PACKET} --batch 64")
TCP = Program("floor", "tcp")
RELAY = Program("floor", "relay")

READ, WRITE, SEND = "read_lat -s 64", "write_lat -s 64 --to-completion", "send_lat -s 64"
LOAD = Program("shm", "load_lat -s 64 --path lane")
SMALL_WRITES, SMALL_READS = "write_bw -s 64 -t 256", "read_bw -s 64 -t 256"
WRITES_64K, READS_1M, SENDS_64K = "write_bw -s 65536 -t 64", "read_bw -s 1048576 -t 16", "send_bw -s 65536 -t 64"
PLACED = " --shared-memory"

UCX = Program("ucx", "UCX_TLS=posix -t ucp_am_lat -s 64 -n 100000 -w 5000")
UCX_TRANSPORT = Program("ucx", "-x posix -d memory -t am_lat -s 64 -n 100000 -w 5000")
UCX_64K = Program("ucx", "UCX_TLS=posix,cma -t ucp_am_lat -s 65536 -n 5000 -w 200")
UCX_STREAM = Program("ucx", "UCX_TLS=posix,cma -t ucp_am_bw -s 65536 -n 20000 -w 500")
UCX_TCP = Program("ucx", "UCX_TLS=tcp UCX_NET_DEVICES=lo -t ucp_am_lat -s 64 -n 10000 -w 500")
UCX_TCP_STREAM = Program("ucx", "UCX_TLS=tcp UCX_NET_DEVICES=lo -t ucp_am_bw -s 65536 -n 5000 -w 200")
FABRIC = Program("libfabric", "-p shm -e rdm -S 64 -I 50000")
FABRIC_64K = Program("libfabric", "-p shm -e rdm -S 65536 -I 5000")
FABRIC_TCP = Program("libfabric", "-p tcp;ofi_rxm -e rdm -S 64 -I 10000")
FABRIC_TCP_64K = Program("libfabric", "-p tcp;ofi_rxm -e rdm -S 65536 -I 2000")


# ---- figures ---------------------------------------------------------------------------------------------------------

def shared_memory():
    read, write = Program("shm", READ), Program("shm", WRITE)
    return Group("shared memory, 64 B", [
        Figure("READ 64 B, shm, p50", read, "p50", "us", SPSC, goal=at_most_times(3)),
        Figure("READ 64 B, shm, p99", read, "p99", "us", SPSC),
        Figure("WRITE 64 B to its completion, shm, p50", write, "p50", "us", SPSC, goal=at_most_times(3)),
        Figure("WRITE 64 B to its completion, shm, p99", write, "p99", "us", SPSC),
        Figure("load 64 B, shm, p50", LOAD, "p50", "us", SPSC, goal=at_most_times(2.2)),
    ], [latencies("Latency of 64 B over shared memory",
                  [("bare ring, there and back", SPSC), ("load", LOAD), ("READ", read), ("WRITE", write)])])


def memif():
    read, write = Program("memif", READ), Program("memif", WRITE)
    return Group("memif, 64 B", [
        Figure("READ 64 B, memif, p50", read, "p50", "us", MEMIF, goal=at_most_times(1.8)),
        Figure("READ 64 B, memif, p99", read, "p99", "us", MEMIF, goal=at_most_times(2.5)),
        Figure("WRITE 64 B to its completion, memif, p50", write, "p50", "us", MEMIF, goal=at_most_times(1.8)),
        Figure("WRITE 64 B to its completion, memif, p99", write, "p99", "us", MEMIF, goal=at_most_times(2.5)),
    ], [latencies("Latency of 64 B over memif",
                  [("bare driver, there and back", MEMIF), ("READ", read), ("WRITE", write)])])


def placed():
    """One-sided operations within one host that the initiator carries out itself."""
    def at(test):
        return Program("shm", test + PLACED)

    name = "{} {}, memory of one host, placed by the initiator"
    return Group("placed by the initiator", [
        Figure(name.format("READ", "64 B") + ", p50", at(READ), "p50", "us", SMALL_COPY,
               "one copy out of the other's memory p50", at_most(0.1, "us")),
        Figure(name.format("WRITE", "64 B") + ", p50", at(WRITE), "p50", "us", SMALL_COPY, goal=at_most(0.1, "us")),
        Figure(name.format("WRITE", "64 KiB"), at("write_bw -s 65536 -t 16"), "gbps", "Gb/s", COPY,
               goal=at_least_times(0.8)),
        Figure(name.format("READ", "64 KiB"), at("read_bw -s 65536 -t 16"), "gbps", "Gb/s", COPY,
               "one copy out of the other's memory gbps", at_least_times(0.8)),
    ])


def small_messages():
    return Group("64 B, window 256", [
        Figure("WRITE 64 B, window 256, shm", Program("shm", SMALL_WRITES), "rate", "M/s", SPSC, goal=at_least(10, "M/s")),
        Figure("READ 64 B, window 256, shm", Program("shm", SMALL_READS), "rate", "M/s", SPSC, goal=at_least(7, "M/s")),
        Figure("WRITE 64 B, window 256, memif", Program("memif", SMALL_WRITES), "rate", "M/s", MEMIF,
               goal=either(at_least(5, "M/s"), at_least_times(0.35))),
        Figure("READ 64 B, window 256, memif", Program("memif", SMALL_READS), "rate", "M/s", MEMIF,
               goal=either(at_least(3.5, "M/s"), at_least_times(0.245))),
    ])


def bulk():
    return Group("bulk", [
        Figure(f"{name}, {wire}", Program(wire, test), "gbps", "Gb/s", stream, goal=at_least_times(0.6))
        for wire, stream in (("shm", STREAM), ("memif", MEMIF_STREAM))
        for name, test in (("WRITE 64 KiB", WRITES_64K), ("READ 1 MiB", READS_1M))])


def udp():
    read, send = Program("udp", READ), Program("udp", SEND)
    return Group("UDP beside the kernel", [
        Figure("READ 64 B, UDP, p50", read, "p50", "us", UDP, goal=at_most_times(1.15)),
        Figure("READ 64 B, UDP, p99", read, "p99", "us", UDP),
        Figure("WRITE 64 KiB, UDP", Program("udp", WRITES_64K), "gbps", "Gb/s", UDP_STREAM, goal=at_least_times(0.9)),
        Figure("SEND 64 B there and back, UDP, p50; connected UDP", send, "p50", "us", CONNECTED_UDP),
        Figure("SEND 64 B there and back, UDP, p50; TCP, polling", send, "p50", "us", TCP),
        Figure("SEND 64 B there and back, UDP, sleeping, p50; UDP, blocking", Program("udp", SEND + " -e"), "p50", "us",
               BLOCKING_UDP),
        Figure("SEND 64 B there and back, UDP, sleeping, p50; TCP, blocking", Program("udp", SEND + " -e"), "p50", "us",
               TCP, "TCP, blocking p50"),
        Figure("WRITE 64 KiB, UDP; TCP stream", Program("udp", WRITES_64K), "gbps", "Gb/s", TCP),
    ], [latencies("Latency of 64 B over UDP and TCP at 127.0.0.1",
                  [("UDP, there and back", UDP), ("TCP, there and back", TCP), ("READ", read),
                   ("SEND, there and back", send)])])


def daemons():
    return Group("two daemons, two CPUs", [
        Figure("READ 64 B, daemons, p50", Program("daemons", READ), "p50", "us", RELAY, goal=at_most_times(1.2)),
        Figure("WRITE 64 B to its completion, daemons, p50", Program("daemons", WRITE), "p50", "us", RELAY,
               goal=at_most_times(1.2)),
        Figure("WRITE 64 KiB, daemons, own memory", Program("daemons", WRITES_64K + " --own-memory"), "gbps", "Gb/s",
               STREAM, goal=at_least(25, "Gb/s")),
    ])


def libraries_over_shared_memory():
    send, send_64k = Program("shm", SEND), Program("shm", "send_lat -s 65536")
    stream = Program("shm", SENDS_64K)
    return Group("UCX and libfabric, shared memory", [
        Figure("SEND 64 B there and back, shm, p50; UCX, active messages", send, "p50", "us", UCX, goal=at_most_times(2)),
        Figure("SEND 64 B there and back, shm, p50; UCX, its transport alone", send, "p50", "us", UCX_TRANSPORT,
               goal=at_most_times(2)),
        Figure("SEND 64 B there and back, shm, mean; libfabric", send, "mean", "us", FABRIC, goal=at_most_times(1)),
        Figure("SEND 64 KiB there and back, shm, p50; UCX", send_64k, "p50", "us", UCX_64K, goal=at_most_times(1)),
        Figure("SEND 64 KiB there and back, shm, mean; libfabric", send_64k, "mean", "us", FABRIC_64K,
               goal=at_most_times(1)),
        Figure("SEND 64 KiB, shm; UCX", stream, "gbps", "Gb/s", UCX_STREAM, goal=at_least_times(1)),
    ])


def libraries_over_sockets():
    send, send_64k = Program("udp", SEND), Program("udp", "send_lat -s 65536")
    stream = Program("udp", SENDS_64K)
    return Group("UCX and libfabric, sockets", [
        Figure("SEND 64 B there and back, UDP, p50; UCX over TCP", send, "p50", "us", UCX_TCP, goal=at_most_times(1)),
        Figure("SEND 64 B there and back, UDP, mean; libfabric over TCP", send, "mean", "us", FABRIC_TCP,
               goal=at_most_times(1)),
        Figure("SEND 64 KiB, UDP; UCX over TCP", stream, "gbps", "Gb/s", UCX_TCP_STREAM),
        Figure("SEND 64 KiB there and back, UDP, mean; libfabric over TCP", send_64k, "mean", "us", FABRIC_TCP_64K),
    ])


def sizes():
    """By size: one run of urma_perf has all of them, a floor takes one for each."""
    def ours(name, kind, test, value):
        program = Program(kind, f"{test} -a --warmup 20 -D 0.03")
        return Curve(name, [(size, program, f"{value}@{size}") for size in SIZES])

    def theirs(name, kind, arguments, value):
        return Curve(name, [(size, Program(kind, arguments.format(size)), value) for size in SOME_SIZES])

    size = Axis("size", "bytes", sizes=True)
    return Group("sizes", [], [
        Plot("Time of an operation by size", size, Axis("time", "us", log=True), [
            ours("READ, shm", "shm", "read_lat", "p50"), ours("READ, memif", "memif", "read_lat", "p50"),
            ours("READ, UDP", "udp", "read_lat", "p50"),
            theirs("kernel UDP, there and back", "floor", "udp --unconnected --size {}", "p50"),
            theirs("UCX, there and back", "ucx", "UCX_TLS=posix,cma -t ucp_am_lat -s {} -n 3000 -w 100", "p50")]),
        Plot("Throughput by size", size, Axis("payload", "Gb/s", log=True), [
            ours("WRITE, shm", "shm", "write_bw", "gbps"), ours("WRITE, memif", "memif", "write_bw", "gbps"),
            ours("WRITE, UDP", "udp", "write_bw", "gbps"),
            theirs("UCX, active messages", "ucx", "UCX_TLS=posix,cma -t ucp_am_bw -s {} -n 5000 -w 100", "gbps")]),
    ], rounds=2)


def windows():
    def ours(name, kind, test):
        return Curve(name, [(window, Program(kind, f"{test}_bw -s 64 -t {window}"), "rate") for window in WINDOWS])

    return Group("windows", [], [
        Plot("Rate of 64 B by window", Axis("requests under way", log=True), Axis("rate", "M/s", log=True), [
            ours("WRITE, shm", "shm", "write"), ours("READ, shm", "shm", "read"),
            ours("WRITE, memif", "memif", "write"), ours("WRITE, UDP", "udp", "write"),
            Curve("bare ring", [(256, SPSC, "rate")]), Curve("bare memif", [(256, MEMIF, "rate")])]),
    ], rounds=2)


STAGES = ("post", "request out", "request in", "answer out", "answer in", "poll")
INSTRUCTIONS = {(verb, window): Program("instructions", f"{verb} 64 B, window {window}, no ICRC")
                for window in (64, 1) for verb in ("WRITE", "READ")}


def instructions():
    goals = {("WRITE", 64): 900, ("WRITE", 1): 1800, ("READ", 64): 1200, ("READ", 1): 2000}

    def by_stage(transport, name):
        return Plot(f"Instructions of 64 B by stage, {name}", Axis("operation"), Axis("instructions, both ends"), [
            Curve(stage, [(f"{verb}, window {window}", program, f"{transport} {stage}")
                          for (verb, window), program in INSTRUCTIONS.items()]) for stage in STAGES], "stacked")

    return Group("instructions", [
        Figure(f"{verb} 64 B, window {window}, {name}", program, value, "", goal=at_most(goals[verb, window]))
        for (verb, window), program in INSTRUCTIONS.items()
        for name, value in (("both Cores, CTP", "CTP all"), ("with liburma", "RTP liburma"))
    ], [by_stage("CTP", "within a host (CTP)"), by_stage("RTP", "between hosts (RTP)")], rounds=1)


def key_value():
    """YCSB-A: half reads, half updates, by one generator for all stores."""
    def at(store, window, *more):
        return Program("ycsb", " ".join((store, f"window={window}", *more)))

    def rate(store, window, goal=None, *more):
        waits = ", busy" if more else ""
        return Figure(f"YCSB-A, 64 B, {window} in flight; {store}{waits}", at("urma", window), "rate", "M/s",
                      at(store, window, *more), goal=goal)

    def tail(store, operation):
        return Figure(f"YCSB-A, 64 B, 1 in flight, {operation} p99; {store}", at("urma", 1), f"{operation} p99", "us",
                      at(store, 1), goal=at_most_times(1 / 20))

    stores = ("redis", "memcached")
    return Group("key and value", [
        *(rate(store, 1, at_least_times(20)) for store in stores),
        *(tail(store, operation) for store in stores for operation in ("READ", "UPDATE")),
        *(rate(store, 16, at_least_times(10)) for store in stores),
        *(rate(store, 1, None, f"{store}.wait=busy") for store in stores),
    ], [latencies("Latency of reads of a key-value store, YCSB-A, 64 B",
                  [(name, at(store, 1), "READ ") for name, store in (("SoftUB", "urma"), ("redis", "redis"),
                                                                     ("memcached", "memcached"))])])


def roce():
    kinds = {"send": "SEND 64 B there and back", "write": "WRITE 64 B there and back", "read": "READ 64 B"}
    return Group("RoCE beside Soft-RoCE", [
        Figure(f"{name}, RoCE, af_packet, p50; Soft-RoCE between guests", Program("roce", verb), "p50", "us",
               Program("soft-roce", verb)) for verb, name in kinds.items()], rounds=3, apart=True)


GROUPS = [shared_memory(), memif(), placed(), small_messages(), bulk(), udp(), daemons(), libraries_over_shared_memory(),
          libraries_over_sockets(), key_value(), sizes(), windows(), instructions(), roce()]
