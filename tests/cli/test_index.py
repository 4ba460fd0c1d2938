"""`bridge index`: what it prints for people and for programs."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from tests.cli.conftest import Bridge
from tests.conftest import digest_tree

pytestmark = pytest.mark.process

KEYS = {
    "id",
    "tool",
    "title",
    "cwd",
    "cwdKnown",
    "createdAt",
    "updatedAt",
    "messageCount",
    "archived",
    "branch",
    "model",
    "path",
}
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def _sessions(bridge: Bridge, *arguments: str, cwd: Path | None = None) -> list[Mapping[str, object]]:
    result = bridge("index", "--json", *arguments, cwd=cwd)
    assert (result.status, result.err) == (0, "")
    return cast("list[Mapping[str, object]]", json.loads(result.out)["sessions"])


def _claude(home: Path, title: str, cwd: str = "/home/ada/src/shop", session: str = "1" * 8) -> Path:
    """Write a Claude Code session of one prompt and one answer."""
    native_id = f"{session}-0000-4000-8000-000000000000"
    folder = home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", cwd)
    folder.mkdir(parents=True, exist_ok=True)
    common = {"isSidechain": False, "userType": "external", "cwd": cwd, "sessionId": native_id, "version": "2.1.270"}
    prompt = {
        **common,
        "parentUuid": None,
        "type": "user",
        "message": {"role": "user", "content": title},
        "uuid": "a" * 8,
        "timestamp": "2026-11-19T10:00:00.000Z",
    }
    answer = {
        **common,
        "parentUuid": "a" * 8,
        "type": "assistant",
        "message": {"id": "m", "role": "assistant", "model": "opus", "content": [{"type": "text", "text": "Done."}]},
        "uuid": "b" * 8,
        "timestamp": "2026-11-19T10:00:05.000Z",
    }
    path = folder / f"{native_id}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (prompt, answer)), encoding="utf-8")
    return path


@pytest.mark.fault("F12")
def test_an_empty_home_is_an_empty_list(bridge: Bridge) -> None:
    """A machine without histories is no error, for no form of output."""
    assert bridge("index", "--json").out == '{"sessions":[],"total":0}\n'
    assert (bridge("index", "--jsonl").out, bridge("index").out, bridge("index").status) == ("", "", 0)


def test_an_empty_home_on_a_terminal_says_where_it_looked(bridge: Bridge) -> None:
    """Somebody who expected a list learns which directories were searched, and how to see a sample."""
    result = bridge.on_terminal("index")

    assert result.status == 0
    assert "~/.claude/projects" in result.out
    assert "--demo" in result.out


def test_the_sample_is_listed_newest_first(bridge: Bridge) -> None:
    """Both tools in one list, with exact counts, and nothing written into the home directory."""
    sessions = _sessions(bridge, "--demo")

    assert [(row["title"], row["messageCount"]) for row in sessions] == [
        ("Respect quantities in the cart total", 5),
        ("Write a short post about growing tomatoes on a balcony.", 5),
        ("Where are prices rounded? I want to know before I touch anything.", 4),
        ("Gaps in the station log", 5),
        ("Which posts have no date?", 2),
    ]
    assert {row["tool"] for row in sessions} == {"claude-code", "gemini-cli"}
    assert digest_tree(bridge.home) == {}


def test_a_row_has_the_documented_fields_and_no_null(bridge: Bridge) -> None:
    """What is unknown is left out."""
    path = _claude(bridge.home, "Fix the cart")

    [row] = _sessions(bridge)

    assert set(row) <= KEYS
    assert (
        row.items()
        >= {
            "id": "claude:11111111-0000-4000-8000-000000000000",
            "tool": "claude-code",
            "title": "Fix the cart",
            "cwd": "/home/ada/src/shop",
            "cwdKnown": True,
            "createdAt": "2026-11-19T10:00:00.000Z",
            "updatedAt": "2026-11-19T10:00:05.000Z",
            "messageCount": 2,
            "archived": False,
            "path": str(path),
        }.items()
    )


def test_json_lines_hold_the_same_rows(bridge: Bridge) -> None:
    """One object per line, in the same order."""
    lines = bridge("index", "--demo", "--jsonl").out.splitlines()

    shown = [{name: value for name, value in json.loads(line).items() if name != "path"} for line in lines]
    rows = [{name: value for name, value in row.items() if name != "path"} for row in _sessions(bridge, "--demo")]
    assert shown == rows


def test_plain_lines_have_six_fields(bridge: Bridge) -> None:
    """Tabs separate the fields, so that `cut -f` works; the title comes last."""
    _claude(bridge.home, "Fix\tthe\ncart", cwd="/home/ada/a\tb")

    assert bridge("index").out.split("\t") == [
        "claude:11111111-0000-4000-8000-000000000000",
        "claude-code",
        "2026-11-19T10:00:05.000Z",
        "2",
        "/home/ada/a\ufffdb",
        "Fix the cart\n",
    ]


@pytest.mark.parametrize(
    ("options", "titles"),
    [
        (
            ("--tool", "gemini-cli"),
            ["Write a short post about growing tomatoes on a balcony.", "Which posts have no date?"],
        ),
        (
            ("--tool", "gemini"),
            ["Write a short post about growing tomatoes on a balcony.", "Which posts have no date?"],
        ),
        (("--search", "POST tomatoes"), ["Write a short post about growing tomatoes on a balcony."]),
        (("--cwd", "/home/ada/src/weather"), ["Gaps in the station log"]),
        (("--cwd", "/home/ada/src/blog/../weather/"), ["Gaps in the station log"]),
        (("--since", "2026-11-18"), ["Respect quantities in the cart total"]),
        (("--limit", "1"), ["Respect quantities in the cart total"]),
        (("--tool", "gemini", "--tool", "claude", "--search", "station"), ["Gaps in the station log"]),
        (("--search", "nothing like it"), []),
    ],
)
def test_options_narrow_the_list(bridge: Bridge, options: tuple[str, ...], titles: list[str]) -> None:
    """Filters combine; a tool answers to its name and to the prefix of its ids."""
    assert [row["title"] for row in _sessions(bridge, "--demo", *options)] == titles


def test_a_relative_directory_is_taken_from_here(bridge: Bridge, tmp_path: Path) -> None:
    """`--cwd .` means the directory one is in."""
    project = tmp_path / "project"
    project.mkdir()
    _claude(bridge.home, "Here", cwd=str(project))
    _claude(bridge.home, "There", session="2" * 8)

    assert [row["title"] for row in _sessions(bridge, "--cwd", ".", cwd=project)] == ["Here"]


def test_the_total_counts_what_the_limit_leaves_out(bridge: Bridge) -> None:
    """A program sees that there is more."""
    assert json.loads(bridge("index", "--demo", "--json", "--limit", "2").out)["total"] == 5


def test_more_sessions_than_a_page_are_all_listed(bridge: Bridge) -> None:
    """Pages of the index do not show."""
    for number in range(520):
        _claude(bridge.home, f"Task {number}", session=f"{number:08d}")

    assert len({row["id"] for row in _sessions(bridge)}) == 520
    assert len(_sessions(bridge, "--limit", "510")) == 510


@pytest.mark.fault("S2")
def test_a_table_fits_the_terminal_and_shortens_titles(bridge: Bridge) -> None:
    """No line is wider than the terminal, wide characters counted as two cells, and the footer says what is missing."""
    from rich.cells import cell_len

    for number in range(60):
        _claude(bridge.home, f"{number} 項目の合計を計算する " + "very long " * 20, session=f"{number:08d}")
    shown = _STYLE.sub("", bridge.on_terminal("index", columns=80).out)

    assert max(cell_len(line) for line in shown.splitlines()) <= 80
    assert "…" in shown
    assert "50 of 60 sessions" in shown


def test_no_color_means_no_colour(bridge: Bridge) -> None:
    """With NO_COLOR the table has no colour; without it, at least the age is dimmed."""
    sober = bridge.on_terminal("index", "--demo", NO_COLOR="1").out
    colourful = bridge.on_terminal("index", "--demo").out

    assert "\x1b[3" not in sober
    assert "\x1b[" in colourful


def test_the_home_directory_is_shown_as_a_tilde(bridge: Bridge) -> None:
    """Directories are written as people write them."""
    _claude(bridge.home, "Fix the cart", cwd=str(bridge.home / "src"))

    assert "~/src" in bridge.on_terminal("index", NO_COLOR="1").out


@pytest.mark.parametrize("title", ["[/x] [bold]loud[/bold]", ":smile: $(rm -rf)", "[link=http://x]y[/link]"])
@pytest.mark.fault("S2")
def test_a_title_is_never_taken_for_markup(bridge: Bridge, title: str) -> None:
    """What looks like formatting is shown literally."""
    _claude(bridge.home, title)

    assert title in bridge.on_terminal("index", columns=120, NO_COLOR="1").out


@pytest.mark.fault("S1")
def test_hostile_titles_and_directories_reach_no_terminal(bridge: Bridge) -> None:
    """Neither the table nor the plain lines hold anything that moves the cursor, colours or reorders."""
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\x08\x00"
    _claude(bridge.home, f"{evil}title", cwd=f"/home/ada/{evil}x")
    harmful = {"\x07", "\x9b", "\x08", "\x00", "\u202e"}

    assert harmful & set(bridge.on_terminal("index", NO_COLOR="1").out) == set()
    assert harmful & set(bridge("index").out) == set()
    assert "\x1b" not in bridge("index").out
    assert "\x1b]0" not in bridge.on_terminal("index").out


@pytest.mark.fault("S1")
def test_output_in_a_pipe_is_utf_8_whatever_the_locale(bridge: Bridge) -> None:
    """A Latin-1 locale does not break names that it lacks."""
    _claude(bridge.home, "合計 ü")

    assert "合計 ü" in bridge("index", LANG="de_DE.ISO-8859-1", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0").out


@pytest.mark.fault("S1")
def test_a_path_that_is_no_utf_8_can_be_listed(bridge: Bridge) -> None:
    """JSON is always valid; a byte that is no character becomes a replacement."""
    path = _claude(bridge.home, "Odd place")
    path.parent.rename(os.fsdecode(bytes(path.parent) + b"\xff"))

    assert "\ufffd" in str(_sessions(bridge)[0]["path"])


def test_listing_changes_no_history(bridge: Bridge) -> None:
    """Transcripts are read-only."""
    _claude(bridge.home, "Fix the cart")
    before = digest_tree(bridge.home / ".claude")
    _sessions(bridge)

    assert digest_tree(bridge.home / ".claude") == before
