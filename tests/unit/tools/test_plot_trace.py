#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What plot_trace.py makes of a time series of urma_perf."""
import contextlib
import io
import os
import sys
import tempfile
import unittest
from unittest import mock

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import plot_trace  # noqa: E402

HEAD = ("time_s,unix_s,row,tpn,path,local,remote,live,completions,bytes,gbit_s,p50_us,p99_us,congestion,rtt_us,window,"
        "rate_mbit_s,in_flight,marks,lost,deaths,tx_packets,rx_packets,age_ms\n")


def program(time, gbit_s):
    return f"{time},0,program,,,,,,1,1,{gbit_s},,,,,,,,,,,,,\n"


def channel(time, tpn, packets):
    return f"{time},0,channel,{tpn},,,h:1,,,,,,,none,5,6,0,0,0,0,,{packets},0,1\n"


def path(time, number, packets, live=1, rtt=10, window=32):
    return f"{time},0,path,7,{number},a:1,b:{number},{live},,,,,,,{rtt},{window},0,0,0,0,0,{packets},0,1\n"


class PlotTrace(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="softub-trace-")
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "t.csv")

    def charts(self, text, points=100):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(HEAD + text)
        return plot_trace.charts(plot_trace.read(self.path), points)

    def run_main(self, *arguments):
        out, errors = io.StringIO(), io.StringIO()
        with mock.patch.object(sys, "argv", ["plot_trace.py", *arguments]), contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(errors):
            return plot_trace.main(), out.getvalue(), errors.getvalue()

    def test_paths_have_shares_of_what_was_sent_between_samples(self):
        drawn = self.charts(path(1, 0, 100) + path(1, 1, 50) + path(2, 0, 130) + path(2, 1, 60) + program(2, 3))
        self.assertEqual([s.name for s in drawn["share"].series], ["a:1 > b:0", "a:1 > b:1"])
        self.assertEqual([[y for _, y in s.points] for s in drawn["share"].series], [[75], [25]])
        self.assertEqual([y for _, y in drawn["throughput"].series[0].points], [3])

    def test_a_path_that_is_cut_has_no_round_trip_and_no_window(self):
        drawn = self.charts("".join(program(t, 1) + path(t, 0, t, live=int(t != 2)) for t in (1, 2, 3)))
        self.assertEqual(len(drawn["rtt"].series[0].points), 2)
        self.assertEqual([y for _, y in drawn["window"].series[0].points], [32, 0, 32])

    def test_without_paths_there_are_channels(self):
        drawn = self.charts("".join(program(t, 1) + channel(t, 3, t) + channel(t, 4, 3 * t) for t in (1, 2)))
        self.assertEqual([s.name for s in drawn["share"].series], ["3 to h:1", "4 to h:1"])
        self.assertEqual([[y for _, y in s.points] for s in drawn["share"].series], [[25], [75]])

    def test_without_a_page_there_is_throughput_alone(self):
        self.assertEqual(list(self.charts(program(1, 1))), ["throughput"])

    def test_points_are_means(self):
        drawn = self.charts("".join(program(t / 10, t % 2) for t in range(1, 101)), points=5)
        points = drawn["throughput"].series[0].points
        self.assertEqual(len(points), 5)
        self.assertTrue(all(0.4 < y < 0.6 for _, y in points), points)

    def test_a_last_line_that_is_cut_off_is_left_out(self):
        self.assertEqual(len(self.charts(program(1, 1) + "2,0,prog")["throughput"].series[0].points), 1)

    def test_files_appear_beside_the_trace(self):
        self.charts("".join(program(t, 1) + path(t, 0, t) for t in (1, 2)))
        status, out, _ = self.run_main(self.path)
        self.assertEqual(status, 0)
        files = [f"{self.path[:-4]}-{name}.svg" for name in ("throughput", "share", "rtt", "window")]
        self.assertEqual(out.split(), files)
        for name in files:
            with open(name, encoding="utf-8") as file:
                self.assertTrue(file.read().startswith("<svg"))

    def test_mistakes_are_sentences(self):
        for text in ("", "a,b\n1,2\n", HEAD):
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(text)
            status, _, errors = self.run_main(self.path)
            self.assertEqual(status, 1)
            self.assertIn(self.path, errors)
        self.assertEqual(self.run_main("/nonexistent.csv")[0], 1)


if __name__ == "__main__":
    unittest.main()
