#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Charts: where points, bars and ticks lie, what can be read on light and dark pages, what is said of bad data."""
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from unittest import mock

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import chart  # noqa: E402
from chart import Axis, Chart, ChartError, Series  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def luminance(colour):
    """As WCAG 2 defines it."""
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def draw(series, **more):
    fields = {"title": "T", "x": Axis("loss", "%"), "y": Axis("rate", "Mb/s"), **more}
    return xml.fromstring(Chart(series=series, **fields).svg())


def texts(root):
    return {element.text: element for element in root.iter(SVG + "text")}


def circles(root):
    return [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter(SVG + "circle")]


class Drawn(unittest.TestCase):
    def test_axes_have_labels_with_units_and_the_chart_a_title(self):
        words = texts(draw([Series("a", [(0, 1), (4, 2)])]))
        for expected in "T", "loss, %", "rate, Mb/s":
            self.assertIn(expected, words)

    def test_a_point_lies_where_the_ticks_of_its_values_are(self):
        root = draw([Series("a", [(0, 0), (2, 50), (4, 100)])])
        words = texts(root)
        for (x, y), (name_x, name_y) in zip(circles(root), (("0", None), ("2", None), ("4", "100"))):
            self.assertAlmostEqual(x, float(words[name_x].get("x")))
            if name_y:
                self.assertAlmostEqual(y, float(words[name_y].get("y")) - 4)
        (_, low), (_, middle), (_, high) = circles(root)
        self.assertAlmostEqual(middle, (low + high) / 2, places=1)

    def test_a_logarithmic_axis_gives_each_decade_the_same_height(self):
        root = draw([Series("a", [(0, 1), (1, 10), (2, 100)])], y=Axis("latency", "us", log=True))
        heights = [y for _, y in circles(root)]
        self.assertAlmostEqual(heights[0] - heights[1], heights[1] - heights[2], places=1)
        self.assertTrue({"1", "10", "100"} <= set(texts(root)))

    def test_ticks_are_round_numbers(self):
        self.assertEqual([name for _, name in chart.Linear([0, 9.3]).ticks()], ["0", "2", "4", "6", "8", "10"])
        self.assertEqual([name for _, name in chart.Linear([0, 0.31]).ticks()][:3], ["0.0", "0.1", "0.2"])
        self.assertEqual([name for _, name in chart.Linear([0.0011, 0.0029]).ticks()][1], "0.0005")
        self.assertEqual([name for _, name in chart.Log([3, 40]).ticks()], ["2", "5", "10", "20", "50"])
        self.assertEqual([name for _, name in chart.Log([0.002, 900]).ticks()], ["0.01", "0.1", "1", "10", "100", "1000"])

    def test_equal_values_have_a_scale_too(self):
        for value in 0, 5, -5:
            self.assertGreaterEqual(len(chart.Linear([value, value]).ticks()), 2)
        self.assertGreaterEqual(len(chart.Log([5, 5]).ticks()), 2)

    def test_bars_of_a_category_stand_side_by_side_and_begin_at_zero(self):
        root = draw([Series("up", [("none", 10), ("1 %", 5)]), Series("down", [("none", -10), ("1 %", 5)])], kind="bar")
        bars = [{k: float(r.get(k)) for k in ("x", "y", "width", "height")} for r in root.iter(SVG + "rect")][:4]
        up, _, down, _ = bars
        self.assertGreaterEqual(down["x"], up["x"] + up["width"])
        self.assertAlmostEqual(up["y"] + up["height"], down["y"])
        self.assertAlmostEqual(up["height"], down["height"], delta=0.2)
        self.assertTrue({"none", "1 %"} <= set(texts(root)))

    def test_parts_of_a_stacked_bar_stand_on_each_other(self):
        root = draw([Series("low", [("a", 10), ("b", 4)]), Series("high", [("a", 30), ("b", 6)])], kind="stacked")
        bars = [{k: float(r.get(k)) for k in ("x", "y", "width", "height")} for r in root.iter(SVG + "rect")][:4]
        low, shorter, high, _ = bars
        self.assertEqual(low["x"], high["x"])
        self.assertAlmostEqual(high["y"] + high["height"], low["y"], delta=0.2)
        self.assertAlmostEqual(high["height"], 3 * low["height"], delta=0.4)
        self.assertAlmostEqual(low["y"] + low["height"], shorter["y"] + shorter["height"], delta=0.2)
        self.assertIn("40", texts(root))

    def test_each_nine_takes_as_much_room_as_the_one_before(self):
        root = draw([Series("a", [(1, 0), (2, 90), (3, 99), (4, 99.9)])], y=Axis("share", "%", nines=True))
        heights = [y for _, y in circles(root)]
        for first, second in zip(heights, heights[1:]):
            self.assertAlmostEqual(first - second, heights[0] - heights[1], delta=0.2)
        self.assertEqual([name for _, name in chart.Nines([99.99]).ticks()], ["0", "50", "90", "99", "99.9", "99.99"])

    def test_sizes_are_powers_of_two(self):
        root = draw([Series("a", [(64, 1), (4096, 2), (262144, 3)])], x=Axis("size", "bytes", sizes=True))
        left, middle, right = (x for x, _ in circles(root))
        self.assertAlmostEqual(middle - left, right - middle, places=1)
        self.assertEqual([name for _, name in chart.Sizes([8, 1 << 20]).ticks()][-4:], ["8K", "32K", "128K", "512K"])
        self.assertEqual([name for _, name in chart.Sizes([64, 64]).ticks()], ["64", "128"])

    def test_several_series_have_a_legend_with_marks_that_differ_and_one_has_none(self):
        names = [f"series {i}" for i in range(6)]
        root = draw([Series(name, [(0, i)]) for i, name in enumerate(names)])
        self.assertTrue(set(names) <= set(texts(root)))
        self.assertEqual(len(set(chart.MARKS)), len(chart.COLOURS))
        right = max(float(texts(root)[n].get("x")) + chart.LETTER * len(n) for n in names)
        self.assertLessEqual(right, chart.WIDTH)
        self.assertNotIn("alone", texts(draw([Series("alone", [(0, 1)])])))

    def test_every_colour_is_seen_on_light_and_dark_pages(self):
        for colour in (*chart.COLOURS, chart.INK):
            for page in "#ffffff", "#0d1117":
                self.assertGreaterEqual(contrast(colour, page), 3, f"{colour} on {page}")

    def test_the_background_is_transparent(self):
        self.assertEqual(list(draw([Series("a", [(0, 1)])]).iter(SVG + "rect")), [])

    def test_names_may_have_letters_that_xml_reserves(self):
        self.assertIn("a < b & c", texts(draw([Series("a < b & c", [("<1 %", 1)]), Series("d", [("<1 %", 1)])])))


