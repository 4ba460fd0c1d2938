"""What an editing tool changed, as diffs.

Policy: the tool's own record of the change is best, because it has the lines around it and the place in the file; else
the fragments of the call's input. A file that did not exist has no old text.
"""

from collections.abc import Iterator

from acp_history_bridge.toolcalls import absolute_path, locations
from acp_history_bridge.turns import Diff, Location
from acp_history_bridge.values import JsonMap, first_string, integer, items, maps, string

from .tools import Call

__all__ = ["diffs_of", "places_of"]


def diffs_of(call: Call, detail: JsonMap) -> Iterator[Diff]:
    """The changes of one call; `detail` is the structured result, empty where the transcript has none."""
    path = absolute_path(first_string(call.input, "file_path", "notebook_path"), call.cwd)
    if not path:
        return
    hunks = list(_hunks(path, detail))
    if call.name == "Write":
        yield from hunks or _written(path, call, detail)
    elif call.name == "NotebookEdit":
        yield _notebook(path, call, detail)
    else:
        yield from hunks or _fragments(path, call)


def places_of(call: Call, detail: JsonMap) -> tuple[Location, ...]:
    """Where in the file the changes begin."""
    path = first_string(call.input, "file_path", "notebook_path")
    lines = [_first_change(hunk) for hunk in maps(detail.get("structuredPatch"))]
    places = [place for line in lines or [None] for place in locations(call.cwd, path, line=line)]
    return tuple(dict.fromkeys(places))


def _first_change(hunk: JsonMap) -> int | None:
    start = integer(hunk.get("newStart"))
    lines = [string(line)[:1] for line in items(hunk.get("lines"))]
    unchanged = next((number for number, sign in enumerate(lines) if sign != " "), 0)
    return None if start is None else start + unchanged


def _hunks(path: str, detail: JsonMap) -> Iterator[Diff]:
    for hunk in maps(detail.get("structuredPatch")):
        lines = [line for line in items(hunk.get("lines")) if isinstance(line, str)]
        old = [line[1:] for line in lines if line[:1] in {" ", "-"}]
        new = [line[1:] for line in lines if line[:1] in {" ", "+"}]
        if old != new:
            existed = bool(old or detail.get("originalFile"))
            yield Diff(path, _as_text(new), _as_text(old) if existed else None)


def _as_text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _written(path: str, call: Call, detail: JsonMap) -> Iterator[Diff]:
    content = call.input.get("content")
    if isinstance(content, str):
        old = detail.get("originalFile")
        yield Diff(path, content, old if isinstance(old, str) else None)


def _fragments(path: str, call: Call) -> Iterator[Diff]:
    for edit in maps(call.input.get("edits")) or [call.input]:
        old, new = string(edit.get("old_string")), string(edit.get("new_string"))
        if old or new:
            yield Diff(path, new, old or None)


def _notebook(path: str, call: Call, detail: JsonMap) -> Diff:
    before, after = detail.get("original_file"), detail.get("updated_file")
    if isinstance(before, str) and isinstance(after, str) and before != after:
        return Diff(path, after, before)
    inserted = call.input.get("edit_mode") == "insert"
    old = first_string(detail, "old_source")
    return Diff(path, first_string(call.input, "new_source"), None if inserted else old)
