#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tool of mutation testing, on a toy: which mutants it finds, which it calls noticed, and by whom."""
import contextlib
import io
import os
import pathlib
import re
import tempfile
import unittest

import equivalents
import mutate
import rewrite

LICENCE = "// SPDX-License-Identifier: Apache-2.0 of the toy\n"
TOY = LICENCE + """#pragma once
#include <vector>
#include "lib/base/assert.h"
namespace toy {
constexpr int kSize = 3 + 4;
static_assert(kSize < 8);
inline int larger(int a, int b) {
  UB_DCHECK(a < 1000);
  return a > b ? a : b;
}
inline bool both(bool a, bool b) { return a && b; }
inline int to_nothing(int n) {
  while (n != 0) {
    --n;
  }
  return n;
}
inline int never(int a) { return a + 1; }
inline long between(const int* a, const int* b) { return b - a; }
inline void fill(std::vector<int>& v) {
  v.push_back(5);
  v.reserve(2);
}
struct Sum {
  int total = 0;
  void take(int n) {
    if (n == 3)
      total += n;
    else
      total = total - n;
  }
};
inline int at(const int* p, bool there) { return p != nullptr && there ? *p : 0; }
}  // namespace toy
"""
UNIT = LICENCE + """#include <gtest/gtest.h>
#include "lib/toy.h"
namespace {
TEST(Toy, larger) { EXPECT_EQ(toy::larger(2, 1) + toy::larger(4, 6), 8); }
TEST(Toy, both) { EXPECT_TRUE(toy::both(true, true)); EXPECT_FALSE(toy::both(false, true)); }
TEST(Toy, to_nothing) { EXPECT_EQ(toy::to_nothing(4), 0); }
TEST(Toy, between) { int x[3]; EXPECT_EQ(toy::between(x, x + 2), 2); }
TEST(Toy, fill) { std::vector<int> v; toy::fill(v); EXPECT_EQ(v.at(0), 5); }
TEST(Toy, at) { int x = 7; EXPECT_EQ(toy::at(&x, true), 7); EXPECT_EQ(toy::at(nullptr, true), 0); }
}
"""
DIRECTED = LICENCE + """#include <gtest/gtest.h>
#include "lib/toy.h"
TEST(Directed, sum) { toy::Sum s; s.take(3); EXPECT_EQ(s.total, 3); }
"""
SEEDS = LICENCE + """#include "tests/mutation/seeds.h"
#include "lib/toy.h"
std::string ub::mut::run_seed(uint64_t seed) {
  toy::Sum s;
  s.take(static_cast<int>(seed) + 3);
  return seed == 2 && s.total != -5 ? "wrong sum" : "";
}
"""
BROKEN = UNIT.replace(", 8)", ", 9)")


def found(body):
    """[(kind, change)] of a function with that body"""
    source = rewrite.Source("toy.h", f"{LICENCE}void f() {{\n{body}\n}}\n", 0)
    return [(m.kind, m.change) for m in source.mutants]


class Finding(unittest.TestCase):
    def test_comparisons(self):
        self.assertEqual(found("return a < b;"), [("comparison", "< to <="), ("comparison", "< to >=")])
        self.assertEqual(found("return a == b;"), [("comparison", "== to !=")])

    def test_a_comparison_alone_is_not_negated_once_more(self):
        self.assertNotIn("condition", {kind for kind, _ in found("if (a < b) return;")})
        self.assertIn(("condition", "negated"), found("if (f(a < b)) return;"))

    def test_operands_of_and_and_or(self):
        self.assertEqual([m for m in found("return a && b || c;") if m[0] == "operand"],
                         [("operand", "of || taken as false")] + [("operand", "of && taken as true")] * 2 +
                         [("operand", "of || taken as false")])

    def test_statements(self):
        self.assertEqual(found("x = y;"), [("assignment", "left out")])
        self.assertEqual(found("++x;"), [("assignment", "left out")])
        self.assertEqual(found("a.b(c)->d(e);"), [("call", "left out")])
        self.assertEqual(found("s.count(Counter::kIt);"), [("counter", "left out")])

    def test_what_is_no_mutant(self):
        for body in ("std::vector<int> x;", "Foo& x = y;", "constexpr int k = 1 + 2;", "static constexpr int k = 3;",
                     "static_assert(a < 4);", "UB_ASSERT(a == 1);", "int x[4];", "return sizeof(a + b);", "return -a;",
                     "switch (a) { case 3: break; }", "Foo<a, b> x;", "if constexpr (a) return;",
                     "auto* x = static_cast<Foo<int>*>(y);", "// a < b", 'f = "a < 3";'):
            self.assertEqual([m for m in found(body) if m != ("assignment", "left out")], [], body)

    def test_lambdas_are_bodies(self):
        self.assertIn(("assignment", "left out"), found("return find([&](Foo& m) { x = m; return true; });"))

    def test_lines_keep_their_numbers(self):
        source = rewrite.Source("toy.h", TOY, 0)
        self.assertEqual(source.rewritten().count("\n"), TOY.count("\n"))
        self.assertEqual({m.function for m in source.mutants},
                         {"larger", "both", "to_nothing", "never", "between", "fill", "take", "at"})

    def test_without_its_mutants_a_source_is_what_it_was(self):
        source = rewrite.Source("toy.h", TOY, 0)
        self.assertEqual(source.rewritten({m.number for m in source.mutants}), TOY)


