"""`session/get`: a conversation as one document, page by page; also as `_acp-history-bridge/session/get`.

Policy:

- Nothing the user or the agent wrote is left out or shortened. A turn that is too long for one entry continues in the
  next one, with the same id; offsets and limits count entries.
- An answer ends where it would become longer than a frame, and `nextOffset` says where to go on.
- A client that goes on where it stopped is not made to wait for what it has read already: the opened transcript is
  kept for a while.
"""

import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import anyio
from anyio import to_thread

from acp_history_bridge.adapter import Fingerprint, Transcript
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.protocol import browse, wire
from acp_history_bridge.protocol.blocks import part_blocks
from acp_history_bridge.protocol.bounds import bounded_id, pieces
from acp_history_bridge.protocol.digest import plan_text
from acp_history_bridge.protocol.jsonrpc import Handler, Reply
from acp_history_bridge.protocol.link import Link, not_found
from acp_history_bridge.protocol.replay import compaction_text
from acp_history_bridge.protocol.tools import ToolOptions, tool_updates
from acp_history_bridge.protocol.wire import Json
from acp_history_bridge.sessions import Session
from acp_history_bridge.timestamps import format_time
from acp_history_bridge.turns import Compaction, Notice, Part, Plan, Thought, ToolCall, Turn
from acp_history_bridge.values import JsonMap

__all__ = ["SESSION_GET", "Getting"]

SESSION_GET = "_acp-history-bridge/session/get"

_DEFAULT_LIMIT = 100
_ANSWER_BYTES = 950 * 1024
_ENTRY_BYTES = 256 * 1024
_BATCH_SECONDS = 0.05
_KEPT = 4


@dataclass(slots=True)
class _Reading:
    """A transcript that is read entry by entry.

    Attributes:
        position: How many entries were taken.
        ahead: The next entry, when it was looked at already.
    """

    fingerprint: Fingerprint
    transcript: Transcript
    entries: Iterator[Json]
    position: int = 0
    ahead: Json | None = None

    def next(self) -> Json | None:
        """Look at the next entry; None at the end."""
        if self.ahead is None:
            self.ahead = next(self.entries, None)
        return self.ahead

    def take(self) -> None:
        """Go behind the entry that was looked at."""
        self.ahead = None
        self.position += 1


@dataclass(slots=True)
class _Answer:
    """What was read so far for one request."""

    offset: int
    limit: int
    turns: list[Json] = field(default_factory=list[Json])
    size: int = 0

    def read_some(self, reading: _Reading) -> bool:
        """Read on for a moment; False when the answer is complete."""
        deadline = time.monotonic() + _BATCH_SECONDS
        while (entry := reading.next()) is not None:
            if reading.position >= self.offset:
                self.size += len(wire.encode(entry))
                if len(self.turns) == self.limit or (self.turns and self.size > _ANSWER_BYTES):
                    return False
                self.turns.append(entry)
            reading.take()
            if time.monotonic() > deadline:
                return True
        return False


class Getting:
    """The method that reads a conversation."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._kept: OrderedDict[str, _Reading] = OrderedDict()

    @property
    def requests(self) -> Mapping[str, Handler]:
        """What can be asked."""
        return {"session/get": self._get, SESSION_GET: self._get}

    async def close(self) -> None:
        """Close what is kept."""
        while self._kept:
            await _close(self._kept.popitem()[1])

    async def _get(self, params: JsonMap) -> Reply:
        from acp_history_bridge.protocol.params import GetParams, validated

        asked = validated(GetParams, params)
        if browse.is_browse_id(asked.session_id):
            return Reply({"sessionId": asked.session_id, "turns": []})
        session = await self._link.find(asked.session_id)
        answer = _Answer(asked.offset or 0, asked.limit or _DEFAULT_LIMIT)
        reading = await self._reading(session, answer.offset)
        try:
            while await to_thread.run_sync(answer.read_some, reading):
                pass
            more = reading.ahead is not None
        except BaseException:
            await _close(reading)
            raise
        await self._keep(session.id, reading, more=more)
        return Reply(_result(session, answer, reading.position if more else None))

    async def _reading(self, session: Session, offset: int) -> _Reading:
        kept = self._kept.pop(session.id, None)
        if kept is not None:
            if kept.fingerprint == session.unit.fingerprint and kept.position <= offset:
                return kept
            await _close(kept)
        try:
            transcript = await (await self._link.source()).open(session)
        except TranscriptError as error:
            raise not_found(session.id, str(error)) from error
        options = self._link.tool_options(session, terminal=False)
        entries = _entries(transcript.turns(), options, live=await self._link.is_live(session))
        return _Reading(session.unit.fingerprint, transcript, entries)

    async def _keep(self, session_id: str, reading: _Reading, *, more: bool) -> None:
        stale = [reading]
        if more:
            other = self._kept.pop(session_id, None)
            stale = [] if other is None else [other]
            self._kept[session_id] = reading
        if len(self._kept) > _KEPT:
            stale.append(self._kept.popitem(last=False)[1])
        for old in stale:
            await _close(old)


def _result(session: Session, answer: _Answer, next_offset: int | None) -> Json:
    created_at = session.record.created_at
    return {
        **wire.present(
            {
                "sessionId": session.id,
                "title": session.title,
                "createdAt": None if created_at is None else format_time(created_at),
                "turns": answer.turns,
                "nextOffset": next_offset,
            }
        ),
        **wire.meta({"hidden": session.hidden or None}),
    }


def _entries(turns: Iterator[Turn], options: ToolOptions, *, live: bool) -> Iterator[Json]:
    """The conversation as entries, each far below a frame."""
    for turn in turns:
        content: list[Json] = []
        calls: list[Json] = []
        size = 0
        for part in turn.parts:
            for item in _items(part, options, live=live):
                length = len(wire.encode(item))
                if size and size + length > _ENTRY_BYTES:
                    yield _entry(turn, content, calls)
                    content, calls, size = [], [], 0
                (calls if isinstance(part, ToolCall) else content).append(item)
                size += length
        if size:
            yield _entry(turn, content, calls)


def _entry(turn: Turn, content: list[Json], calls: list[Json]) -> Json:
    return {
        "id": bounded_id(turn.id),
        "role": "user" if turn.role == "user" else "assistant",
        **wire.present({"timestamp": None if turn.timestamp is None else format_time(turn.timestamp)}),
        "content": content,
        "toolCalls": calls,
        **wire.meta({"model": turn.model, "synthetic": turn.synthetic or None}),
    }


def _items(part: Part, options: ToolOptions, *, live: bool) -> Iterator[Json]:
    if isinstance(part, ToolCall):
        for update in tool_updates(part, options, live=live, known=False, facts={}):
            yield {name: value for name, value in update.items() if name != "sessionUpdate"}
    elif isinstance(part, Plan):
        yield from _marked("plan", plan_text(part))
    elif isinstance(part, Compaction):
        yield from _marked("compaction", compaction_text(part))
    elif isinstance(part, Thought):
        yield from (block | wire.meta({"kind": "thought"}) for block in part_blocks(part, options.image_limit))
    elif not isinstance(part, Notice):
        yield from part_blocks(part, options.image_limit)


def _marked(kind: str, text: str) -> Iterator[Json]:
    """Text that is no message, and says so."""
    return (wire.text(piece) | wire.meta({"kind": kind}) for piece in pieces(text))


async def _close(reading: _Reading) -> None:
    with anyio.CancelScope(shield=True):
        await to_thread.run_sync(reading.transcript.close)
