"""Which sessions of Gemini CLI are listed, under which title, directory and time, and which units they lie in."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_history_adapters.gemini_cli import GeminiCli
from acp_history_bridge.adapter import RESCAN, Affected, Command, Environment, Known
from tests.builders.gemini_cli import (
    CONTEXT,
    CWD,
    SESSION,
    START,
    Chat,
    best,
    inspect,
    log_entry,
    mark,
    message,
    path_hash,
    record_of,
    store_at,
    unit_at,
    write_log,
)

OWN_COMMAND = "I ran the following shell command:\n```sh\nls\n```\n\nThis produced the following result:\n```\na\n```"
OTHER = "/home/ada/src/blog"


def title_of(home: Path, chat: Chat) -> str | None:
    """The title of a transcript."""
    return record_of(home, chat.write(home)).title


# -- stores and units --------------------------------------------------------------------------------------------------


def test_the_environment_can_move_the_home(tmp_path: Path) -> None:
    """`GEMINI_CLI_HOME` replaces the home directory; an empty or relative one does not."""
    roots = [
        [store.root for store in GeminiCli().stores(Environment(tmp_path, variables))]
        for variables in ({}, {"GEMINI_CLI_HOME": "/srv/ada"}, {"GEMINI_CLI_HOME": ""}, {"GEMINI_CLI_HOME": "here"})
    ]
    own = tmp_path / ".gemini" / "tmp"
    assert roots == [[own], [Path("/srv/ada/.gemini/tmp")], [own], [own]]


def test_only_transcripts_and_prompt_logs_are_units(tmp_path: Path) -> None:
    """Set-aside and temporary files, sub-agents' transcripts, links and folders are not."""
    chat = Chat().user("Hello").write(tmp_path)
    for name in (f"{chat.name}.unreadable-1", f"{chat.name}.tmp-7", "notes.jsonl", SESSION + "/agent.jsonl"):
        (chat.parent / name).parent.mkdir(exist_ok=True)
        (chat.parent / name).write_bytes(chat.read_bytes())
    (chat.parent / "session-folder.jsonl").mkdir()
    (chat.parent / "session-link.jsonl").symlink_to(chat)
    log = write_log(tmp_path, [log_entry("Hello")])
    found = GeminiCli().discover(store_at(tmp_path))
    assert {unit.path for unit in found.units} == {chat, log}
    assert (found.complete, found.problems) == (True, ())


@pytest.mark.fault("F12")
def test_a_missing_home_has_no_units(tmp_path: Path) -> None:
    """The tool may not be installed."""
    assert GeminiCli().discover(store_at(tmp_path)).complete


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
@pytest.mark.fault("F10")
def test_an_unreadable_folder_makes_the_scan_incomplete(tmp_path: Path) -> None:
    """Nothing of the store may be removed then."""
    chats = Chat().user("Hello").write(tmp_path).parent
    chats.chmod(0)
    found = GeminiCli().discover(store_at(tmp_path))
    chats.chmod(0o700)
    assert (found.complete, [problem.kind for problem in found.problems]) == (False, ["unreadable"])


def test_changed_paths_map_to_units(tmp_path: Path) -> None:
    """A transcript to itself, a sub-agent's to its parent, folders and markers to the store, the rest to nothing."""
    chat = Chat().user("Hello").write(tmp_path)
    store = store_at(tmp_path)
    project = chat.parent.parent
    expected = {
        chat: Affected((chat,)),
        chat.parent / SESSION / "agent.jsonl": Affected((chat,)),
        chat.parent / "ffffffff-0000" / "agent.jsonl": Affected(),
        project / "logs.json": Affected((project / "logs.json",)),
        project / ".project_root": RESCAN,
        chat.parent: RESCAN,
        project: RESCAN,
        store.root: RESCAN,
        project / "tool-outputs" / "session-1" / "a.txt": Affected(),
        chat.with_name(chat.name + ".tmp-3"): Affected(),
    }
    assert {path: GeminiCli().affected(store, path) for path in expected} == expected