class Toy(mutate.Project):
    def __init__(self, root):
        super().__init__()
        tool = pathlib.Path(__file__).resolve().parent
        self.root, self.about, self.mutated = pathlib.Path(root), "the toy", ["lib/toy.h"]
        self.sources = ["tests/toy_test.cc", "tests/test_directed_toy.cc", "tests/seeds.cc", str(tool / "runner.cc"),
                        str(mutate.ROOT / "lib/base/assert.cc")]
        self.equivalents = "equivalents.def"


class Running(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="softub-mutation-")
        cls.addClassCleanup(directory.cleanup)
        cls.root = pathlib.Path(directory.name)
        for name, text in (("lib/toy.h", TOY), ("tests/toy_test.cc", UNIT), ("tests/test_directed_toy.cc", DIRECTED),
                           ("tests/seeds.cc", SEEDS)):
            (cls.root / name).parent.mkdir(exist_ok=True)
            (cls.root / name).write_text(text)

    def run_tool(self, *options, equivalents=""):
        """(status, what was printed)"""
        (self.root / "equivalents.def").write_text(equivalents)
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            status = mutate.main(["--build", str(self.root / "build"), "--jobs", "2", "--seeds", "3", *options],
                                 Toy(self.root))
        return status, output.getvalue()

    @staticmethod
    def survivors(text):
        """{group: [function: change]}"""
        groups, group = {}, None
        for line in text.splitlines():
            title = re.match(r"\d+ mutants: (.*)", line)
            if title:
                group = groups.setdefault(title[1], [])
            one = re.match(r"  \S+ \d+ (\w+): \w+: ([^:]*): ", line)
            if one:
                group.append(f"{one[1]}: {one[2]}")
        return groups

    def row(self, text, name):
        """{column: number} of a line of the table"""
        line = next(line for line in text.splitlines() if line.startswith(name))
        columns = ("mutants", "unit", "directed", "seeds", "crash", "timeout", "equivalent", "survived", "no effect",
                   "unreached", "no build")
        return dict(zip(columns, map(int, line[30:].split()[:-1])))

    def test_the_table_and_the_survivors(self):
        status, text = self.run_tool()
        self.assertEqual(status, 1, text)
        survivors = self.survivors(text)
        self.assertEqual(survivors["no test reaches it"], ["never: + to -", "never: 1 plus 1"])
        self.assertEqual(survivors["no test makes it change a value"],
                         ["larger: > to >=", "both: of && taken as true", "at: of && taken as true"])
        self.assertEqual(survivors["survived"], ["fill: left out", "fill: 2 plus 1"])
        row = self.row(text, "lib")
        self.assertEqual((row["timeout"], row["no build"]), (1, 1))  # --n; a pointer and a pointer
        self.assertGreaterEqual(row["crash"], 1)  # nullptr
        for column in ("unit", "directed", "seeds"):
            self.assertGreaterEqual(row[column], 1, column)
        self.assertEqual(row["survived"], 2)

    def test_the_score_decides(self):
        text = self.run_tool("--score", "50")
        self.assertEqual(text[0], 0, text[1])
        self.assertEqual(self.run_tool("--score", "99")[0], 1)

    def test_equivalents_are_not_judged(self):
        listed = "in lib/toy.h larger\n| return a > b ? a : b;\n! comparison: > to >=\nEqual ones are the same.\n"
        status, text = self.run_tool("--score", "50", equivalents=listed)
        self.assertEqual(status, 0, text)
        self.assertNotIn("larger: > to >=", self.survivors(text)["no test makes it change a value"])
        self.assertEqual(self.row(text, "all")["equivalent"], 1)

    def test_a_stale_entry_is_an_error(self):
        listed = "in lib/toy.h larger\n| return a >= b ? a : b;\n! comparison: >= to >\nEqual ones are the same.\n"
        status, text = self.run_tool("--score", "0", equivalents=listed)
        self.assertEqual(status, 1)
        self.assertIn("equivalents.def:1: stale", text)

    def test_an_entry_that_a_test_refutes_is_an_error(self):
        listed = "in lib/toy.h larger\n| return a > b ? a : b;\n! comparison: > to <=\nNobody sees it.\n"
        status, text = self.run_tool("--score", "0", equivalents=listed)
        self.assertEqual(status, 1)
        self.assertIn("not equivalent: Toy.larger notices lib/toy.h:10", text)

    def test_an_entry_meets_unit_tests_unless_all_are_asked_for(self):
        listed = "in lib/toy.h take\n| total = total - n;\n! arithmetic: - to +\nOnly the second seed sees it.\n"
        self.assertEqual(self.run_tool("--score", "0", equivalents=listed)[0], 0)
        status, text = self.run_tool("--score", "0", "--equivalents", equivalents=listed)
        self.assertEqual(status, 1)
        self.assertIn("not equivalent: seed 2 notices", text)

    def test_an_entry_says_which_of_several_and_why(self):
        listed = "in lib/toy.h both\n| inline bool both(bool a, bool b) { return a && b; }\n! operand: of && taken as true"
        status, text = self.run_tool("--score", "0", equivalents=listed + "\nNo reason.\n")
        self.assertEqual(status, 1)
        self.assertIn("say which, as in #1", text)
        self.assertEqual(self.run_tool("--score", "0", equivalents=listed + " #2\nOnly a is ever false.\n")[0], 0)
        self.assertIn("no reason", self.run_tool("--score", "0", equivalents=listed + " #2\n")[1])

    def test_several_mutants_of_a_line_share_a_reason(self):
        path = self.root / "shared.def"
        path.write_text("in a.h f\n| x\n! number: 0 plus 1\n! call: left out #2\nWhy,\nin two lines.\n\n"
                        "in b.h g\n| y\n! call: left out\nAnother why.\n")
        found = [(e.place, e.function, e.line, e.change, e.which, e.reason) for e in equivalents.entries(path)]
        self.assertEqual(found, [("shared.def:1", "f", "x", "number: 0 plus 1", 0, "Why, in two lines."),
                                 ("shared.def:4", "f", "x", "call: left out", 2, "Why, in two lines."),
                                 ("shared.def:8", "g", "y", "call: left out", 0, "Another why.")])

    def test_one_mutant_again(self):
        listing = self.run_tool("--list")[1]
        number = re.search(r"^\S+ (\d+) larger: comparison: > to <=", listing, re.M)[1]
        with tempfile.TemporaryFile("w+") as printed:
            saved = os.dup(1)
            os.dup2(printed.fileno(), 1)
            try:
                status = self.run_tool("--mutant", number)[0]
            finally:
                os.dup2(saved, 1)
                os.close(saved)
            printed.seek(0)
            text = printed.read()
        self.assertEqual(status, 1)
        self.assertIn("[  FAILED  ] Toy.larger", text)
        self.assertEqual(self.run_tool("--mutant", "9999")[0], 2)

    def test_nothing_is_concluded_when_a_test_fails_without_a_mutant(self):
        test = self.root / "tests/toy_test.cc"
        test.write_text(BROKEN)
        self.addCleanup(test.write_text, UNIT)
        status, text = self.run_tool()
        self.assertEqual(status, 2, text)
        self.assertIn("do not pass without a mutant", text)


if __name__ == "__main__":
    unittest.main()
