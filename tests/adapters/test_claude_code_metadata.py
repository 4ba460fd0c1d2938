"""Discovery, and what a list shows of a session."""

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from acp_history_adapters.claude_code import ClaudeCode
from acp_history_bridge.adapter import RESCAN, Affected
from tests.builders.claude_code import (
    CWD,
    SESSION,
    SLUG,
    START,
    ClaudeLines,
    inspect_at,
    record_at,
    save_data,
    store_at,
    unit_at,
)
from tests.conftest import environment_at

_HOME = Path("/home/ada")
_WINDOW = 64 * 1024


def _filler(lines: ClaudeLines, size: int) -> None:
    lines.answer("x" * size)


def test_stores_follow_the_tools_variables() -> None:
    """A relative override is not understood; the old place of two versions is a store of its own."""
    adapter = ClaudeCode()
    plain = [store.root for store in adapter.stores(environment_at(_HOME))]
    assert plain == [_HOME / ".claude/projects", _HOME / ".config/claude/projects"]
    moved = environment_at(_HOME, CLAUDE_CONFIG_DIR="/x/cafe\u0301", XDG_CONFIG_HOME="/y")
    assert [store.root for store in adapter.stores(moved)] == [
        Path("/x/caf\u00e9/projects"),
        Path("/y/claude/projects"),
    ]
    same = environment_at(_HOME, CLAUDE_CONFIG_DIR="/y/claude", XDG_CONFIG_HOME="/y")
    assert [store.root for store in adapter.stores(same)] == [Path("/y/claude/projects")]
    relative = environment_at(_HOME, CLAUDE_CONFIG_DIR="x")
    assert next(iter(adapter.stores(relative))).root == _HOME / ".claude/projects"


def test_only_files_named_by_a_uuid_are_sessions(tmp_path: Path) -> None:
    """Agent files, notes, leftovers, directories and links are none."""
    other = SESSION.upper().replace("1", "A")
    path = ClaudeLines().save(tmp_path)
    project = path.parent
    leftovers = (f"{SESSION}.jsonl.superseded-1", f"{SESSION}.orphaned-17.jsonl")
    for name in (f"{other}.jsonl", "agent-0a1b2c3d.jsonl", "notes.jsonl", *leftovers):
        project.joinpath(name).write_bytes(b"")
    project.joinpath("memory").mkdir()
    project.joinpath("99999999-2222-4333-8444-555555555555.jsonl").mkdir()
    project.joinpath("88888888-2222-4333-8444-555555555555.jsonl").symlink_to(path)
    project.parent.joinpath("linked").symlink_to(project)
    found = ClaudeCode().discover(store_at(tmp_path))
    assert found.complete
    assert sorted(unit.path.stem for unit in found.units) == sorted([SESSION, other])


@pytest.mark.fault("F10", "F12")
def test_a_missing_store_is_empty_and_an_unreadable_project_is_not_complete(tmp_path: Path) -> None:
    """Only a complete listing may remove what was known."""
    assert ClaudeCode().discover(store_at(tmp_path)).complete
    path = ClaudeLines().save(tmp_path)
    store = store_at(tmp_path)
    store.root.joinpath("not-a-directory").write_bytes(b"")
    assert ClaudeCode().discover(store).complete
    if os.geteuid() != 0:
        path.parent.chmod(0)
        try:
            assert not ClaudeCode().discover(store).complete
        finally:
            path.parent.chmod(0o700)


