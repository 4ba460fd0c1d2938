"""Every recorded session of Gemini CLI 0.2 to 0.61: listed as it should be, and no word of the official replay lost."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acp_history_adapters.gemini_cli import GeminiCli
from acp_history_bridge.adapter import SessionRecord, Unit
from acp_history_bridge.timestamps import format_time
from acp_history_bridge.turns import Image, Plan, Text, Thought, ToolCall, Turn
from tests.builders.gemini_cli import best, calls, parts_in, store_at
from tests.conftest import DATA, CopyCorpus, copy_home

Sessions = dict[str, tuple[Unit, SessionRecord]]

SHOP = "/home/ben/src/shop"
BLOG = "/home/ben/src/blog"
UMLAUT = "/home/ben/src/Großes Projekt (alt)"
CORPUS = DATA / "gemini-cli"
REFERENCES = sorted(path.stem for path in (CORPUS / "reference").glob("[!_]*.jsonl"))
INJECTED = (
    "<session_context>",
    "- **Workspace Directories:**",
    "<state_snapshot>",
    "I ran the following shell command",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One copy of the corpus for all tests that only read."""
    return copy_home("gemini-cli", tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def sessions(home: Path) -> Sessions:
    """All listed sessions."""
    return best(home)


def turns_of(sessions: Sessions, native_id: str) -> list[Turn]:
    """Replay one session; none when it is not listed."""
    if native_id not in sessions:
        return []
    unit, record = sessions[native_id]
    transcript = GeminiCli().open(unit, record)
    try:
        return list(transcript.turns())
    finally:
        transcript.close()


# -- the list ----------------------------------------------------------------------------------------------------------


def records_in(path: Path) -> list[dict[str, Any]]:
    """Everything a file holds, without any knowledge of the product."""
    if path.suffix == ".json":
        whole = json.loads(path.read_text(encoding="utf-8"))
        return [whole, *whole["messages"]]
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def has_conversation(path: Path) -> bool:
    """Whether anybody said anything in a file: any part of a user's message that the tool did not inject."""
    for record in records_in(path):
        for item in [record, *record.get("$set", {}).get("messages", ())]:
            content = item.get("content", "")
            texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
            if item.get("type") == "user" and any(text and not text.startswith(INJECTED) for text in texts):
                return True
    return False


def expected_ids() -> set[str]:
    """The sessions of the corpus: from transcripts, and from prompt logs what was not a command."""
    root = CORPUS / "home" / ".gemini" / "tmp"
    talks = [path for path in root.glob("*/chats/session-*") if has_conversation(path)]
    ids = {str(records_in(path)[0]["sessionId"]) for path in talks}
    for log in root.glob("*/logs.json"):
        entries = json.loads(log.read_text(encoding="utf-8"))
        ids |= {str(entry["sessionId"]) for entry in entries if not entry["message"].startswith(("/", "?"))}
    return ids


def test_every_session_is_listed_and_none_is_invented(sessions: Sessions) -> None:
    """A simple script that reads whole files finds the same sessions."""
    assert set(sessions) == expected_ids()


def test_every_session_that_the_tool_itself_loads_is_listed(sessions: Sessions) -> None:
    """The official agent loaded all of these; what it refused held only context, or a failed prompt."""
    refused = {name for name in REFERENCES if any("error" in entry["msg"] for entry in reference(name))}
    assert set(REFERENCES) - refused <= set(sessions)
    assert refused & set(sessions) == {"63f6b873-f73e-49db-a22a-80ef86981dfa"}


@pytest.mark.parametrize(
    ("short", "title", "cwd", "updated"),
    [
        ("4632955f", "Please write a poem in ünïcode.", None, "2025-08-30T10:07:26.926Z"),  # only in a prompt log
        ("862e0511", "Please write a poem in ünïcode.", SHOP, "2025-09-30T09:30:03.637Z"),  # copied by a migration
        ("57821dc6", "Please tidy up the helper.", None, "2025-10-24T14:00:04.454Z"),  # folder named by a hash
        ("f4b3b548", "Tidy the area helper (0.25.0)", SHOP, "2026-01-20T08:07:03.867Z"),  # late summary
        ("689f0bcb", "Tidy the area helper (0.40.1)", SHOP, "2026-05-03T08:07:01.375Z"),  # resumed: two files
        ("my-own-s", "Ask for the capital of Norway", BLOG, "2026-11-05T08:41:21.706Z"),  # id given by the user
        ("41d15c94", "Use the first step of the plan", SHOP, "2026-11-06T00:02:30.129Z"),  # prompt beside context
        ("63f6b873", "There is quota trouble ahead.", SHOP, "2026-11-03T10:38:21.687Z"),  # the only prompt failed
        ("3326f1a2", "What is the capital of Norway?", SHOP, "2026-11-08T23:40:25.971Z"),  # newer in the prompt log
        ("b6285764", "Überprüfe diesen Ordner bitte.", UMLAUT, "2026-11-10T06:22:21.681Z"),
        ("232fbb52", "Ask for the capital of Norway", "/home/ben/work/shop", "2026-11-10T01:15:21.780Z"),
        ("f220208c", "Please tidy up the helper.", SHOP, "2026-11-11T02:50:21.776Z"),  # a document went on as lines
        ("0b10a6e2", "Ask for the capital of Norway", BLOG, "2026-11-20T10:52:21.797Z"),  # resumed three times
    ],
)
def test_title_directory_and_time_are_those_of_the_session(
    sessions: Sessions, short: str, title: str, cwd: str | None, updated: str
) -> None:
    """Each case is one trap."""
    (record,) = [record for native_id, (_, record) in sessions.items() if native_id.startswith(short)]
    assert (record.title, record.cwd, format_time(record.updated_at)) == (title, cwd, updated)


def test_a_directory_that_is_only_known_by_its_hash_leaves_the_hash(sessions: Sessions) -> None:
    """The core compares it with the directories of all tools."""
    record = sessions["57821dc6-e436-47d7-8e8e-5a083450381c"][1]
    assert record.cwd_digest == "sha256:368b9e68233018b72ce1eeec8767f82be279325de539d9e28ac82777af566891"


def test_inspecting_leaves_no_problem_in_a_sound_corpus(home: Path) -> None:
    """Whatever the real tool writes is understood."""
    adapter = GeminiCli()
    found = adapter.discover(store_at(home))
    assert (found.complete, found.problems) == (True, ())
    assert [problem for unit in found.units for problem in adapter.inspect(unit).problems] == []


# -- the replay, against the tool's own ------------------------------------------------------------------------------


def reference(native_id: str) -> list[dict[str, Any]]:
    """What the official agent sent for a session."""
    lines = (CORPUS / "reference" / f"{native_id}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def updates(native_id: str) -> Iterator[dict[str, Any]]:
    """The updates of the official replay."""
    for entry in reference(native_id):
        if update := entry["msg"].get("params", {}).get("update"):
            yield update


def official_texts(native_id: str) -> Iterator[str]:
    """What the official replay says, but for the accepted differences."""
    after_snapshot = False
    for update in updates(native_id):
        text = update.get("content", {}).get("text", "") if update["sessionUpdate"].endswith("_chunk") else ""
        # Injected context is no prompt; a snapshot is shown as a compaction, the user's own command as a call.
        if update["sessionUpdate"] == "user_message_chunk" and text.startswith(INJECTED):
            after_snapshot = text.startswith("<state_snapshot>")
            continue
        # The tool's fixed answer to its own snapshot is nobody's message.
        if after_snapshot and text == "Got it. Thanks for the additional context!":
            continue
        # The contents of attached files are resources beside the prompt.
        text = re.split(r"\n--- Content from referenced (?:files|context) ---", text)[0]
        # It shows parts of other kinds by their names: calls and their results, thoughts, pictures.
        text = re.sub(
            r"\[(?:Thought: true|Function Call: \w+|Function Response: \w+|Image: image/png, [\d.]+ KB)\]", "", text
        )
        if text.strip():
            yield text


@pytest.mark.parametrize("native_id", REFERENCES)
def test_the_replay_holds_every_word_of_the_official_one_in_its_order(sessions: Sessions, native_id: str) -> None:
    """Texts and thoughts of the official replay are a subsequence of ours."""
    if native_id not in sessions:
        assert list(official_texts(native_id)) == []
        return
    ours = iter(
        [
            " ".join(part.text.split())
            for part in parts_in(turns_of(sessions, native_id))
            if isinstance(part, Text | Thought)
        ]
    )
    missing = [text for text in official_texts(native_id) if " ".join(text.split()) not in ours]
    assert missing == []


@pytest.mark.parametrize("native_id", REFERENCES)
def test_the_replay_holds_every_call_of_the_official_one_with_its_outcome(sessions: Sessions, native_id: str) -> None:
    """Same ids and outcomes; todo lists are plans, and entering the plan mode is a change of mode."""
    official = {
        update["toolCallId"]: (update["status"], update["kind"])
        for update in updates(native_id)
        if update["sessionUpdate"] == "tool_call"
    }
    turns = turns_of(sessions, native_id)
    plans = sum(isinstance(part, Plan) for part in parts_in(turns))
    ours = {call.id: (call.status, call.kind) for call in calls(turns)}
    assert len([name for name in official if name.startswith("write_todos")]) == plans
    for identifier, outcome in official.items():
        if identifier.startswith("enter_plan_mode"):
            assert ours[identifier] == ("completed", "switch_mode")
        elif not identifier.startswith("write_todos"):
            assert ours[identifier] == outcome


@pytest.mark.parametrize("native_id", REFERENCES)
def test_nothing_is_shown_twice(sessions: Sessions, native_id: str) -> None:
    """Records written again, copies under new ids and doubled results give one turn and one call each."""
    turns = turns_of(sessions, native_id)
    for keys in ([turn.id for turn in turns], [call.id for call in calls(turns)]):
        assert len(keys) == len(set(keys))


# -- single sessions ---------------------------------------------------------------------------------------------------


def test_pictures_stay_pictures(sessions: Sessions) -> None:
    """The official replay names them in words."""
    for native_id in ("892adaf3-d98b-4103-960e-78410c8bf256", "955f2db1-3e4f-4d5b-add5-eefa00803466"):
        images = [part for part in parts_in(turns_of(sessions, native_id)) if isinstance(part, Image)]
        assert [image.mime_type for image in images] == ["image/png"]


def test_a_subagent_is_folded_into_the_call_that_started_it(sessions: Sessions) -> None:
    """Its transcript lies in a folder named by the parent's id."""
    (found,) = calls(turns_of(sessions, "a9d119f1-8f4a-4f6c-ba2f-dfcc0e06d86e"))
    (run,) = found.subagents
    assert (run.name, [call.name for call in calls(list(run.turns()))]) == (
        "generalist",
        ["read_file", "complete_task"],
    )


def test_a_cut_output_is_shown_in_full(sessions: Sessions) -> None:
    """The transcript names a side file that holds all of it."""
    (found,) = calls(turns_of(sessions, "b7df2763-6e84-4df7-8072-013fe9c1b2af"))
    assert found.shell is not None
    assert found.shell.output.split() == [str(number) for number in range(1, 20001)]


@pytest.mark.parametrize(
    ("native_id", "left_out"),
    [
        ("3604e4f6-5fbd-49af-8c8e-96ce86329ccb", 6),  # two rewinds: one exchange, then two
        ("41d15c94-fe07-46b3-89d6-a1fd1488b6ee", 2),  # a denied call and its prompt; the rest is kept under new ids
        ("63f6b873-f73e-49db-a22a-80ef86981dfa", 0),  # a failed prompt is all there is, and is shown
        ("02921b5f-b848-4d32-b137-5e6514722591", 0),  # a compaction drops nothing
        ("1b86916e-8f8d-4cd0-a162-7504ed93823f", 1),  # a cancelled prompt; the dropped call is in the answer
    ],
)
def test_what_the_tool_dropped_is_left_out_and_counted(sessions: Sessions, native_id: str, left_out: int) -> None:
    """Only messages whose words or calls are shown nowhere else count."""
    unit, record = sessions[native_id]
    transcript = GeminiCli().open(unit, record)
    assert list(transcript.turns())
    assert transcript.left_out == left_out
    transcript.close()


def test_reading_the_corpus_changes_no_byte_of_it(copy_corpus: CopyCorpus) -> None:
    """The tool itself writes when it loads a session; this never does."""
    sessions = best(copy_corpus("gemini-cli"))
    assert all(turns_of(sessions, native_id) for native_id in sessions)


def test_all_calls_but_denied_ones_have_titles_that_name_their_object(sessions: Sessions) -> None:
    """No call is called by its bare programmatic name."""
    for native_id in sessions:
        for found in calls(turns_of(sessions, native_id)):
            assert isinstance(found, ToolCall)
            assert found.title
            assert found.title != found.name or found.name == "enter_plan_mode"
