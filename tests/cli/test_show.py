"""`bridge show`: a conversation for a person, for a pipe and for a program; and how a session is named."""

import io
import json
import os
import re
from pathlib import Path

import pytest
from rich.console import Console

from acp_history_bridge.cli.pager import paged, pager_command
from acp_history_bridge.cli.screen import Screen
from acp_history_bridge.export.conversation import Conversation, numbered
from acp_history_bridge.turns import Diff, Turn
from tests.builders.turns import call, every_kind, turn
from tests.cli.conftest import Bridge, Inside

CART = "claude:6513270e-269e-4d37-b2a7-4de452e6b438"
HARMFUL = {"\x07", "\x9b", "\x08", "\x00", "\u202e"}
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\x08\x00 [bold]x[/bold] [link](http://x)"


def _screen(*turns: Turn, full: bool = False, raw: bool = False, width: int = 80) -> str:
    console = Console(file=io.StringIO(), force_terminal=True, width=width, markup=False, highlight=False)
    screen = Screen(console, full=full, raw=raw)
    screen.print_heading(Conversation("t:1", "A title", "Tool", turns, "/w", resume="tool 1"))
    for message in numbered(turns):
        screen.print_message(message)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("named", [CART, "claude:6513", "6513", "last", "last:claude", "last:claude-code"])
def test_a_session_answers_to_its_id_to_a_beginning_of_it_and_to_last(inside: Inside, named: str) -> None:
    """All of these are the cart session of the sample."""
    assert inside("show", named).out.startswith("# Respect quantities in the cart total\n")


@pytest.mark.parametrize(
    ("named", "complaint", "status"),
    [
        ("nope", "bridge: there is no session nope; `bridge index` lists them", 1),
        ("claude:", "bridge: several sessions begin with claude:: claude:", 1),
        ("", "bridge: there is no session without an id", 1),
        ("last:emacs", "bridge: last:emacs: not one of claude-code, ", 2),
        ("last:codex", "bridge: there are no sessions", 1),
        ("../../etc/passwd", "bridge: there is no session ../../etc/passwd", 1),
    ],
)
def test_nothing_is_guessed(inside: Inside, named: str, complaint: str, status: int) -> None:
    """What fits no session, or several, is an error in one line."""
    result = inside("show", named)

    assert (result.status, result.out) == (status, "")
    assert result.err.startswith(complaint)
    assert result.err.count("\n") == 1


def test_a_pipe_gets_markdown_and_all_that_was_said(inside: Inside) -> None:
    """Brief by default: a line per call; everything with --full."""
    brief, full = inside("show", "last").out, inside("show", "last", "--full").out

    assert "The cart ignores quantities: three mugs cost as much as one." in brief
    assert "**edit** `Edit shop/cart.py` (completed)" in brief
    assert "```diff" not in brief
    assert "```diff" in full


@pytest.mark.parametrize(("span", "numbers"), [("2", [2]), ("2-3", [2, 3]), ("8-", [8, 9, 10])])
def test_some_messages_can_be_chosen(inside: Inside, span: str, numbers: list[int]) -> None:
    """By the numbers that are shown."""
    shown = re.findall(r"^## (\d+) ·", inside("show", "last", "--turns", span).out, re.MULTILINE)

    assert [int(number) for number in shown][:3] == numbers


@pytest.mark.parametrize(("span", "status"), [("0", 2), ("3-2", 2), ("x", 2), ("9999", 1)])
def test_messages_that_cannot_be_chosen_are_an_error(inside: Inside, span: str, status: int) -> None:
    """Wrong usage is 2, a message that does not exist is 1."""
    assert inside("show", "last", "--turns", span).status == status


def test_json_is_what_export_writes(inside: Inside) -> None:
    """One form for programs."""
    assert json.loads(inside("show", "last", "--json").out) == json.loads(
        inside("export", "last", "--format", "json").out
    )


def test_a_screen_folds_tools_and_shows_the_beginning_of_a_diff() -> None:
    """A person sees who, what and the change; the rest is counted."""
    old = "".join(f"line {number}\n" for number in range(40))
    shown = _screen(turn("user", "prompt"), turn("agent", "**bold**", call(diff=Diff("/w/x", "", old)), identity="2"))

    assert "1 User" in shown
    assert "2 Agent" in shown
    assert "✓" in shown
    assert "Edit src/cart.py" in shown
    assert "-line 3" in shown
    assert re.search(r"… \d+ more lines", shown)
    assert "**bold**" not in shown


def test_a_full_screen_leaves_nothing_out() -> None:
    """Every word of every kind of part."""
    shown = _screen(*every_kind(), full=True)

    for word in ("prompt", "thought", "answer", "new", "shell", "input", "output", "subagent", "summary", "resource"):
        assert f"{word}-word" in shown


def test_raw_keeps_markdown_as_it_was_written() -> None:
    """What was typed is what is shown."""
    assert "**answer-word**" in _screen(*every_kind(), raw=True)


@pytest.mark.fault("S1")
@pytest.mark.parametrize("full", [False, True])
def test_nothing_in_a_conversation_acts_on_the_screen(*, full: bool) -> None:
    """In no place: text, titles, diffs, outputs; and links are shown, not made."""
    evil = turn("agent", EVIL, call(EVIL, diff=Diff(EVIL, EVIL, "x")))
    shown = _screen(evil, full=full)

    assert HARMFUL & set(shown) == set()
    assert set(re.findall(r"\x1b(?!\[[0-9;]*m).{0,3}", shown)) == set()
    assert "http://x" in shown


@pytest.mark.fault("S1")
def test_nothing_in_a_conversation_acts_through_a_pipe(inside: Inside) -> None:
    """What a pager would pass on is gone."""
    path = next((inside.home / ".claude").rglob("6513*.jsonl"))
    text = path.read_text(encoding="utf-8").replace("three mugs", json.dumps(EVIL)[1:-1])
    path.write_text(text, encoding="utf-8")

    assert (HARMFUL | {"\x1b"}) & set(inside("show", CART, "--full").out) == set()


@pytest.mark.parametrize("width", [20, 60, 200])
def test_a_screen_fits_its_width(width: int) -> None:
    """Only facts that are to be copied, an id or a command, may be longer."""
    from rich.cells import cell_len

    shown = re.sub(
        r"\x1b\[[0-9;]*m", "", _screen(turn("user", "項目の合計 " * 50), turn("agent", call("y" * 300)), width=width)
    )

    assert max(cell_len(line) for line in shown.splitlines()[4:]) <= width


@pytest.mark.parametrize(
    ("variables", "command"),
    [
        ({}, ["less"]),
        ({"PAGER": "sh -c 'cat'"}, ["sh", "-c", "cat"]),
        ({"PAGER": ""}, None),
        ({"PAGER": "cat"}, None),
        ({"PAGER": "no-such-pager"}, None),
        ({"PAGER": "sh '"}, None),
    ],
)
def test_the_pager_is_the_users(
    variables: dict[str, str], command: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PAGER, else less, else none."""

    def which(name: str) -> str | None:
        return None if "no-such" in name else f"/bin/{name}"

    monkeypatch.setattr("acp_history_bridge.cli.pager.which", which)

    assert pager_command(variables) == command


def test_what_is_printed_goes_through_the_pager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pager that leaves early, too, is no error."""
    monkeypatch.setenv("PAGER", f"sh -c 'head -n 1 > {tmp_path}/seen'")

    with paged(use=True) as console:
        for number in range(20_000):
            console.print(f"line {number}")

    assert (tmp_path / "seen").read_text(encoding="utf-8") == "line 0\n"


@pytest.mark.process
def test_a_terminal_gets_a_rendered_conversation(bridge: Bridge) -> None:
    """The whole way, through a pseudo terminal."""
    shown = bridge.on_terminal("show", "last", "--demo", PAGER="", PATH=os.environ["PATH"]).out

    assert "1 User" in shown
    assert "✓ Edit shop/cart.py" in re.sub(r"\x1b\[[0-9;]*m", "", shown)
