"""The query language: what people type, and what is looked for."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_history_bridge.errors import QueryError
from acp_history_bridge.search.query import Query, Term, parse_query

HOME = Path("/home/ada")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def _parse(text: str) -> Query:
    return parse_query(text, HOME, lambda: NOW)


def test_words_are_separate_terms() -> None:
    """Blanks separate words, all of which must occur."""
    assert _parse(" parser  error ").terms == (Term("parser"), Term("error"))


def test_quotes_make_a_phrase_even_when_they_are_not_closed() -> None:
    """While somebody is still typing, an open quote is a phrase to the end."""
    assert _parse('"off by one" "still typ').terms == (Term("off by one"), Term("still typ"))


def test_a_star_at_the_end_makes_a_prefix() -> None:
    """Only a trailing star has a meaning."""
    assert _parse("pars* a*b").terms == (Term("pars", prefix=True), Term("a*b"))


def test_a_minus_excludes_a_word_or_phrase() -> None:
    """What is excluded is not among the wanted terms."""
    query = _parse('-fixture -"by one" cart')

    assert query.terms == (Term("fixture", excluded=True), Term("by one", excluded=True), Term("cart"))
    assert query.wanted == (Term("cart"),)


def test_filters_are_taken_out_of_the_words() -> None:
    """Tool, directory and time restrict the sessions; several tools are alternatives."""
    query = _parse("cart tool:Codex tool:claude-code cwd:~/src/shop since:2026-11-01")

    assert query.terms == (Term("cart"),)
    assert query.tools == {"codex", "claude-code"}
    assert query.cwd == "/home/ada/src/shop"
    assert query.since == datetime(2026, 11, 1, tzinfo=UTC)


@pytest.mark.parametrize(("span", "day"), [("12h", 20), ("7d", 13), ("2w", 6)])
def test_since_counts_back_from_now(span: str, day: int) -> None:
    """Hours, days and weeks."""
    assert _parse(f"since:{span}").since == NOW.replace(day=day, hour=0 if span == "12h" else 12)


@pytest.mark.parametrize("text", ["since:soon", "cwd:src/shop"])
def test_a_filter_that_makes_no_sense_is_an_error(text: str) -> None:
    """The message names what was typed."""
    with pytest.raises(QueryError, match=text.split(":")[1]):
        _parse(text)


def test_a_quoted_directory_may_hold_blanks() -> None:
    """`cwd:"…"` reaches directories with blanks in their names."""
    assert _parse('cwd:"/home/ada/my shop"').cwd == "/home/ada/my shop"


def test_signs_alone_are_no_terms() -> None:
    """What holds no letter and no digit cannot be found, so it is not looked for."""
    assert _parse('* - "" ::: -- "..."').terms == ()


@given(st.text())
def test_any_text_is_a_query_or_a_query_error(text: str) -> None:
    """Nothing typed leads to another exception."""
    try:
        _parse(text)
    except QueryError:
        assert "since:" in text or "cwd:" in text
