"""The trash: only what belongs to one session alone goes there, and only while its tool is not at it."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from acp_history_adapters.claude_code import ClaudeCode
from acp_history_adapters.codex import Codex
from acp_history_adapters.gemini_cli import GeminiCli
from acp_history_adapters.opencode import Opencode
from acp_history_adapters.qwen_code import QwenCode
from acp_history_bridge.adapter import Adapter, SessionRecord, Store, Unit
from acp_history_bridge.errors import TrashError
from acp_history_bridge.sessions import Session
from acp_history_bridge.trash import move_to_trash
from tests.builders import claude_code, codex, gemini_cli, opencode, qwen_code
from tests.builders.fake_adapter import FakeAdapter, note, notes_at
from tests.conftest import digest_tree
from tests.peers.bridge import running


class TrashingAdapter(FakeAdapter):
    """Names the files it was told, and says that these sessions are open."""

    def __init__(self, *named: Path, active: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.named = named
        self.active = active

    def files(self, unit: Unit, record: SessionRecord) -> tuple[Path, ...]:
        """What it was told."""
        del unit, record
        return self.named

    def active_sessions(self, store: Store) -> frozenset[str]:
        """What it was told."""
        del store
        return self.active


@pytest.fixture
def trashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was moved to the trash, in order; nothing really is."""
    moved: list[str] = []
    monkeypatch.setattr("send2trash.send2trash", moved.append)
    return moved


def session_of(adapter: Adapter, unit: Unit) -> Session:
    """The session of a unit."""
    record = adapter.inspect(unit).records[0]
    return Session(f"{adapter.prefix}:{record.native_id}", adapter.name, unit, record, record.title, "/")


def names_of(adapter: Adapter, unit: Unit) -> list[str]:
    """Which files an adapter calls a session's own, by name."""
    return [path.name for path in adapter.files(unit, adapter.inspect(unit).records[0])]


def noted(home: Path) -> tuple[Path, Unit]:
    """A session of the simple tool."""
    path = notes_at(home, "a/one.jsonl", note("one"))
    adapter = FakeAdapter()
    unit = adapter.unit(Store("notes", home / ".notes"), path)
    assert unit is not None
    return path, unit


def test_the_transcript_goes_first(tmp_path: Path, trashed: list[str]) -> None:
    """So that a failure leaves everything as it was."""
    path, unit = noted(tmp_path)
    beside = notes_at(tmp_path, "a/one.title", "x")
    adapter = TrashingAdapter(beside, path)
    assert move_to_trash(adapter, session_of(adapter, unit)) == (path, beside)
    assert trashed == [str(path), str(beside)]


def test_a_session_that_its_tool_has_open_stays(tmp_path: Path, trashed: list[str]) -> None:
    """The tool would go on writing into the trash."""
    path, unit = noted(tmp_path)
    adapter = TrashingAdapter(path, active=frozenset({"one"}))
    with pytest.raises(TrashError, match="close it there"):
        move_to_trash(adapter, session_of(adapter, unit))
    assert not trashed


@pytest.mark.parametrize("other", ["../elsewhere.txt", ".", "link.jsonl", "linked/inner.jsonl", "a/missing.jsonl"])
def test_what_an_adapter_wrongly_names_stays_and_so_does_all_else(
    tmp_path: Path, trashed: list[str], other: str
) -> None:
    """Outside of the store, the store itself, through a link, or not there at all."""
    path, unit = noted(tmp_path)
    (tmp_path / "elsewhere.txt").touch()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/inner.jsonl").touch()
    (tmp_path / ".notes/link.jsonl").symlink_to(tmp_path / "elsewhere.txt")
    (tmp_path / ".notes/linked").symlink_to(tmp_path / "outside")
    adapter = TrashingAdapter(path, tmp_path / ".notes" / other)
    with pytest.raises(TrashError, match="not this session's"):
        move_to_trash(adapter, session_of(adapter, unit))
    assert not trashed


