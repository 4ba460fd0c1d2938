"""The Qwen Code adapter over a recorded home, against `qwen --acp` and the files themselves."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acp_history_adapters.qwen_code import QwenCode
from acp_history_bridge.adapter import Known, SessionRecord, Unit
from acp_history_bridge.text import TITLE_LIMIT
from acp_history_bridge.timestamps import parse_time
from acp_history_bridge.turns import Plan, Resource, ResourceLink, Text, Thought, ToolCall, Turn
from tests.conftest import DATA, CopyCorpus, copy_home, environment_at

CORPUS = DATA / "qwen-code"
REFERENCES = [path for path in sorted(CORPUS.glob("reference/*.jsonl")) if not path.name.startswith("_")]

# Where the tool says "(session)" because nobody typed a prompt, ours shows the goal or the first command.
OUR_TITLES = {
    "1f1287bc-5657-48bc-897d-c0458ed5c5b5": "/about",
    "c1ac1fc7-401b-45d8-9254-98e1eb6c119d": "finish the third step",
    "e021695f-aa76-4f91-acb3-3d82a57d5b93": "/help",
}
# The tool's time is that of the file; ours that of the last message, so bookkeeping and commands do not count.
SLACK_SECONDS = 9


def sessions_in(home: Path) -> dict[str, tuple[SessionRecord, Unit]]:
    """The records of a home by native id."""
    adapter = QwenCode()
    (store,) = adapter.stores(environment_at(home))
    discovery = adapter.discover(store)
    assert discovery.complete
    found: dict[str, tuple[SessionRecord, Unit]] = {}
    for unit in discovery.units:
        inspection = adapter.inspect(unit)
        assert inspection.problems == ()
        (record,) = inspection.records
        found[record.native_id] = (record, unit)
    return found


def messages_of(path: Path) -> Iterator[dict[str, Any]]:
    """The messages that the tool sent."""
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["dir"] == "in":
            yield entry["msg"]


def test_every_listed_session_is_ours_with_title_directory_and_times(copy_corpus: CopyCorpus) -> None:
    """All lists of the official agent together are all our sessions but those of 0.1, which it cannot read."""
    ours = sessions_in(copy_corpus("qwen-code"))
    listed = [
        session
        for path in sorted((CORPUS / "reference").glob("_list-*.jsonl"))
        for message in messages_of(path)
        for session in message.get("result", {}).get("sessions", [])
    ]
    assert len(listed) == 45
    for session in listed:
        record, unit = ours[session["sessionId"]]
        title = OUR_TITLES.get(record.native_id) or session["title"].removesuffix("...").removesuffix("…")
        assert record.title is not None
        assert record.title.startswith(title[: TITLE_LIMIT - 5])
        assert record.cwd == session["cwd"]
        assert record.listed
        assert not record.displaced or unit.path.parent.parent.name != "-home-ben-src-blog"
        assert record.created_at == parse_time(session["_meta"]["createdAt"])
        assert record.branch == session["_meta"].get("gitBranch")
        official = parse_time(session["updatedAt"])
        assert official is not None
        assert 0 <= (official - record.updated_at).total_seconds() < SLACK_SECONDS
    early = ours.keys() - {session["sessionId"] for session in listed}
    assert {record.rank for record, _ in ours.values() if record.native_id in early} == {0}
    assert len(early) == 2


def test_a_session_of_0_1_is_known_by_the_hash_of_its_directory(copy_corpus: CopyCorpus) -> None:
    """The core compares it with the directories it knows."""
    record, _ = sessions_in(copy_corpus("qwen-code"))["e40f9fb1-6094-4ce7-9572-1bb78e76a9f2"]
    assert record.cwd_digest == "sha256:368b9e68233018b72ce1eeec8767f82be279325de539d9e28ac82777af566891"
    assert (record.cwd, record.title) == (None, "Please write a poem in ünïcode.")
    assert record.message_count == 7
    assert QwenCode().resume_command(record) is None


def official(path: Path) -> Iterator[tuple[str, str]]:
    """What the official agent replays: who and what; empty chunks carry numbers only."""
    in_files = False
    for message in messages_of(path):
        update = message.get("params", {}).get("update", {})
        kind, content = update.get("sessionUpdate", ""), update.get("content", {})
        if kind.endswith("_chunk"):
            text = content.get("text", content.get("uri", ""))
            # Referenced files come as five chunks of the user; ours are attachments.
            in_files = in_files or text == "\n--- Content from referenced files ---"
            if text and not in_files:
                yield kind.removesuffix("_chunk"), text
            in_files = in_files and text != "\n--- End of content ---"
        elif kind == "tool_call":
            yield "tool", update["toolCallId"]
        elif kind == "tool_call_update":
            yield "outcome", f"{update['toolCallId']} {update['status']}"
        elif kind == "plan":
            yield "plan", "; ".join(f"{entry['status']} {entry['content']}" for entry in update["entries"])


def ours(turns: list[Turn]) -> Iterator[tuple[str, str]]:
    """The same of our turns, calls with their outcome."""
    for turn in turns:
        for part in turn.parts:
            match part:
                case Text(text):
                    yield f"{turn.role}_message", text
                case Thought(text):
                    yield "agent_thought", text
                case ResourceLink(uri):
                    yield "user_message", uri
                case ToolCall():
                    yield "tool", part.id
                    yield "outcome", f"{part.id} {part.status}"
                case Plan(entries):
                    yield "plan", "; ".join(f"{entry.status} {entry.content}" for entry in entries)
                case _:
                    pass


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem[:8])
def test_everything_the_official_agent_replays_is_in_our_replay_in_the_same_order(path: Path, tmp_path: Path) -> None:
    """What ours has more are slash commands, which the user typed; outcomes and plans stand at their calls."""
    record, unit = sessions_in(copy_home("qwen-code", tmp_path))[path.stem]
    transcript = QwenCode().open(unit, record)
    updates = list(ours(list(transcript.turns())))
    transcript.close()
    assert transcript.problems == ()
    theirs = list(official(path))
    assert {update for update in theirs if update[0] == "outcome"} <= set(updates)
    assert [update for update in theirs if update[0] == "plan"] == [update for update in updates if update[0] == "plan"]
    rest = iter(updates)
    for update in theirs:
        assert update[0] in {"outcome", "plan"} or update in rest
    more = {update[1] for update in updates if update[0] == "user_message"} - {text for _, text in theirs}
    assert all(text.startswith("/") for text in more)


def test_referenced_files_are_attachments(copy_corpus: CopyCorpus) -> None:
    """Text as typed, then the file, in the form of 0.24 and of 0.1."""
    sessions = sessions_in(copy_corpus("qwen-code"))
    for native_id, uri in (
        ("b654d14b-4479-477f-9c3b-5d855fabd4c6", "file:///home/ben/src/shop/shop/cart.py"),
        ("e40f9fb1-6094-4ce7-9572-1bb78e76a9f2", "file:///home/ben/src/attic/README.md"),
    ):
        record, unit = sessions[native_id]
        parts = [part for turn in QwenCode().open(unit, record).turns() for part in turn.parts]
        (resource,) = [part for part in parts if isinstance(part, Resource)]
        assert resource.uri == uri
        text = parts[parts.index(resource) - 1]
        assert isinstance(text, Text)
        assert "Content from" not in text.text


def test_a_sub_agent_is_folded_into_the_call_that_started_it(copy_corpus: CopyCorpus) -> None:
    """Its card names the call."""
    record, unit = sessions_in(copy_corpus("qwen-code"))["2ef84dee-d8a0-407a-8bc4-eace67908244"]
    parts = [part for turn in QwenCode().open(unit, record).turns() for part in turn.parts]
    (call,) = [part for part in parts if isinstance(part, ToolCall)]
    (run,) = call.subagents
    assert (run.id, run.name) == ("general-purpose-call_000025", "general-purpose")
    inner = [part for turn in run.turns() for part in turn.parts]
    assert Text("SUBTASK: read tests/test_cart.py and say what is untested.") in inner
    assert [part.status for part in inner if isinstance(part, ToolCall)] == ["completed"]


def test_rewound_messages_are_left_out_and_counted(copy_corpus: CopyCorpus) -> None:
    """In the middle of a session, and as its last act."""
    sessions = sessions_in(copy_corpus("qwen-code"))
    left_out: dict[str, int] = {}
    for native_id, (record, unit) in sessions.items():
        transcript = QwenCode().open(unit, record)
        list(transcript.turns())
        if transcript.left_out:
            left_out[native_id[:8]] = transcript.left_out
    assert left_out == {"510b24d3": 2, "832d4f31": 2}


@pytest.mark.fault("Z3")
def test_reading_on_gives_what_reading_anew_gives(copy_corpus: CopyCorpus, tmp_path: Path) -> None:
    """A transcript that grows record by record: the list's facts at every step, and the turns in the end."""
    sessions = sessions_in(copy_corpus("qwen-code"))
    adapter = QwenCode()
    for number, (record, unit) in enumerate(sessions.values()):
        if unit.path.suffix == ".json" or record.native_id[:8] not in {"a858e218", "0cd5005c", "5e35f19a", "e021695f"}:
            continue
        growing = tmp_path / str(number) / ".qwen" / unit.path.relative_to(unit.store.root)
        growing.parent.mkdir(parents=True)
        growing.touch()
        (store,) = adapter.stores(environment_at(tmp_path / str(number)))
        known: Known | None = None
        follower = None
        followed: list[Turn] = []
        for line in unit.path.read_bytes().splitlines(keepends=True):
            with growing.open("ab") as stream:
                stream.write(line)
            grown = adapter.unit(store, growing)
            assert grown is not None
            fresh = adapter.inspect(grown)
            continued = adapter.inspect(grown, known)
            assert continued == fresh
            known = Known(continued.offset, continued.state, continued.records)
            follower = follower or adapter.open(grown, fresh.records[0])
            followed += follower.turns()
        assert follower is not None
        follower.close()
        whole = list(adapter.open(unit, record).turns())
        texts = [update for update in ours(followed) if update[0].endswith(("message", "thought", "plan"))]
        assert texts == [update for update in ours(whole) if update[0].endswith(("message", "thought", "plan"))]
        assert {u for u in ours(whole) if u[0] == "outcome"} <= set(ours(followed))
