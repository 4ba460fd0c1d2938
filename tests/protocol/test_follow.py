"""Following: what is added to the transcript of an open session arrives."""

import dataclasses
import time
from collections.abc import Iterator

import pytest

from acp_history_bridge.settings import ReplaySettings, Settings
from acp_history_bridge.turns import Text, ToolCall, ToolStatus, Turn
from tests.peers.bridge import Connection, connected
from tests.peers.memory import MemorySource, later, say, session

QUIET = dataclasses.replace(Settings(), pushes="off")


def call(status: ToolStatus) -> Turn:
    """A turn of one tool call."""
    return Turn("t", "agent", (ToolCall("t1", "Tool", "Do", "other", status),))


def open_one(bridge: Connection, turns: list[Turn]) -> None:
    """Initialise and load a session of these turns."""
    bridge.initialize()
    bridge.source.add(session(), turns)
    bridge.load("made:1")


def append(bridge: Connection, turns: list[Turn], *added: Turn) -> None:
    """The transcript grows, and the source has noticed."""
    turns.extend(added)
    bridge.call(bridge.source.change, later(bridge.source.sessions["made:1"]))


@pytest.mark.fault("R5")
def test_added_turns_arrive_after_a_pause(source: MemorySource) -> None:
    """In order, each once, at least 200 ms after the load's answer."""
    turns = [say(0)]
    with connected(source, QUIET) as bridge:
        open_one(bridge, turns)
        append(bridge, turns, say(1), say(2))
        first, second = bridge.next(), bridge.next()
        assert bridge.times[-2] - bridge.times[-3] >= 0.2
        append(bridge, turns, say(3))
        third = bridge.next()
        assert [message["params"]["update"]["messageId"] for message in (first, second, third)] == ["m1", "m2", "m3"]
        assert bridge.silent(0.5) >= 0.5


class _WrittenTo(list[Turn]):
    """A transcript whose tool writes one more turn as soon as a reader has come to its end."""

    def __iter__(self) -> Iterator[Turn]:
        for number in range(len(self)):
            yield self[number]
        if len(self) == 1:
            self.append(say(1))


@pytest.mark.fault("R5")
def test_turns_written_during_the_load_are_not_lost(source: MemorySource) -> None:
    """They were announced before the session was open, so nothing announces them any more."""
    with connected(source, QUIET) as bridge:
        open_one(bridge, _WrittenTo([say(0)]))
        assert not bridge.updates("made:1", "agent_message_chunk")
        assert bridge.next()["params"]["update"]["messageId"] == "m1"


def test_a_later_outcome_updates_its_call(source: MemorySource) -> None:
    """A call of a running session is in progress until then."""
    turns: list[Turn] = []
    with connected(source, QUIET) as bridge:
        open_one(bridge, turns)
        append(bridge, turns, call("unfinished"))
        begun = bridge.next()["params"]["update"]
        append(bridge, turns, call("completed"))
        done = bridge.next()["params"]["update"]
        assert (begun["sessionUpdate"], begun["status"]) == ("tool_call", "in_progress")
        assert (done["sessionUpdate"], done["status"]) == ("tool_call_update", "completed")


@pytest.mark.fault("W8")
def test_a_closed_session_is_not_followed(source: MemorySource) -> None:
    """Its transcript is closed, too."""
    turns = [say(0)]
    with connected(source, QUIET) as bridge:
        open_one(bridge, turns)
        assert bridge.request("session/close", {"sessionId": "made:1"}) == {}
        append(bridge, turns, say(1))
        assert bridge.silent(0.6) >= 0.6
        assert source.opened[0].closed


def test_following_can_be_switched_off(source: MemorySource) -> None:
    """By the setting `replay.follow`."""
    turns = [say(0)]
    with connected(source, dataclasses.replace(QUIET, replay=ReplaySettings(follow=False))) as bridge:
        open_one(bridge, turns)
        assert source.opened[0].closed
        append(bridge, turns, say(1))
        assert bridge.silent(0.6) >= 0.6


def test_bursts_are_a_quarter_second_apart(source: MemorySource) -> None:
    """However often the transcript changes."""
    turns = [say(0)]
    with connected(source, QUIET) as bridge:
        open_one(bridge, turns)
        append(bridge, turns, say(1))
        bridge.next()
        begin = time.monotonic()
        for number in range(2, 12):
            append(bridge, turns, say(number))
        for _ in range(10):
            bridge.next()
        assert time.monotonic() - begin >= 0.2


def test_a_transcript_that_breaks_is_let_go(source: MemorySource) -> None:
    """The connection and the other sessions go on."""
    turns: list[Turn] = [say(0)]
    with connected(source, QUIET) as bridge:
        open_one(bridge, turns)
        bridge.silent(0.5)
        source.opened[0].turns = None  # type: ignore[assignment, method-assign]  # calling it fails
        append(bridge, turns, say(1))
        assert bridge.silent(0.4) >= 0.4
        assert source.opened[0].closed
        bridge.load("made:1")
        assert bridge.updates("made:1", "agent_message_chunk")[-1]["content"] == {"type": "text", "text": "text 1"}


def test_all_transcripts_are_closed_at_the_end(source: MemorySource) -> None:
    """And beyond 64 the oldest is let go."""
    for number in range(66):
        source.add(session(f"made:{number}"), [Turn("m", "user", (Text("hi"),))])
    with connected(source, QUIET) as bridge:
        bridge.initialize()
        for number in range(66):
            bridge.load(f"made:{number}")
        assert sum(not transcript.closed for transcript in source.opened) == 64
    assert all(transcript.closed for transcript in source.opened)
