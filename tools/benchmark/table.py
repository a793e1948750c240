# SPDX-License-Identifier: Apache-2.0
"""The figures of a report as a Markdown table, and the cells that the page has, too."""
HEADER = "| figure | median | baseline | median | ratio | goal | met | distance (rounds) |"
RULE = "|---|--:|---|--:|--:|---|---|---|"
VERDICTS = {"met": "met", "no": "**no**", "": ""}


def number(value, unit=""):
    """Three or four digits that say something."""
    if value is None:
        return ""
    if unit == "M/s" and value < 0.1:
        value, unit = value * 1000, "k/s"
    digits = 0 if value >= 100 else 1 if value >= 20 else 2
    text = f"{value:.2g}" if 0 < value < 0.1 else f"{value:,.{digits}f}".replace(",", " ")
    return f"{text} {unit}".strip()


def why_skipped(row):
    return "; ".join(dict.fromkeys(row["skipped"].values()))


def distance_of(row):
    if not row["rounds"]:
        return "" if row["skipped"] else "no steady round"
    return f"{row['distance'] or 'any'} ({row['rounds']})"


def verdict_of(row):
    """Says why nothing was judged, where a goal could have been."""
    if row["verdict"] or not row["goal"]:
        return row["verdict"]
    return "skipped" if row["skipped"] else "not judged"


def line_of(row):
    verdict = VERDICTS.get(row["verdict"]) or verdict_of(row)
    why = f" ({why_skipped(row)})" if row["skipped"] else ""
    baseline = f"`{row['beside']}`" if row["beside"] else ""
    return (f"| {row['name']} | {number(row['value'], row['unit'])} | {baseline} | "
            f"{number(row['beside_value'], row['unit'])} | {number(row['ratio'])} | {row['goal']} | {verdict}{why} | "
            f"{distance_of(row)} |")


def markdown(report):
    lines = [HEADER, RULE]
    for group in report["groups"]:
        lines += [line_of(row) for row in group["figures"]]
    return "\n".join(lines)
