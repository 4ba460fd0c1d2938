"""From what a person types for a session to the session: its id, the beginning of one, `last`, `last:TOOL`.

Policy: never guess. A beginning that several sessions share is an error that names some of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from acp_history_bridge.adapter import Adapter
from acp_history_bridge.cli.query import sessions_of, tool_named
from acp_history_bridge.errors import BridgeError
from acp_history_bridge.index.library import Library
from acp_history_bridge.sessions import Session, SessionQuery
from acp_history_bridge.text import one_line

__all__ = ["find_session"]

_LAST = "last"
_CANDIDATES = 5


def find_session(library: Library, adapters: Sequence[Adapter], text: str) -> Session:
    """Find the session that is meant, in an index that is up to date.

    Raises:
        BridgeError: There is none, or there are several.
        ConfigurationError: `last:` is followed by no tool's name.
    """
    name, colon, tool = text.partition(":")
    if name == _LAST:
        tools = frozenset({tool_named(tool, adapters, text)}) if colon else None
        newest = next(sessions_of(library, SessionQuery(tools=tools), 1), None)
        if newest is None:
            raise BridgeError("there are no sessions")
        return newest
    if (session := library.find(text)) is not None:
        return session
    return _only(text, _beginning_with(text, sessions_of(library, SessionQuery(hidden="include"), 0)))


def _beginning_with(text: str, sessions: Iterable[Session]) -> Iterator[Session]:
    """Sessions whose id, or whose tool's own id, begins so; nothing begins with nothing."""
    for session in sessions:
        if text and (session.id.startswith(text) or session.id.partition(":")[2].startswith(text)):
            yield session


def _only(text: str, sessions: Iterator[Session]) -> Session:
    found = list(islice(sessions, _CANDIDATES + 1))
    if not found:
        raise BridgeError(f"there is no session {one_line(text) or 'without an id'}; `bridge index` lists them")
    if len(found) > 1:
        names = ", ".join(session.id for session in found[:_CANDIDATES])
        more = ", …" if len(found) > _CANDIDATES else ""
        raise BridgeError(f"several sessions begin with {one_line(text)}: {names}{more}")
    return found[0]
