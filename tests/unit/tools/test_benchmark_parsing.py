#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/bench reads from the output of programs: names, units, and half round trips that become whole ones."""
import os
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
from benchmark import foreign, noise, parsing  # noqa: E402
from benchmark.parsing import Unreadable  # noqa: E402

LATENCY_ROW = {"bytes": 64, "t_typical_us": 0.5, "t_avg_us": 0.6, "p99_us": 0.9, "percentiles_us": [[0.1, 0.4], [99.9, 2.0]]}
RATE_ROW = {"bytes": 64, "msg_rate_mpps": 2.5, "bw_average_mib_s": 1000.0}
FLOOR = {
    "latency": [{"name": "TCP, polling", "p50_ns": 5000, "p99_ns": 9000, "mean_ns": 5500.0, "percentiles_ns": [[10, 4000]]},
                {"name": "TCP, blocking", "p50_ns": 30000, "p99_ns": 60000, "mean_ns": 33000.0, "percentiles_ns": []}],
    "rate": [{"name": "TCP stream", "gbit_per_s": 33.5, "msgs_per_s": 64000, "lost_percent": 0}],
}
UCX = """\
iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
20000,0.333,11.780,11.780,5.18,5.25,84888,85000
"""
FABRIC = """\
bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
64      5k      =5k      625k        0.61s    125.00       1.75       0.02
"""
YCSB = {"phases": [
    {"phase": "load", "throughput": 1.0, "latencies": {}},
    {"phase": "run", "throughput": 20000.0, "latencies": {"READ": {"percentiles_us": {"50": 39.0, "99.9": 71.5}},
                                                          "UPDATE": {"percentiles_us": {"99": 80.0}}}}]}
INSTRUCTIONS = """\
instructions per operation                    |        post | request out |         all |     liburma |     packets
WRITE 64 B, window 64, no ICRC                |         119 |        1094 |        2361 |        2204 |        1.09
CTP WRITE 64 B, window 64, no ICRC            |         119 |         628 |        1433 |           - |        1.03
WRITE 64 B, window 64, no ICRC: CTP sends 94 % of the packets and takes 61 % of the instructions
"""


class OurPrograms(unittest.TestCase):
    def test_a_ping_pong_is_there_and_back(self):
        self.assertEqual(parsing.perf_values([LATENCY_ROW], 1),
                         {"p50": 0.5, "mean": 0.6, "p99": 0.9, "p0.1": 0.4, "p99.9": 2.0})
        self.assertEqual(parsing.perf_values([LATENCY_ROW], 2)["p50"], 1.0)
        self.assertEqual(parsing.perf_values([LATENCY_ROW], 2)["p99.9"], 4.0)

    def test_rates_are_in_gigabits(self):
        values = parsing.perf_values([RATE_ROW], 1)
        self.assertEqual(values["rate"], 2.5)
        self.assertAlmostEqual(values["gbps"], 8.388608)

    def test_of_several_sizes_each_has_its_name(self):
        values = parsing.perf_values([LATENCY_ROW, {**LATENCY_ROW, "bytes": 128, "t_typical_us": 0.7}], 1)
        self.assertEqual((values["p50@64"], values["p50@128"]), (0.5, 0.7))
        self.assertNotIn("p50", values)

    def test_the_first_row_of_a_floor_has_no_prefix(self):
        values = parsing.floor_values(FLOOR)
        self.assertEqual((values["p50"], values["p10"], values["TCP, blocking p50"]), (5.0, 4.0, 30.0))
        self.assertEqual((values["gbps"], values["rate"]), (33.5, 0.064))

    def test_instructions_are_told_apart_by_transport(self):
        values = parsing.instruction_values(INSTRUCTIONS)
        self.assertEqual((values["CTP all"], values["RTP all"], values["RTP liburma"]), (1433, 2361, 2204))
        self.assertNotIn("CTP liburma", values)


class OtherPrograms(unittest.TestCase):
    def test_ucx_counts_half_a_round_trip(self):
        self.assertEqual(parsing.ucx_values(UCX, True), {"p50": 0.666, "mean": 23.56})

    def test_ucx_has_mib(self):
        values = parsing.ucx_values(UCX, False)
        self.assertAlmostEqual(values["gbps"], 5.25 * 1.048576 * 8 / 1000)
        self.assertEqual(values["rate"], 0.085)

    def test_libfabric_counts_half_a_round_trip_and_has_mb(self):
        self.assertEqual(parsing.fabric_values(FABRIC), {"mean": 3.5, "gbps": 1.0})

    def test_ycsb_is_read_by_operation_and_its_load_phase_does_not_count(self):
        self.assertEqual(parsing.ycsb_values(YCSB), {"rate": 0.02, "READ p50": 39.0, "READ p99.9": 71.5, "UPDATE p99": 80.0})

    def test_what_cannot_be_read_is_an_error_that_quotes_it(self):
        for read in (lambda text: parsing.ucx_values(text, True), parsing.fabric_values, parsing.instruction_values):
            with self.assertRaises(Unreadable) as raised:
                read("connection refused")
            self.assertIn("connection refused", str(raised.exception))

    def test_a_program_that_is_not_installed_is_skipped_with_its_package(self):
        with self.assertRaises(foreign.Skip) as raised:
            foreign.need("no-such-program", "its-package")
        self.assertIn("no-such-program", str(raised.exception))
        self.assertIn("its-package", str(raised.exception))


class Noise(unittest.TestCase):
    def test_only_time_of_the_chosen_cpus_counts(self):
        ticks = noise.TICKS_PER_SECOND
        text = f"cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 {ticks} 0 {ticks} 500 7 0 0 {ticks} 0 0\ncpu1 900 0 0 0 0 0 0 0 0 0\nintr 1\n"
        self.assertEqual(noise.cpu_times(text, ["0"]), (2.0, 1.0))

    def test_shares_are_within_bounds(self):
        found = noise.Watch(["0"]).noise()
        self.assertTrue(all(0 <= found[name] <= 1 for name in ("foreign", "stolen")))


if __name__ == "__main__":
    unittest.main()
