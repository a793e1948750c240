#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds docs/features.md to the tree. Prints file:line: rule, and ends with status 1 if there is any fault.

The tables of that page have six columns: section, feature, state, implementation, test, remark.

  - every path in backquotes (a word with a slash) is a file or directory of this tree
  - every other word in backquotes, in the column implementation, occurs in a file that the row names there
  - every other text in backquotes, in the column test, is a test of the file that is named before it: Suite.name in C++,
    the name of a case in C, the name of a function in Python
  - the state is one of done, partly, later, left out
  - "done" needs a file and a test, "partly" a file, a test and a remark, "left out" a remark, and "later" a remark that
    says "not yet: ..."
  - links to other pages lead somewhere

usage: check_features.py [root]          check_features.py --self-test
"""
import os
import re
import sys
import tempfile

PAGE = "docs/features.md"
COLUMNS = 6
STATES = ("done", "partly", "later", "left out")
QUOTED = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)+/?")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def has_test(source, path, name):
    if path.endswith(".c"):
        return f'{{"{name}",' in source
    if path.endswith(".py"):
        return re.search(rf"^\s*def {re.escape(name)}\(", source, re.M) is not None
    suite, dot, case = name.partition(".")
    macro = rf"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*{re.escape(suite)},\s*{re.escape(case)}\s*\)"
    return dot != "" and re.search(macro, source, re.M) is not None


def rows_of(text):
    """(line number, cells) of each row of the tables of features: those whose third column is the state."""
    above = []  # the cells of the rows of this table so far
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith("|"):
            above = []
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(above) >= 2 and above[0][2:3] == ["state"]:
            yield number, cells
        above.append(cells)


class Row:
    def __init__(self, root, cells, report):
        self.root = root
        self.report = report
        _, _, self.state, implementation, test, self.remark = cells
        self.files = self.check_implementation(implementation)
        self.tests = self.check_tests(test)

    def check_implementation(self, cell):
        texts = QUOTED.findall(cell)
        files = [text for text in texts if PATH.fullmatch(text)]
        sources = [read(self.root, path) for path in files if os.path.isfile(os.path.join(self.root, path))]
        for text in texts:
            if text not in files and not any(text in source for source in sources):
                self.report(f"no file of the row has {text}")
        return files

    def check_tests(self, cell):
        count = 0
        path = None
        for text in QUOTED.findall(cell):
            if PATH.fullmatch(text):
                path = text
                continue
            count += 1
            if path is None:
                self.report(f"{text} has no file before it")
            elif os.path.isfile(os.path.join(self.root, path)) and not has_test(read(self.root, path), path, text):
                self.report(f"{path} has no test {text}")
        return count

    def check_state(self):
        if self.state not in STATES:
            return self.report(f"{self.state} is no state")
        if self.state in ("done", "partly") and not (self.files and self.tests):
            self.report(f"{self.state} without a file or without a test")
        if self.state in ("partly", "left out") and not self.remark:
            self.report(f"{self.state} without a remark")
        if self.state == "later" and "not yet: " not in self.remark:
            self.report('"later" without "not yet: ..."')


def check(root):
    problems = []
    text = read(root, PAGE)

    def report_at(number):
        return lambda rule: problems.append((number, rule))

    for number, line in enumerate(text.split("\n"), 1):
        for path in QUOTED.findall(line):
            if PATH.fullmatch(path) and not os.path.exists(os.path.join(root, path)):
                report_at(number)(f"there is no {path}")
        for target in LINK.findall(line):
            if "://" not in target and not os.path.exists(os.path.join(root, os.path.dirname(PAGE), target)):
                report_at(number)(f"there is no {target}")
    rows = list(rows_of(text))
    for number, cells in rows:
        if len(cells) == COLUMNS:
            Row(root, cells, report_at(number)).check_state()
        else:
            report_at(number)(f"{len(cells)} columns, not {COLUMNS}")
    if not rows:
        report_at(1)("no row")
    return len(rows), problems


SELF_TEST_PAGE = """# Features

[here](other.md) [nowhere](missing.md) [outside](https://example.org)
Read `lib/a.h`, but not `lib/b.h`.

| another | table |
|---|---|
| `anything` | |

| section | feature | state | implementation | test | remark |
|---|---|---|---|---|---|
| 1 | all is well | done | `lib/a.h` `word` | `tests/a_test.cc` `A.one` `A.two` | |
| 1 | other languages | partly | `lib/a.h` | `tests/b.c` `a case`; `tests/c.py` `test_c` | not all |
| 1 | not built | later | | | not yet: a file |
| 1 | not wanted | left out | | | because |
| 2 | no file of that name | done | `lib/gone.h` | `tests/a_test.cc` `A.one` | |
| 2 | no word of that name | done | `lib/a.h` `wort` | `tests/a_test.cc` `A.one` | |
| 2 | no test of that name | done | `lib/a.h` | `tests/a_test.cc` `A.on` | |
| 2 | the test of another suite | done | `lib/a.h` | `tests/a_test.cc` `B.one` | |
| 2 | a case without a suite | done | `lib/a.h` | `tests/a_test.cc` `one` | |
| 2 | no case of that name | done | `lib/a.h` | `tests/b.c` `a cas` | |
| 2 | no function of that name | done | `lib/a.h` | `tests/c.py` `test_` | |
| 2 | no file of tests | done | `lib/a.h` | `A.one` | |
| 2 | no such file of tests | done | `lib/a.h` | `tests/gone.c` `a case` | |
| 3 | no state | ready | `lib/a.h` | `tests/a_test.cc` `A.one` | |
| 3 | no test | done | `lib/a.h` | `tests/a_test.cc` | |
| 3 | no file | partly | | `tests/a_test.cc` `A.one` | not all |
| 3 | no remark | partly | `lib/a.h` | `tests/a_test.cc` `A.one` | |
| 3 | no reason | left out | | | |
| 3 | not said what | later | | | soon |
| 3 | a column is missing | done | `lib/a.h` | `tests/a_test.cc` `A.one` |
"""


def self_test():
    """A rule that finds nothing in a page full of mistakes is broken."""
    tree = {
        PAGE: SELF_TEST_PAGE,
        "docs/other.md": "",
        "lib/a.h": "a word\n",
        "tests/a_test.cc": "TEST(A, one) {}\nTEST_F(A,\n       two) {}\n",
        "tests/b.c": 'static const struct test_case cases[] = {\n    {"a case", a_case},\n};\n',
        "tests/c.py": "def test_c():\n    pass\n",
    }
    lines = SELF_TEST_PAGE.split("\n")
    expected = {3, 4} | {number for number, line in enumerate(lines, 1) if re.match(r"\| [23] \|", line)}
    with tempfile.TemporaryDirectory() as root:
        for path, text in tree.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        rows, problems = check(root)
        os.remove(os.path.join(root, PAGE))
        with open(os.path.join(root, PAGE), "w", encoding="utf-8") as file:
            file.write("nothing\n")
        empty = check(root)
    found = {number for number, _ in problems}
    for number in sorted(expected - found):
        print(f"self-test: nothing found in: {lines[number - 1]}")
    for number in sorted(found - expected):
        print(f"self-test: wrongly found in: {lines[number - 1]}")
    wanted = (20, (0, [(1, "no row")]))
    if (rows, empty) != wanted:
        print(f"self-test: {(rows, empty)} instead of {wanted}")
    return 0 if found == expected and (rows, empty) == wanted else 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = arguments[0] if arguments else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    rows, problems = check(root)
    for number, rule in problems:
        print(f"{PAGE}:{number}: {rule}")
    if not problems:
        print(f"{rows} features")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
