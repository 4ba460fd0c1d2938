"""The full-text index: what is found, in which order, and how little is read to keep it up to date."""

import os
import sqlite3
from pathlib import Path

import pytest

from acp_history_bridge.search.build import only_builder
from acp_history_bridge.search.engine import SearchEngine, make_snippet
from acp_history_bridge.search.query import parse_query
from acp_history_bridge.search.store import SEGMENT_SIZE
from tests.search.conftest import Corpus


def _everything(corpus: Corpus) -> list[tuple[object, ...]]:
    """The whole content of the index but for its row numbers."""
    connection = sqlite3.connect(corpus.database)
    rows = connection.execute(
        "SELECT session_id, path, size, resume_at, resume_mark, segments, body FROM document"
        " JOIN segment ON segment.id >> 16 = document.id ORDER BY session_id, segment.id"
    ).fetchall()
    connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    connection.close()
    return rows


def test_all_words_must_occur_but_not_in_one_line(corpus: Corpus) -> None:
    """Words of different messages of one conversation match."""
    corpus.write("one", "the parser broke", "fix the cart")
    corpus.write("two", "the parser is fine")
    corpus.update()

    assert corpus.find("parser cart") == ["one"]
    assert sorted(corpus.find("parser")) == ["one", "two"]


def test_phrases_prefixes_exclusions_and_accents(corpus: Corpus) -> None:
    """What the query language promises."""
    corpus.write("one", "an off by one error in größe")
    corpus.write("two", "one by one, off we go")
    corpus.update()

    assert corpus.find('"off by one"') == ["one"]
    assert corpus.find("err*") == ["one"]
    assert corpus.find("off -error") == ["two"]
    assert corpus.find("grosse") == []
    assert corpus.find("GRÖSSE") == corpus.find("gröss*") == []
    assert corpus.find("größe") == corpus.find("große") == ["one"]


def test_an_identifier_is_found_as_it_is_written(corpus: Corpus) -> None:
    """Signs inside a word separate tokens, and the query is cut in the same way."""
    corpus.write("one", "call load_cart_items() in src/cart.py")
    corpus.write("two", "load the items of the cart")
    corpus.update()

    assert corpus.find("load_cart_items") == ["one"]
    assert corpus.find("src/cart.py") == ["one"]


