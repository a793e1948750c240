# SPDX-License-Identifier: Apache-2.0
"""Time series of urma_perf (--trace): what is in them, on whatever wire, and what is refused."""
import csv
import os

from processes import FAILED, USAGE, Process, check, free_port, pair


def read(path):
    """Its lines; each must be whole."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    check(rows and not any(None in row or None in row.values() for row in rows), f"{path} is garbled")
    return rows


def written(perf, directory, host, test):
    """Samples of the program and of channels of its NIC."""
    path = os.path.join(directory, "trace.csv")
    args = [perf, test, "-p", free_port(), "-s", 64, "-D", 1]
    pair(args, args + ["--trace", path, "--trace-interval", "5ms", host], timeout=120)
    rows = read(path)
    program = [row for row in rows if row["row"] == "program"]
    busy = [row for row in program if int(row["completions"])]
    check(len(busy) > 5 and all(float(row["gbit_s"]) > 0 for row in busy), f"{test}: {len(busy)} busy samples")
    timed = [row for row in program if row["p50_us"]]
    check(bool(timed) == test.endswith("_lat"), f"{test}: {len(timed)} samples have times")
    check(all(0 < float(row["p50_us"]) <= float(row["p99_us"]) for row in timed), f"{test}: {timed[:5]}")
    sent = [int(row["tx_packets"]) for row in rows if row["row"] == "channel"]
    check(max(sent, default=0) > 0, f"{test}: no channel carries anything")


def refused(perf, directory):
    """A file that cannot be written is noticed before the measurement, and so are wrong options."""
    for path in ("/nonexistent/x.csv", directory):
        out = Process([perf, "write_lat", "-p", free_port(), "--trace", path]).expect(FAILED, 10)
        check("cannot write" in out and "waiting" not in out, out)
    for args in (["load_lat", "--trace", "x"], ["write_lat", "--trace-interval", "10"],
                 ["write_lat", "--trace-interval", "1us"], ["write_lat", "--trace-interval", "11s"]):
        check(len(Process([perf, *args]).expect(USAGE)) > 0, f"no message for {args}")


def tests(perf, directory, host):
    """(name, function)"""
    yield "perf --trace refused", lambda: refused(perf, directory)
    for test in ("write_lat", "read_bw"):
        yield f"perf {test} --trace", lambda t=test: written(perf, directory, host, t)
