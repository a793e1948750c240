#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Manual pages of liburma out of its public headers, which say everything already: one page for each group of calls
(a section of urma_api.h), a name for each call, and urma(7) with the rules that hold for all.

usage: man_pages.py DIRECTORY|--check HEADER...

Writes DIRECTORY/man3 and DIRECTORY/man7; as an install script of meson, below the prefix; with --check, nothing that
stays. Ends with 1 and a line for each call without a comment, so that none goes undocumented.
"""
import os
import re
import sys
import tempfile

# Sections of the headers and the names of their pages.
PAGES = {
    "Start-up, devices, contexts": ("urma_init", "start-up, devices, contexts"),
    "JFC: completion queue, JFCE: event channel": ("urma_create_jfc", "completion queues and event channels"),
    "JFS: send queue": ("urma_create_jfs", "send queues"),
    "JFR: receive queue": ("urma_create_jfr", "receive queues"),
    "Jetty: endpoint that sends and receives": ("urma_create_jetty", "endpoints that send and receive"),
    "Asynchronous connect": ("urma_create_notifier", "import and bind without waiting"),
    "Step-wise creation": ("urma_alloc_jetty", "objects made step by step"),
    "Jetty groups": ("urma_create_jetty_grp", "several jettys under one id"),
    "Token ids and segments": ("urma_register_seg", "memory that peers may use"),
    "Posting": ("urma_post_jetty_send_wr", "send and receive requests"),
    "Asynchronous events, driver control": ("urma_get_async_event", "asynchronous events"),
    "Log": ("urma_register_log_func", "messages of the library"),
    "Transport channels and addresses": ("urma_get_tp_list", "channels and addresses"),
    "Latencies of the data calls": ("urma_start_perf", "latencies of the data calls"),
    "Memory that a daemon reaches, and where the NIC runs": ("softub_alloc", "memory shared with a daemon"),
    "Faults on demand": ("softub_inject", "faults on demand"),
    "An impaired network": ("softub_impair", "a network that loses, delays, reorders and cuts"),
    "Which transport serves": ("softub_get_transports", "which transport carries requests"),
    "Remote memory by calls": ("softub_open", "loads and stores of remote memory"),
    "The line cache of a handle": ("softub_sync_cache", "the line cache of a handle"),
    "What a handle costs": ("softub_get_cost", "how a handle reaches remote memory, and what that costs"),
    "Remote memory at addresses of one's own": ("softub_map", "remote memory at addresses of one's own"),
    "Memory that others of this host map": ("softub_alloc_shared", "memory that others of this host map"),
    "Memory with a name": ("softub_create", "memory that others find by its name"),
}
SECTION = re.compile(r"^/\* -{4} (.+?)(?: -+)?(?: \*/)?$")
COMMENT = re.compile(r"/\*\*(.*?)\*/\s*((?:[^;{}/]|/(?!\*))*?\([^;{}]*?\))(?:;| {)", re.S)  # also of inline calls
NAME = re.compile(r"(\w+)\s*\(")


def clean(comment):
    """Lines of a comment without its stars."""
    return [re.sub(r"^\s*\* ?", "", line).rstrip() for line in comment.strip("\n").split("\n")]


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


class Call:
    def __init__(self, comment, declaration):
        self.declaration = " ".join(declaration.split())
        self.name = NAME.search(self.declaration).group(1)
        self.text, self.parameters, self.returns = [], [], []
        part = self.text
        for line in "\n".join(clean(comment)).replace(" @param", "\n@param").split("\n"):
            if match := re.match(r"@param (\w+)\s+(.*)", line):
                part = [match.group(2)]
                self.parameters.append((match.group(1), part))
            elif line.startswith("@return"):
                part = self.returns
                part.append(line[len("@return"):].strip())
            else:
                part.append(line.strip())

    def roff(self):
        out = [f".SS {self.name}", ".nf", f".B {escape(self.declaration)};", ".fi", ".PP", *paragraphs(self.text)]
        for name, text in self.parameters:
            out += [".TP", f".I {name}", *paragraphs(text)]
        if self.returns:
            out += [".TP", ".B Returns", *paragraphs(self.returns)]
        return out


def paragraphs(lines):
    out = []
    for line in lines:
        if line:
            out.append(escape(line))
        elif out and out[-1] != ".PP":
            out.append(".PP")
    while out and out[-1] == ".PP":
        out.pop()
    return out


def sections_of(text):
    """Title and text of each section of a header."""
    parts, title = {}, None
    for line in text.split("\n"):
        if match := SECTION.match(line):
            title = match.group(1).strip()
            parts[title] = []
        elif title is not None:
            parts[title].append(line)
    return {title: "\n".join(lines) for title, lines in parts.items()}


def page(name, summary, calls, introduction, header):
    others = sorted({page_name for page_name, _ in PAGES.values()} - {name})
    names = ", ".join([name] + [call.name for call in calls if call.name != name])
    out = [f'.TH {name.upper()} 3 "" SoftUB "URMA calls"', ".SH NAME", f"{escape(names)} \\- {escape(summary)}",
           ".SH SYNOPSIS", ".nf", f".B #include <{header}>", ".fi", ".PP", "Link with \\fI\\-lurma\\fP."]
    if introduction:
        out += [".SH DESCRIPTION", *paragraphs(introduction)]
    out.append(".SH CALLS")
    for call in calls:
        out += call.roff()
    out += [".SH SEE ALSO", ".BR urma (7),"] + [f".BR {other} (3)," for other in others]
    out[-1] = out[-1].rstrip(",")
    return "\n".join(out) + "\n"


def overview(header_text):
    rules = clean(header_text.split("*/", 2)[1].split("/*", 1)[1])
    out = ['.TH URMA 7 "" SoftUB "URMA calls"', ".SH NAME", "urma \\- remote memory access and messages over the Unified Bus",
           ".SH DESCRIPTION"]
    for line in rules:
        if line.startswith("- ") or line.startswith(" - "):
            out += [".IP \\(bu 2", escape(line.strip()[2:])]
        elif line:
            out.append(escape(line.strip()))
        else:
            out.append(".PP")
    out += [".SH PAGES"]
    for name, summary in PAGES.values():
        out += [".TP", f".BR {name} (3)", escape(summary)]
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    directory, headers = sys.argv[1], sys.argv[2:]
    if directory == "--check":
        with tempfile.TemporaryDirectory(prefix="softub-man-") as nowhere:
            return write_all(nowhere, headers)
    return write_all(os.path.join(os.environ.get("MESON_INSTALL_DESTDIR_PREFIX", ""), directory), headers)


def write_all(directory, headers):
    """1 if something lacks a page or a comment."""
    failed = False
    for path in headers:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if os.path.basename(path) == "urma_api.h":
            write(directory, "urma.7", overview(text))
        for title, body in sections_of(text).items():
            if title not in PAGES:
                print(f"{path}: the section '{title}' has no page; add it to PAGES", file=sys.stderr)
                failed = True
                continue
            name, summary = PAGES[title]
            introduction = clean(body.split("*/", 1)[0]) if not body.lstrip().startswith("/") else []
            calls = [Call(*match.groups()) for match in COMMENT.finditer(body)]
            declared = set(re.findall(r"^\w[\w \*]*?((?:urma|softub)_\w+)\(", body, re.M))
            for missing in sorted(declared - {call.name for call in calls}):
                print(f"{path}: {missing} has no comment", file=sys.stderr)
                failed = True
            write(directory, name + ".3", page(name, summary, calls, introduction, os.path.basename(path)))
            for call in calls:
                if call.name != name:
                    write(directory, call.name + ".3", f".so man3/{name}.3\n")
    return 1 if failed else 0


def write(directory, name, text):
    section = os.path.join(directory, "man" + name[-1])
    os.makedirs(section, exist_ok=True)
    with open(os.path.join(section, name), "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main())
