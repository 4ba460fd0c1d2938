"""Which directory a project folder of Gemini CLI belongs to.

In this order: the marker `.project_root` in the folder; `projects.json` turned round; for a folder or transcript that
only has a SHA-256 of the path, the registry's paths hashed. A slug alone never yields a path. What stays unknown goes
to the core as a digest, which it compares with the directories of all tools.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import orjson

from acp_history_bridge.files import read_small, stat_regular
from acp_history_bridge.values import mapping

__all__ = ["MARKER", "REGISTRY", "Project", "Projects", "is_path_hash"]

MARKER = ".project_root"
REGISTRY = "projects.json"

_MARKER_LIMIT = 16 * 1024
_REGISTRY_LIMIT = 4 * 1024 * 1024
_HASH = re.compile(r"[0-9a-f]{64}")

_Signature = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class Project:
    """One project folder.

    Attributes:
        name: The folder's name, a slug or a hash.
        cwd: The project's directory, None when unknown.
        path_hash: What `projectHash` is in transcripts that belong here; empty when unknown.
    """

    name: str
    cwd: str | None
    path_hash: str


def is_path_hash(value: str) -> bool:
    """Whether a value is a SHA-256 in the form in which the tool writes it."""
    return _HASH.fullmatch(value) is not None


class Projects:
    """Looks projects up, and notices when a marker or the registry has changed."""

    def __init__(self) -> None:
        self._registries: dict[Path, tuple[_Signature, dict[str, str], dict[str, str]]] = {}
        self._markers: dict[Path, tuple[_Signature, str | None]] = {}

    def project(self, folder: Path) -> Project:
        """Resolve a folder below a store's root."""
        by_slug, by_hash = self._registry(folder.parent.parent / REGISTRY)
        hashed = folder.name if is_path_hash(folder.name) else ""
        cwd = self._marker(folder / MARKER) or by_slug.get(folder.name) or by_hash.get(hashed)
        return Project(folder.name, cwd, hashed or (_hash(cwd) if cwd else ""))

    def directory_of(self, folder: Path, path_hash: str) -> str | None:
        """The registered directory with this hash."""
        return self._registry(folder.parent.parent / REGISTRY)[1].get(path_hash)

    def _marker(self, path: Path) -> str | None:
        signature = _signature(path)
        if signature is None:
            return None
        known = self._markers.get(path)
        if known is None or known[0] != signature:
            text = (read_small(path, _MARKER_LIMIT) or b"").decode("utf-8", errors="replace").strip()
            known = self._markers[path] = (signature, text if _is_directory_name(text) else None)
        return known[1]

    def _registry(self, path: Path) -> tuple[dict[str, str], dict[str, str]]:
        signature = _signature(path)
        known = self._registries.get(path)
        if known is None or known[0] != signature:
            projects = _read_registry(path)
            by_hash = {_hash(directory): directory for directory in projects}
            known = self._registries[path] = (signature, {slug: name for name, slug in projects.items()}, by_hash)
        return known[1], known[2]


def _signature(path: Path) -> _Signature:
    status = stat_regular(path)
    return (status.st_size, status.st_mtime_ns, status.st_ino) if status else None


def _read_registry(path: Path) -> dict[str, str]:
    try:
        value = orjson.loads(read_small(path, _REGISTRY_LIMIT) or b"{}")
    except orjson.JSONDecodeError:
        return {}  # being written, or damaged: the tool treats it as empty, too
    projects = mapping(mapping(value).get("projects"))
    return {name: slug for name, slug in projects.items() if isinstance(slug, str) and _is_directory_name(name)}


def _is_directory_name(text: str) -> bool:
    return text.startswith(("/", "\\\\")) or re.match(r"[A-Za-z]:[\\/]", text) is not None if _clean(text) else False


def _clean(text: str) -> bool:
    return not any(character in text for character in "\x00\n\r")


def _hash(directory: str) -> str:
    return hashlib.sha256(directory.encode("utf-8", errors="replace")).hexdigest()
