"""Patches as diffs: Codex's own patch language, and the unified diffs of its file-change items.

Policy: neither holds whole files, so a diff shows what the patch has, hunk by hunk with its context lines. A line that
fits no rule is taken as context, as Codex does, rather than dropped.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from acp_history_adapters.codex.prompts import file_path
from acp_history_bridge.toolcalls import absolute_path
from acp_history_bridge.turns import Diff
from acp_history_bridge.values import JsonMap, mapping, string

__all__ = ["BEGIN", "FileChange", "changes_of_item", "changes_of_patch"]

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_FILE = {"*** Add File: ": "add", "*** Delete File: ": "delete", "*** Update File: ": "update"}
_MOVE = "*** Move to: "


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happened to one file. `kind` is add, delete, update or move."""

    path: str
    kind: str
    diffs: tuple[Diff, ...]


@dataclass(slots=True)
class _Draft:
    path: str
    kind: str
    lines: list[str] = field(default_factory=list[str])

    def change(self, cwd: str | None) -> FileChange:
        path = absolute_path(self.path, cwd)
        if self.kind == "add":
            text = "".join(line[1:] + "\n" for line in self.lines if line.startswith("+"))
            return FileChange(path, "add", (Diff(path, text),))
        if self.kind == "delete":
            return FileChange(path, "delete", (Diff(path, "", ""),))
        diffs = tuple(_hunks(path, self.lines))
        return FileChange(path, "move" if self.kind == "move" and not diffs else "update", diffs)


def changes_of_patch(patch: str, cwd: str | None) -> list[FileChange]:
    """Read a patch in Codex's own language."""
    drafts: list[_Draft] = []
    for line in _lines(patch[max(patch.find(BEGIN), 0) :]):
        header = next((prefix for prefix in _FILE if line.startswith(prefix)), None)
        if header is not None:
            drafts.append(_Draft(line.removeprefix(header).strip(), _FILE[header]))
        elif line.startswith(_END):
            break
        elif drafts and line.startswith(_MOVE):
            drafts[-1].path, drafts[-1].kind = line.removeprefix(_MOVE).strip(), "move"
        elif drafts and line != "*** End of File":
            drafts[-1].lines.append(line)
    return [draft.change(cwd) for draft in drafts]


def changes_of_item(changes: JsonMap) -> list[FileChange]:
    """Read the `changes` of a file-change item: paths to what was done to them."""
    return [_change(file_path(path), mapping(change)) for path, change in changes.items()]


def _change(path: str, change: JsonMap) -> FileChange:
    match change.get("type"):
        case "add":
            return FileChange(path, "add", (Diff(path, string(change.get("content"))),))
        case "delete":
            return FileChange(path, "delete", (Diff(path, "", string(change.get("content"))),))
        case _:
            target = file_path(change.get("move_path"))
            diffs = tuple(_hunks(target or path, _without_header(_lines(string(change.get("unified_diff"))))))
            return FileChange(target or path, "move" if target and not diffs else "update", diffs)


def _lines(text: str) -> list[str]:
    """Lines as a patch counts them: a form feed or U+2028 within a line of code ends none."""
    return text.removesuffix("\n").split("\n")


def _without_header(lines: list[str]) -> list[str]:
    headed = len(lines) > 1 and lines[0].startswith("--- ") and lines[1].startswith("+++ ")
    return lines[2:] if headed else lines


def _as_text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _hunks(path: str, lines: list[str]) -> Iterator[Diff]:
    old: list[str] = []
    new: list[str] = []
    changed = False
    for line in [*lines, "@@"]:
        if line.startswith("@@"):
            if changed:
                yield Diff(path, _as_text(new), _as_text(old))
            old, new, changed = [], [], False
        elif line.startswith("-"):
            old.append(line[1:])
            changed = True
        elif line.startswith("+"):
            new.append(line[1:])
            changed = True
        elif not line.startswith("\\"):
            old.append(line[1:])
            new.append(line[1:])