def test_the_title_beside_a_transcript_is_part_of_its_fingerprint(tmp_path: Path) -> None:
    """A rename must be noticed although the transcript stays as it is."""
    path = ClaudeLines().save(tmp_path)
    before = unit_at(path).fingerprint
    side = path.with_suffix("") / "custom-title.json"
    side.parent.mkdir()
    side.write_text('{"customTitle":"Named"}', encoding="utf-8")
    after = unit_at(path).fingerprint
    assert before != after
    assert ClaudeCode().discover(store_at(tmp_path)).units[0].fingerprint == after
    assert record_at(path).title == "Named"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"{SLUG}/{SESSION}.jsonl", [f"{SLUG}/{SESSION}.jsonl"]),
        (f"{SLUG}/{SESSION}/subagents/agent-a.jsonl", [f"{SLUG}/{SESSION}.jsonl"]),
        (f"{SLUG}/{SESSION}/custom-title.json", [f"{SLUG}/{SESSION}.jsonl"]),
        (f"{SLUG}/{SESSION}", [f"{SLUG}/{SESSION}.jsonl"]),
        (f"{SLUG}/memory/x.md", []),
        (f"{SLUG}/agent-0a1b2c3d.jsonl", []),
        (f"{SLUG}/notes.jsonl", []),
        (SLUG, None),
        ("", None),
        ("../settings.json", []),
        ("..", None),
    ],
)
def test_a_changed_path_concerns_its_session(path: str, expected: list[str] | None) -> None:
    """A directory that came or went needs a look at the store; foreign files concern nothing."""
    store = store_at(_HOME)
    changed = Path(os.path.normpath(store.root / path))
    wanted = RESCAN if expected is None else Affected(tuple(store.root / name for name in expected))
    assert ClaudeCode().affected(store, changed) == wanted


def test_the_record_says_what_the_transcript_says(tmp_path: Path) -> None:
    """All fields that the first and last lines hold."""
    lines = ClaudeLines()
    lines.prompt("Hello", entrypoint="sdk-cli", forkedFrom={"sessionId": "other"})
    lines.add("attachment", attachment={"snapshot": {"additionalWorkingDirectories": ["/x", "/y"]}})
    lines.answer("Hi", model="claude-opus-5")
    lines.metadata("custom-title", customTitle="[archived] Plan")
    lines.metadata("permission-mode", permissionMode="plan")
    lines.metadata("continued-in", continuedInSessionId="next")
    record = record_at(lines.save(tmp_path))
    assert (record.native_id, record.origin, record.cwd) == (SESSION, SLUG, CWD)
    assert (record.title, record.archived, record.mode) == ("[archived] Plan", True, "plan")
    assert (record.kind, record.parent, record.headless) == ("fork", "other", True)
    assert (record.branch, record.model, record.tool_version) == ("main", "claude-opus-5", "2.1.328")
    assert (record.created_at, record.updated_at) == (START + timedelta(seconds=1), START + timedelta(seconds=3))
    assert (record.continued_in, record.additional_directories) == ("next", ("/x", "/y"))
    assert record.listed
    assert not record.displaced


@pytest.mark.parametrize(
    ("metadata", "title"),
    [
        ([], "First"),
        ([("summary", "summary", "Old")], "Old"),
        ([("summary", "summary", "Old"), ("last-prompt", "lastPrompt", "Last")], "Last"),
        ([("last-prompt", "lastPrompt", "Last"), ("ai-title", "aiTitle", "AI")], "AI"),
        ([("ai-title", "aiTitle", "AI"), ("custom-title", "customTitle", "Mine")], "Mine"),
        ([("custom-title", "customTitle", "Mine"), ("custom-title", "customTitle", "Newer")], "Newer"),
        ([("custom-title", "customTitle", "Mine"), ("custom-title", "customTitle", "")], "First"),
        ([("last-prompt", "lastPrompt", None)], "First"),
        ([("last-prompt", "lastPrompt", 7)], "First"),
    ],
)
def test_the_title_is_the_one_of_the_tools_picker(
    tmp_path: Path, metadata: list[tuple[str, str, object]], title: str
) -> None:
    """The user's own, then the generated one, then the last prompt, then an old summary, then the first prompt."""
    lines = ClaudeLines()
    lines.prompt("First")
    for kind, field, value in metadata:
        lines.metadata(kind, **{field: value})
    assert record_at(lines.save(tmp_path)).title == title