class Input(unittest.TestCase):
    def test_json_has_everything(self):
        made = chart.from_json(json.dumps({
            "title": "T", "kind": "bar", "x": {"label": "loss"}, "y": {"label": "rate", "unit": "Mb/s", "log": True},
            "series": [{"name": "a", "points": [["none", 3]]}]}))
        self.assertEqual(made, Chart("T", Axis("loss"), Axis("rate", "Mb/s", True), [Series("a", [("none", 3)])], "bar"))

    def test_csv_has_a_series_for_each_column_and_no_point_for_an_empty_cell(self):
        made = chart.from_csv("loss,a,b\n0,1,2\n1.5,,4\n")
        self.assertEqual(made.series, [Series("a", [(0, 1)]), Series("b", [(0, 2), (1.5, 4)])])

    def refused(self, call, *words):
        with self.assertRaises(ChartError) as caught:
            call()
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_bad_input_is_refused_with_its_place(self):
        self.refused(lambda: chart.from_json("{\n,"), "line 2")
        self.refused(lambda: chart.from_json("[]"), "series")
        self.refused(lambda: chart.from_json('{"series": [{"name": "a"}]}'), "series 1", "points")
        self.refused(lambda: chart.from_json('{"series": [], "x": {"label": "x", "lgo": true}}'), '"x"', "lgo")
        self.refused(lambda: chart.from_csv("x,y\n1\n"), "line 2")
        self.refused(lambda: chart.from_csv("x\n"), "line 1")

    def test_points_that_cannot_be_drawn_are_refused_by_name(self):
        self.refused(lambda: draw([Series("a", [])]), "nothing to draw")
        self.refused(lambda: draw([Series("a", [(0, float("nan"))])]), '"a"', "finite")
        self.refused(lambda: draw([Series("a", [(0, "x")])]), '"a"', "y is not a finite number")
        self.refused(lambda: draw([Series("a", [(1, 0)])], y=Axis("rate", "", True)), '"a"', "above 0")
        self.refused(lambda: draw([Series("a", [(1, 1), ("none", 1)])]), "some x are numbers")
        self.refused(lambda: draw([Series("a", [(1, 1)])], kind="pie"), "pie")
        self.refused(lambda: draw([Series("a", [(1, 100)])], y=Axis("share", "%", nines=True)), '"a"', "below 100")
        self.refused(lambda: draw([Series("a", [(0, 1)])], x=Axis("size", sizes=True)), '"a"', "above 0")
        self.refused(lambda: draw([Series("a", [(1, 1)])], x=Axis("size", log=True, sizes=True)), "one scale")
        self.refused(lambda: draw([Series("a", [("none", 1)])], y=Axis("y", log=True), kind="stacked"), "linear")
        self.refused(lambda: draw([Series("a", [("none", -1)])], kind="stacked"), '"a"', "below 0")

    def test_the_program_draws_a_file_or_says_what_is_wrong_with_it(self):
        with tempfile.TemporaryDirectory(prefix="softub-chart-") as directory:
            source, target = os.path.join(directory, "in.csv"), os.path.join(directory, "out.svg")

            def run(content):
                with open(source, "w", encoding="utf-8") as file:
                    file.write(content)
                with mock.patch.object(sys, "argv", ["chart.py", source, "-o", target, "--y-unit", "us"]), \
                        contextlib.redirect_stderr(io.StringIO()) as errors:
                    return chart.main(), errors.getvalue()

            status, said = run("loss,latency\n0,x\n")
            self.assertEqual((status, os.listdir(directory)), (1, ["in.csv"]))
            self.assertIn(source, said)
            self.assertEqual(run("loss,latency\n0,1\n1,2\n"), (0, ""))
            self.assertIn("latency, us", texts(xml.parse(target).getroot()))


if __name__ == "__main__":
    unittest.main()
