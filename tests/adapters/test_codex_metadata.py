"""What a list shows of Codex rollouts, and how discovery and watching find them."""

import json
import os
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_history_adapters.codex import Codex, backward
from acp_history_adapters.codex.metadata import Facts
from acp_history_bridge.adapter import RESCAN, Affected, Command, Environment, Inspection, Known, SessionRecord
from acp_history_bridge.timestamps import from_ns
from tests.builders.codex import (
    CWD,
    START,
    THREAD,
    Bare,
    Legacy,
    Paginated,
    Rollout,
    compress,
    inspect,
    store_at,
    thread_id,
    unit_at,
)


def record_of(home: Path, rollout: Rollout, *, archived: bool = False) -> SessionRecord:
    """Write a rollout and look at it."""
    (record,) = inspect(home, rollout.write(home, archived=archived)).records
    return record


def name_thread(home: Path, *names: str) -> None:
    """Write the index of names."""
    lines = (json.dumps({"id": THREAD, "thread_name": name}) + "\n" for name in names)
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "session_index.jsonl").write_text("".join(lines), encoding="utf-8")


# -- where ------------------------------------------------------------------------------------------------------------


def test_the_home_is_where_the_environment_says(tmp_path: Path) -> None:
    """`CODEX_HOME` wins when it is absolute; only the two trees of rollouts are watched."""
    (store,) = Codex().stores(Environment(tmp_path, {"CODEX_HOME": "/srv/codex"}))
    assert (store.root, store.watched) == (Path("/srv/codex"), ("sessions", "archived_sessions"))
    (store,) = Codex().stores(Environment(tmp_path, {"CODEX_HOME": "relative"}))
    assert store.root == tmp_path / ".codex"


def test_rollouts_are_found_at_any_depth_and_nothing_else_is(tmp_path: Path) -> None:
    """Wrong folders count; temporary files, links and other names do not."""
    home = tmp_path / ".codex"
    plain = Paginated().write(tmp_path)
    twin = plain.with_name(plain.name + ".zst")
    twin.write_bytes(b"")
    odd = home / "sessions" / Paginated(thread_id(2)).name()
    odd.write_bytes(b"")
    archived = Paginated(thread_id(3)).write(tmp_path, archived=True)
    document = home / "sessions" / f"rollout-2025-04-17-{thread_id(4)}.json"
    document.write_bytes(b"{}")
    (home / "sessions" / "rollout-x.jsonl.zst.tmp").write_bytes(b"")
    (home / "sessions" / "notes.jsonl").write_bytes(b"")
    (home / "sessions" / "rollout-link.jsonl").symlink_to(plain)
    discovery = Codex().discover(store_at(tmp_path))
    assert {unit.path for unit in discovery.units} == {plain, odd, archived, document}
    assert discovery.complete
    assert Codex().unit(store_at(tmp_path), twin) is None


