"""Sessions that are followed while they are written give what a later load gives; loads give the same bytes."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from acp_history_bridge.adapter import SessionRecord, Unit
from acp_history_bridge.sessions import SessionQuery
from tests.differential.histories import PREFIXES, frames, lay_out, library_at
from tests.differential.items import Call, Item, replayed
from tests.differential.recordings import TOOLS, Recording, Replaying, recording_of, records_in


def as_seen(sent: Sequence[bytes]) -> tuple[list[Item], dict[str, Call], Item | None]:
    """What a client that got these frames shows in the end; of plans that is the last one, wherever it came."""
    updates: list[dict[str, Any]] = [orjson.loads(frame)["params"]["update"] for frame in sent]
    seen = replayed(updates)
    plans = [item for item in seen.items if item.kind == "plan"]
    return [item for item in seen.items if item.kind != "plan"], seen.calls, plans[-1] if plans else None


def session_in(recording: Recording, home: Path) -> tuple[Unit, SessionRecord]:
    """The recorded session in a home."""
    sessions = {record.native_id: (unit, record) for unit, record in records_in(recording.adapter, home)}
    return sessions[recording.native_id]


@pytest.mark.parametrize("tool", PREFIXES)
def test_two_loads_give_the_same_bytes(tool: str, tmp_path: Path) -> None:
    """Every session of a corpus, by two libraries that know nothing of each other."""
    home = lay_out(tool, tmp_path)
    with library_at(home) as one, library_at(home) as other:
        sessions = one.page(SessionQuery(), 1000).sessions
        assert sessions
        for session in sessions:
            found = other.find(session.id)
            assert found is not None
            assert frames(one, session) == frames(other, found)


@pytest.mark.parametrize("step", [1, 7])
@pytest.mark.parametrize("tool", TOOLS)
def test_a_session_that_is_followed_ends_as_a_later_load(tool: str, step: int, tmp_path: Path) -> None:
    """The transcript grows record by record; each look gives what is new."""
    recording = recording_of(tool)
    begun = next(count for count in range(1, len(recording.records)) if is_there(recording, count, tmp_path / "begun"))
    live, later = tmp_path / "live", tmp_path / "later"
    recording.write(live, recording.records[:begun])
    with ExitStack() as opened:
        transcript = opened.enter_context(closing(recording.adapter.open(*session_in(recording, live))))
        following = Replaying(transcript, live=True)
        sent = following.frames()
        for end in (*range(begun, len(recording.records), step), len(recording.records)):
            recording.write(live, recording.records[:end])
            sent += following.frames()
    recording.write(later, recording.records)
    with closing(recording.adapter.open(*session_in(recording, later))) as transcript:
        assert as_seen(sent) == as_seen(Replaying(transcript, live=True).frames())


def is_there(recording: Recording, count: int, home: Path) -> bool:
    """Whether the first records are a session with a prompt already."""
    recording.write(home, recording.records[:count])
    sessions = {record.native_id: record for _, record in records_in(recording.adapter, home)}
    return recording.native_id in sessions and sessions[recording.native_id].title is not None
