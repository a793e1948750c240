# SPDX-License-Identifier: Apache-2.0
"""What the simulator is compiled from, for tools that do it by themselves: plant_bugs, coverage and tests/mutation."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIBRARIES = ("lib/base", "lib/impair", "lib/ipc", "lib/record", "lib/transport")
DEFINED = {"UB_VERSION": "none", "UB_COMMIT": "none"}  # what meson would say of the build
INCLUDE = re.compile(r'^#include "((?:lib|tests|dataplane|apps|tools)/[^"]+)"', re.M)


def missing_includes(parts):
    """Files that sources of these folders include and that are in none of them, as sentences."""
    for path in (p for part in parts for p in (ROOT / part).rglob("*") if p.suffix in (".h", ".cc")):
        for included in INCLUDE.findall(path.read_text()):
            if not any(included.startswith(f"{part}/") for part in parts):
                yield f"{path.relative_to(ROOT)} includes {included}, which is not in {', '.join(parts)}"
