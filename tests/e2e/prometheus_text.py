# SPDX-License-Identifier: Apache-2.0
"""A strict reader of the text format of Prometheus, with the rules that `promtool check metrics` has for names."""
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
COMMENT = re.compile(r"# (HELP|TYPE) (\S+) (.+)")
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
PARTS = {"summary": ("_sum", "_count", ""), "histogram": ("_sum", "_count", "_bucket")}
NOT_BASE_UNITS = ("_ns", "_us", "_ms", "_microseconds", "_milliseconds", "_nanoseconds", "_minutes", "_kilobytes", "_bits")


class Fault(Exception):
    pass


def labels_of(text):
    labels, at = {}, 0
    while at < len(text):
        found = LABEL.match(text, at)
        if not found or found.group(1) in labels:
            raise Fault(f"labels {{{text}}}")
        labels[found.group(1)] = found.group(2)
        at = found.end()
    return labels


class Page:
    """All samples; Fault if the page is wrong anywhere."""

    def __init__(self, text):
        self.helps, self.types, self.samples = {}, {}, {}
        if text and not text.endswith("\n"):
            raise Fault("the last line has no end")
        self.family, closed = None, set()
        for line in text.splitlines():
            name = self.comment(line) if line.startswith("#") else self.sample(line)
            if name != self.family:
                closed.add(self.family)
                self.family = name
            if name in closed:
                raise Fault(f"{name} is in several places")
        for name in self.helps.keys() ^ self.types.keys():
            raise Fault(f"{name} has no HELP, or no TYPE")
        for name, kind in self.types.items():
            self.check_name(name, kind)

    def comment(self, line):
        found = COMMENT.fullmatch(line)
        if not found or not NAME.fullmatch(found.group(2)):
            raise Fault(f"comment: {line}")
        into = self.helps if found.group(1) == "HELP" else self.types
        if found.group(2) in into:
            raise Fault(f"twice: {line}")
        into[found.group(2)] = found.group(3)
        return found.group(2)

    def sample(self, line):
        found = SAMPLE.fullmatch(line)
        if not found:
            raise Fault(f"sample: {line}")
        name, value = found.group(1), float(found.group(3))
        family = next((f for f in self.types if any(name == f + part for part in PARTS.get(self.types[f], ("",)))), None)
        if family is None or family not in self.helps:
            raise Fault(f"before its HELP and TYPE: {line}")
        labels = labels_of(found.group(2) or "")
        key = (name, frozenset(labels.items()))
        if key in self.samples:
            raise Fault(f"twice: {line}")
        if self.types[family] == "counter" and value < 0:
            raise Fault(f"a counter below 0: {line}")
        self.samples[key] = value
        return family

    @staticmethod
    def check_name(name, kind):
        if kind not in ("counter", "gauge", "summary", "histogram"):
            raise Fault(f"{name} is a {kind}")
        if (kind == "counter") != name.endswith("_total"):
            raise Fault(f"{name} is a {kind}")
        if name.removesuffix("_total").endswith(NOT_BASE_UNITS):
            raise Fault(f"{name} is in no base unit")

    def get(self, name, **labels):
        """The values of all samples that have these labels, and maybe others."""
        return [value for (sample, own), value in self.samples.items() if sample == name and labels.items() <= dict(own).items()]


def check_reader():
    """The reader itself: it refuses what is wrong."""
    good = '# HELP a_total x\n# TYPE a_total counter\na_total{l="1"} 1\na_total{l="2"} 2\n'
    assert Page(good).get("a_total", l="2") == [2.0]
    bad = {
        "a_total 1\n": "before its HELP",
        good + 'a_total{l="1"} 3\n': "twice",
        good + good: "twice",
        good.replace("a_total", "a"): "is a counter",
        good.replace("counter", "gauge"): "is a gauge",
        good.replace("a_total", "a-b_total"): "comment",
        good.replace('l="1"', 'l="1'): "labels",
        good.replace('l="1"', '1l="1"'): "labels",
        good.replace(" 2\n", " 2"): "no end",
        good.replace("a_total", "a_us_total"): "base unit",
        good.replace("# HELP a_total x\n", ""): "before its HELP",
        good + '# HELP b x\n# TYPE b gauge\nb 1\na_total{l="3"} 3\n': "several places",
    }
    for text, why in bad.items():
        try:
            Page(text)
        except Fault as fault:
            assert why in str(fault), (text, fault)
        else:
            raise AssertionError(f"not refused: {text}")
