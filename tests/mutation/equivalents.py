# SPDX-License-Identifier: Apache-2.0
"""The lists of mutants that change nothing anybody could notice, each with its reason.

    in lib/transport/tp/message_queue.h pop
    | if (++head_at_ == kMessagesPerChunk || size_ == 0) {
    ! comparison: == to !=
    Why nobody can notice it, in one line or several.

File and function, the text of the line, kind and change of the mutant name it: numbers and lines move. Where one line
has several such mutants, `!` ends in #1, #2 ... from the left; where a function has several such lines, all are meant.
Several mutants of a line may share a reason: a line with `!` for each.
An entry ends with an empty line; one that names no mutant is stale, which is an error.
"""
import dataclasses


@dataclasses.dataclass
class Entry:
    place: str  # where it is written
    file: str = ""
    function: str = ""
    line: str = ""
    change: str = ""
    which: int = 0  # 0: the only one of the line
    reason: str = ""


def entries(path):
    found, entry, same_reason = [], None, []
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        if line.startswith("//") and entry is None:
            continue
        if not line.strip():
            entry = None
        elif entry is None and line.startswith("in "):
            entry = Entry(f"{path.name}:{number}", *line[3:].split(" ", 1))
            found.append(entry)
            same_reason = [entry]
        elif entry is None:
            raise SystemExit(f"{path}:{number}: not understood; an entry begins with `in FILE FUNCTION`")
        elif line.startswith("| "):
            entry.line = line[2:].strip()
        elif line.startswith("! "):
            change, _, which = line[2:].partition(" #")
            if entry.change:
                entry = dataclasses.replace(entry, place=f"{path.name}:{number}")
                found.append(entry)
                same_reason.append(entry)
            entry.change, entry.which = change.strip(), int(which or 0)
        else:
            for each in same_reason:
                each.reason = f"{each.reason} {line.strip()}".strip()
    return found


def read(path, mutants):
    """({number: reason}, [what is wrong with the lists]). The name in `path` is a pattern for those of the lists."""
    by_key = {}
    for m in mutants:
        lines = by_key.setdefault((m.file, m.function, m.text, f"{m.kind}: {m.change}"), {})
        lines.setdefault(m.line, []).append(m)
    known, wrong = {}, []
    for entry in (e for each in sorted(path.parent.glob(path.name)) for e in entries(each)):
        lines = by_key.get((entry.file, entry.function, entry.line, entry.change), {})
        if not entry.reason:
            wrong.append(f"{entry.place}: no reason is given")
        if not lines or entry.which > max(map(len, lines.values())):
            wrong.append(f"{entry.place}: stale: {entry.file} has no such mutant in {entry.function}; remove the entry")
            continue
        for same in lines.values():
            if entry.which == 0 and len(same) > 1:
                wrong.append(f"{entry.place}: the line has {len(same)} such mutants; say which, as in #1")
                break
            known[same[max(entry.which - 1, 0)].number] = entry.reason
    return known, wrong
