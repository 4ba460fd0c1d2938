"""Awkward but real histories through library, adapter and wire: what is listed, and what is replayed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from acp_history_bridge.sessions import SessionQuery
from tests.builders.claude_code import CWD as CLAUDE_CWD
from tests.builders.claude_code import ClaudeLines, save_data
from tests.builders.codex import CWD as CODEX_CWD
from tests.builders.codex import Bare, Paginated
from tests.builders.gemini_cli import CONTEXT, Chat, message, path_hash
from tests.builders.gemini_cli import CWD as GEMINI_CWD
from tests.builders.gemini_cli import SESSION as CHAT
from tests.differential.histories import frames, library_at, our_replay
from tests.differential.items import replayed

LONG_OUTPUT = 12_800_000
FRAME_LIMIT = 1024 * 1024


@dataclass(frozen=True)
class Case:
    """A history with one session, and what is to be seen of it.

    Attributes:
        build: Writes it into a home.
        said: All lines of the user and the agent, in their order.
        title: What the list shows, where that is not the first line.
    """

    build: Callable[[Path], None]
    said: tuple[str, ...]
    cwd: str = CLAUDE_CWD
    title: str | None = None


def image_first(home: Path) -> None:
    """A prompt that begins with a picture of 300 KiB; the directory stands behind it."""
    lines = ClaudeLines()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 300 * 1024}}
    lines.prompt([image, {"type": "text", "text": "What is this?"}])
    lines.answer("A square.")
    lines.save(home)


def caveat_first(home: Path) -> None:
    """A local command before the first prompt."""
    lines = ClaudeLines()
    lines.prompt("<local-command-caveat>Caveat: made up.</local-command-caveat>", isMeta=True)
    lines.prompt("<command-name>/cost</command-name>\n<command-message>cost</command-message>\n<command-args/>")
    lines.prompt("<local-command-stdout></local-command-stdout>")
    lines.prompt("Sort the list")
    lines.answer("Sorted.")
    lines.save(home)


def slash_command_only(home: Path) -> None:
    """A command with arguments that the agent answers."""
    lines = ClaudeLines()
    lines.prompt(
        "<command-message>review</command-message>\n<command-name>/review</command-name>\n"
        "<command-args>the parser</command-args>"
    )
    lines.answer("It is fine.")
    lines.save(home)


def torn_last_line(home: Path) -> None:
    """A writer that is in the middle of a line."""
    lines = ClaudeLines()
    lines.prompt("One")
    lines.answer("First.")
    lines.prompt("Two")
    lines.answer("Second, but not")
    save_data(home, lines.data()[:-57])


def broken_lines(home: Path) -> None:
    """Lines cut, no JSON, no UTF-8 and blank between two turns."""
    lines = ClaudeLines()
    lines.prompt("One")
    lines.answer("First.")
    before = lines.data()
    lines.prompt("Two")
    lines.answer("Second.")
    broken = b'{"type":"user","message":{"role":"user","content":"no \xff\xfe end\nnot json at all\n\n'
    save_data(home, before + broken + lines.data()[len(before) :])


def changed_directory(home: Path) -> None:
    """The session goes on in a worktree."""
    lines = ClaudeLines()
    lines.prompt("One")
    lines.answer("First.")
    lines.prompt("Two", cwd=f"{CLAUDE_CWD}/.worktrees/feat")
    lines.answer("Second.", cwd=f"{CLAUDE_CWD}/.worktrees/feat")
    lines.save(home)


def injected_context(home: Path) -> None:
    """Gemini CLI tells its model where it is before the first prompt."""
    Chat().user(CONTEXT).user("Hello").agent("Hi.").write(home)


def checkpoint(home: Path) -> None:
    """A list of all messages so far, and records after it."""
    first, answer = message("q", "user", [{"text": "One"}]), message("a", "gemini", "First.")
    Chat().rebuild(first, answer).user("Two").agent("Second.").write(home)


def rewound(home: Path) -> None:
    """The second prompt was taken back."""
    Chat().user("One").agent("First.").user("Gone", "gone").agent("Gone, too.").rewind("gone").user("Two").write(home)


def migrated(home: Path) -> None:
    """The document of an older version beside the lines it was converted to."""
    chat = Chat().user("One").agent("First.")
    chat.write_document(home)
    chat.user("Two").agent("Second.").touch().write(home)


def sub_agent_file(home: Path) -> None:
    """A sub-agent's own file below its parent's."""
    path = Chat().user("One").agent("First.").write(home)
    child = Chat("22222222-2222-4222-8222-222222222222", kind="subagent").user("Task").agent("Done.")
    below = path.parent / CHAT / f"{child.session}.jsonl"
    below.parent.mkdir()
    below.write_bytes(child.data)


def late_prompt(home: Path) -> None:
    """Four hundred records before the first prompt of a Codex session."""
    rollout = Paginated()
    for number in range(200):
        rollout.event("token_count", info=None)
        rollout.event("agent_reasoning", text=f"{number} " + "x" * 600)
    rollout.user("At last").agent("Yes.").write(home)


def without_envelope(home: Path) -> None:
    """A Codex session of 2025."""
    context = f"<environment_context>\nCurrent working directory: {CODEX_CWD}\n</environment_context>"
    rollout = Bare().raw({"record_type": "state"}).message("user", context)
    rollout.message("user", "Hello").message("assistant", "Hi.").write(home)


CASES = (
    Case(image_first, ("What is this?", "A square.")),
    Case(caveat_first, ("/cost", "Sort the list", "Sorted."), title="Sort the list"),
    Case(slash_command_only, ("/review the parser", "It is fine.")),
    Case(torn_last_line, ("One", "First.", "Two")),
    Case(broken_lines, ("One", "First.", "Two", "Second.")),
    Case(changed_directory, ("One", "First.", "Two", "Second.")),
    Case(injected_context, ("Hello", "Hi."), GEMINI_CWD),
    Case(checkpoint, ("One", "First.", "Two", "Second."), GEMINI_CWD),
    Case(rewound, ("One", "First.", "Two"), GEMINI_CWD),
    Case(migrated, ("One", "First.", "Two", "Second."), GEMINI_CWD),
    Case(sub_agent_file, ("One", "First."), GEMINI_CWD),
    Case(late_prompt, ("At last", "Yes."), CODEX_CWD),
    Case(without_envelope, ("Hello", "Hi."), CODEX_CWD),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.build.__name__)
def test_an_awkward_history_is_one_session_with_title_directory_and_words(case: Case, tmp_path: Path) -> None:
    """Nothing is missing, nothing is invented."""
    case.build(tmp_path)
    with library_at(tmp_path) as library:
        (session,) = library.page(SessionQuery(), 10).sessions
        updates, _ = our_replay(library, session)
    assert session.title == (case.title or case.said[0])
    assert (session.cwd, session.cwd_known) == (case.cwd, True)
    items = replayed(updates).items
    assert tuple(item.text for item in items if item.kind in {"user", "agent"}) == case.said


@pytest.mark.parametrize("lines", [(), (("ai-title", "Only a title"),)], ids=["empty", "metadata"])
def test_a_file_without_a_conversation_is_no_session(lines: tuple[tuple[str, str], ...], tmp_path: Path) -> None:
    """Neither an empty file nor one with a title alone."""
    transcript = ClaudeLines()
    for kind, title in lines:
        transcript.metadata(kind, aiTitle=title)
    transcript.save(tmp_path)
    with library_at(tmp_path) as library:
        assert library.page(SessionQuery(), 10).sessions == ()


def test_a_line_of_many_megabytes_is_listed_and_replayed_within_bounds(tmp_path: Path) -> None:
    """The output is shortened with a note, and the answer after it is shown."""
    lines = ClaudeLines()
    lines.prompt("Show the diff")
    lines.call("Bash", {"command": "git diff"})
    lines.result("0123456789abcde\n" * (LONG_OUTPUT // 16))
    lines.answer("That is all.")
    lines.save(tmp_path)
    with library_at(tmp_path) as library:
        (session,) = library.page(SessionQuery(), 10).sessions
        sent, _ = frames(library, session)
    assert max(map(len, sent)) < FRAME_LIMIT
    assert b"bytes) left out" in b"".join(sent)
    assert b"That is all." in sent[-1]


def test_the_same_id_in_two_projects_is_two_sessions(tmp_path: Path) -> None:
    """A mirrored directory is not merged blindly; both can be loaded."""
    original, mirror = ClaudeLines(), ClaudeLines()
    for lines, count in ((original, 2), (mirror, 1)):
        for number in range(count):
            lines.prompt(f"Question {number}")
            lines.answer(f"Answer {number}")
    original.save(tmp_path)
    mirror.save(tmp_path, slug="ssh-mirror")
    with library_at(tmp_path) as library:
        sessions = library.page(SessionQuery(), 10).sessions
        assert sorted(len(our_replay(library, session)[0]) for session in sessions) == [2, 4]
        assert all(library.find(session.id) == session for session in sessions)


def test_a_project_known_by_its_hash_alone_has_no_guessed_directory(tmp_path: Path) -> None:
    """It is listed all the same; the directory is found once another session names it."""
    Chat().user("Hello").agent("Hi.").write(tmp_path, path_hash())
    with library_at(tmp_path) as library:
        (session,) = library.page(SessionQuery(), 10).sessions
        assert not session.cwd_known
    named = ClaudeLines(cwd=GEMINI_CWD)
    named.prompt("I know where")
    named.save(tmp_path)
    with library_at(tmp_path) as library:
        sessions = library.page(SessionQuery(), 10).sessions
        assert {(session.cwd, session.cwd_known) for session in sessions} == {(GEMINI_CWD, True)}


def test_an_archived_rollout_is_marked(tmp_path: Path) -> None:
    """It is not mixed with the active ones."""
    Paginated().user("Hello").agent("Hi.").write(tmp_path, archived=True)
    with library_at(tmp_path) as library:
        (session,) = library.page(SessionQuery(), 10).sessions
        assert session.archived
        assert library.page(SessionQuery(archived="exclude"), 10).sessions == ()
