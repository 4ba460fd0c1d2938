"""Where Claude Code keeps its transcripts, and which files are sessions.

Policy: a store is a `projects` directory; a unit is `<slug>/<uuid>.jsonl` and nothing else (agent files, notes, other
tools' leftovers are not). A slug is never decoded, because several directories share one; it is only compared. Links
below a store are not followed.
"""

import os
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath, PureWindowsPath

from acp_history_bridge.adapter import RESCAN, Affected, Discovery, Environment, Problem, Store, Unit
from acp_history_bridge.files import fingerprint_of, list_directory, path_of, stat_regular

__all__ = ["TITLE_FILE", "affected", "discover", "is_session_id", "lies_at_home", "session_directory", "stores", "unit"]

TITLE_FILE = "custom-title.json"

_SUFFIX = ".jsonl"
_SESSION_ID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_SLUG_LIMIT = 200
_NOT_IN_SLUG = re.compile(r"[^A-Za-z0-9]")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


def stores(tool: str, environment: Environment) -> Iterator[Store]:
    """The configured root, and the one that versions 1.0.30 and 1.0.31 used."""
    override = unicodedata.normalize("NFC", environment.variables.get("CLAUDE_CONFIG_DIR", ""))
    root = Path(override) if Path(override).is_absolute() else environment.home / ".claude"
    yield Store(tool, root / "projects", "current")
    xdg = environment.variables.get("XDG_CONFIG_HOME", "")
    config = Path(xdg) if Path(xdg).is_absolute() else environment.home / ".config"
    if config / "claude" != root:
        yield Store(tool, config / "claude" / "projects", "xdg")


def is_session_id(name: str) -> bool:
    """Whether this is a UUID, in either case: all other files in a project directory are no sessions."""
    return _SESSION_ID.fullmatch(name) is not None


def session_directory(transcript: Path) -> Path:
    """What lies beside a transcript: its title, its sub-agents, its long tool results."""
    return transcript.with_suffix("")


def discover(store: Store) -> Discovery:
    """List all sessions by `scandir` and `stat`."""
    problems: list[Problem] = []
    projects = list_directory(store.root, problems)
    units: list[Unit] = []
    for project in projects or ():
        if project.is_dir(follow_symlinks=False):
            units += _project_units(store, project, problems)
    return Discovery(tuple(units), tuple(problems), complete=not problems)


def _project_units(store: Store, project: os.DirEntry[str], problems: list[Problem]) -> Iterator[Unit]:
    entries = list_directory(Path(project.path), problems) or ()
    beside = {entry.name for entry in entries if is_session_id(entry.name)}
    for entry in entries:
        name = entry.name.removesuffix(_SUFFIX)
        if name == entry.name or not is_session_id(name):
            continue
        if (found := stat_regular(entry)) is not None:
            path = path_of(entry.path)
            title = stat_regular(session_directory(path) / TITLE_FILE) if name in beside else None
            yield Unit(store, path, fingerprint_of(found, title))


def unit(store: Store, path: Path) -> Unit | None:
    """Stat one session now; None when it is gone, or is none."""
    if path.suffix != _SUFFIX or path.parent.parent != store.root or not is_session_id(path.stem):
        return None
    if (found := stat_regular(path)) is None:
        return None
    return Unit(store, path, fingerprint_of(found, stat_regular(session_directory(path) / TITLE_FILE)))


def affected(store: Store, path: Path) -> Affected:
    """Map a changed path to its session: the transcript itself, or anything in the directory beside it."""
    try:
        parts = path.relative_to(store.root).parts
    except ValueError:
        return RESCAN if path in store.root.parents else Affected()
    if len(parts) < 2:
        return RESCAN
    name = parts[1].removesuffix(_SUFFIX) if len(parts) == 2 else parts[1]
    return Affected((store.root / parts[0] / (name + _SUFFIX),)) if is_session_id(name) else Affected()


@lru_cache(maxsize=1024)
def lies_at_home(slug: str, cwd: str | None) -> bool:
    """Whether a session that started in `cwd` belongs into the project directory `slug`.

    A session started with `--worktree` has a directory further down as its first one, so the slugs of all directories
    above count, too.
    """
    if not cwd or _is_slug_of(slug, cwd):
        return True
    path = PureWindowsPath(cwd) if PureWindowsPath(cwd).drive else PurePosixPath(cwd)
    return any(_is_slug_of(slug, str(place)) for place in (path, *path.parents))


def _is_slug_of(slug: str, directory: str) -> bool:
    # The tool replaces each UTF-16 unit, so a character beyond the first plane gives two dashes.
    plain = _NOT_IN_SLUG.sub("-", _ASTRAL.sub("--", directory))
    # Long slugs end in a hash that differed between builds; up to 2.0.77 they were not cut.
    return slug == plain or (len(plain) > _SLUG_LIMIT and slug[:_SLUG_LIMIT] == plain[:_SLUG_LIMIT])
