#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of this tree that no compiler checks. Prints file:line: rule, and ends with status 1 if there is any.

  - layers: base <- transport <- dataplane; wire <- impair <- dataplane; base <- ipc <- {urma, dataplane}; roce and urma's
    embedded back end may see all
  - layers of the Core: wire <- cc <- tp <- {ta, setup, resource} <- roce; of liburma: backends/backend.h <- its other parts
  - lib/base, lib/transport and lib/impair are pure: no OS, clock, thread, stream, DPDK or logging header
  - every source is named in a meson.build, every directory of tests has one
  - files have at most 700 lines (500 in lib/transport), no tabs, no trailing space, a final newline, an SPDX line at
    the top; lines of C and C++ at most 120 columns, tables (.def) excepted
  - what begins with #! can be executed
  - no paths of somebody's machine

usage: tidy.py [root]          tidy.py --self-test
"""
import os
import re
import sys
import tempfile

MAX_LINES = 700
MAX_COLUMNS = 120
MAX_LINES_OF_TRANSPORT = 500
SPDX = "SPDX-License-Identifier: Apache-2.0"
SKIPPED_DIRS = re.compile(r"^(\.git|build.*|__pycache__|subprojects|\.cache|\.vscode|\.idea)$")
CODE = (".h", ".hpp", ".cc", ".cpp", ".c", ".def", ".inc")
SOURCES = (".cc", ".cpp", ".c")
TEXT = CODE + (".py", ".sh", ".build", ".md", ".txt", ".toml", ".map", ".lua", ".pkt", ".yml", ".yaml", ".pc", ".in")
NEEDS_SPDX = CODE + (".py", ".sh", ".build", ".lua", ".map")
SPDX_BY_NAME = ("meson_options.txt", "Makefile", "packages.txt", ".clang-tidy")

# The names and contents of the public C headers are given by the API that they provide.
FIXED_LAYOUT = ("lib/urma/include/", "tests/unit/urma/test_layout")  # the latter: its numbers written out

# Values and hosts that every layer of the Core uses; the layers above tp, which use each other; and what the unit tests
# of tp share with those of the others.
CORE_VALUES = ("lib/transport/addresses.h", "lib/transport/copy_prefix.h", "lib/transport/core_common.h",
               "lib/transport/core_types.h", "lib/transport/held_frames", "lib/transport/host.h",
               "lib/transport/looking/call_log.h", "lib/transport/looking/calls.def",
               "lib/transport/looking/last_notes.h", "lib/transport/looking/note.h", "lib/transport/looking/stages.def",
               "lib/transport/seal_and_commit.h", "lib/transport/full_port.h")
UB_LAYERS = ("lib/transport/ta/", "lib/transport/setup/", "lib/transport/resource/")
URMA_LAYERS = ("lib/urma/objects/", "lib/urma/data/", "lib/urma/events/", "lib/urma/device/")
URMA_ROOT = tuple(f"lib/urma/{name}.h" for name in ("clock", "library", "log", "number", "spinlock", "status", "wait"))
TP_TEST_TOOLS = ("tests/unit/transport/small_tables.h", "tests/unit/transport/test_host.h",
                 "tests/unit/transport/zeroed_memory.h")

# What a directory may include of the others. The first prefix that matches a file rules.
LAYERS = [
    ("lib/base/", ("lib/base/",)),
    ("lib/transport/addresses.h", ()),  # these three are the border of a Core: no packet, none of its parts
    ("lib/transport/cc/constants.h", ("lib/base/",)),  # values that a Core is configured with
    ("lib/transport/core_types.h", ("lib/base/", "lib/transport/addresses.h", "lib/transport/cc/constants.h")),
    ("lib/transport/nic_event.h", ("lib/transport/core_types.h",)),
    # Inside the Core: wire <- cc <- tp <- {ta, setup, resource} <- roce. What all of them use knows none of them, and
    # congestion control not even that: a sender is told of, not asked.
    ("lib/transport/wire/", ("lib/base/", "lib/transport/addresses.h", "lib/transport/wire/")),
    (CORE_VALUES, ("lib/base/", "lib/transport/wire/", *CORE_VALUES)),
    ("lib/transport/cc/", ("lib/base/", "lib/transport/wire/", "lib/transport/cc/")),
    ("lib/transport/tp/", ("lib/base/", "lib/transport/wire/", "lib/transport/cc/", "lib/transport/tp/", *CORE_VALUES)),
    (UB_LAYERS, ("lib/base/", "lib/transport/wire/", "lib/transport/cc/", "lib/transport/tp/", "lib/transport/core_state.h",
                 *UB_LAYERS, *CORE_VALUES)),
    ("tests/unit/cc/", ("lib/base/", "lib/transport/wire/", "lib/transport/cc/", "tests/unit/cc/")),
    ("tests/unit/tp/", ("lib/base/", "lib/transport/wire/", "lib/transport/cc/", "lib/transport/tp/", "tests/unit/tp/",
                        *TP_TEST_TOOLS, *CORE_VALUES)),
    ("lib/transport/", ("lib/base/", "lib/transport/")),
    ("lib/impair/", ("lib/base/", "lib/transport/wire/", "lib/transport/roce/wire/", "lib/impair/")),
    ("lib/ipc/", ("lib/base/", "lib/ipc/")),
    ("lib/record/", ("lib/base/", "lib/ipc/", "lib/transport/", "lib/record/")),
    # Of the back ends the library's own parts see the interface alone.
    (URMA_LAYERS, ("lib/base/", "lib/ipc/", "lib/urma/include/", "lib/urma/backends/backend.h", *URMA_ROOT, *URMA_LAYERS)),
    ("lib/urma/", ("lib/base/", "lib/ipc/", "lib/urma/")),
    ("lib/roce/", ("lib/", "dataplane/")),
    ("dataplane/", ("lib/base/", "lib/impair/", "lib/ipc/", "lib/record/", "lib/transport/", "dataplane/")),
    ("emu_hw/kernel/", ("lib/base/", "emu_hw/kernel/")),
    ("emu_hw/rules/", ("lib/base/", "emu_hw/kernel/", "emu_hw/parts/", "emu_hw/profiles/", "emu_hw/rules/")),
    ("emu_hw/parts/", ("lib/base/", "lib/impair/", "emu_hw/kernel/", "emu_hw/parts/", "emu_hw/profiles/")),
    ("emu_hw/", ("lib/base/", "lib/impair/", "lib/transport/", "emu_hw/")),
    ("apps/examples/roce_", ("lib/roce/",)),
    ("apps/", ("lib/urma/include/", "tools/common/", "apps/")),
]
LAYERED = ("lib/", "dataplane/", "emu_hw/", "tools/", "apps/", "tests/")
EMBEDDED = re.compile(r"^lib/urma/backends/[^/]*embedded[^/]*$")

# Single files that may include more, and why.
MAY_INCLUDE = {
    # chooses the back end from the configuration
    "lib/urma/device/device_profile.h": ("dataplane/config.h", "lib/urma/backends/placement.h"),
    "lib/urma/backends/placement.cc": ("dataplane/config.h", "dataplane/daemon_socket.h", "dataplane/eid.h"),
    # the value types of the NIC's objects, and what it reports
    "lib/urma/backends/backend.h": (
        "lib/transport/core_types.h", "lib/transport/nic_event.h", "lib/transport/bypass/calls.h", "lib/impair/spec.h"),
    "lib/urma/aperture/frames_path.h": ("lib/transport/bypass/calls.h",),  # the values that the Core has for it
    "lib/urma/aperture/lane_path.cc": ("lib/transport/wire/bypass_packet.h",),  # a lane carries frames
    "lib/urma/softub.cc": ("lib/impair/text.h",),  # texts of users become values for the NIC
    "lib/urma/backends/daemon/client.h": ("lib/transport/core_types.h",),
    "lib/urma/backends/daemon/agent.cc": ("lib/transport/host.h",),  # copies and atomics as a Core's host does them
}

PURE = ("lib/base/", "lib/transport/", "lib/impair/")
IMPURE = re.compile(
    r"^(sys|netinet|arpa|net|linux|asm|boost|spdlog|fmt|toml\+\+|CLI|asio)/"
    r"|^(rte_.*|unistd|fcntl|pthread|poll|signal|time|sched|semaphore|dlfcn|errno|stdio|stdlib|syslog|x86gprintrin)\.h$"
    r"|^(thread|mutex|shared_mutex|condition_variable|future|semaphore|latch|barrier|stop_token|chrono|ctime|csignal"
    r"|cstdio|cstdlib|iostream|fstream|ostream|istream|sstream|iomanip|filesystem|random|syncstream|print)$")
MAY_PRINT = {
    "lib/base/assert.cc": {"cstdio", "cstdlib"},
    "lib/transport/wire/pretty_print.cc": {"cstdio", "cstdlib"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(<([^>]+)>|"([^"]+)")')
MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:work|root|home|Users)/[\w.]")


def walk(root):
    for directory, subdirs, names in os.walk(root):
        subdirs[:] = sorted(name for name in subdirs if not SKIPPED_DIRS.match(name))
        for name in sorted(names):
            yield os.path.relpath(os.path.join(directory, name), root)


def is_text(path, first_line):
    return path.endswith(TEXT) or os.path.basename(path) in SPDX_BY_NAME or first_line.startswith("#!")


def check_text(path, text, report):
    lines = text.split("\n")
    if not text.endswith("\n"):
        report(path, len(lines), "no newline at the end of the file")
    elif text.endswith("\n\n"):
        report(path, len(lines) - 1, "empty line at the end of the file")
    fixed = path.startswith(FIXED_LAYOUT)
    most = MAX_LINES_OF_TRANSPORT if path.startswith("lib/transport/") else MAX_LINES
    if path.endswith(CODE + (".py",)) and not fixed and len(lines) - 1 > most:
        report(path, most + 1, f"{len(lines) - 1} lines, more than {most}: split the file by idea")
    makefile = os.path.basename(path) == "Makefile"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS and path.endswith(CODE) and not path.endswith(".def") and not fixed:
            report(path, number, f"{len(line)} columns, more than {MAX_COLUMNS}")
        if "\t" in line and not makefile:
            report(path, number, "tab")
        if line != line.rstrip() and line.rstrip("\r") == line:
            report(path, number, "trailing space")
        if line.endswith("\r"):
            report(path, number, "carriage return")
        if MACHINE_PATH.search(line):
            report(path, number, "path of somebody's machine")
    top = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
    needed = path.endswith(NEEDS_SPDX) or os.path.basename(path) in SPDX_BY_NAME or lines[0].startswith("#!")
    if needed and SPDX not in top:
        report(path, 1, f"the first line (after #!) must say {SPDX}")


def resolve(root, path, name):
    """The file of this tree that #include "name" or <name> means, or None."""
    for candidate in (name, os.path.join(os.path.dirname(path), name), os.path.join("lib/urma/include", name)):
        candidate = os.path.normpath(candidate)
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate.replace(os.sep, "/")
    return None