def test_words_of_a_long_conversation_are_found_across_its_segments(corpus: Corpus) -> None:
    """A conversation of several megabytes lies in several rows, which nobody notices."""
    filler = "lorem ipsum " * 10_000
    corpus.write("long", "needle at the start", *[filler] * (2 * SEGMENT_SIZE // len(filler)), "haystack at the end")
    corpus.write("short", "needle")
    corpus.update()

    assert corpus.find("needle haystack") == ["long"]
    assert corpus.find("needle haystack -lorem") == []


def test_among_equals_the_recent_one_comes_first(corpus: Corpus) -> None:
    """Recency decides between sessions that match alike."""
    corpus.write("old", "fix the parser", days_old=400)
    corpus.write("new", "fix the parser", days_old=1)
    corpus.update()

    assert corpus.find("parser") == ["new", "old"]


@pytest.mark.fault("S9")
def test_credentials_are_not_in_the_file(corpus: Corpus) -> None:
    """Not compressed, not in the words, nowhere."""
    corpus.write("one", "the key is AKIA" + "Q3EXAMPLE0EXAMPL", "password: hunter2hunter2")
    corpus.update()

    assert corpus.find("hunter2hunter2") == []
    assert all(b"hunter2" not in path.read_bytes() for path in corpus.database.parent.iterdir())
    assert "[redacted]" in _snippet(corpus, "key")


def test_tool_output_is_found_only_when_wanted(corpus: Corpus) -> None:
    """The setting decides, and changing it brings everything up to date."""
    corpus.write("one", "run it", "> secretive output")
    corpus.update()
    assert corpus.find("secretive") == []

    report = corpus.update(output=True)

    assert (report.rebuilt, corpus.find("secretive")) == (1, ["one"])


def test_a_second_run_reads_nothing(corpus: Corpus) -> None:
    """What has not changed costs nothing."""
    corpus.write("one", "a")
    corpus.write("two", "b")
    corpus.update()
    before = corpus.adapter.bytes_read

    report = corpus.update()

    assert (report.unchanged, corpus.adapter.bytes_read) == (2, before)


@pytest.mark.fault("P3")
def test_of_a_grown_transcript_only_the_new_lines_are_read(corpus: Corpus) -> None:
    """And the outcome is the same as of a fresh build."""
    corpus.write("one", *["early words"] * 1000)
    corpus.update()
    before = corpus.adapter.bytes_read
    corpus.append("one", "late arrival")

    report = corpus.update()
    extended = _everything(corpus)
    corpus.database.unlink()
    corpus.update()

    assert (report.extended, report.rebuilt) == (1, 0)
    assert corpus.find("late arrival early") == ["one"]
    assert extended == _everything(corpus)
    assert before + len("late arrival") == corpus.adapter.bytes_read - before - len("late arrival")


@pytest.mark.parametrize("change", ["rewritten", "shrunk", "replaced"])
def test_a_transcript_that_did_not_just_grow_is_read_again(corpus: Corpus, change: str) -> None:
    """No word of the old text stays behind."""
    path = corpus.write("one", "first text", "more")
    corpus.update()
    if change == "replaced":
        path.unlink()
    corpus.write("one", *({"shrunk": ["other"]}.get(change, ["other text", "moreover", "longer than before"])))
    os.utime(path, ns=(1, 1))

    report = corpus.update()

    assert report.rebuilt == 1
    assert (corpus.find("first"), corpus.find("other")) == ([], ["one"])


def test_a_vanished_session_is_dropped(corpus: Corpus) -> None:
    """Neither its words nor its text stay."""
    corpus.write("one", "gone soon").unlink()
    corpus.write("two", "gone later")
    corpus.update()
    (corpus.directory / "two.txt").unlink()

    report = corpus.update()

    assert (report.removed, corpus.find("gone"), _everything(corpus)) == (1, [], [])


def test_the_index_says_whether_it_is_complete(corpus: Corpus) -> None:
    """Answers given meanwhile can say that there may be more."""
    corpus.write("one", "a")
    engine = SearchEngine(corpus.database)
    before = engine.complete

    corpus.update()

    assert (before, engine.complete) == (False, True)
    engine.close()


@pytest.mark.fault("C1")
def test_only_one_process_builds_at_a_time(tmp_path: Path) -> None:
    """The second one is told and goes away; afterwards the lock is free."""
    lock = tmp_path / "cache" / "text.lock"
    with only_builder(lock) as first, only_builder(lock) as second:
        assert (first, second) == (True, False)
    with only_builder(lock) as again:
        assert again


def _snippet(corpus: Corpus, query: str) -> str:
    engine = SearchEngine(corpus.database)
    try:
        return engine.snippet(corpus.hits(query)[0], parse_query(query, Path("/"))).text
    finally:
        engine.close()


def test_a_snippet_shows_the_match_in_its_surroundings_on_one_line() -> None:
    """Line ends are folded, cut ends marked, and every match is marked."""
    text = "word " * 100 + "the\nparser broke, Parser! " + "more " * 100

    snippet = make_snippet(text, parse_query("pars*", Path("/")).wanted)

    assert "\n" not in snippet.text
    assert snippet.text.startswith("…")
    assert snippet.text.endswith("…")
    assert [snippet.text[start:end] for start, end in snippet.marks] == ["parser", "Parser"]


def test_a_snippet_without_a_literal_match_is_the_beginning() -> None:
    """FTS5 ignores accents; the snippet then just shows what the conversation is about."""
    snippet = make_snippet("größe", parse_query("große", Path("/")).wanted)

    assert (snippet.text, snippet.marks) == ("größe", ())
