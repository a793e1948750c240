#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what tools/demo measured as one table: SoftUB over its wires beside the kernel's UDP and TCP.

usage: demo_table.py DIR    with DIR/<wire>-<test>.json of urma_perf and DIR/floor-<name>.json of ub_floor
"""
import json
import pathlib
import sys

NAMES = {"shm": "SoftUB, shared memory", "udp": "SoftUB, UDP", "memif": "SoftUB, memif"}
COLUMNS = ["kernel UDP", "kernel TCP", "bare shared memory"]


def read(directory, name):
    return json.loads((directory / f"{name}.json").read_text(encoding="utf-8"))


def perf(directory, name):
    return read(directory, name)["results"][0]


def latency(directory, wire, test, trips):
    return f"{trips * perf(directory, f'{wire}-{test}')['t_typical_us']:.2f} us"


def bandwidth(directory, wire, test):
    return f"{perf(directory, f'{wire}-{test}')['bw_average_mib_s'] * 8 * 1.048576 / 1000:.1f} Gb/s"


def floor_latency(directory, name, row=0):
    return f"{read(directory, f'floor-{name}')['latency'][row]['p50_ns'] / 1000:.2f} us"


def floor_bandwidth(directory, name):
    return f"{read(directory, f'floor-{name}')['rate'][0]['gbit_per_s']:.1f} Gb/s"


def rows(d, wires):
    """A latency is the median of an operation or of two messages there and back; a test counts its half."""
    yield ["READ 64 B", *(latency(d, w, "read_lat", 1) for w in wires), "", "", ""]
    yield ["64 B there and back, polling", *(latency(d, w, "write_lat", 2) for w in wires),
           floor_latency(d, "udp"), floor_latency(d, "tcp"), floor_latency(d, "spsc")]
    yield ["64 B there and back, blocking", *[""] * len(wires), "", floor_latency(d, "tcp", 1), ""]
    yield ["64 KiB one way", *(bandwidth(d, w, "write_bw") for w in wires),
           floor_bandwidth(d, "udp-bw"), floor_bandwidth(d, "tcp"), floor_bandwidth(d, "spsc-bw")]
    yield ["64 KiB READ", *(bandwidth(d, w, "read_bw") for w in wires), "", "", ""]


def distances(directory):
    """The core-to-core distances that were seen: near and far differ by a factor of three."""
    found = set()
    for path in directory.glob("*.json"):
        result = json.loads(path.read_text(encoding="utf-8"))
        found |= {result[probe]["mode"] for probe in ("c2c_before", "c2c_after")}
    return " and ".join(sorted(found))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    directory = pathlib.Path(sys.argv[1])
    wires = [wire for wire in NAMES if (directory / f"{wire}-read_lat.json").exists()]
    table = [["", *(NAMES[wire] for wire in wires), *COLUMNS], *rows(directory, wires)]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        print("  ".join(cell.ljust(widths[i]) if i == 0 else cell.rjust(widths[i]) for i, cell in enumerate(row)))
    print(f"""
UDP and TCP over 127.0.0.1, datagrams of 4 KiB. Bare shared memory: slots of 64 bytes, blocks of 4 KiB copied in and
out. The distance of the two CPUs was: {distances(directory)}. On virtual machines that changes by itself, by a factor
of three, so compare within one run only where it says near or far throughout. tools/measure.py repeats each figure
until the distances agree and gives its ratio to the floor.""")


if __name__ == "__main__":
    main()