@pytest.mark.fault("F10")
def test_a_folder_that_cannot_be_listed_makes_discovery_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then nothing may be taken for gone."""
    path = Paginated().write(tmp_path)
    scandir = os.scandir

    def refuse(where: Path) -> object:
        if Path(where) == path.parent:
            raise PermissionError(13, "Permission denied")
        return scandir(where)

    monkeypatch.setattr(os, "scandir", refuse)
    discovery = Codex().discover(store_at(tmp_path))
    assert (discovery.units, discovery.complete) == ((), False)


def test_a_changed_path_means_its_rollout_and_its_twin(tmp_path: Path) -> None:
    """Compressing one replaces it by the other."""
    store, path = store_at(tmp_path), Paginated().path(tmp_path)
    twin = path.with_name(path.name + ".zst")
    adapter = Codex()
    assert adapter.affected(store, path) == adapter.affected(store, twin) == Affected((path, twin))
    assert adapter.affected(store, path.with_name(path.name + ".zst.tmp")) == Affected()
    assert adapter.affected(store, path.parent) == RESCAN
    assert adapter.affected(store, store.root / "session_index.jsonl") == RESCAN
    assert adapter.affected(store, store.root / "state_5.sqlite-wal") == Affected()


def test_renaming_a_thread_changes_the_fingerprint_of_its_rollout_alone(tmp_path: Path) -> None:
    """The name lies in another file; a look at everything would be the price otherwise."""
    Paginated().user("Hello").write(tmp_path)
    Paginated(thread_id(2)).user("Hello").write(tmp_path)
    adapter = Codex()
    before = {unit.path.name: unit.fingerprint for unit in adapter.discover(store_at(tmp_path)).units}
    name_thread(tmp_path, "Shop")
    after = {unit.path.name: unit.fingerprint for unit in adapter.discover(store_at(tmp_path)).units}
    assert [name for name in before if before[name] != after[name]] == [Paginated().name()]


# -- titles -----------------------------------------------------------------------------------------------------------


def test_the_last_name_of_a_thread_is_its_title(tmp_path: Path) -> None:
    """Before the first prompt."""
    name_thread(tmp_path, "Old", "New", "  ")
    assert record_of(tmp_path, Paginated().user("Hello")).title == "New"


def test_a_torn_line_of_names_costs_only_itself(tmp_path: Path) -> None:
    """Codex appends to that file while it is read."""
    name_thread(tmp_path, "Name")
    with (tmp_path / ".codex" / "session_index.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "')
    assert record_of(tmp_path, Paginated().user("Hello")).title == "Name"


@pytest.mark.parametrize(
    "rollout",
    [
        Paginated().user("", {"type": "image", "image_url": "data:image/png;base64,AA=="}).user("Hello"),
        Legacy().response("message", role="user", content=[{"type": "input_text", "text": "Other"}]).user("Hello"),
        Bare().message("user", "<environment_context>\n</environment_context>").message("user", "Hello"),
        Paginated().event("thread_goal_updated", goal={"objective": "Goal"}).user("Hello"),
        Legacy().raw(b"garbage\n").user("Hello"),
        Legacy().raw(b"[1]\n\n").user("Hello"),
    ],
    ids=["image-first", "legacy", "bare", "goal", "garbage", "no-object"],
)
def test_the_first_prompt_with_text_is_the_title(tmp_path: Path, rollout: Rollout) -> None:
    """Whatever the format."""
    assert record_of(tmp_path, rollout).title == "Hello"


def test_a_goal_stands_in_for_a_prompt(tmp_path: Path) -> None:
    """A goal runs without any message of the user."""
    record = record_of(tmp_path, Paginated().event("thread_goal_updated", goal={"objective": "Tidy"}).agent("Done"))
    assert (record.title, record.listed) == ("Tidy", True)


@pytest.mark.parametrize("padding", [1, 20, 200, 3000])
def test_a_prompt_is_found_however_late_it_comes(tmp_path: Path, padding: int) -> None:
    """The head that is read grows, and then the file is read through."""
    rollout = Legacy()
    for _ in range(padding):
        rollout.event("agent_reasoning", text="x" * 600)
    record = record_of(tmp_path, rollout.user("Late").context("/elsewhere").agent("Hi"))
    assert (record.title, record.cwd) == ("Late", "/elsewhere")
    assert record.updated_at == START + timedelta(seconds=padding + 3)


def test_a_fork_is_called_by_the_first_prompt_of_its_base(tmp_path: Path) -> None:
    """Its own file has only what is new; it is a fork of another session."""
    Paginated().user("First").write(tmp_path)
    base = {"thread_id": THREAD, "end_ordinal_exclusive": 2}
    record = record_of(
        tmp_path, Paginated(thread_id(2), ordinal=2, history_base=base, forked_from_id=THREAD).user("Own")
    )
    assert (record.title, record.kind, record.parent) == ("First", "fork", THREAD)


def test_a_fork_from_before_the_first_prompt_has_its_own_title(tmp_path: Path) -> None:
    """What it does not inherit does not name it."""
    Paginated().user("First").write(tmp_path)
    base = {"thread_id": THREAD, "end_ordinal_exclusive": 1}
    assert record_of(tmp_path, Paginated(thread_id(2), ordinal=1, history_base=base).user("Own")).title == "Own"


# -- the rest of a record ---------------------------------------------------------------------------------------------


def test_a_record_says_where_and_with_what_the_session_ran(tmp_path: Path) -> None:
    """The last context counts: a session can be resumed in another directory with another model."""
    rollout = Paginated(git={"branch": "main"}, runtime_workspace_roots=[CWD, "/lib"]).context().user("Hello")
    record = record_of(tmp_path, rollout.context("/moved", "gpt-6", "never"))
    assert (record.cwd, record.model, record.mode, record.branch) == ("/moved", "gpt-6", "never", "main")
    assert (record.created_at, record.tool_version) == (START, "0.169.0")
    assert record.additional_directories == (CWD, "/lib")


def test_a_bare_rollout_names_its_directory_in_a_wrapper(tmp_path: Path) -> None:
    """Both wordings that releases used."""
    for number, text in enumerate(["  <cwd>/w</cwd>", "Current working directory: /w"]):
        rollout = Bare(thread_id(number)).message("user", f"<environment_context>\n{text}\n</environment_context>")
        assert record_of(tmp_path, rollout.message("user", "Hello")).cwd == "/w"


def test_the_time_is_that_of_the_last_record(tmp_path: Path) -> None:
    """Settings that another client writes when it merely shows a session are no activity."""
    rollout = Paginated().user("Hello").event("thread_settings_applied").event("thread_settings_applied")
    assert record_of(tmp_path, rollout).updated_at == START + timedelta(seconds=1)


@pytest.mark.fault("T1")
def test_the_time_is_never_later_than_the_file(tmp_path: Path) -> None:
    """A list that is read by file time may stop early."""
    path = Paginated(minute=120).user("Hello").write(tmp_path)
    os.utime(path, ns=(1, 10**18))
    (record,) = inspect(tmp_path, path).records
    assert record.updated_at == from_ns(10**18)


def test_only_the_first_session_meta_of_a_file_counts(tmp_path: Path) -> None:
    """Copies carry their source's as a second one."""
    rollout = Legacy().record("session_meta", {"id": thread_id(9), "cwd": "/other"}).user("Hello")
    record = record_of(tmp_path, rollout)
    assert (record.native_id, record.cwd) == (THREAD, CWD)