def test_the_transcript_itself_must_be_among_them(tmp_path: Path, trashed: list[str]) -> None:
    """Else the session would still be there."""
    _, unit = noted(tmp_path)
    adapter = TrashingAdapter()
    with pytest.raises(TrashError, match="not this session's"):
        move_to_trash(adapter, session_of(adapter, unit))
    assert not trashed


def test_a_tool_without_an_answer_says_so(tmp_path: Path) -> None:
    """The default of the contract."""
    _, unit = noted(tmp_path)
    adapter = FakeAdapter()
    with pytest.raises(TrashError, match="sessions of Notes cannot be moved"):
        move_to_trash(adapter, session_of(adapter, unit))


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), RuntimeError("Permission denied")])
def test_a_trash_that_refuses_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Nothing is deleted instead."""

    def refuse(_path: str) -> None:
        raise error

    monkeypatch.setattr("send2trash.send2trash", refuse)
    path, unit = noted(tmp_path)
    adapter = TrashingAdapter(path)
    with pytest.raises(TrashError, match="Permission denied"):
        move_to_trash(adapter, session_of(adapter, unit))
    assert path.exists()


def test_claude_code_names_the_transcript_and_its_directory(tmp_path: Path) -> None:
    """But not a link in the directory's place."""
    lines = claude_code.ClaudeLines()
    lines.prompt("Hello")
    path = lines.save(tmp_path)
    assert names_of(ClaudeCode(), claude_code.unit_at(path)) == [path.name]
    path.with_suffix("").mkdir()
    assert names_of(ClaudeCode(), claude_code.unit_at(path)) == [path.name, path.stem]
    path.with_suffix("").rmdir()
    path.with_suffix("").symlink_to(tmp_path)
    assert names_of(ClaudeCode(), claude_code.unit_at(path)) == [path.name]


def test_gemini_cli_names_every_transcript_of_the_session(tmp_path: Path) -> None:
    """Each resume leaves one; a session whose id begins alike is another's. Sub-agents and long outputs go along."""
    path = gemini_cli.Chat().user("Hello").write(tmp_path)
    again = gemini_cli.Chat().write(tmp_path, minute="2026-11-02T10-00")
    gemini_cli.Chat(gemini_cli.SESSION[:-1] + "0").user("Other").write(tmp_path, minute="2026-11-02T11-00")
    agents = path.parent / gemini_cli.SESSION
    outputs = path.parents[1] / "tool-outputs" / f"session-{gemini_cli.SESSION}"
    for directory in (agents, outputs):
        directory.mkdir(parents=True)
    names = names_of(GeminiCli(), gemini_cli.unit_at(tmp_path, path))
    assert names == [path.name, again.name, agents.name, outputs.name]


def test_gemini_cli_s_prompt_log_stays(tmp_path: Path) -> None:
    """It is all sessions'."""
    path = gemini_cli.write_log(tmp_path, [gemini_cli.log_entry("Hello")])
    with pytest.raises(TrashError, match="log"):
        names_of(GeminiCli(), gemini_cli.unit_at(tmp_path, path))


def test_codex_names_all_rollouts_of_the_thread(tmp_path: Path) -> None:
    """Also those it was rewound from; not those of others."""
    first = codex.Paginated().user("One").write(tmp_path)
    second = codex.Paginated(rollout=codex.thread_id(9), minute=1, ordinal=2).user("Two").write(tmp_path)
    codex.Paginated(codex.thread_id(2), minute=2).user("Other").write(tmp_path)
    names = names_of(Codex(), codex.unit_at(tmp_path, second))
    assert sorted(names) == sorted([first.name, second.name])


def test_codex_keeps_a_thread_in_which_another_begins(tmp_path: Path) -> None:
    """A fork holds only what is new."""
    path = codex.Paginated().user("One").write(tmp_path)
    base = {"thread_id": codex.THREAD, "end_ordinal_exclusive": 2}
    codex.Paginated(codex.thread_id(2), minute=1, ordinal=2, history_base=base).user("Two").write(tmp_path)
    with pytest.raises(TrashError, match="other sessions"):
        names_of(Codex(), codex.unit_at(tmp_path, path))


