"""The opencode adapter over recorded homes, against the expectations and against `opencode acp`."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acp_history_adapters.opencode import Opencode
from acp_history_bridge.adapter import SessionRecord, Unit
from acp_history_bridge.timestamps import format_time
from acp_history_bridge.turns import Compaction, Image, Plan, ResourceLink, Text, Thought, ToolCall, Turn
from acp_history_bridge.values import mapping
from tests.conftest import DATA, CopyCorpus, copy_home, digest_tree, environment_at

CORPUS = DATA / "opencode"
EXPECTED: dict[str, list[dict[str, Any]]] = json.loads((CORPUS / "expected.json").read_text(encoding="utf-8"))
REFERENCES = [path for path in sorted(CORPUS.glob("reference/**/*.jsonl")) if not path.name.startswith("_")]

# A default title tells nothing: the list shows the first prompt instead.
OUR_TITLES = {
    "New session - 2026-11-20T10:57:20.305Z": "Remember this context.",
    "New Session - 2026-11-20T10:54:28.960Z": "Fix the total of the cart",
}
# The trees of 0.x store no directory; ours comes from the first answer.
OUR_DIRECTORIES = {"ses_e0767894affe3ZvMEOMKO26wtq": "/home/cleo/notes ünïcode/日本語"}
SHOP = "/home/cleo/src/shop"

Copies = dict[str, list[tuple[SessionRecord, Unit]]]


def lay_out(name: str, target: Path) -> Path:
    """Make one of the homes; two of them are what the newest held before an upgrade."""
    if name == "home-json-0.1":
        shutil.copytree(CORPUS / name, target)
        return target
    data = copy_home("opencode", target) / ".local" / "share" / "opencode"
    if name != "home":
        (data / "opencode.db").unlink()
    if name == "home-json-0.5":
        shutil.rmtree(data / "storage")
    return target


def copies_in(home: Path) -> Copies:
    """All records of a home by native id."""
    adapter, copies = Opencode(), Copies()
    for store in adapter.stores(environment_at(home)):
        discovery = adapter.discover(store)
        assert discovery.complete
        for unit in discovery.units:
            inspection = adapter.inspect(unit)
            assert inspection.problems == ()
            for record in inspection.records:
                copies.setdefault(record.native_id, []).append((record, unit))
    return copies


def best(copies: list[tuple[SessionRecord, Unit]]) -> tuple[SessionRecord, Unit]:
    """The copy that the core shows."""
    return max(copies, key=lambda copy: (copy[0].listed, copy[0].updated_at, copy[0].rank))


def count(turns: list[Turn]) -> Counter[str]:
    """Count as `expected.json` does."""
    counts = Counter(user=0, agent=0, thought=0, tool=0)
    for turn in turns:
        counts["user"] += turn.role == "user"
        for part in turn.parts:
            counts["agent"] += turn.role == "agent" and isinstance(part, Text | Compaction)
            counts["thought"] += isinstance(part, Thought)
            counts["tool"] += isinstance(part, ToolCall | Plan)
    return counts


@pytest.mark.parametrize("name", EXPECTED)
def test_every_session_is_found_and_replayed_as_expected(name: str, tmp_path: Path) -> None:
    """Titles, directories, times, parents, and the number of messages of every session of a home."""
    copies = copies_in(lay_out(name, tmp_path / "home"))
    for expected in EXPECTED[name]:
        record, unit = best(copies[expected["sessionId"]])
        assert record.title == OUR_TITLES.get(expected["title"], expected["title"])
        assert record.cwd == (expected["cwd"] or OUR_DIRECTORIES.get(record.native_id, SHOP))
        assert format_time(record.updated_at) == expected["updatedAt"]
        assert record.parent == expected["parentId"]
        assert record.listed == (expected["parentId"] is None)
        assert record.archived == expected["archived"]
        assert record.tool_version == expected["version"]
        transcript = Opencode().open(unit, record)
        assert count(list(transcript.turns())) == {k: v for k, v in expected["counts"].items() if k != "synthetic"}
        assert bool(transcript.left_out) == bool(expected["pendingRevert"])
        assert transcript.problems == ()


@pytest.mark.fault("T2")
def test_a_newer_storage_wins_over_the_copies_that_upgrades_left_behind(copy_corpus: CopyCorpus) -> None:
    """Sessions of 1.x lie in the tree and in the database, those of 0.x in both trees: the newest copy is shown."""
    copies = copies_in(copy_corpus("opencode"))
    assert {record.rank for record, _ in copies["ses_e07673163ffeLzjreoHVHHht2c"]} == {2, 3}
    assert best(copies["ses_e07673163ffeLzjreoHVHHht2c"])[0].rank == 3
    assert best(copies["ses_e07678ff4ffeWDBSD2zS7Mann1"])[0].rank == 2
    assert len(copies) == 54  # 47 in the database, and 7 that opencode itself no longer shows


def test_the_list_of_the_official_agent_is_contained_in_ours(copy_corpus: CopyCorpus) -> None:
    """Title, directory and time of what `opencode acp` lists."""
    copies = copies_in(copy_corpus("opencode"))
    for name in ("_list", "_list_cwd"):
        answer = json.loads((CORPUS / "reference" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[0])
        assert answer["result"]["sessions"]
        for session in answer["result"]["sessions"]:
            record, _ = best(copies[session["sessionId"]])
            assert record.title == OUR_TITLES.get(session["title"], session["title"])
            assert record.cwd == session["cwd"]
            assert format_time(record.updated_at) == session["updatedAt"]


def official(path: Path) -> Iterator[tuple[str, str]]:
    """What the official agent replays: who and which text, file, picture or tool call."""
    calls: set[str] = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        update = json.loads(line).get("params", {}).get("update", {})
        kind, content = update.get("sessionUpdate", ""), update.get("content", {})
        if call := update.get("toolCallId"):
            if call not in calls:  # 1.1.65 sends no `tool_call`, only the update with the outcome
                yield "tool", json.dumps(update["rawInput"].get("filePath") or update["rawInput"].get("command"))
            calls.add(call)
        # The audience of text that was added for the model is the assistant: we do not show it.
        elif kind.endswith("_chunk") and "assistant" not in str(content.get("annotations")):
            yield kind.split("_")[0] + kind.split("_")[1][:3], content.get("text") or content["type"]


def ours(turns: list[Turn]) -> Iterator[tuple[str, str]]:
    """The same of our turns; a compaction's summary is an ordinary answer to the official agent."""
    for turn in turns:
        for part in turn.parts:
            match part:
                case Text(text) | Compaction(_, text):
                    yield turn.role + "mes", text
                case Thought(text):
                    yield "agenttho", text
                case Image() | ResourceLink():
                    yield turn.role + "mes", "image" if isinstance(part, Image) else "resource_link"
                case ToolCall():
                    arguments = mapping(part.input)
                    yield "tool", json.dumps(arguments.get("filePath") or arguments.get("command"))
                case Plan():
                    yield "tool", "null"
                case _:
                    pass


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: f"{path.parent.name}-{path.stem[-6:]}")
def test_everything_the_official_agent_replays_is_in_our_replay_in_the_same_order(path: Path, tmp_path: Path) -> None:
    """Texts, thoughts, files and tool calls; the official agent ignores a pending revert, so there ours is shorter."""
    official_updates = list(official(path))
    home = lay_out("home-json-1.1" if path.parent.name == "opencode-1.1.65" else "home", tmp_path / "home")
    record, unit = best(copies_in(home)[path.stem])
    transcript = Opencode().open(unit, record)
    updates = list(ours(list(transcript.turns())))
    if transcript.left_out:
        assert updates == official_updates[: len(updates)]
    elif official_updates:  # it fails on sessions of 1.0
        assert updates == official_updates


