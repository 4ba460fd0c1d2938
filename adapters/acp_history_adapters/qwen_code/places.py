"""Where Qwen Code keeps histories, and which path belongs to which unit.

A store is `~/.qwen`, or what `QWEN_HOME` or `QWEN_RUNTIME_DIR` name; the default stays a store beside them, because it
holds what was said before they were set. Units are

    projects/<slug>/chats/<session>.jsonl         since 0.5; archived ones in chats/archive/
    tmp/<sha256 of the directory>/chats/session-<time>-<start of the id>.json    0.1

`logs.json` and `checkpoint-*.json` in `tmp/` are no sessions: the log of 0.1 gives its prompts other session ids than
the transcripts have, and a checkpoint is a copy of a transcript without an id.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from acp_history_bridge.adapter import RESCAN, Affected, Discovery, Environment, Problem, Store, Unit
from acp_history_bridge.files import fingerprint_of, list_directory, stat_regular

__all__ = [
    "affected_by",
    "discover",
    "is_archived",
    "is_document",
    "lies_at_home",
    "outputs_of",
    "project_of",
    "stores_at",
    "subagent_directory",
    "unit_at",
]

_SESSION_ID = re.compile(r"[0-9a-fA-F-]{32,36}")

_LINES = re.compile(rf"{_SESSION_ID.pattern}\.jsonl")
_DOCUMENT = re.compile(r"session-.+\.json")
_NOTHING = Affected()
_WATCHED = ("projects", "tmp")


def stores_at(tool: str, environment: Environment) -> Iterator[Store]:
    """The directories this environment names, and the default."""
    roots = [_resolved(environment, name) for name in ("QWEN_RUNTIME_DIR", "QWEN_HOME")]
    for root in dict.fromkeys([*(root for root in roots if root), environment.home / ".qwen"]):
        yield Store(tool, root, watched=_WATCHED)


def _resolved(environment: Environment, variable: str) -> Path | None:
    value = environment.variables.get(variable, "")
    if value == "~" or value.startswith(("~/", "~\\")):
        return environment.home / value[2:]
    path = Path(value)
    return path if path.is_absolute() else None  # a relative one depends on where the tool was started


def is_document(path: Path) -> bool:
    """Whether a unit is a single JSON document, as 0.1 wrote them."""
    return path.suffix == ".json"


def _is_unit(store: Store, path: Path) -> bool:
    match _parts(store, path):
        case ("projects", _, "chats", name) | ("projects", _, "chats", "archive", name):
            return _LINES.fullmatch(name) is not None
        case ("tmp", _, "chats", name):
            return _DOCUMENT.fullmatch(name) is not None
        case _:
            return False


def _parts(store: Store, path: Path) -> tuple[str, ...]:
    try:
        return path.relative_to(store.root).parts
    except ValueError:
        return ("..",)


def unit_at(store: Store, path: Path) -> Unit | None:
    """Stat one unit."""
    status = stat_regular(path) if _is_unit(store, path) else None
    return Unit(store, path, fingerprint_of(status)) if status else None


def discover(store: Store) -> Discovery:
    """List all transcripts."""
    problems: list[Problem] = []
    units: list[Unit] = []
    for branch in _WATCHED:
        for project in list_directory(store.root / branch, problems) or ():
            if project.is_dir(follow_symlinks=False):
                units += _units_below(store, Path(project.path, "chats"), problems)
    return Discovery(tuple(units), tuple(problems), complete=not problems)


def _units_below(store: Store, chats: Path, problems: list[Problem]) -> Iterator[Unit]:
    for entry in list_directory(chats, problems) or ():
        if entry.name == "archive" and entry.is_dir(follow_symlinks=False):
            yield from _units_below(store, Path(entry.path), problems)
        elif (_LINES.fullmatch(entry.name) or _DOCUMENT.fullmatch(entry.name)) and (
            unit := unit_at(store, Path(entry.path))
        ):
            yield unit


def affected_by(store: Store, path: Path) -> Affected:
    """Map a changed path to units."""
    if _is_unit(store, path):
        return Affected((path,))
    match _parts(store, path):
        case () | ("projects" | "tmp",) | ("projects" | "tmp", _) | ("projects" | "tmp", _, "chats"):
            return RESCAN
        case ("projects", _, "chats", "archive"):
            return RESCAN
        case ("projects", slug, "subagents", session, *_):
            return Affected((store.root / "projects" / slug / "chats" / f"{session}.jsonl",))
        case _:
            return _NOTHING


def project_of(path: Path) -> Path:
    """The project's folder that a transcript lies in."""
    return path.parents[2 if is_archived(path) else 1]


def is_archived(path: Path) -> bool:
    """Whether a transcript was put away."""
    return path.parent.name == "archive"


def subagent_directory(path: Path, session: str) -> Path | None:
    """Where a session's sub-agents lie; None when what should be an id could lead elsewhere."""
    return project_of(path) / "subagents" / session if _SESSION_ID.fullmatch(session) else None


def outputs_of(store: Store, cwd: str | None) -> Path:
    """Where the tool keeps the full text of outputs that it shortened, for sessions in a directory."""
    digest = hashlib.sha256((cwd or "").encode("utf-8", "surrogatepass")).hexdigest()
    return store.root / "tmp" / digest


def lies_at_home(slug: str, cwd: str) -> bool:
    """Whether the tool would have put a session of this directory into this folder."""
    own = re.sub(r"[^a-zA-Z0-9]", lambda match: "--" if ord(match[0]) > 0xFFFF else "-", cwd)  # counted in UTF-16
    return own.lower() == slug.lower()  # on Windows in lower case