def test_a_deleted_transcript_concerns_the_prompt_log_too(tmp_path: Path) -> None:
    """Its prompts may still be in the log."""
    chat = Chat().user("Hello").write(tmp_path)
    chat.unlink()
    log = chat.parent.parent / "logs.json"
    assert GeminiCli().affected(store_at(tmp_path), chat) == Affected((chat, log))


# -- what is listed ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chat",
    [
        Chat(),
        Chat().rebuild(message("c", "user", [{"text": CONTEXT}])),
        Chat().user(CONTEXT),
        Chat().user("- **Workspace Directories:**\n  - /home/ada"),
        Chat().say("info", "Request cancelled."),
        Chat(kind="subagent").user("Do it"),
    ],
)
@pytest.mark.fault("F9")
def test_what_is_no_conversation_is_not_listed(tmp_path: Path, chat: Chat) -> None:
    """A header, injected context, notes of the tool, a sub-agent."""
    assert not record_of(tmp_path, chat.write(tmp_path)).listed


@pytest.mark.parametrize(
    "chat",
    [
        Chat().user("Hello"),
        Chat().say("user", "/help me"),
        Chat().agent("I speak first"),
        Chat().agent("", toolCalls=[{"id": "1", "name": "glob"}]),
        Chat().parts({"text": CONTEXT}, {"inlineData": {"mimeType": "image/png", "data": "aaaa"}}),
        Chat().user("Hello").rebuild(message("c", "user", CONTEXT)),
        Chat(header=False).user("Hello"),
    ],
)
def test_every_conversation_is_listed(tmp_path: Path, chat: Chat) -> None:
    """Also with commands or pictures alone, with a failed prompt alone, and without a header."""
    assert record_of(tmp_path, chat.write(tmp_path)).listed


@pytest.mark.fault("F9")
def test_an_empty_transcript_is_nothing(tmp_path: Path) -> None:
    """The tool has just made it, or a crash left it."""
    path = Chat(header=False).write(tmp_path)
    assert (inspect(tmp_path, path).records, inspect(tmp_path, path).problems) == ((), ())


def test_a_file_without_any_record_is_a_problem(tmp_path: Path) -> None:
    """It is reported, and costs nothing else."""
    path = Chat(header=False).raw(b"garbage\n").write(tmp_path)
    assert [problem.kind for problem in inspect(tmp_path, path).problems] == ["bad-line", "unreadable"]


# -- titles ------------------------------------------------------------------------------------------------------------


def test_the_summary_is_the_title(tmp_path: Path) -> None:
    """Wherever it stands; the last one wins."""
    chat = Chat().user("Hello").set(summary="Old").set(summary="A greeting").agent("x" * 300_000).user("Bye")
    assert title_of(tmp_path, chat) == "A greeting"


@pytest.mark.parametrize(
    "chat",
    [
        Chat().user("Hello"),
        Chat().user(CONTEXT).user("/help").user("?").user("Hello").user("Bye"),
        Chat().parts({"text": CONTEXT}, {"text": "Hello"}),
        Chat().user(CONTEXT + "Hello"),
        Chat().user("Hello\n--- Content from referenced files ---\nContent from @a:\nText\n--- End of content ---"),
        Chat().user("expanded", displayContent=[{"text": "Hello"}]),
        Chat().rebuild(message("c", "user", CONTEXT), message("u", "user", [{"text": "Hello"}])),
        Chat().user(OWN_COMMAND).user("Hello"),
        Chat().parts({"functionResponse": {"id": "1", "name": "glob", "response": {}}}).user("Hello"),
        Chat().user("dropped", "u").rewind("u").user("Hello"),
        Chat().user("dropped", "u").rebuild().user("Hello"),
        Chat().user("dropped", "u").rebuild(message("c", "user", CONTEXT)).user("Hello"),
        Chat().user("Hello", "u").agent("x").user("dropped", "v").rewind("v"),
        Chat().user("Hello").user("dropped").rebuild(message("new", "user", [{"text": CONTEXT}, {"text": "Hello"}])),
        Chat().user("Hello").rebuild(message("s", "user", "<state_snapshot>x</state_snapshot>")),
        Chat().user("Hello").rewind("unknown"),
    ],
)  # fmt: skip
def test_the_first_prompt_that_is_shown_is_the_title(tmp_path: Path, chat: Chat) -> None:
    """Not what the tool injected, not a command, not what was dropped while something else is left."""
    assert title_of(tmp_path, chat) == "Hello"