@pytest.mark.fault("T3")
def test_the_name_of_the_file_stands_in_for_a_missing_id(tmp_path: Path) -> None:
    """A file without `session_meta` is a session all the same."""
    rollout = Legacy().user("Hello")
    del rollout.records[0]
    record = record_of(tmp_path, rollout)
    assert (record.native_id, record.title, record.listed) == (THREAD, "Hello", True)


@pytest.mark.parametrize(
    ("meta", "parent"),
    [
        ({"source": {"subagent": "review"}}, None),
        ({"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}}, "p"),
        ({"source": {"subagent": "review"}, "parent_thread_id": "p"}, "p"),
        ({"thread_source": "subagent", "session_id": "p"}, "p"),
    ],
)
def test_sub_agents_are_not_listed(tmp_path: Path, meta: dict[str, object], parent: str | None) -> None:
    """They belong into the call that started them."""
    record = record_of(tmp_path, Paginated(**meta).user("Task"))  # type: ignore[arg-type]  # meta fields are free
    assert (record.kind, record.listed, record.parent) == ("subagent", False, parent)


def test_headless_runs_are_listed_and_marked(tmp_path: Path) -> None:
    """`codex exec` is a program's session, but one all the same."""
    record = record_of(tmp_path, Paginated(source="exec").user("Task"))
    assert (record.listed, record.headless) == (True, True)


@pytest.mark.fault("F9")
def test_a_rollout_without_a_conversation_is_not_listed(tmp_path: Path) -> None:
    """A name alone makes none; an answer alone does."""
    name_thread(tmp_path, "Nothing said yet")
    assert not record_of(tmp_path, Paginated().context()).listed
    assert record_of(tmp_path, Paginated().agent("Hi")).listed


@pytest.mark.fault("T2")
def test_the_newest_rollout_of_a_thread_has_the_best_claim(tmp_path: Path) -> None:
    """Rewound ones are copies of the same session."""
    old = record_of(tmp_path, Paginated().user("One"))
    new = record_of(tmp_path, Paginated(rollout=thread_id(9), minute=5).user("Two"))
    assert (old.native_id, old.origin) == (new.native_id, new.origin)
    assert (new.updated_at, new.rank) > (old.updated_at, old.rank)


def test_an_archived_session_is_marked(tmp_path: Path) -> None:
    """It lies in the other tree."""
    assert record_of(tmp_path, Paginated().user("Hello"), archived=True).archived


def test_sessions_go_on_by_id_where_codex_can(tmp_path: Path) -> None:
    """It can read neither its oldest formats nor archived threads, and an id must not look like an option."""
    record = record_of(tmp_path, Paginated().user("Hello"))
    adapter = Codex()
    assert adapter.resume_command(record) == Command(("codex", "resume", THREAD), CWD)
    assert adapter.resume_command(replace(record, archived=True)) is None
    assert adapter.resume_command(replace(record, native_id="--yolo")) is None
    assert adapter.resume_command(record_of(tmp_path, Bare(thread_id(2)).message("user", "Hello"))) is None


# -- other containers -------------------------------------------------------------------------------------------------


def test_a_compressed_rollout_says_the_same(tmp_path: Path) -> None:
    """Whatever stands at its end."""
    rollout = Paginated().user("Hello").context("/moved").agent("Hi")
    plain = rollout.write(tmp_path / "plain")
    path = rollout.path(tmp_path).with_name(rollout.name() + ".zst")
    path.parent.mkdir(parents=True)
    path.write_bytes(compress(rollout.data))
    os.utime(path, ns=(1, plain.stat().st_mtime_ns))
    assert inspect(tmp_path, path).records == inspect(tmp_path / "plain", plain).records


def test_a_document_is_a_session(tmp_path: Path) -> None:
    """With the file's time, as it has none inside."""
    path = tmp_path / ".codex" / "sessions" / f"rollout-2025-04-17-{THREAD}.json"
    path.parent.mkdir(parents=True)
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}
    path.write_text(
        json.dumps({"session": {"id": "one", "timestamp": "2025-04-17T00:00:00Z"}, "items": [item]}), "utf-8"
    )
    (record,) = inspect(tmp_path, path).records
    assert (record.native_id, record.title, record.listed) == ("one", "Hello", True)
    assert record.updated_at == from_ns(path.stat().st_mtime_ns)
    path.write_text('{"session": {"id"', "utf-8")
    assert not inspect(tmp_path, path).complete


@pytest.mark.fault("F9")
def test_a_file_without_a_whole_record_says_nothing(tmp_path: Path) -> None:
    """What is known of it stays."""
    path = Paginated().write(tmp_path)
    for data in (b"", b'{"timestamp": "2026'):
        path.write_bytes(data)
        inspection = inspect(tmp_path, path)
        assert (inspection.records, inspection.complete) == ((), False)


# -- from a known offset ----------------------------------------------------------------------------------------------

GROWING = (
    Legacy()
    .context()
    .event("thread_goal_updated", goal={"objective": "Goal"})
    .user("Hello")
    .context("/moved", "gpt-6", "never")
    .agent("Hi")
    .event("thread_settings_applied")
    .user("More")
    .event("thread_settings_applied")
)
GROWING_BARE = (
    Bare().message("user", "<environment_context><cwd>/w</cwd>").message("user", "Hello").message("assistant", "Hi")
)


def grow(home: Path, rollout: Rollout, size: int, known: Inspection | None) -> Inspection:
    """Look at the first bytes of a rollout, from where an earlier look ended."""
    path = rollout.path(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(rollout.data[:size])
    changed = START.timestamp() + 3600
    os.utime(path, (changed, changed))
    earlier = Known(known.offset, json.loads(json.dumps(known.state)), known.records) if known else None
    return Codex().inspect(unit_at(home, path), earlier)


@pytest.mark.parametrize("rollout", [GROWING, GROWING_BARE], ids=["legacy", "bare"])
@pytest.mark.fault("Z3")
def test_a_look_at_the_new_bytes_gives_what_a_fresh_look_gives(tmp_path: Path, rollout: Rollout) -> None:
    """Wherever the file stood between two looks, also within a record."""
    sizes = range(len(rollout.lines[0]), len(rollout.data) + 1, 13)
    for size in sizes:
        first = grow(tmp_path, rollout, size, None)
        second = grow(tmp_path, rollout, len(rollout.data), first)
        fresh = grow(tmp_path, rollout, len(rollout.data), None)
        assert (second.records, second.offset) == (fresh.records, fresh.offset)


def test_the_offset_stands_behind_the_last_whole_line(tmp_path: Path) -> None:
    """A torn line is read again with its rest."""
    whole = len(GROWING.data)
    last = len(GROWING.lines[-1])
    assert grow(tmp_path, GROWING, whole - 1, None).offset == whole - last
    assert grow(tmp_path, GROWING, whole, None).offset == whole


def test_a_state_of_another_version_is_not_used(tmp_path: Path) -> None:
    """The file is looked at as if for the first time."""
    path = GROWING.write(tmp_path)
    known = Known(len(GROWING.data), {"something": "else"}, ())
    assert Codex().inspect(unit_at(tmp_path, path), known).records == inspect(tmp_path, path).records


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=40) | st.sampled_from([line[:-1] for line in GROWING.lines]), max_size=8))
@pytest.mark.fault("F8")
def test_no_line_makes_a_look_fail(lines: list[bytes]) -> None:
    """Garbage is passed over."""
    facts = Facts()
    for line in lines:
        facts.look(line)
    assert Facts.restore(json.loads(json.dumps(facts.state()))) == facts