def test_qwen_code_names_what_lies_beside_a_transcript(tmp_path: Path) -> None:
    """And its sub-agents, unless a fork still shows them."""
    lines = qwen_code.Lines(tmp_path)
    lines.user("Hello")
    beside = lines.path.with_name(f"{qwen_code.SESSION}.runtime.json")
    beside.touch()
    qwen_code.write_agent(tmp_path, "a1", "call_1")
    assert names_of(QwenCode(), lines.unit()) == [lines.path.name, beside.name, qwen_code.SESSION]
    fork = qwen_code.Lines(tmp_path, "9" * 36)
    fork.raw(f'{{"forkedFrom":{{"sessionId":"{qwen_code.SESSION}"}}}}\n'.encode())
    assert names_of(QwenCode(), lines.unit()) == [lines.path.name, beside.name]


def test_opencode_s_database_stays(tmp_path: Path) -> None:
    """It is all sessions'."""
    with opencode.Database(tmp_path) as database:
        database.session(title="A title")
        with pytest.raises(TrashError, match="opencode"):
            names_of(Opencode(), database.unit())


def test_a_session_of_a_moved_home_is_compared_by_real_names(tmp_path: Path, trashed: list[str]) -> None:
    """A home that is reached through a link is no link in the store."""
    path, _ = noted(tmp_path / "real")
    (tmp_path / "home").symlink_to(tmp_path / "real")
    seen = tmp_path / "home" / path.relative_to(tmp_path / "real")
    adapter = TrashingAdapter(seen)
    unit = adapter.unit(Store("notes", tmp_path / "home/.notes"), seen)
    assert unit is not None
    move_to_trash(adapter, replace(session_of(adapter, unit)))
    assert trashed == [str(seen)]


@pytest.mark.process
def test_a_client_s_delete_moves_the_files_to_the_desktop_s_trash(tmp_path: Path) -> None:
    """With the setting; the session is gone from the list, its files lie in the trash as they were."""
    lines = claude_code.ClaudeLines()
    lines.prompt("Hello")
    path = lines.save(tmp_path)
    data = path.read_bytes()
    others = digest_tree(path.parent).keys() - {path.name}
    variables = {"HOME": str(tmp_path), "ACP_HISTORY_BRIDGE_DELETE": "trash"}
    with running((sys.executable, "-m", "acp_history_bridge", "acp"), variables) as bridge:
        bridge.initialize()
        (listed,) = bridge.request("session/list")["sessions"]
        bridge.request("session/delete", {"sessionId": listed["sessionId"]})
        assert bridge.request("session/list")["sessions"] == []
    assert digest_tree(path.parent).keys() == others
    assert (tmp_path / ".local/share/Trash/files" / path.name).read_bytes() == data


@pytest.mark.process
def test_a_client_s_fork_is_a_session_of_the_tool(tmp_path: Path) -> None:
    """It is listed at once, and after a restart."""
    lines = claude_code.ClaudeLines()
    lines.prompt("Hello")
    path = lines.save(tmp_path)
    variables = {"HOME": str(tmp_path)}
    with running((sys.executable, "-m", "acp_history_bridge", "acp"), variables) as bridge:
        bridge.initialize()
        (listed,) = bridge.request("session/list")["sessions"]
        made = bridge.request(
            "session/fork", {"sessionId": listed["sessionId"], "cwd": claude_code.CWD, "mcpServers": []}
        )
        ids = {session["sessionId"] for session in bridge.request("session/list")["sessions"]}
        assert ids == {listed["sessionId"], made["sessionId"]}
    assert len(list(path.parent.glob("*.jsonl"))) == 2
    with running((sys.executable, "-m", "acp_history_bridge", "acp"), variables) as bridge:
        bridge.initialize()
        assert {session["title"] for session in bridge.request("session/list")["sessions"]} == {"Hello", "Hello (fork)"}
