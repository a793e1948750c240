# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML page that needs nothing else: the table with its goals, plots drawn by chart.py, where and how it
was measured, and the programs that ran."""
from html import escape

import chart

from .report import counts, warnings
from .table import distance_of, number, verdict_of, why_skipped

STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --faint: #5d6670; --line: #d9dee3; --back: #ffffff; --stripe: #f5f7f9;
  --good: #1d7a3e; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e7ea; --faint: #9aa4ad; --line: #3a424a; --back: #15191d;
  --stripe: #1c2126; --good: #5fc184; --bad: #f2857c; } }
body { margin: 2rem auto; padding: 0 1.5rem; max-width: 1440px; background: var(--back); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { margin: 0 0 .3rem; font-size: 1.6rem; } h2 { margin: 2.2rem 0 .6rem; font-size: 1.2rem; }
p { max-width: 62rem; } .faint { color: var(--faint); }
.counts span { display: inline-block; margin-right: 1.2rem; } .counts b { font-size: 1.5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { padding: .28rem .5rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--faint); font-weight: 600; } td.n, th.n { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
tr.group th { padding-top: 1.1rem; color: var(--ink); border-bottom: 2px solid var(--line); }
td:first-child { min-width: 20rem; } td:nth-child(4) { min-width: 12rem; }
td:nth-child(7) { min-width: 6.8rem; }
code { font-size: 12px; color: var(--faint); overflow-wrap: anywhere; }
.met { color: var(--good); font-weight: 700; } .no { color: var(--bad); font-weight: 700; } .nowrap { white-space: nowrap; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 520px), 1fr)); gap: 1.2rem; }
figure { margin: 0; padding: .6rem; background: var(--stripe); border-radius: 6px; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { color: var(--faint); font-size: 13px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; } dt { color: var(--faint); } dd { margin: 0; }
summary { cursor: pointer; }
"""
HEAD = ("<tr><th>figure<th class=n>median<th class=n>middle half<th>baseline<th class=n>median<th class=n>ratio<th>goal"
        "<th>met<th>distance<br>(rounds)<th class=n>others'<br>CPU</tr>")
COLUMNS = 10


def cell(text, kind=""):
    return f"<td{f' class={kind!r}' if kind else ''}>{escape(text)}</td>"


def percent(share):
    return f"{100 * share:.0f} %"


def row_html(row):
    verdict = verdict_of(row)
    why = f'<br><span class="faint">{escape(why_skipped(row))}</span>' if row["skipped"] else ""
    middle = " – ".join(map(number, row["middle_half"])) if row["middle_half"] and row["rounds"] > 1 else ""
    foreign = percent(row["noise"]["foreign"]) if row["noise"] and row["distance"] else ""
    baseline = f"<code>{escape(row['beside'])}</code>" if row["beside"] else ""
    kind = {"met": "met", "no": "no"}.get(verdict, "faint")
    return (f"<tr><td>{escape(row['name'])}<br><code>{escape(row['ours'])}</code>{why}</td>"
            f"{cell(number(row['value'], row['unit']), 'n')}{cell(middle, 'n')}<td>{baseline}</td>"
            f"{cell(number(row['beside_value'], row['unit']), 'n')}{cell(number(row['ratio']), 'n')}{cell(row['goal'])}"
            f"{cell(verdict, kind)}{cell(distance_of(row), 'nowrap')}"
            f"{cell(foreign, 'n')}</tr>")


def table_html(groups):
    """Of groups that have figures; "" if there are none."""
    if not groups:
        return ""
    lines = ['<div class="scroll"><table>', HEAD]
    for group in groups:
        lines.append(f'<tr class="group"><th colspan="{COLUMNS}">{escape(group["name"])}</th></tr>')
        lines += map(row_html, group["figures"])
    return "\n".join(lines + ["</table></div>"])


def plot_html(plot):
    fields = {name: plot[name] for name in ("title", "kind", "x", "y", "series")}
    seen = f"distance of the CPUs: {' and '.join(plot['distances'])}" if plot["distances"] else ""
    where = f"<figcaption>{seen}</figcaption>" if seen else ""
    return f"<figure>{chart.from_fields(fields).svg()}{where}</figure>"


def noise_html(noise):
    if not noise:
        return ""
    names = {"foreign": "CPU time of others", "stolen": "CPU time that the host took"}
    parts = [f"{text}: {percent(noise[name]['median'])} (worst {percent(noise[name]['worst'])})"
             for name, text in names.items()]
    switches = noise["switches"]
    return "; ".join([*parts, f"involuntary switches: {switches['median']:.0f} a second (worst {switches['worst']:.0f})"])


def machine_html(report):
    facts = {**report["machine"], "noise, median of all runs": noise_html(report["noise"]),
             "took": f"{report['seconds']:.0f} s, rounds wanted: {report['options']['rounds']}"}
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts.items()) + "</dl>"


def programs_html(programs):
    lines = ["<details><summary>Programs that were run</summary>", '<div class="scroll"><table>',
             "<tr><th>program<th class=n>runs<th>skipped or failed</tr>"]
    for program in programs:
        trouble = "; ".join([program["skipped"] or "", *program["failures"]]).strip("; ")
        lines.append(f"<tr><td><code>{escape(program['name'])}</code></td>{cell(str(program['runs']), 'n')}"
                     f"{cell(trouble)}</tr>")
    return "\n".join(lines + ["</table></div></details>"])


def html(report):
    met, missed, unjudged = counts(report)
    warned = "".join(f'<p class="no">{escape(sentence)}</p>' for sentence in warnings(report))
    table = table_html([group for group in report["groups"] if group["figures"]])
    plots = [plot_html(plot) for group in report["groups"] for plot in group["plots"]]
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>SoftUB: benchmarks</title><style>{STYLE}</style></head><body>
<h1>SoftUB: benchmarks</h1>
<p class="faint">{escape(report['started'])}, {escape(report['machine']['SoftUB'])}, {escape(report['machine']['CPU'])}</p>
<p class="counts"><span class="met"><b>{met}</b> met</span> <span class="no"><b>{missed}</b> not met</span>
<span class="faint"><b>{unjudged}</b> not judged</span></p>
{warned}<p>Each figure stands beside a baseline of the same rounds. Times are medians of whole operations, those of ping-pongs
are there and back. A round counts for a figure if all probes of the distance of the two CPUs in it agree; goals are judged
in near mode alone. docs/benchmarks.md says what the baselines are.</p>
{'<h2>Figures and goals</h2>' + table if table else ''}
{'<h2>Plots</h2><div class="plots">' + ''.join(plots) + '</div>' if plots else ''}
<h2>Machine and method</h2>
{machine_html(report)}
{programs_html(report['programs'])}
</body></html>
"""
