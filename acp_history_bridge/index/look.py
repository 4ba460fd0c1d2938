"""Looking at one unit: the boundary to adapters' code.

Policy:

- A unit that only grew is handed to its adapter with what was known, once the bytes before the known offset (and those
  at the start of the file) are seen to be the same; every other change is looked at from scratch.
- Below 64 KiB that is not worth the second look at each file of a first scan: reading it again costs no more.
- Whatever an adapter raises or returns against its contract is one problem of this one unit; what the index holds of
  the unit stays. Log and problem name the kind of error and the line of code, never its text: that can quote the
  transcript.
- A file that was written to just before it was looked at can change again without its time changing, and one that
  could not be read to the end may be readable later: both are looked at again by the next scan, whatever `stat` says.
"""

import contextlib
import hashlib
import logging
import os
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from acp_history_bridge.adapter import Adapter, Fingerprint, Inspection, Known, Problem, SessionRecord, Unit
from acp_history_bridge.errors import AdapterError, TranscriptError
from acp_history_bridge.files import open_regular
from acp_history_bridge.index.records import decode_state, encode_record, encode_state
from acp_history_bridge.index.tables import Tables, UnitRow
from acp_history_bridge.jsonl import read_at
from acp_history_bridge.text import replace_surrogates
from acp_history_bridge.timestamps import from_ns

__all__ = ["Finding", "adapter_failed", "known_of", "look"]

_WINDOW = 4096
_WORTH_CONTINUING = 64 * 1024
_RACY_NS = 2_000_000_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Finding:
    """What is to be stored about a unit after a look at it.

    Attributes:
        records: The sessions found, each with its stored form.
        problems: How many of each kind, with an example.
        keeps: The look was not complete: records that are missing here stay as they are.
        adds: Only new bytes were read, so problems found before still hold.
        again: The next scan looks again even if the fingerprint is the same.
    """

    unit: Unit
    records: tuple[tuple[SessionRecord, bytes], ...] = ()
    problems: tuple[tuple[int, Problem], ...] = ()
    offset: int = 0
    prefix: bytes | None = None
    state: bytes = b"{}"
    keeps: bool = False
    adds: bool = False
    again: bool = False


def look(adapter: Adapter, unit: Unit, known: Known | None, now_ns: int) -> Finding:
    """Let the adapter inspect a unit; never raises for what the adapter does."""
    try:
        return _finding(unit, adapter.inspect(unit, known), known, now_ns)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # third-party code can fail in any way
        return Finding(unit, problems=((1, adapter_failed(adapter, unit.path, error)),), keeps=True)


def adapter_failed(adapter: Adapter, path: Path, error: BaseException) -> Problem:
    """Log that an adapter failed, and make a problem of it."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    # The texts of our own errors are ours; anybody else's can quote what was being read.
    reason = str(error) if isinstance(error, AdapterError) else type(error).__name__
    _log.error("the adapter %s failed on %s: %s%s", adapter.name, path, reason, place)
    return Problem(path, "adapter-failed", f"{reason}{place}")


def known_of(tables: Tables, row: UnitRow | None, unit: Unit) -> Known | None:
    """What to hand back to the adapter, if the unit only grew since; reads at most two windows of the file."""
    if row is None or row.prefix is None or row.offset > unit.fingerprint.size:
        return None
    old_size, _, old_inode, _ = (int(part) for part in row.fingerprint.split(" "))
    if unit.fingerprint.inode != old_inode or unit.fingerprint.size <= old_size:
        return None
    if _prefix_of(unit.path, row.offset, None) != row.prefix:
        return None
    return Known(row.offset, decode_state(row.state), tables.records(row.id))


def _finding(unit: Unit, inspection: object, known: Known | None, now_ns: int) -> Finding:
    if not isinstance(inspection, Inspection):
        raise AdapterError(f"inspect returned a {type(inspection).__name__}")
    offset = inspection.offset
    return Finding(
        unit=unit,
        records=tuple(_stored(record, unit.fingerprint) for record in inspection.records),
        problems=_counted(inspection.problems),
        offset=offset,
        prefix=_prefix_of(unit.path, offset, unit.fingerprint) if offset > _WORTH_CONTINUING else None,
        state=encode_state(inspection.state),
        keeps=not inspection.complete,
        adds=known is not None,
        again=not inspection.complete or unit.fingerprint.mtime_ns > now_ns - _RACY_NS,
    )


def _stored(record: object, fingerprint: Fingerprint) -> tuple[SessionRecord, bytes]:
    if not isinstance(record, SessionRecord):
        raise AdapterError(f"a record is a {type(record).__name__}")
    data = encode_record(record)
    latest = from_ns(fingerprint.mtime_ns)
    if record.updated_at > latest:  # lists stop early where no file can hold anything newer: the order depends on it
        record = replace(record, updated_at=latest)
        data = encode_record(record)
    return record, data


def _counted(problems: Iterable[Problem]) -> tuple[tuple[int, Problem], ...]:
    counts: dict[str, tuple[int, Problem]] = {}
    for problem in problems:
        number, example = counts.get(problem.kind, (0, problem))
        counts[problem.kind] = (number + 1, example)
    return tuple(
        (number, replace(example, kind=replace_surrogates(kind), detail=replace_surrogates(example.detail)))
        for kind, (number, example) in counts.items()
    )


def _prefix_of(path: Path, offset: int, expected: Fingerprint | None) -> bytes | None:
    """Hash what lies just before `offset` and at the start of the file.

    None when it cannot be read, or is not the expected file any more: then what was just inspected cannot be told from
    what lies there now.
    """
    with contextlib.suppress(TranscriptError, OSError), open_regular(path) as descriptor:
        stat = os.fstat(descriptor)
        if expected is not None and (stat.st_size, stat.st_mtime_ns, stat.st_ino) != (
            expected.size,
            expected.mtime_ns,
            expected.inode,
        ):
            return None
        start = max(0, offset - _WINDOW)
        tail = read_at(descriptor, start, offset - start)
        head = read_at(descriptor, 0, min(_WINDOW, start)) if start else b""
        return hashlib.blake2b(tail + head, digest_size=16).digest() if len(tail) == offset - start else None
    return None