def test_a_command_is_better_than_no_title(tmp_path: Path) -> None:
    """The tool itself ignores commands for titles."""
    assert title_of(tmp_path, Chat().user("/deploy now").agent("Done")) == "/deploy now"


# -- directory and identity --------------------------------------------------------------------------------------------


def test_the_marker_names_the_directory(tmp_path: Path) -> None:
    """It wins over the registry."""
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "projects.json").write_text(json.dumps({"projects": {OTHER: "shop"}}), encoding="utf-8")
    record = record_of(tmp_path, Chat().user("Hello").write(tmp_path))
    assert (record.cwd, record.cwd_digest, record.displaced) == (CWD, None, False)


@pytest.mark.parametrize("project", ["shop", path_hash()])
def test_the_registry_names_the_directory(tmp_path: Path, project: str) -> None:
    """By slug, or by the hash that a folder is named by."""
    path = Chat().user("Hello").write(tmp_path, project)
    (path.parent.parent / ".project_root").unlink(missing_ok=True)
    registry = tmp_path / ".gemini" / "projects.json"
    registry.write_text(json.dumps({"projects": {CWD: "shop"}}), encoding="utf-8")
    assert record_of(tmp_path, path).cwd == CWD


def test_an_unknown_directory_leaves_its_hash(tmp_path: Path) -> None:
    """A slug is never turned into a path."""
    path = Chat().user("Hello").write(tmp_path)
    (path.parent.parent / ".project_root").unlink()
    record = record_of(tmp_path, path)
    assert (record.cwd, record.cwd_digest) == (None, f"sha256:{path_hash()}")


@pytest.mark.parametrize("text", ["", "shop", "/home/a\nb", "/home/\x00"])
def test_a_marker_that_is_no_path_counts_as_missing(tmp_path: Path, text: str) -> None:
    """Never guess."""
    path = Chat().user("Hello").write(tmp_path)
    mark(tmp_path, "shop", text)
    assert record_of(tmp_path, path).cwd is None


def test_a_changed_marker_is_noticed(tmp_path: Path) -> None:
    """One adapter lives as long as the process; it caches by what `stat` says, and so does the unit."""
    adapter = GeminiCli()
    path = Chat().user("Hello").write(tmp_path)
    before = unit_at(tmp_path, path)
    (first,) = adapter.inspect(before).records
    mark(tmp_path, "shop", OTHER)
    after = unit_at(tmp_path, path)
    (second,) = adapter.inspect(after).records
    assert (first.cwd, second.cwd, before.fingerprint == after.fingerprint) == (CWD, OTHER, False)


def test_a_changed_registry_is_noticed_where_there_is_no_marker(tmp_path: Path) -> None:
    """It lies outside the watched folder, but takes part in the fingerprint."""
    path = Chat().user("Hello").write(tmp_path)
    (path.parent.parent / ".project_root").unlink()
    before = unit_at(tmp_path, path)
    (tmp_path / ".gemini" / "projects.json").write_text(json.dumps({"projects": {CWD: "shop"}}), encoding="utf-8")
    assert unit_at(tmp_path, path).fingerprint != before.fingerprint
    assert {unit.path: unit for unit in GeminiCli().discover(store_at(tmp_path)).units}[path] == unit_at(tmp_path, path)


@pytest.mark.fault("T2")
def test_a_hand_copied_session_is_a_displaced_copy(tmp_path: Path) -> None:
    """Same id and `projectHash` in another project's folder: the copy in the own project is shown."""
    own = Chat().user("Hello").write(tmp_path)
    copy = Chat().user("Hello").write(tmp_path, "blog")
    mark(tmp_path, "blog", OTHER)
    assert record_of(tmp_path, copy).displaced
    assert best(tmp_path)[SESSION][0].path == own


@pytest.mark.fault("T2")
def test_lines_win_over_the_document_they_continue(tmp_path: Path) -> None:
    """The tool leaves the document where it is."""
    chat = Chat().user("Hello").agent("Hi")
    chat.write_document(tmp_path)
    lines = chat.touch().write(tmp_path)
    assert best(tmp_path)[SESSION][0].path == lines


