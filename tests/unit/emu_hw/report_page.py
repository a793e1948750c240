#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report in headless Chromium: each plot is there, has a title, titles of both axes and a legend, and has marks that
lie in its area; the page loads nothing else, and is not blank.

usage: report_page.py UB_EMU [--keep DIRECTORY]

Exit code 77: skipped, with the cause.
"""
import argparse
import csv
import glob
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

SKIPPED = 77
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# Looks at the plots where they are drawn: their boxes on the screen, not the numbers in the file. It is put into a copy
# of the page, and leaves what it has seen there.
LOOK = """
<script>
const inside = (box, area) => [box.left, box.right, box.top, box.bottom].every(Number.isFinite) &&
    box.left >= area.left - 8 && box.right <= area.right + 8 && box.top >= area.top - 8 && box.bottom <= area.bottom + 8;
const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const figures = [...document.querySelectorAll("figure")].map(figure => {
  const all = selector => [...figure.querySelectorAll("svg " + selector)];
  const texts = selector => all(selector).map(each => each.textContent.trim());
  const area = all("rect.area")[0].getBoundingClientRect();
  const shown = figure.querySelector("svg").getBoundingClientRect();
  const data = all(".data .mark, .data .bar, .data polyline, .data .cross").map(each => each.getBoundingClientRect());
  const letters = all("text").filter(each => !each.matches(".value, .within")).map(
      each => [each.textContent, each.getBoundingClientRect()]);
  const overlaps = [];
  for (let i = 0; i < letters.length; ++i)
    for (let j = i + 1; j < letters.length; ++j)
      if (overlap(letters[i][1], letters[j][1])) overlaps.push(letters[i][0] + " / " + letters[j][0]);
  return {name: figure.dataset.figure, titles: texts(".title"), axes: texts(".axis-title"), ticks: texts(".tick"),
          legend: texts(".legend text"), marks: data.length, outside: data.filter(each => !inside(each, area)).length,
          cut: letters.filter(each => !inside(each[1], shown)).map(each => each[0]), overlaps};
});
const report = document.createElement("pre");
report.id = "seen";
report.textContent = JSON.stringify(figures);
document.body.append(report);
</script>
"""


def check(condition, what):
    if not condition:
        sys.exit(what)


def browser():
    return next((path for path in map(shutil.which, BROWSERS) if path), None)


def open_page(chromium, path, *options):
    """What the browser prints."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--window-size=1240,1000", f"--user-data-dir={profile}", *options, "file://" + os.path.abspath(path)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=180)
    check(done.returncode == 0, f"{chromium}: code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def look_at(chromium, page, directory):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    elsewhere = re.findall(r'(?:src|href)="(?!#)[^"]*"|url\(|@import|<link', text)
    check(not elsewhere, f"the page needs {elsewhere}")
    copy = os.path.join(directory, "looked-at.html")
    with open(copy, "w", encoding="utf-8") as file:
        file.write(text.replace("</body>", LOOK + "</body>"))
    dom = open_page(chromium, copy, "--dump-dom")
    root = xml.etree.ElementTree.fromstring("<r>" + dom[dom.index('<pre id="seen">'):dom.rindex("</body>")] + "</r>")
    return json.loads(root.find("pre").text)


def check_figure(figure):
    name = figure["name"]
    check(len(figure["titles"]) >= 1 and all(figure["titles"]), f"{name}: has no title")
    check(len(figure["axes"]) == 2 and all(figure["axes"]), f"{name}: axes have no titles: {figure['axes']}")
    check(len(figure["legend"]) >= 1 and all(figure["legend"]), f"{name}: has no legend")
    check(len(figure["ticks"]) >= 2, f"{name}: axes have no numbers")
    check(figure["marks"] > 0, f"{name}: is empty")
    check(figure["outside"] == 0, f"{name}: {figure['outside']} marks lie outside of the plot")
    check(not figure["cut"], f"{name}: texts leave the picture: {figure['cut']}")
    check(not figure["overlaps"], f"{name}: texts lie on each other: {figure['overlaps']}")


def check_files(directory):
    with open(os.path.join(directory, "results.json"), encoding="utf-8") as file:
        points = json.load(file)["points"]
    with open(os.path.join(directory, "values.csv"), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    check(len(rows) >= len(points) > 0, f"{len(rows)} rows in values.csv for {len(points)} points")
    for row in rows:
        check(None not in row.values() and None not in row, f"values.csv: a row has other columns: {row}")
        check(row["invalid"] or math.isfinite(float(row["result"])), f"values.csv: neither result nor reason: {row}")
    with open(os.path.join(directory, "trace.json"), encoding="utf-8") as file:
        check(len(json.load(file)["traceEvents"]) > 20, "trace.json has no events")
    names = set()
    for path in glob.glob(os.path.join(directory, "figures", "*.svg")):
        xml.etree.ElementTree.parse(path)
        names.add(os.path.splitext(os.path.basename(path))[0])
    return names


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ub_emu")
    parser.add_argument("--keep", help="a directory for the report and a picture of its page")
    arguments = parser.parse_args()
    chromium = browser()
    if chromium is None:
        print("skipped: the report is not looked at, since there is no chromium here; tools/setup --ci installs it")
        return SKIPPED
    with tempfile.TemporaryDirectory() as temporary:
        directory = arguments.keep or temporary
        done = subprocess.run([os.path.abspath(arguments.ub_emu), "report", "-o", directory], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=600)
        check(done.returncode in (0, 1), f"report: code {done.returncode}\n{done.stderr}")
        names = check_files(directory)
        page = os.path.join(directory, "index.html")
        figures = look_at(chromium, page, temporary)
        check({figure["name"] for figure in figures} == names, "the page has other figures than the directory")
        check({"budget", "timeline"} < names, f"there is no budget or timeline among {sorted(names)}")
        for figure in figures:
            check_figure(figure)
        picture = os.path.join(directory, "page.png")
        open_page(chromium, page, f"--screenshot={picture}")
        check(os.path.getsize(picture) > 20000, "the page looks blank")
    print(f"ok: {len(figures)} figures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