def check_includes(root, path, text, report):
    allowed = next((may for prefix, may in LAYERS if path.startswith(prefix)), None)
    if EMBEDDED.match(path):
        allowed = ("lib/", "dataplane/")
    for number, line in enumerate(text.split("\n"), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        name = match.group(2) or match.group(3)
        if path.startswith(PURE) and IMPURE.search(name) and name not in MAY_PRINT.get(path, ()):
            report(path, number, f"<{name}> in a pure layer: no OS, clock, thread, stream, DPDK or logging header here")
        target = resolve(root, path, name)
        if allowed is None or target is None or not target.startswith(LAYERED):
            continue
        if not target.startswith(allowed) and target not in MAY_INCLUDE.get(path, ()):
            report(path, number, f"{path.rsplit('/', 1)[0]} must not include {target}")


def check_meson(paths, texts, report):
    """A source that no meson.build between it and the root names is dead, or a test that never runs."""
    builds = {os.path.dirname(path): texts.get(path, "") for path in paths if os.path.basename(path) == "meson.build"}
    for path in paths:
        if not path.endswith(SOURCES):
            continue
        directory, name = os.path.split(path)
        stem = os.path.splitext(name)[0]
        while True:
            build = builds.get(directory, "")
            # by file name, or by a foreach over stems
            if name in build or re.search(rf"'(?:[^']*/)?{re.escape(stem)}'", build):
                break
            if not directory:
                report(path, 1, "named in no meson.build")
                break
            directory = os.path.dirname(directory)
    for directory in sorted({os.path.dirname(path) for path in paths if path.endswith(SOURCES)}):
        if directory.startswith("tests/") and not any(
                build == directory or directory.startswith(build + "/") for build in builds if build.startswith("tests/")):
            report(directory, 1, "directory of tests without a meson.build")


def check_tree(root):
    problems = []
    texts = {}

    def report(path, line, rule):
        problems.append((path, line, rule))

    paths = [path.replace(os.sep, "/") for path in walk(root)]
    for path in paths:
        try:
            with open(os.path.join(root, path), encoding="utf-8", newline="") as file:
                text = file.read()
        except UnicodeDecodeError:
            if path.endswith(TEXT):
                report(path, 1, "not UTF-8")
            continue
        except FileNotFoundError:  # a dangling link, or gone meanwhile
            continue
        if not is_text(path, text.split("\n", 1)[0]) or path.startswith("tests/fuzz/corpus/"):
            continue
        texts[path] = text
        check_text(path, text, report)
        if text.startswith("#!") and not os.access(os.path.join(root, path), os.X_OK):
            report(path, 1, "begins with #! and is not executable")
        if path.endswith(CODE):
            check_includes(root, path, text, report)
    check_meson(paths, texts, report)
    return sorted(problems)


def self_test():
    """A rule that finds nothing in a tree full of mistakes is broken."""
    head = f"// {SPDX}\n"
    tree = {
        "lib/base/clock.cc": head + "#include <chrono>\n",
        "lib/base/assert.cc": head + "#include <cstdio>\n#include <thread>\n",
        "lib/transport/core.h": head + '#include "dataplane/port_concept.h"\n#include "lib/base/a.h"\n',
        "lib/base/a.h": head,
        "lib/transport/core_types.h": head + '#include "lib/base/a.h"\n#include "lib/transport/core.h"\n',
        "lib/transport/cc/knot.h": head + '#include "lib/transport/wire/b.h"\n#include "lib/transport/tp/knot.h"\n',
        "lib/transport/cc/knot_by_values.h": head + '#include "lib/transport/core_types.h"\n',
        "tests/unit/cc/knot.h": head + '#include "lib/transport/cc/knot.h"\n#include "lib/transport/roce/d.h"\n',
        "lib/transport/tp/knot.h": head + '#include "lib/transport/wire/b.h"\n#include "lib/transport/ta/c.h"\n',
        "lib/transport/tp/knot_by_state.h": head + '#include "lib/transport/core_state.h"\n',
        "lib/transport/core_state.h": head + '#include "lib/transport/ta/c.h"\n',
        "lib/transport/ta/c.h": head + '#include "lib/transport/tp/knot.h"\n#include "lib/transport/roce/d.h"\n',
        "lib/transport/wire/b.h": head + '#include "lib/transport/tp/knot.h"\n',
        "lib/transport/roce/d.h": head + '#include "lib/transport/ta/c.h"\n',
        "tests/unit/tp/knot.h": head + '#include "lib/transport/core_state.h"\n',
        "dataplane/port_concept.h": head,
        "lib/urma/data/post.cc": head + '#include "lib/transport/core.h"\n',
        "lib/urma/backends/embedded_backend.cc": head + '#include "dataplane/port_concept.h"\n',
        "tools/long.cc": head + "int x;\n" * MAX_LINES,
        "lib/transport/tp/long.h": head + "int x;\n" * MAX_LINES_OF_TRANSPORT,
        "tools/wide.cc": head + "// " + "x" * MAX_COLUMNS + "\n// " + "x" * (MAX_COLUMNS - 3) + "\n",
        "tools/style.py": "import os\n\tx = 1 \n# /ho" + "me/me/x",
        "tools/meson.build": "# " + SPDX + "\nfiles('long.cc', 'wide.cc')\n",
        "tools/not_executable.py": f"#!/usr/bin/env python3\n# {SPDX}\n",
        "tests/unit/x/x_test.cc": head,
        "lib/meson.build": "# " + SPDX + "\nfiles('clock.cc', 'assert.cc', 'post.cc', 'embedded_backend.cc')\n",
    }
    expected = {
        ("lib/base/clock.cc", 2), ("lib/base/assert.cc", 3), ("lib/transport/core.h", 2), ("lib/urma/data/post.cc", 2),
        ("lib/transport/core_types.h", 3), ("lib/transport/cc/knot.h", 3), ("lib/transport/cc/knot_by_values.h", 2),
        ("tests/unit/cc/knot.h", 3), ("lib/transport/tp/knot.h", 3), ("lib/transport/tp/knot_by_state.h", 2),
        ("lib/transport/ta/c.h", 3), ("lib/transport/wire/b.h", 2), ("tests/unit/tp/knot.h", 2),
        ("tools/long.cc", MAX_LINES + 1), ("lib/transport/tp/long.h", MAX_LINES_OF_TRANSPORT + 1),
        ("tools/wide.cc", 2), ("tools/style.py", 1), ("tools/style.py", 2), ("tools/style.py", 3),
        ("tools/not_executable.py", 1), ("tests/unit/x/x_test.cc", 1), ("tests/unit/x", 1),
    }
    with tempfile.TemporaryDirectory() as root:
        for path, text in tree.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        found = {(path, line) for path, line, _ in check_tree(root)}
    for path, line in sorted(expected - found):
        print(f"self-test: nothing found at {path}:{line}")
    for path, line in sorted(found - expected):
        print(f"self-test: wrongly found {path}:{line}")
    return 0 if found == expected else 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = arguments[0] if arguments else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    problems = check_tree(root)
    for path, line, rule in problems:
        print(f"{path}:{line}: {rule}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
