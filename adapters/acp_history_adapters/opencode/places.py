"""Where opencode keeps its histories, and which path belongs to which unit.

Policy: all eras are one store, because each upgrade copied the sessions forward and left the old tree in place: copies
of a session must meet. A unit is the database, or the info file of one session in a JSON tree.

    opencode.db                                            since 1.2       (channels: opencode-<channel>.db)
    storage/session/<project>/<session>.json               1.0 to 1.1
    project/<slug>/storage/session/info/<session>.json     0.x

Beside them lie git objects, logs and binaries, so the store names the few directories worth watching. A part that is
rewritten in place in a tree is not noticed, only new messages and the info file: no tree has a writer since 1.2.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from acp_history_adapters.opencode.database import wal_of
from acp_history_bridge.adapter import RESCAN, Affected, Discovery, Environment, Fingerprint, Problem, Store, Unit
from acp_history_bridge.files import fingerprint_of, list_directory, stat_regular

__all__ = ["Era", "affected_by", "discover", "era_of", "messages_of", "stores_at", "unit_at"]

Era = Literal["database", "storage", "project"]

_TREES = ("storage/session", "storage/message")
_COMPANIONS = ("-wal", "-shm", "-journal")
_NOTHING = Affected()


def stores_at(tool: str, environment: Environment) -> Iterator[Store]:
    """The data directory; and the directory of the database that `OPENCODE_DB` names, if that lies elsewhere."""
    base = environment.variables.get("XDG_DATA_HOME", "")
    root = (Path(base) if os.path.isabs(base) else environment.home / ".local" / "share") / "opencode"  # noqa: PTH117  # a string
    name = environment.variables.get("OPENCODE_DB", "")
    named = Path(os.path.normpath(root / name)) if name and name != ":memory:" else None
    if named is None or named.parent == root:
        yield Store(tool, root, layout=named.name if named else "", watched=_TREES)
    else:
        yield Store(tool, root, watched=_TREES)
        # Whatever else lies there is none of our business: no trees are looked for below this one.
        yield Store(tool, named.parent, layout=named.name, watched=())


def era_of(store: Store, path: Path) -> Era | None:
    """In which way a path is a unit, judged by its name alone; None when it is none."""
    try:
        parts = path.relative_to(store.root).parts
    except ValueError:
        return None
    match parts:
        case (name,) if _is_database(store, name):
            return "database"
        case ("storage", "session", _, name) if store.watched and name.endswith(".json"):
            return "storage"
        case ("project", _, "storage", "session", "info", name) if store.watched and name.endswith(".json"):
            return "project"
        case _:
            return None


def _is_database(store: Store, name: str) -> bool:
    if store.layout and name == store.layout:
        return True
    return bool(store.watched) and name.startswith("opencode") and name.endswith(".db")


def messages_of(store: Store, path: Path) -> Path:
    """The directory with the messages of a session in a tree."""
    if era_of(store, path) == "storage":
        return store.root / "storage" / "message" / path.stem
    return path.parent.parent / "message" / path.stem


def unit_at(store: Store, path: Path) -> Unit | None:
    """Stat one unit."""
    era = era_of(store, path)
    result = stat_regular(path) if era else None
    if result is None:
        return None
    companion = _stat(wal_of(path) if era == "database" else messages_of(store, path))
    seen = fingerprint_of(result, companion)
    newest = max(seen.mtime_ns, companion.st_mtime_ns if companion else 0)
    return Unit(store, path, Fingerprint(seen.size, newest, seen.inode, seen.beside))


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except (OSError, ValueError):
        return None


def discover(store: Store) -> Discovery:
    """List all units."""
    problems: list[Problem] = []
    candidates = [store.root / entry.name for entry in list_directory(store.root, problems) or ()]
    if store.watched:
        for directory in (store.root / "storage" / "session", store.root / "project"):
            for branch in list_directory(directory, problems) or ():
                if branch.is_dir(follow_symlinks=False):
                    infos = Path(branch.path, *(("storage", "session", "info") if directory.name == "project" else ()))
                    candidates += [infos / entry.name for entry in list_directory(infos, problems) or ()]
    units = tuple(unit for path in candidates if (unit := unit_at(store, path)))
    return Discovery(units, tuple(problems), complete=not problems)


def affected_by(store: Store, path: Path) -> Affected:
    """Map a changed path to units."""
    if era_of(store, path):
        return Affected((path,))
    try:
        parts = path.relative_to(store.root).parts
    except ValueError:
        return _NOTHING
    match parts:
        case ("storage" | "project", *_) if not store.watched:
            return _NOTHING
        case () | ("storage" | "project",) | ("storage", "session") | ("storage", "session", _):
            return RESCAN
        case (name,):
            owner = next((name.removesuffix(end) for end in _COMPANIONS if name.endswith(end)), "")
            return Affected((store.root / owner,)) if _is_database(store, owner) else _NOTHING
        case ("storage", "message", session, *_):
            return Affected(tuple(_infos_of(store, session)))
        case ("project", slug, "storage", "session", "message" | "part", session, *_):
            return Affected((store.root / "project" / slug / "storage" / "session" / "info" / f"{session}.json",))
        case ("project", _) | ("project", _, "storage") | ("project", _, "storage", "session" | "info"):
            return RESCAN
        case _:
            return _NOTHING


def _infos_of(store: Store, session: str) -> Iterator[Path]:
    """Where a session's info lies in the tree of 1.x, in whichever project."""
    problems: list[Problem] = []
    for project in list_directory(store.root / "storage" / "session", problems) or ():
        if stat_regular(path := Path(project.path, f"{session}.json")):
            yield path