@pytest.mark.fault("F14")
def test_a_log_that_was_not_merged_is_read_and_left_alone(tmp_path: Path) -> None:
    """The database of a killed opencode: both sessions are there, and no file beside it is made or changed."""
    shutil.copytree(CORPUS / "home-wal", tmp_path / "home")
    before = digest_tree(tmp_path)
    copies = copies_in(tmp_path / "home")
    counts: dict[str | None, int] = {}
    for (record, unit), *_ in copies.values():
        counts[record.title] = len(list(Opencode().open(unit, record).turns()))
    assert sorted(counts.values()) == [2, 4]
    assert counts["Only in the WAL"] == 2
    assert digest_tree(tmp_path) == before


def test_a_child_session_is_folded_into_the_call_that_started_it(copy_corpus: CopyCorpus) -> None:
    """In the database by the call's metadata, in 0.5 by its summary."""
    copies = copies_in(copy_corpus("opencode"))
    for parent in ("ses_e0765fef4ffedySv8Ocp8OQL0x", "ses_e07678c9bffeFW4WMbslsAyonU"):
        record, unit = best(copies[parent])
        parts = [part for turn in Opencode().open(unit, record).turns() for part in turn.parts]
        (call,) = [part for part in parts if isinstance(part, ToolCall)]
        (run,) = call.subagents
        assert run.name == "general"
        assert best(copies[run.id])[0].parent == parent
        assert Text("Count the tests in this repository") in next(run.turns()).parts
