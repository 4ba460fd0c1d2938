"""Answering queries from the full-text index.

All wanted words must occur in one conversation, wherever. Rows are ranked by bm25, of the best ones recent sessions
come first among equals; only these candidates are looked at more closely, so a common word stays cheap.
"""

import json
import logging
import math
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from acp_history_bridge.search.query import Query, Term
from acp_history_bridge.search.store import TextStore, document_of
from acp_history_bridge.sessions import Snippet

__all__ = ["Hit", "SearchEngine", "Times", "make_snippet"]

# Finds out when sessions were last active; those it leaves out are not wanted.
Times = Callable[[Collection[str]], Mapping[str, datetime]]

_log = logging.getLogger(__name__)

_CANDIDATES = 500
_SNIPPET_WIDTH = 160
_WORD = re.compile(r"\w+")
# A session from today counts half as much again as one from long ago; the effect halves every three months.
_RECENCY_WEIGHT = 0.5
_RECENCY_HALF_LIFE_DAYS = 90.0


@dataclass(frozen=True, slots=True)
class Hit:
    """A session that matches.

    Attributes:
        segment: Where its best match lies, for `SearchEngine.snippet`.
        score: Greater is better.
    """

    session_id: str
    segment: int
    score: float


class SearchEngine:
    """Read access to the text index. Used from one thread."""

    def __init__(self, path: Path | None) -> None:
        self._store = TextStore(path)

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    @property
    def complete(self) -> bool:
        """Whether every session is indexed, as far as the last build knew."""
        return self._store.finished()

    def search(self, query: Query, times: Times, now: datetime | None = None) -> list[Hit]:
        """Find sessions, best first.

        Args:
            query: Its filters are not applied here.
            times: See `Times`.
            now: What recency counts from.
        """
        wanted = query.wanted
        if not wanted:
            return []
        rows = self._match(" AND ".join(map(_expression, wanted)) + _without(query.terms))
        if len(wanted) > 1:
            rows += self._across_segments(wanted, query.terms)
        return self._ranked(rows, times, now or datetime.now(UTC))

    def snippet(self, hit: Hit, query: Query) -> Snippet:
        """What was said around the first match."""
        return make_snippet(self._store.body(hit.segment), query.wanted)

    def _match(self, expression: str) -> list[tuple[int, float]]:
        return self._rows(
            "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", expression, _CANDIDATES
        )

    def _ranks(self, expression: str, segments: Sequence[int]) -> list[tuple[int, float]]:
        """Those of the segments that match, the best last."""
        return self._rows(
            "SELECT rowid, rank FROM words WHERE words MATCH ? AND rowid IN (SELECT value FROM json_each(?))"
            " ORDER BY rank DESC",
            expression,
            json.dumps(segments),
        )

    def _rows(self, statement: str, *values: object) -> list[tuple[int, float]]:
        try:
            return self._store.connection.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:  # locked for long, or an expression FTS5 refuses
            _log.warning("a search found nothing, because: %s", error)
            return []

    def _across_segments(self, wanted: Iterable[Term], terms: Iterable[Term]) -> list[tuple[int, float]]:
        """Long conversations lie in several rows, and their words may do so too."""
        segments = self._store.segments_of_long_documents()
        if not segments:
            return []
        # Ranking every row of a common word would take longer than all the rest; few conversations are this long.
        per_term = [
            {document_of(row): (row, rank) for row, rank in self._ranks(_expression(term), segments)} for term in wanted
        ]
        common = set[int].intersection(*(set(found) for found in per_term))
        for term in terms:
            if term.excluded:
                common -= {document_of(row) for row, _ in self._ranks(_expression(term), segments)}
        return [(per_term[0][number][0], sum(found[number][1] for found in per_term)) for number in common]

    def _ranked(self, rows: list[tuple[int, float]], times: Times, now: datetime) -> list[Hit]:
        best: dict[int, tuple[int, float]] = {}
        for segment, rank in rows:
            number = document_of(segment)
            if number not in best or rank < best[number][1]:
                best[number] = (segment, rank)
        found = {session_id: best[number] for number, session_id in self._store.session_ids(best).items()}
        hits = [
            Hit(session_id, found[session_id][0], -found[session_id][1] * _recency(now, time))
            for session_id, time in times(found).items()
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.session_id))


def _recency(now: datetime, time: datetime) -> float:
    days = max(0.0, (now - time).total_seconds() / 86_400)
    return 1 + _RECENCY_WEIGHT * math.exp2(-days / _RECENCY_HALF_LIFE_DAYS)


def _expression(term: Term) -> str:
    quoted = '"' + term.text.replace('"', '""') + '"'
    return f"{quoted} *" if term.prefix else quoted


def _without(terms: Iterable[Term]) -> str:
    return "".join(f" NOT {_expression(term)}" for term in terms if term.excluded)


def make_snippet(text: str, wanted: Iterable[Term], width: int = _SNIPPET_WIDTH) -> Snippet:
    """Cut about `width` characters around the first match and mark all matches in them."""
    pattern = _pattern(wanted)
    found = pattern.search(text) if pattern else None
    start = max(0, found.start() - width // 3) if found else 0
    if start:  # begin with a whole word
        start = next((match.start() for match in _WORD.finditer(text, start) if match.start() > start), start)
    piece = " ".join(text[start : start + width].split())
    piece = f"{'…' if start else ''}{piece}{'…' if start + width < len(text) else ''}"
    marks = tuple(match.span() for match in pattern.finditer(piece)) if pattern else ()
    return Snippet(piece, marks)


def _pattern(wanted: Iterable[Term]) -> re.Pattern[str] | None:
    """What FTS5 finds, as nearly as a regular expression can say it; accents make no difference there."""
    alternatives: list[str] = []
    for term in wanted:
        words = _WORD.findall(term.text)
        if words:
            alternatives.append(r"[\W_]+".join(map(re.escape, words)) + (r"\w*" if term.prefix else ""))
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(alternatives)})(?![^\W_])", re.IGNORECASE) if alternatives else None
