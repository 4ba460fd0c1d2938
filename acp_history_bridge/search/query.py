"""The query language of `bridge search`, `/search` and `session/list` with `search`.

    parser error            both words, anywhere in one conversation
    "off by one"            the words next to each other, in this order
    pars*                   words that begin so
    -fixture                not this word
    tool:codex              only this tool; several may be given
    cwd:~/src/shop          only sessions of this directory or below it
    since:2026-11-01        only sessions with activity since then; also since:7d, since:12h, since:2w

Every text is a query: what is not understood as a filter is searched for as words, so nothing typed is an error but a
filter whose value makes no sense.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from acp_history_bridge.errors import QueryError
from acp_history_bridge.timestamps import parse_since

__all__ = ["Query", "Term", "parse_query"]

_PIECE = re.compile(r'(?P<minus>-?)(?:(?P<filter>tool|cwd|since):)?(?:"(?P<phrase>[^"]*)"?|(?P<word>\S+))')


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for.

    Attributes:
        text: A word, or several for a phrase, as typed.
        prefix: Matches every word that begins with the (last) word.
        excluded: Sessions that hold it are left out.
    """

    text: str
    prefix: bool = False
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query; all terms and all filters must hold, of `tools` any."""

    terms: tuple[Term, ...] = ()
    tools: frozenset[str] = frozenset()
    cwd: str | None = None
    since: datetime | None = None

    @property
    def wanted(self) -> tuple[Term, ...]:
        """The terms that must occur."""
        return tuple(term for term in self.terms if not term.excluded)


def parse_query(text: str, home: Path, now: Callable[[], datetime] | None = None) -> Query:
    """Read a query.

    Args:
        text: What was typed.
        home: What `~` in `cwd:` stands for.
        now: The clock that `since:7d` counts back from.

    Raises:
        QueryError: `since:` is no time, `cwd:` no absolute directory.
    """
    terms: list[Term] = []
    tools: set[str] = set()
    cwd: str | None = None
    since: datetime | None = None
    for piece in _PIECE.finditer(text):
        value = piece["phrase"] if piece["word"] is None else piece["word"]
        match piece["filter"]:
            case "tool":
                tools.add(value.lower())
            case "cwd":
                cwd = _directory(value, home)
            case "since":
                since = _since(value, (now or _now)())
            case _:
                terms.extend(_term(value, is_phrase=piece["word"] is None, excluded=bool(piece["minus"])))
    return Query(tuple(terms), frozenset(tools), cwd, since)


def _now() -> datetime:
    return datetime.now(UTC)


def _term(text: str, *, is_phrase: bool, excluded: bool) -> list[Term]:
    prefix = text.endswith("*") and not is_phrase
    plain = text.rstrip("*") if prefix else text
    return [Term(plain, prefix, excluded)] if any(character.isalnum() for character in plain) else []


def _directory(text: str, home: Path) -> str:
    path = Path(str(home) + text[1:]) if text == "~" or text.startswith("~/") else Path(text)
    if not path.is_absolute():
        raise QueryError(f"cwd:{text} is no absolute directory")
    return str(path)


def _since(text: str, now: datetime) -> datetime:
    moment = parse_since(text, now)
    if moment is None:
        raise QueryError(f"since:{text} is no date (2026-11-01) and no span (12h, 7d, 2w)")
    return moment
