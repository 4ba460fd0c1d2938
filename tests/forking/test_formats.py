"""What each tool's fork looks like inside: ids and references rewritten as the tool does it."""

import json
from pathlib import Path
from typing import Any

import pytest

from acp_history_adapters.claude_code import ClaudeCode
from acp_history_adapters.codex import Codex
from acp_history_adapters.gemini_cli import GeminiCli
from acp_history_adapters.opencode import Opencode
from acp_history_adapters.qwen_code import QwenCode
from acp_history_bridge.adapter import Adapter, Unit
from acp_history_bridge.errors import ForkError
from tests.builders import claude_code, codex, gemini_cli, opencode, qwen_code

Record = dict[str, Any]


def forked(adapter: Adapter, unit: Unit) -> tuple[str, list[Record]]:
    """Id and records of a unit's fork."""
    (record,) = adapter.inspect(unit).records
    fork = adapter.fork(unit, record)
    assert fork.path.is_relative_to(unit.store.root)
    return fork.native_id, [json.loads(line) for line in b"".join(fork.content).splitlines()]


def test_claude_code_gets_new_ids_that_hang_together(tmp_path: Path) -> None:
    """Each line names what it was copied from; the last has the time of the fork; a custom title ends the file."""
    lines = claude_code.ClaudeLines()
    question = lines.prompt("Hello", slug="quick-fox")
    answer = lines.answer("Good day")
    native_id, (first, second, title) = forked(ClaudeCode(), claude_code.unit_at(lines.save(tmp_path)))
    assert [first["forkedFrom"]["messageUuid"], second["forkedFrom"]["messageUuid"]] == [question, answer]
    assert len({question, answer, first["uuid"], second["uuid"]}) == 4
    assert (first["parentUuid"], second["parentUuid"]) == (None, first["uuid"])
    assert {record["sessionId"] for record in (first, second, title)} == {native_id}
    assert "slug" not in first
    assert first["timestamp"] == lines.records[0]["timestamp"]
    assert second["timestamp"] == title["timestamp"] > str(lines.records[1]["timestamp"])
    assert (title["type"], title["customTitle"]) == ("custom-title", "Hello (fork)")


def test_claude_code_keeps_what_a_compaction_says_it_kept(tmp_path: Path) -> None:
    """In the new ids."""
    lines = claude_code.ClaudeLines()
    kept = lines.prompt("Hello")
    answer = lines.answer("Good day")
    segment = {"headUuid": kept, "anchorUuid": answer, "tailUuid": kept}
    messages = {"anchorUuid": answer, "uuids": [kept], "count": 1}
    metadata = {"trigger": "auto", "preservedSegment": segment, "preservedMessages": messages}
    lines.add("system", subtype="compact_boundary", parent=None, logicalParentUuid=answer, compactMetadata=metadata)
    lines.prompt("On")
    _, (first, second, boundary, *_) = forked(ClaudeCode(), claude_code.unit_at(lines.save(tmp_path)))
    new, anchor = first["uuid"], second["uuid"]
    assert boundary["logicalParentUuid"] == anchor
    assert boundary["compactMetadata"] == {
        "trigger": "auto",
        "preservedSegment": {"headUuid": new, "anchorUuid": anchor, "tailUuid": new},
        "preservedMessages": {"anchorUuid": anchor, "uuids": [new], "count": 1},
    }


def test_claude_code_leaves_side_chains_and_most_metadata_behind(tmp_path: Path) -> None:
    """What a resume needs goes along: where the session is now, which results were shortened."""
    lines = claude_code.ClaudeLines()
    lines.prompt("Hello")
    lines.metadata("relocated", relocatedCwd="/one")
    lines.metadata("relocated", relocatedCwd="/two")
    lines.metadata("content-replacement", replacements=[])
    lines.metadata("ai-title", aiTitle="Tea")
    lines.add("user", isSidechain=True, parent=None, message={"role": "user", "content": "Aside"})
    _, records = forked(ClaudeCode(), claude_code.unit_at(lines.save(tmp_path)))
    assert [record["type"] for record in records] == ["content-replacement", "user", "relocated", "custom-title"]
    assert records[2]["relocatedCwd"] == "/two"


def test_a_torn_last_line_stays_behind(tmp_path: Path) -> None:
    """Its writer is still at work; the fork is whole."""
    lines = claude_code.ClaudeLines()
    lines.prompt("Hello")
    path = claude_code.save_data(tmp_path, lines.data() + b'{"type":"user","uuid":"x","mess')
    _, records = forked(ClaudeCode(), claude_code.unit_at(path))
    assert [record["type"] for record in records] == ["user", "custom-title"]


