"""Recorded sessions of all tools with values that nobody sane wrote: nothing raises, and nothing else is lost."""

import copy
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.differential.items import replayed
from tests.differential.recordings import TOOLS, Recording, recording_of, replaying

Place = tuple[str | int, ...]

_DEEP = "@deep@"
_GONE = "@gone@"
_DEPTH = 5000
NOTHING: list[object] = []
HOSTILE: tuple[object, ...] = (
    None,
    True,
    -1,
    2**80,
    1e308,
    "",
    "x",
    "\ud800",
    "../../../etc/passwd",
    "a\x00\x1b[2Jb",
    NOTHING,
    dict[str, object](),
    [[None]],
    [7, "x", {"type": 7, "text": NOTHING, "id": NOTHING}],
    {"type": "text", "text": {"value": 1}, "id": 5},
    _DEEP,
    _GONE,
)

DAMAGE = (b"", b"\0" * 100, b"{", b"[]", b"null", b'"\xff"', b"\xef\xbb\xbf{}", b'{"type": "cut')


def places_in(value: object, place: Place = ()) -> Iterator[Place]:
    """Every place in a JSON value but the value itself."""
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield (*place, key)
            yield from places_in(item, (*place, key))
    elif isinstance(value, list):
        for number, item in enumerate(cast("list[object]", value)):
            yield (*place, number)
            yield from places_in(item, (*place, number))


def changed(record: bytes, place: Place, value: object) -> bytes:
    """The record with another value at a place, or without that place."""
    document = copy.deepcopy(json.loads(record))
    holder = document
    for step in place[:-1]:
        holder = holder[step]
    if value == _GONE:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    return encoded(document)


def encoded(document: object) -> bytes:
    """JSON of any depth."""
    text = json.dumps(document).replace(f'"{_DEEP}"', "[" * _DEPTH + "]" * _DEPTH)
    return text.encode()


def spoken(frames: Sequence[bytes]) -> list[tuple[str, str]]:
    """What was said, line by line."""
    items = replayed(json.loads(frame)["params"]["update"] for frame in frames).items
    return [(item.kind, item.text) for item in items if item.kind in {"user", "agent", "thought"}]


@st.composite
def changes(draw: st.DrawFn, recording: Recording) -> list[bytes]:
    """The records after some were changed, doubled, dropped, moved or spoiled."""
    records = list(recording.records)
    for _ in range(draw(st.integers(1, 3))):
        index = draw(st.integers(0, len(records) - 1))
        how = draw(st.sampled_from(["change", "change", "change", "repeat", "swap", "drop", "spoil"]))
        if how == "change":
            records[index] = draw(changed_record(recording, records[index]))
        elif how == "repeat":
            records.insert(draw(st.integers(0, len(records))), records[index])
        elif how == "swap":
            other = draw(st.integers(0, len(records) - 1))
            records[index], records[other] = records[other], records[index]
        elif how == "drop" and len(records) > 1:
            del records[index]
        elif not recording.within:
            records[index] = draw(st.sampled_from(DAMAGE))
    return records


@st.composite
def changed_record(draw: st.DrawFn, recording: Recording, record: bytes) -> bytes:
    """One record with a hostile value, or with the value of a place in any other record: doubled ids, cycles."""
    try:
        document: Any = json.loads(record)
    except (ValueError, RecursionError):
        return record
    places = [place for place in places_in(document) if place[: len(recording.within)] == recording.within]
    if not places:
        return record
    place = draw(st.sampled_from(places))
    value = draw(st.sampled_from(HOSTILE) | st.sampled_from(ids_in(recording.records)))
    return changed(record, place, value) if place != recording.within or value != _GONE else record


@cache
def ids_in(records: tuple[bytes, ...]) -> list[str]:
    """Texts of a session that could be ids."""
    documents = [json.loads(record) for record in records]
    values = [at(document, place) for document in documents for place in places_in(document)]
    texts = {value for value in values if isinstance(value, str)}
    return sorted(value for value in texts if 6 <= len(value) <= 60 and " " not in value)


def at(document: Any, place: Place) -> object:  # noqa: ANN401 - any JSON value
    """The value at a place."""
    for step in place:
        document = document[step]
    return document


@pytest.mark.parametrize("tool", TOOLS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_hostile_values_raise_nothing_and_cost_no_neighbour(
    tool: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Wrong types, missing members, doubled ids, cycles, depth, damage; the session beside it stays as it is."""
    recording = recording_of(tool)
    records = data.draw(changes(recording))
    home = tmp_path_factory.mktemp("home")
    recording.write(home, records)
    replays = replaying(recording.adapter, home)
    assert spoken(replays[recording.neighbour]) == undisturbed(recording, tmp_path_factory.mktemp("calm"))


def undisturbed(recording: Recording, home: Path) -> list[tuple[str, str]]:
    """What the neighbour says beside the session as it was recorded."""
    if recording.neighbour not in _CALM:
        recording.write(home, recording.records)
        _CALM[recording.neighbour] = spoken(replaying(recording.adapter, home)[recording.neighbour])
    return _CALM[recording.neighbour]


_CALM: dict[str, list[tuple[str, str]]] = {}


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool != "opencode"])
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_records_of_a_kind_that_nobody_knows_cost_nothing(
    tool: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """All that was said is still shown, whatever stands between."""
    recording = recording_of(tool)
    before, after = (tmp_path_factory.mktemp(name) for name in ("before", "after"))
    recording.write(before, recording.records)
    value = data.draw(st.sampled_from(HOSTILE))
    strange = data.draw(
        st.sampled_from(
            [
                encoded({"type": "of-the-future", "payload": value, "content": value, "timestamp": value}),
                encoded([value]),
                *DAMAGE,
            ]
        )
    )
    index = data.draw(st.integers(1, len(recording.records)))
    recording.write(after, [*recording.records[:index], strange, *recording.records[index:]])
    one, other = (spoken(replaying(recording.adapter, home)[recording.native_id]) for home in (before, after))
    assert one == other
    assert one
