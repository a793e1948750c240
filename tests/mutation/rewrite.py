# SPDX-License-Identifier: Apache-2.0
"""Finds the mutants of a C++ source and puts them in, each behind its number (mutants.h).

No parser of C++, but one that knows this tree: what clang-format has laid out tells a comparison, which has spaces on
both sides, from a template's bracket, and a binary operator from a unary one. Only the bodies of functions are mutated;
constants, declarations, assertions and template arguments are not. All that is done to a text is to insert into lines,
so every line keeps its number.
"""
import bisect
import dataclasses
import re

TOKEN = re.compile(r"""
    (?P<space>\s+ | //[^\n]* | /\*.*?\*/)
  | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)+')
  | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<op><=>|<<=|>>=|->\*|\.\.\.|->|::|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.X | re.S)
DIRECTIVE = re.compile(r"^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*", re.M)

COMPARISONS = {  # how it is written: name in mutants.h, and what its mutants say
    "<": ("lt", ("<=", ">=")), "<=": ("le", ("<", ">")), ">": ("gt", (">=", "<=")), ">=": ("ge", (">", "<")),
    "==": ("eq", ("!=",)), "!=": ("ne", ("==",))}
ARITHMETIC = {
    "+": ("plus", ("-",)), "-": ("minus", ("+",)), "*": ("times", ("+",)), "/": ("over", ("*",)),
    "%": ("modulo", ("/",)), "&": ("bit_and", ("|",)), "|": ("bit_or", ("&",))}
ASSIGNMENTS = {"+=": ("add", ("-=",)), "-=": ("subtract", ("+=",)), "|=": ("join", ("&=",)), "&=": ("meet", ("|=",))}
ASSIGNING = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
OPERATOR_KINDS = [("comparison", COMPARISONS), ("arithmetic", ARITHMETIC), ("arithmetic", ASSIGNMENTS)]

NOT_EVALUATED = {"sizeof", "alignof", "decltype", "noexcept", "alignas"}
ASSERTIONS = {"UB_ASSERT", "UB_DCHECK", "static_assert"}
# What begins a statement in which nothing is mutated.
SKIPPED_STATEMENTS = {"using", "constexpr", "typedef", "break", "continue", "goto", "enum"} | ASSERTIONS
CLOSERS = {"(": ")", "[": "]", "{": "}"}
INCLUDE = '#include "tests/mutation/mutants.h"'
COUNTER_CALL = re.compile(r"\bcount\((?:ub::)?(?:Counter::|wire::drop_counter)")


@dataclasses.dataclass
class Mutant:
    number: int
    file: str
    line: int
    column: int
    function: str
    kind: str  # comparison, arithmetic, condition, operand, number, assignment, call, counter
    change: str  # what it does, in words
    text: str  # of its line
    span: tuple = ()  # where its insertions stand in the rewritten text


@dataclasses.dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int
    jump: int = 0  # of an opening bracket or template argument list: index of its end


class Source:
    """One file. `mutants` are those found; numbers begin with `first`."""

    def __init__(self, path, text, first):
        self.path, self.text = path, text
        self.mutants, self.insertions = [], []  # insertion: at, rank, order, text, numbers
        self.number = first
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.tokens = self.tokenize()
        self.match()
        self.function = ""
        self.scope(0, len(self.tokens))

    # ---- tokens ----

    def tokenize(self):
        plain = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), self.text)
        return [Token(m.lastgroup, m[0], m.start(), m.end())
                for m in TOKEN.finditer(plain) if m.lastgroup != "space"]

    def match(self):
        stack = []
        for i, t in enumerate(self.tokens):
            if t.kind != "op":
                continue
            if t.text in CLOSERS:
                stack.append(i)
            elif stack and t.text == CLOSERS[self.tokens[stack[-1]].text]:
                self.tokens[stack.pop()].jump = i
            elif t.text in CLOSERS.values():
                raise ValueError(f"{self.path}:{self.line_of(t.start)}: unmatched {t.text}")
        if stack:
            raise ValueError(f"{self.path}: brackets are not closed")
        for i, t in enumerate(self.tokens):
            if t.text == "<" and i > 0 and self.opens_template(i):
                t.jump = self.end_of_template(i)

    def opens_template(self, i):
        before = self.tokens[i - 1]
        return before.kind == "name" and (before.end == self.tokens[i].start or before.text == "template")

    def end_of_template(self, i):
        depth, k = 0, i
        while k < len(self.tokens):
            t = self.tokens[k]
            if t.text in CLOSERS:
                k = t.jump
            elif t.text == "<":
                depth += 1
            elif t.text in (">", ">>"):
                depth -= len(t.text)
                if depth <= 0:
                    return k
            k += 1
        raise ValueError(f"{self.path}:{self.line_of(self.tokens[i].start)}: a template's < is not closed")

    def is_binary(self, i):
        t = self.tokens[i]
        return not t.jump and self.text[t.start - 1].isspace() and self.text[t.end].isspace()

    def line_of(self, offset):
        return bisect.bisect_right(self.starts, offset)

    def walk(self, i, j):
        """Indices of the tokens of [i, j) that lie in no bracket of it; of a bracket its opening."""
        while i < j:
            yield i
            i = max(self.tokens[i].jump, i) + 1

    # ---- what is found ----

    def add(self, token, kind, changes):
        first = self.number
        line = self.line_of(token.start)
        for change in changes:
            self.mutants.append(Mutant(self.number, self.path, line, token.start - self.starts[line - 1] + 1,
                                       self.function, kind, change, self.lines[line - 1].strip()))
            self.number += 1
        return first

    def wrap(self, i, j, first, count, before, after=")"):
        """Puts tokens [i, j) between two texts; wider ones lie around narrower ones."""
        start, end = self.tokens[i].start, self.tokens[j - 1].end
        numbers = range(first, first + count)
        order = len(self.insertions)
        self.insertions.append((start, 1, -end, order, before, numbers))
        self.insertions.append((end, 0, -start, -order, after, numbers))

    def operator(self, i):
        t = self.tokens[i]
        for kind, table in OPERATOR_KINDS:
            if t.text in table:
                name, others = table[t.text]
                first = self.add(t, kind, [f"{t.text} to {other}" for other in others])
                self.insertions.append((t.end, 2, 0, len(self.insertions), f" ub::mut::{name}<{first}>{{}} {t.text}",
                                        range(first, first + len(others))))

    # ---- declarations ----

    def scope(self, i, j):
        """A file, namespace or class: looks for bodies of functions."""
        start = i
        k = i
        while k < j:
            t = self.tokens[k]
            if t.text == ";" or (t.text == ":" and self.tokens[k - 1].text in ("public", "private", "protected")):
                start = k + 1
            elif t.text == "{":
                if self.braces(start, k):
                    start = t.jump + 1
            k = max(t.jump, k) + 1

    def braces(self, start, k):
        """What stands in the braces at k; false: an initializer."""
        head = [self.tokens[n] for n in self.walk(start, k)]
        words = {t.text for t in head}
        end = self.tokens[k].jump
        before = self.tokens[k - 1].text if k > start else ""
        if "enum" in words or "requires" in words:
            return True
        if "namespace" in words or words & {"class", "struct", "union"}:
            self.scope(k + 1, end)
            return True
        body = before in (")", "const", "override", "final", "noexcept") or "->" in words or \
            (before == "}" and ":" in words)
        if not body:
            return False
        outer = self.function
        self.function = next((head[n - 1].text for n in range(1, len(head)) if head[n].text == "("), "")
        self.statements(k + 1, end)
        self.function = outer
        return True

    # ---- statements ----

    def statements(self, i, j):
        while i < j:
            i = self.statement(i, j)

    def end_of_statement(self, i, j):
        return next((k for k in self.walk(i, j) if self.tokens[k].text == ";"), j)

    def statement(self, i, j):
        """The statement at i; returns where the next one begins."""
        t = self.tokens[i]
        text = t.text
        if text == ";":
            return i + 1
        if text == "{":
            self.statements(i + 1, t.jump)
            return t.jump + 1
        if text in ("if", "while", "switch", "for"):
            return self.control(i, j)
        if text in ("else", "do"):
            return i + 1
        if text in ("case", "default"):
            return next(k for k in self.walk(i, j) if self.tokens[k].text == ":") + 1
        if text == "static" and self.tokens[i + 1].text == "constexpr":
            text = "constexpr"
        end = self.end_of_statement(i, j)
        if text in ("struct", "class", "union"):
            for k in self.walk(i, end):
                if self.tokens[k].text == "{":
                    self.scope(k + 1, self.tokens[k].jump)
            return end + 1
        if text == "[" and self.tokens[i + 1].text == "[":  # an attribute
            return t.jump + 1
        if text in SKIPPED_STATEMENTS:
            return end + 1
        if text == "return":
            self.expression(i + 1, end)
        elif self.is_expression(i, end):
            self.dropped(i, end)
            self.expression(i, end)
        else:
            self.declaration(i, end)
        return end + 1

    def control(self, i, j):
        word = self.tokens[i].text
        i += 1
        if self.tokens[i].text == "constexpr":
            return self.tokens[i + 1].jump + 1
        open_, close = i, self.tokens[i].jump
        parts = [open_] + [k for k in self.walk(open_ + 1, close) if self.tokens[k].text == ";"] + [close]
        if word == "for":
            for a, b in zip(parts, parts[1:]):
                if a + 1 < b:
                    self.declaration(a + 1, b) if a == open_ else self.expression(a + 1, b)
            return close + 1
        for a, b in zip(parts[:-2], parts[1:]):
            self.declaration(a + 1, b)
        first = parts[-2] + 1
        declares = any(self.tokens[k].text == "=" for k in self.walk(first, close))
        if declares:
            self.declaration(first, close)
        else:
            if word != "switch":
                self.condition(first, close)
            self.expression(first, close)
        return close + 1

    def is_expression(self, i, end):
        """Not a declaration: a chain of names and calls, then nothing, or an assignment."""
        if self.tokens[i].text in ("++", "--", "*"):
            return True
        if self.tokens[i].text in ("auto", "const", "static", "static_cast"):
            return False
        previous = ""
        for k in self.walk(i, end):
            t = self.tokens[k]
            if t.text in ASSIGNING or t.text in ("++", "--"):
                return True
            if t.kind == "name":
                if previous == "name":
                    return False
                previous = "name"
            elif t.text in ("(", "[", ".", "->", "::") or (t.text == "<" and t.jump):
                previous = t.text
            elif t.text == ",":
                return True
            else:
                return False
        return previous == "("

    def dropped(self, i, end):
        line = self.text[self.tokens[i].start:self.tokens[end - 1].end]
        assigns = any(self.tokens[k].text in ASSIGNING or self.tokens[k].text in ("++", "--") for k in self.walk(i, end))
        kind = "assignment" if assigns else "counter" if COUNTER_CALL.search(line) else "call"
        first = self.add(self.tokens[i], kind, ["left out"])
        self.wrap(i, end, first, 1, f"ub::mut::on({first}) ? (void)0 : (void)(")

    def declaration(self, i, end):
        """Only what it begins with is evaluated: bounds of arrays are not."""
        assigned = next((k for k in self.walk(i, end) if self.tokens[k].text in ("=", ":")), None)
        if assigned is not None:
            return self.expression(assigned + 1, end)
        for k in self.walk(i, end):
            if self.tokens[k].text in "({":
                self.expression(k + 1, self.tokens[k].jump)
        return None

    # ---- expressions ----

    def pieces(self, i, j, dividers):
        """[(from, to, what divides it from the next)]"""
        found, start = [], i
        for k in self.walk(i, j):
            if self.tokens[k].text in dividers and (self.tokens[k].text not in ("&&", "||") or self.is_binary(k)):
                found.append((start, k, self.tokens[k].text))
                start = k + 1
        return found + [(start, j, "")]

    def compares(self, i, j):
        return any(self.tokens[k].text in COMPARISONS and self.is_binary(k) for k in self.walk(i, j))

    def condition(self, i, j):
        """Its negation; a comparison alone has that already."""
        several = len(self.pieces(i, j, ("&&", "||", "?"))) > 1
        if i < j and (several or not self.compares(i, j)):
            first = self.add(self.tokens[i], "condition", ["negated"])
            self.wrap(i, j, first, 1, f"ub::mut::negated<{first}>(")

    def operands(self, i, j, word, fixed, below):
        parts = self.pieces(i, j, (word,))
        for a, b, _ in parts:
            if len(parts) > 1 and a < b:
                first = self.add(self.tokens[a], "operand", [f"of {word} taken as {fixed}"])
                self.wrap(a, b, first, 1, f"ub::mut::operand<{first}, {fixed}>(")
            if below:
                below(a, b)

    def expression(self, i, j):
        while i < j and self.tokens[i].text in ("return", "co_return", "throw"):
            i += 1
        for a, b, divider in self.pieces(i, j, ASSIGNING | {",", ";", "?", ":"}):
            if a >= b:
                continue
            if divider == "?":
                self.condition(a, b)
            if divider not in ASSIGNING:
                self.operands(a, b, "||", "false", lambda c, d: self.operands(c, d, "&&", "true", None))
        k = i
        while k < j:
            t = self.tokens[k]
            if t.text in NOT_EVALUATED or t.text in ASSERTIONS:
                bracket = self.tokens[k + 1].text == "("
                k = self.tokens[k + 1].jump + 1 if bracket else k + 2
                continue
            if t.text == "[" and self.opens_lambda(k, i):
                k = self.lambda_(k)
                continue
            if t.text in CLOSERS:
                self.expression(k + 1, t.jump)
            elif t.kind == "number":
                self.literal(k)
            elif t.text in ASSIGNMENTS:
                self.operator(k)
            elif (t.text in COMPARISONS or t.text in ARITHMETIC) and self.is_binary(k):
                self.operator(k)
            k = max(t.jump, k) + 1

    def opens_lambda(self, k, first):
        before = self.tokens[k - 1]
        return k == first or before.text in ("return", "(", ",", "=", "{", "&&", "||", "?", ":")

    def lambda_(self, k):
        k = self.tokens[k].jump + 1
        while self.tokens[k].text != "{":
            k = max(self.tokens[k].jump, k) + 1
        self.statements(k + 1, self.tokens[k].jump)
        return self.tokens[k].jump + 1

    def literal(self, k):
        t = self.tokens[k]
        if "." in t.text:
            return
        first = self.add(t, "number", [f"{t.text} plus 1"])
        self.wrap(k, k + 1, first, 1, f"ub::mut::literal<{first}>(")

    # ---- the result ----

    def rewritten(self, left_out=frozenset()):
        """The text with its mutants, but for those left out; sets the spans of the others."""
        used = sorted(n for n in self.insertions if not left_out.intersection(n[5]))
        if not used:
            return self.text
        spans, parts, at, length = {}, [], 0, 0
        for offset, _, _, _, text, numbers in used:
            parts += [self.text[at:offset], text]
            length += offset - at
            for number in numbers:
                low, high = spans.get(number, (length, length))
                spans[number] = (min(low, length), max(high, length + len(text)))
            length += len(text)
            at = offset
        parts.append(self.text[at:])
        for mutant in self.mutants:
            mutant.span = spans.get(mutant.number, ())
        return self.with_include("".join(parts))

    def with_include(self, text):
        """The include takes the place of the first line, which names the licence: every offset stays."""
        first, _, rest = text.partition("\n")
        if not first.startswith("//") or len(first) < len(INCLUDE):
            raise ValueError(f"{self.path}:1: not the line that names the licence")
        return INCLUDE.ljust(len(first)) + "\n" + rest