def test_the_leftover_of_a_resume_loses(tmp_path: Path) -> None:
    """Each resume makes a newer file with the same id that holds only context."""
    talk = Chat().user("Hello").agent("Hi").write(tmp_path)
    leftover = Chat().set(lastUpdated="2026-11-02T20:00:00.000Z").write(tmp_path, minute="2026-11-02T10-00")
    assert record_of(tmp_path, leftover).updated_at > record_of(tmp_path, talk).updated_at
    assert best(tmp_path)[SESSION][0].path == talk


# -- times -------------------------------------------------------------------------------------------------------------


def test_lines_were_last_updated_when_they_say_so(tmp_path: Path) -> None:
    """A summary added later does not count."""
    chat = Chat().user("Hello").touch()
    time = START + timedelta(seconds=2)
    assert record_of(tmp_path, chat.set(summary="Later").write(tmp_path)).updated_at == time


def test_a_document_was_last_updated_by_its_last_message(tmp_path: Path) -> None:
    """Its `lastUpdated` moves when a later start adds a summary."""
    path = (
        Chat().user("Hello").agent("Hi").write_document(tmp_path, summary="Later", lastUpdated="2026-11-02T20:00:00Z")
    )
    record = record_of(tmp_path, path)
    assert (record.updated_at, record.title) == (START + timedelta(seconds=2), "Later")


@pytest.mark.fault("T1")
def test_a_time_in_the_future_is_bounded_by_the_modification_time(tmp_path: Path) -> None:
    """Ordering by modification time with an early stop must stay exact."""
    chat = Chat().user("Hello").set(lastUpdated="2099-01-01T00:00:00Z")
    assert record_of(tmp_path, chat.write(tmp_path)).updated_at == START + timedelta(days=1)


def test_metadata_comes_from_header_and_set_lines(tmp_path: Path) -> None:
    """The first start, the last model, directories added to the workspace."""
    chat = Chat().user("Hello").agent("a", model="old").agent("b", model="new").set(directories=[CWD, OTHER])
    record = record_of(tmp_path, chat.write(tmp_path))
    assert (record.created_at, record.model, record.additional_directories) == (START, "new", (OTHER,))


# -- the prompt log ----------------------------------------------------------------------------------------------------


def test_a_session_that_only_the_log_knows_is_listed(tmp_path: Path) -> None:
    """Version 0.2 kept nothing else. Commands are no prompts, and cannot make a session."""
    entries = [log_entry("/about"), log_entry("Hello", 1), log_entry("Bye", 2), log_entry("quit", 3)]
    mark(tmp_path, "shop", CWD)
    path = write_log(tmp_path, [*entries, log_entry("/help", 4, "only-commands"), "garbage", {"sessionId": 7}])
    record = record_of(tmp_path, path)
    assert (record.native_id, record.title, record.cwd, record.message_count) == (SESSION, "Hello", CWD, 2)
    assert record.updated_at == START + timedelta(minutes=2)


@pytest.mark.parametrize("project", ["shop", path_hash()])
def test_a_transcript_wins_over_a_log_with_later_prompts(tmp_path: Path, project: str) -> None:
    """After `/clear` the tool logs prompts under the old id. Directory known or not: the log finds the same hash."""
    chat = Chat().user("Hello").agent("Hi").touch().write(tmp_path, project)
    (chat.parent.parent / ".project_root").unlink(missing_ok=True)
    write_log(tmp_path, [log_entry("Hello"), log_entry("Of the next session", 600)], project)
    assert {native_id: unit.path for native_id, (unit, _) in best(tmp_path).items()} == {SESSION: chat}


def test_a_log_changes_with_the_list_of_transcripts(tmp_path: Path) -> None:
    """When a transcript is deleted the log is looked at again."""
    chat = Chat().user("Hello").write(tmp_path)
    log = write_log(tmp_path, [log_entry("Hello")])
    os.utime(chat.parent, (0, 0))
    before = unit_at(tmp_path, log).fingerprint
    chat.unlink()
    assert unit_at(tmp_path, log).fingerprint != before


