"""Where Gemini CLI keeps histories, and what a changed path means.

A store is `<home>/.gemini/tmp`; `GEMINI_CLI_HOME` replaces the home. Units are the transcripts
`<project>/chats/session-*.json[l]` and the prompt logs `<project>/logs.json`. Sub-agents' transcripts lie in a folder
named by their parent's id and belong to the parent's unit.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from acp_history_adapters.gemini_cli.projects import MARKER, REGISTRY
from acp_history_bridge.adapter import RESCAN, Affected, Discovery, Environment, Problem, Store, Unit
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import fingerprint_of, list_directory, open_regular, path_of, stat_regular
from acp_history_bridge.jsonl import read_at

__all__ = [
    "LOG",
    "affected",
    "discover",
    "is_transcript",
    "short_id",
    "stores",
    "transcript_hash",
    "transcript_ids",
    "unit_at",
]

LOG = "logs.json"

_CHATS = "chats"
_PROJECT_HASH = re.compile(rb'"projectHash":\s?"([0-9a-f]{64})"')
_TRANSCRIPT = re.compile(r"session-.+\.jsonl?")
# `session-<YYYY-MM-DDTHH-MM>-<first 8 characters of the id>.json[l]`
_SHORT_ID = re.compile(r"session-\d{4}-\d\d-\d\dT\d\d-\d\d-(.{1,8})\.jsonl?")


def stores(tool: str, environment: Environment) -> Iterator[Store]:
    """The one place where the tool looks in this environment."""
    override = Path(environment.variables.get("GEMINI_CLI_HOME", ""))
    home = override if override.is_absolute() else environment.home
    yield Store(tool, home / ".gemini" / "tmp")


def short_id(native_id: str) -> str:
    """The part of a session id that stands in the names of its files."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", native_id)[:8]


def is_transcript(name: str) -> bool:
    """Whether a file name is a transcript's; set-aside and temporary files are not."""
    return _TRANSCRIPT.fullmatch(name) is not None


def transcript_ids(folder: Path) -> frozenset[str]:
    """What the names of a project's transcripts say of their session ids."""
    names = (entry.name for entry in list_directory(folder / _CHATS, []) or ())
    return frozenset(match[1] for name in names if (match := _SHORT_ID.fullmatch(name)))


def transcript_hash(folder: Path) -> str:
    """The `projectHash` that a project's transcripts carry; empty when there is none to be found."""
    for entry in list_directory(folder / _CHATS, []) or ():
        if is_transcript(entry.name):
            try:
                with open_regular(Path(entry.path)) as descriptor:
                    found = _PROJECT_HASH.search(read_at(descriptor, 0, 4096))
            except TranscriptError:
                continue
            if found:
                return found[1].decode("ascii")
    return ""


def discover(store: Store) -> Discovery:
    """List all transcripts and prompt logs."""
    problems: list[Problem] = []
    units: list[Unit] = []
    folders = list_directory(store.root, problems)
    for folder in folders or ():
        if folder.is_dir(follow_symlinks=False):
            units += _units_in(store, Path(folder.path), problems)
    return Discovery(tuple(units), tuple(problems), complete=not problems)


def _units_in(store: Store, folder: Path, problems: list[Problem]) -> Iterator[Unit]:
    owner = _owner(store, folder)
    entries = list_directory(folder / _CHATS, problems) if _is_directory(folder / _CHATS) else None
    for entry in entries or ():
        if is_transcript(entry.name) and (status := stat_regular(entry)):
            yield Unit(store, path_of(entry.path), fingerprint_of(status, owner))
    if log := unit_at(store, folder / LOG):
        yield log


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def unit_at(store: Store, path: Path) -> Unit | None:
    """Stat one unit. A marker or, for a log, the list of transcripts changes what its sessions are."""
    match _parts(store, path):
        case (project, "chats", name) if is_transcript(name):
            beside = _owner(store, store.root / project)
        case (project, "logs.json"):
            beside = _stat(store.root / project / _CHATS)
        case _:
            return None
    status = stat_regular(path)
    return Unit(store, path, fingerprint_of(status, beside)) if status else None


def _owner(store: Store, folder: Path) -> os.stat_result | None:
    """What says whose folder it is: its marker, else the registry."""
    return stat_regular(folder / MARKER) or stat_regular(store.root.parent / REGISTRY)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _parts(store: Store, path: Path) -> tuple[str, ...]:
    try:
        return path.relative_to(store.root).parts
    except ValueError:
        return ()


def affected(store: Store, path: Path) -> Affected:
    """Map a changed path to units; folders that came or went, and markers, mean a new look at the store."""
    match _parts(store, path):
        case () | (_,) | (_, "chats" | ".project_root"):
            return RESCAN
        case (_, "logs.json"):
            return Affected((path,))
        case (project, "chats", name) if is_transcript(name):
            # A log's sessions show up again when their transcript is deleted.
            gone = stat_regular(path) is None
            return Affected((path, store.root / project / LOG) if gone else (path,))
        case (project, "chats", parent, _):
            return Affected(tuple(_transcripts_of(store.root / project / _CHATS, parent)))
        case _:
            return Affected()


def _transcripts_of(chats: Path, native_id: str) -> Iterator[Path]:
    for entry in list_directory(chats, []) or ():
        match = _SHORT_ID.fullmatch(entry.name)
        if match and match[1] == short_id(native_id):
            yield Path(entry.path)
