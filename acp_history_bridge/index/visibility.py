"""What lists show: the user's decisions and settings, laid over what the index knows.

The index holds what transcripts say and nothing else, so it can be rebuilt; hidden sessions, archive marks and titles
come from the decisions at the moment somebody asks. Everything that leaves the index goes through here, so lists,
counts, searches and changes agree. A session that lists leave out can still be found by its id.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from acp_history_bridge.decisions import Decisions
from acp_history_bridge.index.resolve import folded
from acp_history_bridge.sessions import Change, Session, SessionQuery
from acp_history_bridge.text import replace_surrogates

__all__ = ["Clause", "Visibility"]

# A condition over `session AS s`, and its values.
Clause = tuple[str, tuple[object, ...]]

_AMONG = "IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class _Verdicts:
    """All decisions at one moment, by session id."""

    hidden: Mapping[str, str]
    archived: Mapping[str, str]
    titles: Mapping[str, str]

    def of(self, session_id: str) -> tuple[str | None, str | None, str | None]:
        """What was decided about one session."""
        return self.hidden.get(session_id), self.archived.get(session_id), self.titles.get(session_id)

    def ids(self) -> set[str]:
        """All sessions that something was decided about."""
        return {*self.hidden, *self.archived, *self.titles}


class Visibility:
    """The decisions of the user and the setting `headless`, as the index applies them."""

    def __init__(self, decisions: Decisions, *, headless: bool) -> None:
        """Bind the decisions; `headless` says whether sessions that a program made are listed."""
        self._decisions = decisions
        self._headless = headless
        self._told = self._now()

    def applied(self, sessions: Iterable[Session]) -> tuple[Session, ...]:
        """Sessions as everybody outside the index sees them."""
        now = self._now()
        return tuple(self._seen(session, now) for session in sessions)

    def told(self, changes: Iterable[Change]) -> tuple[Change, ...]:
        """Changes of the index as everybody outside sees them."""
        now = self._now()
        return tuple(
            Change(
                change.kind,
                self._seen(change.session, now),
                None if change.before is None else self._seen(change.before, now),
            )
            for change in changes
        )

    def news(self, find: Callable[[str], Session | None]) -> tuple[Change, ...]:
        """What was decided since this was asked last, here or by another process, as changes of the lists.

        `find` gives a session as the index knows it.
        """
        now, told = self._now(), self._told
        if now == told:
            return ()
        self._told = now
        decided = [session_id for session_id in now.ids() | told.ids() if now.of(session_id) != told.of(session_id)]
        found = [session for session_id in decided if (session := find(session_id)) and session.id == session_id]
        return tuple(_change(self._seen(session, told), self._seen(session, now)) for session in found)

    def clauses(self, query: SessionQuery, words: Iterable[str]) -> Iterator[Clause]:
        """The conditions that depend on decisions: what is listed at all, and words of titles in any case."""
        now = self._now()
        if query.hidden == "exclude" and now.hidden:
            yield f"s.id NOT {_AMONG}", (_ids(now.hidden),)
        elif query.hidden == "only":
            yield f"s.id {_AMONG}", (_ids(now.hidden),)
        if query.archived == "exclude":
            yield f"s.archived = 0 AND s.id NOT {_AMONG}", (_ids(now.archived),)
        elif query.archived == "only":
            yield f"(s.archived = 1 OR s.id {_AMONG})", (_ids(now.archived),)
        if not self._headless:
            yield "s.headless = 0", ()
        if wanted := sorted(words):
            yield _title_clause(wanted, now.titles)

    def _seen(self, session: Session, now: _Verdicts) -> Session:
        hidden, archived, title = now.of(session.id)
        listed = hidden is None and (self._headless or not session.record.headless)
        if listed and archived is None and title is None:
            return session
        return replace(
            session,
            title=session.title if title is None else title,
            hidden=hidden is not None,
            put_away=archived is not None,
            listed=listed,
        )

    def _now(self) -> _Verdicts:
        decisions = self._decisions
        return _Verdicts(decisions.hidden, decisions.archived, decisions.titles)


def _change(before: Session, now: Session) -> Change:
    if before.listed and not now.listed:
        return Change("removed", before)
    if now.listed and not before.listed:
        return Change("added", now)
    return Change("changed", now, before)


def _title_clause(words: list[str], titles: Mapping[str, str]) -> Clause:
    missing = "SELECT 1 FROM json_each(?) AS word WHERE instr(s.folded, word.value) = 0"
    if not titles:
        return f"NOT EXISTS ({missing})", (json.dumps(words),)
    matching = [session_id for session_id, title in titles.items() if all(word in folded(title) for word in words)]
    clause = f"(s.id {_AMONG} OR s.id NOT {_AMONG} AND NOT EXISTS ({missing}))"
    return clause, (_ids(matching), _ids(titles), json.dumps(words))


def _ids(ids: Iterable[str]) -> str:
    return json.dumps([replace_surrogates(session_id) for session_id in ids])
