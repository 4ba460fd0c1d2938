"""Transcripts that Claude Code itself wrote, against what the official ACP agent answers for them."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import cast

import pytest

from acp_history_adapters.claude_code import ClaudeCode
from acp_history_bridge.adapter import SessionRecord, Unit
from acp_history_bridge.turns import Compaction, Image, Notice, Plan, Text, Thought, Turn
from tests.builders.claude_code import calls_of, said_in, store_at
from tests.conftest import DATA, CopyCorpus

# Replays need no file times, so they read the corpus in place; nothing may write there.
_HOME = DATA / "claude-code" / "home"
_REFERENCE = DATA / "claude-code" / "reference"
_SESSIONS = sorted(path.stem for path in _REFERENCE.glob("*.jsonl") if not path.stem.startswith("_"))
_STATUS = {"completed": "completed", "failed": "failed", "unfinished": "pending"}

_UNLISTED = {"41189fc4", "4da0f88d", "4fec0edf", "6697e895", "acd95f92", "1403e156", "e58969a0"}
# The official list drops these by heuristics: no directory, continued elsewhere.
_LISTED_BY_US_ONLY = {"b70ec476", "faa76f6c"}
# A byte order mark costs the official reader the first line, and so the first prompt.
_BETTER_TITLE = {"bee76b09": "How do I sort the stock list?"}


@lru_cache
def _units(home: Path) -> dict[str, tuple[Unit, SessionRecord]]:
    adapter = ClaudeCode()
    found = adapter.discover(store_at(home))
    assert found.complete
    assert not found.problems
    records = [(unit, adapter.inspect(unit).records[0]) for unit in found.units]
    return {record.native_id: (unit, record) for unit, record in records if record.origin != "-home-ada-src-odd2"}


def _messages(name: str) -> Iterator[Mapping[str, object]]:
    for line in (_REFERENCE / f"{name}.jsonl").read_text(encoding="utf-8").strip().split("\n"):
        yield json.loads(line)["msg"]


def _replay(name: str) -> list[Turn]:
    unit, record = _units(_HOME)[name]
    transcript = ClaudeCode().open(unit, record)
    try:
        return list(transcript.turns())
    finally:
        transcript.close()


def _plain(text: str) -> str:
    """Text without the wrappers that the official agent shows and we take off."""
    text = re.sub(r"<pasted_content[^>]*>|</pasted_content>", "", text)
    if (command := re.fullmatch(r"<bash-input>(.*)</bash-input>", text, re.DOTALL)) is not None:
        return f"! {command[1]}"
    if (printed := re.fullmatch(r"<bash-stdout>(.*)</bash-stdout><bash-stderr>.*", text, re.DOTALL)) is not None:
        return f"```console {' '.join(printed[1].split())} ```" if printed[1] else ""
    if text.startswith("<ide_opened_file>"):
        return text.removeprefix("<ide_opened_file>").removesuffix("</ide_opened_file>")
    return " ".join(text.split())


def _official(name: str) -> tuple[list[str], dict[str, dict[str, object]], int]:
    """The texts, tool calls and number of plans in the official replay."""
    texts: list[str] = []
    calls: dict[str, dict[str, object]] = {}
    plans = 0
    for message in _messages(name):
        if message.get("method") != "session/update":
            continue
        update = cast("dict[str, dict[str, dict[str, object]]]", message)["params"]["update"]
        if str(update["sessionUpdate"]).endswith("_chunk"):
            content = cast("dict[str, str]", update["content"])
            texts.append(_plain(content["text"]) if content["type"] == "text" else "<image>")
        elif str(update["sessionUpdate"]).startswith("tool_call"):
            calls.setdefault(str(update["toolCallId"]), {}).update(update)
        plans += update["sessionUpdate"] == "plan"
    return [text for text in texts if text], calls, plans


def _ours(turns: list[Turn]) -> list[str]:
    texts: list[str] = []
    for part in (part for turn in turns for part in turn.parts):
        match part:
            case Text(text) | Thought(text) | Notice(text):
                texts.append(" ".join(text.split()))
            case Compaction(_, summary):
                texts.append(" ".join(summary.split()))
            case Image():
                texts.append("<image>")
            case _:
                pass
    return texts


def _is_subsequence(wanted: list[str], found: list[str]) -> str | None:
    """The first text that is missing, or out of order."""
    rest = iter(found)
    return next((text for text in wanted if text not in rest), None)


@pytest.mark.parametrize("name", _SESSIONS)
def test_all_that_the_official_agent_replays_is_replayed_in_its_order(name: str) -> None:
    """No text, tool call, outcome or plan of the official replay is missing; ours may hold more."""
    turns = _replay(name)
    texts, calls, plans = _official(name)
    summaries = [text for text in texts if text.startswith("This session is being continued")]
    assert _is_subsequence([text for text in texts if text not in summaries], _ours(turns)) is None
    assert len(summaries) == sum(isinstance(part, Compaction) for turn in turns for part in turn.parts)
    ours = {call.id: call for call in calls_of(turns)}
    assert calls.keys() <= ours.keys()
    for call_id, call in calls.items():
        assert _STATUS[ours[call_id].status] == call["status"]
    assert sum(isinstance(part, Plan) for turn in turns for part in turn.parts) >= plans
    assert len({turn.id for turn in turns}) == len(turns)


def test_the_list_says_what_the_official_list_says(copy_corpus: CopyCorpus) -> None:
    """Same sessions, titles and directories, but for named and better exceptions."""
    units = _units(copy_corpus("claude-code"))
    (answer,) = [cast("dict[str, dict[str, list[dict[str, str]]]]", m) for m in _messages("_list") if "result" in m]
    official = {session["sessionId"]: session for session in answer["result"]["sessions"]}
    for name, (_, record) in units.items():
        assert record.listed == (name[:8] not in _UNLISTED), name
        if name not in official:
            assert name[:8] in _UNLISTED | _LISTED_BY_US_ONLY
            continue
        title = " ".join((record.title or "").split())
        title = title if len(title) <= 256 else title[:255].rstrip() + "…"
        assert title == _BETTER_TITLE.get(name[:8], official[name]["title"]), name
        assert record.cwd == official[name]["cwd"], name
    assert official.keys() <= units.keys()


def test_history_before_a_compaction_is_replayed() -> None:
    """The official agent shows only what follows the boundary."""
    turns = _replay("b40779e0-e708-418b-afb4-b164a0cbcc7c")
    prompts = [line for line in said_in(turns) if line.startswith("user: ") and "notice" not in line]
    assert prompts == [
        "user: Tidy the cart module, step one",
        "user: step two",
        "user: /compact keep the pending tasks",
        "user: step three",
        "user: step four",
    ]


def test_rewound_branches_are_left_out_and_counted() -> None:
    """Of three prompts at the same place only the last branch is the conversation."""
    unit, record = _units(_HOME)["aa5dd8fa-1fd6-4839-bfe0-3f6bf94960db"]
    transcript = ClaudeCode().open(unit, record)
    said = said_in(list(transcript.turns()))
    transcript.close()
    assert "user: Which framework, inside the docs?" in said
    assert "user: Which framework?" not in said
    assert transcript.left_out == 4


@pytest.mark.parametrize(
    ("session", "agents"),
    [
        ("f0f6fbce-9db9-460d-baf0-8d0bb7bad322", 4),
        ("ae9cafae-1d1f-4ba7-a951-9bfa0927334f", 1),
        ("ab43e7ee-cd81-4929-b26f-4777316d6582", 1),
        ("4e474d3b-5fc0-4b5f-ba54-1d37072e184b", 1),
        ("861cdd01-c5b2-4208-a883-d6141b2ff238", 1),
        ("93e73b7c-f32d-4436-b3da-c9ffed709974", 1),
        ("252ec062-218d-4350-a3f6-280b2bf98016", 1),
    ],
)
def test_sub_agents_of_all_versions_are_folded_into_their_call(session: str, agents: int) -> None:
    """In a directory with or without side files, beside the session, and inside its file."""
    runs = [run for call in calls_of(_replay(session)) for run in call.subagents]
    assert len(runs) == agents
    for run in runs:
        assert any(turn.role == "agent" for turn in run.turns())


def test_a_background_agents_report_is_the_outcome_of_its_call() -> None:
    """The launch note is for the model; reports are no prompts."""
    turns = _replay("f0f6fbce-9db9-460d-baf0-8d0bb7bad322")
    call = next(call for call in calls_of(turns) if call.title == "Count lines")
    assert call.status == "completed"
    assert call.content == (Text("Count the lines of every Python file."), Text("There are 4 files."))
    assert [line for line in said_in(turns) if line.startswith("user: ")] == [
        "user: Who calls total()? Use agents.",
        "user: One more in the background",
    ]


def test_long_outputs_come_from_the_file_beside_the_transcript() -> None:
    """The message holds only a preview."""
    calls = calls_of(_replay("a6cf1b0b-c251-46b4-b490-5d38470270f3"))
    assert calls[0].shell is not None
    assert calls[0].shell.output.splitlines() == [str(number) for number in range(1, 60_001)]


def test_every_session_names_a_way_to_resume_it() -> None:
    """The command is an argument vector with the id as the tool knows it."""
    for _, record in _units(_HOME).values():
        command = ClaudeCode().resume_command(record)
        assert command is not None
        assert command.argv == ("claude", "--resume", record.native_id)
