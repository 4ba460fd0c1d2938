"""From records to sessions: copies merged, wire ids given, directories found. Pure; the disk is not touched.

Records with the same native id, store and origin are copies of one session: they share their suffixed wire id. Of
several sessions with one plain id, the one that lies where its tool puts it comes first, then the order of the stores,
then the origin; that one gets the plain id.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from acp_history_bridge.adapter import SessionRecord, Store
from acp_history_bridge.index.directories import Directories, digest_in, usable
from acp_history_bridge.index.tables import Place
from acp_history_bridge.sessions import Session, suffixed_id
from acp_history_bridge.text import one_line

__all__ = ["Resolved", "Surroundings", "folded", "resolve", "sort_key", "time_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What resolving needs to know besides the records.

    Attributes:
        prefixes: Of each tool's wire ids.
        order: Position of each store.
        home: Stands in for an unknown working directory.
        directories: Compares working directories.
    """

    prefixes: Mapping[str, str]
    order: Mapping[Store, int]
    home: str
    directories: Directories


@dataclass(frozen=True, slots=True)
class Resolved:
    """One listed session, and where its best copy lies."""

    session: Session
    plain_id: str
    key: str
    place: Place


def sort_key(time: datetime) -> int:
    """What sessions are ordered by: microseconds since the epoch."""
    return (time - _EPOCH) // _MICROSECOND


def time_of(key: int) -> datetime:
    """The time that `sort_key` was made of."""
    return _EPOCH + key * _MICROSECOND


def folded(text: str) -> str:
    """Text for comparison in any case."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text.casefold())


def resolve(
    places: Sequence[Place], surroundings: Surroundings, known: Mapping[str, str], plain_id: str
) -> list[Resolved]:
    """Make the listed sessions out of all records with one plain id."""
    copies: dict[str, list[Place]] = {}
    for place in places:
        copies.setdefault(_key(place, surroundings), []).append(place)
    best = [(max(group, key=_preference), key) for key, group in copies.items()]
    shown = sorted(
        ((place, key) for place, key in best if _shown(place.record)),
        key=lambda item: _claim(item[0], item[1], surroundings),
    )
    return [
        Resolved(_session(key if number else plain_id, place, surroundings, known), plain_id, key, place)
        for number, (place, key) in enumerate(shown)
    ]


def _key(place: Place, surroundings: Surroundings) -> str:
    store = place.unit.store
    return suffixed_id(surroundings.prefixes[store.tool], place.record.native_id, store, place.record.origin)


def _shown(record: SessionRecord) -> bool:
    return record.listed and record.kind != "subagent"


def _preference(place: Place) -> tuple[bool, datetime, int, str, int]:
    record = place.record
    return _shown(record), record.updated_at, record.rank, str(place.unit.path), place.position


def _claim(place: Place, key: str, surroundings: Surroundings) -> tuple[bool, int, str, str]:
    return place.record.displaced, surroundings.order[place.unit.store], place.record.origin, key


def _session(wire_id: str, place: Place, surroundings: Surroundings, known: Mapping[str, str]) -> Session:
    record = place.record
    cwd = usable(record.cwd) or known.get(digest_in(record) or "")
    return Session(
        id=wire_id,
        tool=place.unit.store.tool,
        unit=place.unit,
        record=record,
        title=(one_line(record.title) or None) if record.title else None,
        cwd=cwd or surroundings.home,
        cwd_known=cwd is not None,
    )
