"""The common vocabulary of tool calls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_history_bridge.toolcalls import (
    absolute_path,
    display_path,
    locations,
    mcp_title,
    plan_entry,
    shell_title,
    title,
)
from acp_history_bridge.turns import Location, PlanEntry


@pytest.mark.parametrize(
    ("path", "cwd", "absolute"),
    [
        ("src/a.py", "/home/ada/shop", "/home/ada/shop/src/a.py"),
        ("../b.py", "/home/ada/shop", "/home/ada/b.py"),
        ("./a.py", "/home/ada/shop/", "/home/ada/shop/a.py"),
        ("/etc/hosts", "/home/ada", "/etc/hosts"),
        ("C:\\x\\a.py", "/home/ada", "C:\\x\\a.py"),
        ("~/a.py", "/home/ada", "~/a.py"),
        ("a.py", None, "a.py"),
        ("", "/home/ada", ""),
    ],
)
def test_a_path_is_made_absolute_as_text(path: str, cwd: str | None, absolute: str) -> None:
    """Only with a directory to start from, and never by asking the disk."""
    assert absolute_path(path, cwd) == absolute


@pytest.mark.parametrize(
    ("path", "cwd", "shown"),
    [
        ("/home/ada/shop/src/a.py", "/home/ada/shop", "src/a.py"),
        ("/home/ada/shop/a.py", "/home/ada/shop/", "a.py"),
        ("/home/ada/shopping/a.py", "/home/ada/shop", "/home/ada/shopping/a.py"),
        ("/etc/hosts", "/", "etc/hosts"),
        ("/etc/hosts", None, "/etc/hosts"),
    ],
)
def test_a_path_below_the_directory_is_shown_relative(path: str, cwd: str | None, shown: str) -> None:
    """A neighbour whose name only begins alike is not below."""
    assert display_path(path, cwd) == shown


def test_locations_are_absolute_and_each_only_once() -> None:
    """Unknown and relative paths without a directory are left out; a line below 1 is none."""
    assert locations("/w", "a.py", "/w/a.py", "", "~/b", line=3) == (Location("/w/a.py", 3),)
    assert locations(None, "a.py", "/b.py", line=0) == (Location("/b.py", None),)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (title("Read", "src/cart.py", "10 - 40"), "Read src/cart.py (10 - 40)"),
        (title("Read"), "Read"),
        (title("Edit", "a\nb.py"), "Edit a b.py"),
        (shell_title("ls -l \\\n  | wc"), "ls -l \\ | wc"),
        (shell_title(" \n"), "Terminal"),
        (mcp_title("github", "create_issue"), "github: create_issue"),
        (mcp_title("", "create_issue"), "create_issue"),
    ],
)
def test_titles_name_the_object_on_one_line(made: str, expected: str) -> None:
    """All tools read alike in an editor."""
    assert made == expected


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_no_title_has_a_line_end(verb: str, subject: str) -> None:
    """Hostile arguments cannot break the line."""
    assert "\n" not in title(verb, subject) + shell_title(subject) + mcp_title(verb, subject)


def test_a_todo_line_is_read_with_whatever_states_tools_write() -> None:
    """What was dropped counts as done; unknown or wrong states are pending; text is found under any of the names."""
    states = ["pending", "in_progress", "inProgress", "completed", "cancelled", "someday", 7]
    entries = [plan_entry({"description": "x", "status": state}, "content", "description") for state in states]

    assert [entry and entry.status for entry in entries] == [
        "pending",
        "in_progress",
        "in_progress",
        "completed",
        "completed",
        "pending",
        "pending",
    ]
    assert plan_entry({"content": "x", "priority": "high"}, "content") == PlanEntry("x", "pending", "high")


@pytest.mark.parametrize("item", [{}, {"content": "  "}, {"content": 3}])
def test_a_todo_line_without_text_is_none(item: dict[str, object]) -> None:
    """A line that says nothing is not shown."""
    assert plan_entry(item, "content") is None
