# SPDX-License-Identifier: Apache-2.0
"""What programs print, as values by name. All names mean the same for all programs:

  p50, p99, mean, p0.1 ... p99.999   time of a whole operation, in us; of a ping-pong that is there and back
  rate                               messages, in M/s
  gbps                               payload, in Gb/s

A program that measures several things has more, with a prefix (`TCP, blocking p50`, `READ p99`) or, of several sizes, with
the size behind it (`p50@4096`).
"""
import csv
import re

MIB_S = 8 * 1.048576 / 1000  # in Gb/s


class Unreadable(ValueError):
    """The program printed something else than it used to."""


def perf_values(rows, trips):
    """Of the rows of urma_perf's JSON. `trips`: 2 where it counts half a round trip."""
    values = {}
    for row in rows:
        where = f"@{row['bytes']}" if len(rows) > 1 else ""
        for name, key in (("p50", "t_typical_us"), ("p99", "p99_us"), ("mean", "t_avg_us")):
            if key in row:
                values[name + where] = trips * row[key]
        for percent, time in row.get("percentiles_us", ()):
            values[f"p{percent:g}{where}"] = trips * time
        if "msg_rate_mpps" in row:
            values["rate" + where] = row["msg_rate_mpps"]
            values["gbps" + where] = row["bw_average_mib_s"] * MIB_S
    return values


def floor_values(result):
    """Of the JSON of ub_floor or ub_floor_dpdk. The first row of each kind has no prefix."""
    values = {}
    for number, row in enumerate(result["latency"]):
        found = {"p50": row["p50_ns"], "p99": row["p99_ns"], "mean": row["mean_ns"],
                 **{f"p{percent:g}": time for percent, time in row["percentiles_ns"]}}
        prefix = f"{row['name']} " if number else ""
        values.update({prefix + name: time / 1000 for name, time in found.items()})
    for number, row in enumerate(result["rate"]):
        prefix = f"{row['name']} " if number else ""
        values.update({prefix + "rate": row["msgs_per_s"] / 1e6, prefix + "gbps": row["gbit_per_s"]})
    return values


def ucx_values(text, latency):
    """Of ucx_perftest -f -v, whose latencies are half a round trip, and whose MB are 2^20 bytes."""
    lines = list(csv.reader(text.splitlines()))
    names = next((line for line in lines if line and line[0] == "iterations"), None)
    numbers = lines[lines.index(names) + 1] if names and names is not lines[-1] else ()
    if len(numbers) != 8:
        raise Unreadable(f"ucx_perftest printed no line of eight numbers: {text.strip()[-300:]}")
    median, _, mean, _, bandwidth, _, rate = map(float, numbers[1:])  # of all, not since its last line
    if latency:
        return {"p50": 2 * median, "mean": 2 * mean}
    return {"gbps": bandwidth * MIB_S, "rate": rate / 1e6}


def fabric_values(text):
    """Of fi_pingpong, which prints the mean time of half a round trip, and MB of 10^6 bytes."""
    names, *rest = text.split("\n", 1)
    numbers = rest[0].split() if rest else ()
    if "usec/xfer" not in names.split() or len(numbers) != len(names.split()):
        raise Unreadable(f"fi_pingpong printed no line of numbers: {text.strip()[-300:]}")
    row = dict(zip(names.split(), numbers))
    return {"mean": 2 * float(row["usec/xfer"]), "gbps": float(row["MB/sec"]) * 8 / 1000}


def ycsb_values(document):
    """Of the JSON of urma_ycsb: the rate of the phase "run", and times by operation ("READ p99")."""
    phase = next(phase for phase in document["phases"] if phase["phase"] == "run")
    values = {"rate": phase["throughput"] / 1e6}
    for operation, times in phase["latencies"].items():
        values.update({f"{operation} p{float(percent):g}": time for percent, time in times["percentiles_us"].items()})
    return values


def instruction_values(text):
    """Of tests/bench/instructions, rows of one operation by both transports: "CTP all", "RTP request out"."""
    values, columns = {}, None
    for line in text.splitlines():
        name, *cells = (cell.strip() for cell in line.split("|"))
        if name == "instructions per operation":
            columns = cells
        elif columns and len(cells) == len(columns):
            transport = "CTP" if name.startswith("CTP ") else "RTP"
            values.update({f"{transport} {column}": float(cell) for column, cell in zip(columns, cells) if cell != "-"})
    if not values:
        raise Unreadable(f"instructions printed no row: {text.strip()[-300:]}")
    return values
