"""Hostile text: titles are one line, a terminal is never acted upon, and no ordinary text is lost on the way."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_history_bridge.text import TITLE_LIMIT, one_line, replace_surrogates, shorten, terminal_safe

# Every code point, lone surrogates included, with those that do harm made frequent.
_HARMFUL = st.sampled_from(
    [
        "\x1b[31m",
        "\x1b]0;x\x07",
        "\x1b]",
        "\x1b",
        "\x9b",
        "\x9d",
        "\x00",
        "\x07",
        "\r",
        "\n",
        "\u202e",
        "\u200b",
        "\ud800",
    ]
)
_TEXTS = st.lists(st.one_of(st.text(st.characters(codec=None)), _HARMFUL)).map("".join)


def _harm(text: str, allowed: str = "") -> list[str]:
    """Characters that a terminal could act upon or that reorder text."""
    return [
        character
        for character in text
        if character not in allowed
        and (
            unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} or unicodedata.bidirectional(character) in _BIDI
        )
    ]


_BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@given(_TEXTS)
@pytest.mark.fault("S1", "S2")
def test_a_title_is_one_clean_line(text: str) -> None:
    """Whatever comes in, a title has no control, no line end, no surrogate, no blank around it, and is short."""
    title = one_line(text)

    assert (_harm(title), title.strip()) == ([], title)
    assert len(title) <= TITLE_LIMIT


@given(_TEXTS)
@pytest.mark.fault("Z3")
def test_making_a_title_twice_changes_nothing(text: str) -> None:
    """A title that is cleaned again stays as it is, so that it does not matter who cleaned it first."""
    assert one_line(one_line(text)) == one_line(text)


@given(_TEXTS)
@pytest.mark.fault("S1")
def test_nothing_that_acts_on_a_terminal_survives(text: str) -> None:
    """Only newlines and tabs are left of all controls."""
    assert _harm(terminal_safe(text), allowed="\n\t") == []


@given(_TEXTS)
@pytest.mark.fault("Z3")
def test_making_text_safe_twice_changes_nothing(text: str) -> None:
    """Removing one sequence never puts another one together."""
    assert terminal_safe(terminal_safe(text)) == terminal_safe(text)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_ordinary_text_reaches_the_terminal_unchanged(text: str) -> None:
    """Letters, digits, punctuation and symbols of any script are shown as they are."""
    assert terminal_safe(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1;2q...\x1b\\sixel", "sixel"),
        ("back\x08space", "back\ufffdspace"),
        ("line\rover", "line\ufffdover"),
        ("evil\u202egnp.exe", "evilgnp.exe"),
        ("a\u061cb", "ab"),
        ("tag\U000e0041ged", "tagged"),
        ("tab\tand\nline", "tab\tand\nline"),
    ],
)
@pytest.mark.fault("S1")
def test_known_attacks_are_removed(text: str, shown: str) -> None:
    """Colours, titles, links, images, overwriting and reordering do not reach a terminal."""
    assert terminal_safe(text) == shown


@pytest.mark.parametrize("introducer", ["\x1b]", "\x1bP", "\x9d", "\x90", "\x9b"])
@pytest.mark.fault("S1")
def test_an_unfinished_sequence_does_not_swallow_the_rest(introducer: str) -> None:
    """A stray introducer, as wrongly decoded quotation marks contain it, costs itself and nothing else."""
    rest = "he said, and went on\nfor two lines"

    assert terminal_safe(f"{introducer}{rest}").endswith(rest)
    assert one_line(f"{introducer}{rest}").endswith("for two lines")


@pytest.mark.parametrize("blank", [" " * 5000, "\n" * 5000])
@pytest.mark.fault("S2")
def test_a_title_begins_at_the_first_word_however_late_it_comes(blank: str) -> None:
    """A prompt that starts with thousands of blanks still has a title."""
    assert one_line(blank + "Fix the parser") == "Fix the parser"


@pytest.mark.fault("S2")
def test_a_long_title_is_cut_with_an_ellipsis() -> None:
    """A title is exactly as long as the limit allows, and shows that something is missing."""
    assert one_line("x" * 1_000_000) == "x" * (TITLE_LIMIT - 1) + "…"


@pytest.mark.parametrize("cluster", ["e\u0301\u0323", "👩\u200d💻", "❤\ufe0f"])
@pytest.mark.fault("S2")
def test_text_is_not_cut_within_a_character_that_people_see(cluster: str) -> None:
    """Combining marks, joined emoji and variation selectors go with what they belong to, or not at all."""
    for limit in range(2, len(cluster) + 2):
        kept = shorten("ab" + cluster + "tail of it", limit + 1).removesuffix("…")

        assert kept in {"a", "ab", "ab" + cluster}


@pytest.mark.fault("S2")
def test_a_mountain_of_combining_marks_is_cut_all_the_same() -> None:
    """Text without any place to cut at leaves the ellipsis, not an endless title."""
    assert shorten("a" + "\u0301" * 1000, 10) == "…"


@given(st.text(st.characters(codec=None)))
@pytest.mark.fault("F7", "S1")
def test_text_without_surrogates_goes_on_the_wire_unchanged(text: str) -> None:
    """Only lone surrogates are replaced; the result can always be encoded."""
    clean = replace_surrogates(text)

    assert clean.encode("utf-8").decode("utf-8") == clean
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert clean == text


def test_a_pair_of_surrogates_in_two_pieces_becomes_its_character() -> None:
    """A streamed emoji that was stored in two halves is whole again when they are joined."""
    assert replace_surrogates("a\ud83d" + "\ude00b\ud83d") == "a😀b\ufffd"
