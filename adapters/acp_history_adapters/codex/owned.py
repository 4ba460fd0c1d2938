"""Which rollouts are one thread's alone: the current one, those it was rewound from, and their compressed twins."""

from collections.abc import Sequence
from pathlib import Path

from acp_history_adapters.codex.chains import base_of, meta_of
from acp_history_adapters.codex.lines import first_record, open_source
from acp_history_adapters.codex.rollouts import parse_name, twins, walk
from acp_history_bridge.adapter import SessionRecord, Unit
from acp_history_bridge.errors import TranscriptError, TrashError
from acp_history_bridge.files import stat_regular
from acp_history_bridge.values import JsonMap

__all__ = ["files_of"]


def files_of(unit: Unit, record: SessionRecord, roots: Sequence[Path]) -> tuple[Path, ...]:
    """All rollouts of a thread.

    Raises:
        TrashError: The history of another thread begins in one of them.
    """
    name = parse_name(unit.path.name)
    thread = name.thread if name else record.native_id
    rollouts = [(Path(entry.path), found) for root in roots for entry, found in walk(root, [])]
    own = {found.rollout for _, found in rollouts if found.thread == thread}
    if any(_begins_in(path, own) for path, found in rollouts if found.thread != thread):
        raise TrashError("other sessions were forked from this one, and their histories begin in it")
    paths = [twin for path, found in rollouts if found.thread == thread for twin in _twins(path)]
    return tuple(dict.fromkeys([unit.path, *paths]))


def _twins(path: Path) -> list[Path]:
    candidates = (path,) if path.suffix == ".json" else twins(path)
    return [twin for twin in candidates if stat_regular(twin) is not None]


def _begins_in(path: Path, rollouts: set[str]) -> bool:
    base = None if path.suffix == ".json" else base_of(_meta(path))
    return base is not None and base.rollout in rollouts


def _meta(path: Path) -> JsonMap:
    try:
        with open_source(path) as source:
            return meta_of(first_record(source, []))
    except TranscriptError:
        return {}