@pytest.mark.parametrize(
    ("contents", "title"),
    [
        (["Caveat: The messages below were generated by the user", "Real"], "Real"),
        (["<command-name>/init</command-name>", "Real"], "Real"),
        (["<command-name>/init</command-name><command-args>now</command-args>"], "/init now"),
        (["<local-command-stdout>x</local-command-stdout>", "[Request interrupted by user]", "Real"], "Real"),
        (["<task-notification>x</task-notification>", "<unknown-tag>x</unknown-tag>", "Real"], "Real"),
        (["This session is being continued from a previous conversation", "Real"], "Real"),
        (
            [[{"type": "text", "text": "<ide_opened_file>a</ide_opened_file>"}, {"type": "text", "text": "Real"}]],
            "Real",
        ),
        ([[{"type": "tool_result", "tool_use_id": "t", "content": "x"}], "Real"], "Real"),
        ([[{"type": "image"}]], "Image"),
        ([[{"type": "document"}]], "Document"),
        ([[{"type": "image"}], "Real"], "Real"),
        (["<bash-input>ls</bash-input>"], "! ls"),
    ],
)
def test_injected_text_is_no_title(tmp_path: Path, contents: list[object], title: str) -> None:
    """Only what the user typed names a session; a slash command or an attachment is better than nothing."""
    lines = ClaudeLines()
    for content in contents:
        lines.prompt(content)
    assert record_at(lines.save(tmp_path)).title == title


def test_a_first_prompt_behind_any_window_is_found(tmp_path: Path) -> None:
    """A pasted image can be larger than what is read first."""
    lines = ClaudeLines()
    image = {"type": "image", "source": {"type": "base64", "data": "A" * 300_000}}
    lines.prompt([image, {"type": "text", "text": "What is this?"}])
    lines.answer("y" * 300_000)
    record = record_at(lines.save(tmp_path))
    assert (record.title, record.cwd) == ("What is this?", CWD)
    assert record.updated_at == START + timedelta(seconds=2)


def test_titles_count_in_the_first_and_last_window_only(tmp_path: Path) -> None:
    """As in the tool's own picker; the side file repairs a title that lies between."""
    lines = ClaudeLines()
    lines.prompt("First")
    _filler(lines, _WINDOW)
    lines.metadata("custom-title", customTitle="Between")
    _filler(lines, _WINDOW)
    assert record_at(lines.save(tmp_path)).title == "First"


@pytest.mark.fault("T1")
def test_the_time_is_that_of_the_last_message_and_never_after_the_files(tmp_path: Path) -> None:
    """Metadata is written again and again without anything being said."""
    lines = ClaudeLines()
    lines.prompt("Hello")
    lines.add("system", subtype="turn_duration")
    lines.prompt("caveat", isMeta=True)
    path = lines.save(tmp_path)
    assert record_at(path).updated_at == START + timedelta(seconds=1)
    early = START - timedelta(days=1)
    os.utime(path, (early.timestamp(), early.timestamp()))
    assert record_at(path).updated_at == early


def test_the_directory_is_the_first_one_unless_the_session_moved(tmp_path: Path) -> None:
    """Later lines follow `cd`."""
    lines = ClaudeLines()
    lines.prompt("Hello")
    lines.answer("Hi", cwd=f"{CWD}/docs")
    path = lines.save(tmp_path)
    assert record_at(path).cwd == CWD
    lines.metadata("relocated", relocatedCwd="/moved")
    record = record_at(lines.save(tmp_path))
    assert record.cwd == "/moved"
    assert not record.displaced


@pytest.mark.parametrize(
    ("slug", "cwd", "displaced"),
    [
        (SLUG, CWD, False),
        ("-home-ada---", "/home/ada/メモ", False),
        ("-home-ada---", "/home/ada/\U0001f600", False),
        ("-a-b", "/a/b/.claude/worktrees/x", False),
        ("-" + "x" * 199 + "-abc", "/" + "x" * 300, False),
        ("-" + "x" * 300, "/" + "x" * 300, False),
        ("C--src", "C:\\src", False),
        ("ssh-mirror", CWD, True),
        (SLUG + "-2", CWD, True),
    ],
)
@pytest.mark.fault("T2")
def test_a_session_in_another_projects_directory_is_displaced(slug: str, cwd: str, *, displaced: bool) -> None:
    """A slug is compared and never decoded; worktrees lie with the directory they were made from."""
    from acp_history_adapters.claude_code.paths import lies_at_home

    assert lies_at_home(slug, cwd) is not displaced


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n\n",
        b'{"type":"summary","summary":"Other","leafUuid":"x"}\n',
        b'{"type":"ai-title","aiTitle":"AI"}\n',
        b'{"type":"system","uuid":"s","subtype":"turn_duration"}\n',
        b'{"parentUuid":null,"isSidechain":true,"type":"user","message":{"content":"x"},"uuid":"u"}\n',
        b'{"isSidechain":true,"type":"user","message":{"content":"x"},"uuid":"u"}\n',
        b"\x00" * 5000,
    ],
)
@pytest.mark.fault("F9")
def test_files_without_a_conversation_are_not_listed(tmp_path: Path, data: bytes) -> None:
    """They are sessions of which nothing was said."""
    record = record_at(save_data(tmp_path, data))
    assert not record.listed