@given(
    st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line), max_size=12),
    st.binary(max_size=12).filter(lambda rest: b"\n" not in rest),
    st.integers(1, 9),
)
def test_lines_read_backwards_are_the_lines(lines: list[bytes], rest: bytes, window: int) -> None:
    """Wherever the windows cut them, and whichever hold the mark."""
    with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(backward, "_FIRST_WINDOW", window)
        marked = [line.replace(b"\x00", b"MARK") for line in lines]
        whole = b"".join(line + b"\n" for line in marked)
        file.write(whole + rest)
        file.flush()
        descriptor = file.fileno()
        assert backward.end_of_lines(descriptor, 0, len(whole + rest)) == len(whole)
        assert list(backward.lines_backward(descriptor, 0, len(whole))) == [line for line in reversed(marked) if line]
        found = list(backward.marked_lines_backward(descriptor, b"MARK", 0, len(whole)))
        assert found == [line for line in reversed(marked) if b"MARK" in line]


# -- passages ---------------------------------------------------------------------------------------------------------


def test_passages_go_on_behind_what_was_indexed(tmp_path: Path) -> None:
    """All pieces together are those of the whole file, and tool output comes only when it is wanted."""
    rollout = Legacy().user("One").call("c", "exec_command", {"cmd": "ls"}).output("c", "README").agent("Two")
    rollout.event("task_complete").user("Three")
    unit, adapter = unit_at(tmp_path, rollout.write(tmp_path)), Codex()
    (record,) = adapter.inspect(unit).records
    whole = list(adapter.passages(unit, record))
    assert [(passage.kind, passage.text) for passage in whole] == [
        ("message", "One"),
        ("message", "Two"),
        ("tool", "ls"),
        ("message", "Three"),
    ]
    assert list(adapter.passages(unit, record, whole[1].end))[-1] == whole[-1]
    assert "README" in {passage.text for passage in adapter.passages(unit, record, output=True)}
    assert list(adapter.passages(unit, record, whole[-1].end)) == []