def test_a_half_written_log_keeps_its_sessions(tmp_path: Path) -> None:
    """It is rewritten in place."""
    path = write_log(tmp_path, [log_entry("Hello")])
    path.write_bytes(path.read_bytes()[:-20])
    assert not inspect(tmp_path, path).complete


# -- resuming ----------------------------------------------------------------------------------------------------------


def test_a_session_is_resumed_by_its_id_in_its_directory(tmp_path: Path) -> None:
    """The tool looks for it nowhere else; what it cannot find has no command."""
    adapter = GeminiCli()
    known = record_of(tmp_path, Chat().user("Hello").write(tmp_path))
    assert adapter.resume_command(known) == Command(("gemini", "--resume", SESSION), CWD)
    odd = record_of(tmp_path, Chat("--yolo").user("Hello").write(tmp_path))
    logged = record_of(tmp_path, write_log(tmp_path, [log_entry("Hello")]))
    homeless = record_of(tmp_path, Chat().user("Hello").write(tmp_path, path_hash()))
    assert [adapter.resume_command(record) for record in (odd, logged, homeless)] == [None, None, None]


# -- looking again -----------------------------------------------------------------------------------------------------

STEPS: dict[str, Callable[[Chat, int], object]] = {
    "user": lambda chat, number: chat.user(f"Prompt {number}", f"u{number}"),
    "command": lambda chat, number: chat.user(f"/command {number}"),
    "agent": lambda chat, number: chat.agent(f"Answer {number}", model=f"model-{number}"),
    "touch": lambda chat, _: chat.touch(),
    "summary": lambda chat, number: chat.set(summary=f"Summary {number}"),
    "context": lambda chat, _: chat.rebuild(message("c", "user", CONTEXT)),
    "rewind": lambda chat, number: chat.rewind(f"u{number // 2}"),
    "rebuild": lambda chat, number: chat.rebuild(*users_of(chat)[: number // 2 + 1]),
    "drop": lambda chat, _: chat.rebuild(),
    "compress": lambda chat, number: chat.rebuild(message(f"s{number}", "user", f"<state_snapshot>{number}")),
    "torn message": lambda chat, _: chat.raw(b'{"id":"torn\n'),
    "garbage": lambda chat, _: chat.raw(b"garbage\n"),
}


def users_of(chat: Chat) -> list[Mapping[str, object]]:
    """The prompts so far."""
    return [record for record in chat.records if not isinstance(record, bytes) and record.get("type") == "user"]


@given(
    steps=st.lists(st.sampled_from(sorted(STEPS)), max_size=12), cuts=st.tuples(st.integers(0, 12), st.integers(0, 12))
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@pytest.mark.fault("Z3")
def test_looking_at_what_was_added_gives_the_same_as_looking_anew(
    tmp_path: Path, steps: list[str], cuts: tuple[int, int]
) -> None:
    """Over any sequence of lines that is read in three pieces; only the state in between may differ."""
    chat = Chat()
    for number, step in enumerate(steps):
        STEPS[step](chat, number)
    path = chat.write(tmp_path)
    known: Known | None = None
    for end in (*sorted(cuts), len(chat.lines)):
        path.write_bytes(b"".join(chat.lines[: end + 1]))
        os.utime(path, (START.timestamp() + 86400, START.timestamp() + 86400))
        again, anew = GeminiCli().inspect(unit_at(tmp_path, path), known), inspect(tmp_path, path)
        assert replace(again, state={}) == replace(anew, state={})
        known = Known(again.offset, again.state, again.records)


@pytest.mark.fault("P3")
def test_a_look_at_what_was_added_reads_no_more_than_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work per change does not grow with the transcript."""
    chat = Chat().user("Hello").agent("x" * 1_000_000).touch()
    first = inspect(tmp_path, chat.write(tmp_path))
    unit = unit_at(tmp_path, chat.agent("More").touch().write(tmp_path))
    read: list[int] = []
    original = os.read

    def counted(descriptor: int, size: int) -> bytes:
        data = original(descriptor, size)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "read", counted)
    GeminiCli().inspect(unit, Known(first.offset, first.state, first.records))
    assert sum(read) < 2_000