def test_a_session_that_the_user_named_is_listed_without_a_message(tmp_path: Path) -> None:
    """As in the tool's own picker."""
    lines = ClaudeLines()
    lines.metadata("custom-title", customTitle="Later")
    assert record_at(lines.save(tmp_path)).listed


@pytest.mark.fault("Z3")
def test_a_grown_file_gives_what_a_fresh_look_gives(tmp_path: Path) -> None:
    """Whatever was known before, at every line of its growth."""
    lines = ClaudeLines()
    lines.metadata("mode", mode="normal")
    lines.prompt("<command-name>/init</command-name>")
    _filler(lines, 40_000)
    lines.metadata("ai-title", aiTitle="AI")
    _filler(lines, 40_000)
    lines.prompt("Real")
    _filler(lines, 70_000)
    lines.metadata("custom-title", customTitle="Mine")
    _filler(lines, 70_000)
    whole = [json.dumps(record).encode() + b"\n" for record in lines.records]
    path = save_data(tmp_path, b"")
    known = inspect_at(path)
    for count in range(1, len(whole) + 1):
        path = save_data(tmp_path, b"".join(whole[:count]))
        fresh = inspect_at(path)
        known = inspect_at(path, known)
        assert known.records == fresh.records
        assert known.offset == fresh.offset == path.stat().st_size
        json.dumps(known.state)


def test_blanks_in_the_json_and_other_orders_of_keys_change_nothing(tmp_path: Path) -> None:
    """Other tools rewrite transcripts."""
    lines = ClaudeLines()
    lines.prompt("Hello")
    lines.answer("Hi")
    lines.metadata("custom-title", customTitle="Mine")
    plain = record_at(lines.save(tmp_path))
    spaced = b"".join(json.dumps(dict(reversed(record.items()))).encode() + b"\n" for record in lines.records)
    assert record_at(save_data(tmp_path, spaced)) == plain


def test_sessions_of_living_processes_are_active(tmp_path: Path) -> None:
    """A killed process leaves its file; a half-written one says nothing."""
    store = store_at(tmp_path)
    sessions = store.root.parent / "sessions"
    sessions.mkdir(parents=True)
    for name, record in {
        "1.json": {"pid": os.getpid(), "sessionId": "mine"},
        "2.json": {"pid": 2**22 + 1, "sessionId": "dead"},
        "3.json": {"pid": -1, "sessionId": "group"},
        "4.json": {"pid": "x", "sessionId": "odd"},
        "5.key": {"pid": os.getpid(), "sessionId": "secret"},
    }.items():
        sessions.joinpath(name).write_text(json.dumps(record), encoding="utf-8")
    sessions.joinpath("6.json").write_text('{"pid": 1', encoding="utf-8")
    assert ClaudeCode().active_sessions(store) == {"mine"}


@pytest.mark.fault("F10")
def test_an_unreadable_transcript_keeps_what_is_known(tmp_path: Path) -> None:
    """The inspection says that it is not complete."""
    path = ClaudeLines().save(tmp_path)
    unit = unit_at(path)
    path.unlink()
    inspection = ClaudeCode().inspect(unit)
    assert not inspection.complete
    assert [problem.kind for problem in inspection.problems] == ["unreadable"]
