"""`bridge search` and `bridge config`: what they print for people and for programs."""

import json
from pathlib import Path

import pytest

from acp_history_bridge.sample import lay_out
from tests.cli.conftest import Bridge

pytestmark = pytest.mark.process


@pytest.fixture
def bridge(bridge: Bridge) -> Bridge:
    """The program on the sample history, as if it were real."""
    lay_out(bridge.home)
    return bridge


def test_what_was_said_is_found_once_it_is_indexed(bridge: Bridge) -> None:
    """Before the update only titles are searched, and the answer says so."""
    before = json.loads(bridge("search", "--json", "commercial").out)

    updated = bridge("search", "--update")
    after = json.loads(bridge("search", "--json", "commercial").out)

    assert (before["textIndex"], before["sessions"]) == ("building", [])
    assert (updated.status, updated.out) == (0, "")
    assert "sessions read" in updated.err
    assert after["textIndex"] == "complete"
    assert after["total"] == len(after["sessions"]) > 0
    row = after["sessions"][0]
    start, end = row["marks"][0]
    assert row["snippet"][start:end].lower() == "commercial"


def test_a_hidden_session_is_indexed_and_found_only_when_it_is_shown_again(bridge: Bridge) -> None:
    """Hiding takes it out of the answers, not out of the index."""
    [row] = json.loads(bridge("search", "--update", "--json", "commercial").out)["sessions"]
    bridge("hide", row["id"])

    hidden = bridge("search", "--update", "commercial")
    bridge("unhide", row["id"])
    shown = json.loads(bridge("search", "--json", "commercial").out)

    assert (hidden.status, hidden.out) == (1, "")
    assert shown["sessions"][0]["snippet"] == row["snippet"]


def test_a_quiet_update_says_nothing(bridge: Bridge) -> None:
    """The agent runs it in the background."""
    result = bridge("search", "--update", "--quiet")

    assert (result.status, result.out, result.err) == (0, "", "")


def test_a_title_is_found_without_any_index(bridge: Bridge) -> None:
    """With the full-text index turned off, titles are what is searched."""
    found = bridge("search", "--json", "quantities", ACP_HISTORY_BRIDGE_SEARCH_FULL_TEXT="off")

    assert json.loads(found.out)["textIndex"] == "off"
    assert json.loads(found.out)["sessions"]


def test_nothing_found_is_status_one(bridge: Bridge) -> None:
    """Scripts can tell."""
    assert bridge("search", "xylophonistic").status == 1


@pytest.mark.parametrize("arguments", [[], ["since:soon"]])
def test_a_query_that_makes_no_sense_is_refused_in_one_line(bridge: Bridge, arguments: list[str]) -> None:
    """Usage errors name what is wrong."""
    result = bridge("search", *arguments)

    assert result.status in {1, 2}
    assert result.err.startswith("bridge: ")
    assert result.err.count("\n") == 1


def test_hits_on_a_terminal_show_title_place_and_the_marked_words(bridge: Bridge) -> None:
    """A person sees where the word stands."""
    bridge("search", "--update")

    shown = bridge.on_terminal("search", "commercial").out

    assert "\x1b[1;7m" in shown
    assert "claude:" in shown


def test_in_a_pipe_each_hit_is_one_line_of_three_fields(bridge: Bridge) -> None:
    """Id, title, snippet."""
    bridge("search", "--update")

    lines = bridge("search", "commercial").out.splitlines()

    assert lines
    assert {line.count("\t") for line in lines} == {2}


def test_config_names_values_and_where_they_come_from(bridge: Bridge, tmp_path: Path) -> None:
    """A setting of a file and one of a variable are told apart from defaults."""
    file = tmp_path / "mine.toml"
    file.write_text("page_size = 7\n", encoding="utf-8")

    shown = json.loads(bridge("config", "--json", "--config", str(file), ACP_HISTORY_BRIDGE_WATCH_MODE="poll").out)

    assert shown["settings"]["page_size"] == {"value": 7, "source": str(file)}
    assert shown["settings"]["watch.mode"] == {"value": "poll", "source": "ACP_HISTORY_BRIDGE_WATCH_MODE"}
    assert shown["settings"]["pushes"] == {"value": "all", "source": "default"}


def test_what_config_prints_can_be_read_back(bridge: Bridge, tmp_path: Path) -> None:
    """The plain form is the file's own form, but for the tables written as dotted names."""
    printed = bridge("config", ACP_HISTORY_BRIDGE_PAGE_SIZE="9")
    file = tmp_path / "again.toml"
    file.write_text(printed.out, encoding="utf-8")

    again = json.loads(bridge("config", "--json", "--config", str(file)).out)

    assert "from ACP_HISTORY_BRIDGE_PAGE_SIZE" in printed.out
    assert again["settings"]["page_size"]["value"] == 9
    assert again["settings"]["watch.mode"]["value"] == "auto"