def test_gemini_cli_is_renamed_wherever_it_names_its_session(tmp_path: Path) -> None:
    """In headers and changes; messages are copied byte by byte, and the header says where they come from."""
    lines = gemini_cli.Chat().user("Hello", "u1").agent("Good day").set(sessionId=gemini_cli.SESSION).rewind("u1")
    path = lines.user("Again").write(tmp_path)
    native_id, records = forked(GeminiCli(), gemini_cli.unit_at(tmp_path, path))
    assert (records[0]["sessionId"], records[0]["forkedFrom"]) == (native_id, {"sessionId": gemini_cli.SESSION})
    assert records[3] == {"$set": {"sessionId": native_id}}
    originals = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [*records[1:3], *records[4:-1]] == [*originals[1:3], *originals[4:]]
    assert records[-1]["$set"]["summary"] == "Again (fork)"


def test_gemini_cli_s_documents_become_lines(tmp_path: Path) -> None:
    """With the header's fields, and a message a line, the repeated id under a name of its own."""
    made = gemini_cli.Chat().user("Hello", "u1").agent("Good day", "u1")
    path = made.write_document(tmp_path)
    native_id, (header, *messages, _) = forked(GeminiCli(), gemini_cli.unit_at(tmp_path, path))
    assert (header["sessionId"], "messages" in header) == (native_id, False)
    assert [message["id"] for message in messages] == ["u1", "u1#2"]


def test_codex_names_the_end_of_a_paginated_thread_as_base(tmp_path: Path) -> None:
    """The fork is one record; its ordinal goes on from there."""
    path = codex.Paginated().user("Hello").agent("Good day").write(tmp_path)
    native_id, (head,) = forked(Codex(), codex.unit_at(tmp_path, path))
    end = json.loads(path.read_bytes().splitlines()[-1])["ordinal"] + 1
    payload = head["payload"]
    assert (head["ordinal"], payload["id"], payload["forked_from_id"]) == (end, native_id, codex.THREAD)
    assert payload["history_base"] == {
        "thread_id": codex.THREAD,
        "end_ordinal_exclusive": end,
        "end_byte_offset": path.stat().st_size,
    }


def test_codex_copies_a_legacy_thread_behind_a_new_head(tmp_path: Path) -> None:
    """The old head included, as the tool does."""
    path = codex.Legacy().user("Hello").agent("Good day").write(tmp_path)
    native_id, (head, *copied) = forked(Codex(), codex.unit_at(tmp_path, path))
    assert (head["payload"]["id"], head["payload"]["forked_from_id"]) == (native_id, codex.THREAD)
    assert copied == [json.loads(line) for line in path.read_bytes().splitlines()]


def test_qwen_code_copies_the_active_branch(tmp_path: Path) -> None:
    """Ids stay, each follows the one before it, and what is numbered by session is renamed."""
    lines = qwen_code.Lines(tmp_path)
    first = lines.user("Hello")
    lines.user("Taken back")
    lines.system("rewind", first, promptId=f"{qwen_code.SESSION}########1")
    last = lines.user("Again")
    native_id, records = forked(QwenCode(), lines.unit())
    assert [record["uuid"] for record in records][0:3:2] == [first, last]
    assert [record["parentUuid"] for record in records] == [None, *(record["uuid"] for record in records[:-1])]
    assert records[1]["systemPayload"]["promptId"] == f"{native_id}########1"
    assert records[0]["forkedFrom"] == {"sessionId": qwen_code.SESSION, "messageUuid": first}
    assert records[-1]["systemPayload"]["customTitle"] == "Hello (fork)"


def test_a_record_too_large_to_be_read_cannot_be_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a session would be a lie, so there is none."""
    monkeypatch.setattr("acp_history_bridge.jsonl.split_lines.__defaults__", (0, 1000))
    monkeypatch.setattr("acp_history_bridge.jsonl.read_lines.__defaults__", (0, None, 1000))
    lines = claude_code.ClaudeLines()
    lines.prompt("Hello")
    lines.answer("x" * 2000)
    with pytest.raises(ForkError, match="too large"):
        forked(ClaudeCode(), claude_code.unit_at(lines.save(tmp_path)))


def test_opencode_is_never_written_to(tmp_path: Path) -> None:
    """Its sessions lie in a database that a running opencode writes."""
    with opencode.Database(tmp_path) as database:
        database.session(title="A title")
        with pytest.raises(ForkError, match="database"):
            forked(Opencode(), database.unit())
