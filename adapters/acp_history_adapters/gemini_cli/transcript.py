"""The opened transcript of one session: its turns, and later those that were added.

The first reading shows the history. Every later one shows what is new in it: the tool writes messages again when their
calls end, and rewrites the whole list, sometimes under new ids, so each part is compared with what was shown already.
What was shown is remembered as numbers, not as text.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from acp_history_adapters.gemini_cli.document import Document, is_document
from acp_history_adapters.gemini_cli.fold import Changes, Fold
from acp_history_adapters.gemini_cli.messages import message_type, number_of, said
from acp_history_adapters.gemini_cli.records import Problems, Ref, Source
from acp_history_adapters.gemini_cli.replay import Record, Replay
from acp_history_adapters.gemini_cli.sidefiles import SideFiles
from acp_history_adapters.gemini_cli.tools import Surroundings
from acp_history_bridge.adapter import Problem
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import open_regular
from acp_history_bridge.turns import Part, SubagentRun, Text, Thought, ToolCall, Turn, Usage
from acp_history_bridge.values import JsonMap, maps, string

__all__ = ["ChatTranscript"]

_DEEPEST = 8  # sub-agents of sub-agents


class _History(Protocol):
    """The message list of either form."""

    dropped: dict[str, Ref]

    @property
    def end(self) -> int: ...
    def advance(self) -> Changes: ...
    def view(self) -> Iterator[tuple[str, Ref]]: ...
    def message(self, key: str, ref: Ref) -> JsonMap | None: ...


class ChatTranscript:
    """A `session-*` file, or a sub-agent's."""

    def __init__(self, path: Path, native_id: str, cwd: str | None, ancestors: tuple[Path, ...] = ()) -> None:
        self._path = path
        self._cwd = cwd
        self._ancestors = (*ancestors, path)
        self._side = SideFiles(path, native_id, nested=bool(ancestors))
        self._problems = Problems()
        self._left_out = 0
        self._counted = 0  # how many dropped messages `_left_out` takes into account
        self._started = False
        self._words: Counter[int] = Counter()  # what was said, for messages that come again under new ids
        self._parts: set[int] = set()  # parts that were shown, each with the id of its message
        self._keys: set[str] = set()
        surroundings = Surroundings(cwd, self._side.spilled, self._subagent)
        self._replay = Replay(surroundings, self._dropped_call, self._unknown)
        self._stack = ExitStack()
        self._open()

    def _open(self) -> None:
        descriptor = self._stack.enter_context(open_regular(self._path))
        self._source = Source(self._path, descriptor)
        form = Document if is_document(descriptor) else Fold
        self._history: _History = form(self._source, self._problems)
        self._dropped_calls: dict[str, tuple[str, Ref]] = {}
        self._dropped_seen: set[str] = set()

    def turns(self) -> Iterator[Turn]:
        """Yield the history; later what was added."""
        if not self._started:
            self._started = True
            yield from self._whole()
        else:
            yield from self._added()
        if len(self._history.dropped) != self._counted:
            self._counted = len(self._history.dropped)
            self._left_out = self._count_left_out()

    def _whole(self) -> Iterator[Turn]:
        self._history.advance()
        silent = True
        for key, turn in self._replay.turns(self._records(self._history.view())):
            silent = silent and turn.synthetic
            yield self._remember(key, turn)
        if silent:  # nothing is left of the conversation but what the tool dropped: a failed prompt, mostly
            for key, turn in self._replay.turns(self._records(list(self._history.dropped.items()))):
                yield self._remember(key, turn)

    def _added(self) -> Iterator[Turn]:
        replaced = self._is_replaced()
        if replaced:
            self._stack.close()
            self._open()
        changes = self._history.advance()
        again = self._said_before(changes) if changes.rebuilt or replaced else Counter[int]()
        shown = dict(self._history.view()) if changes.keys else {}
        records = self._records((key, ref) for key, ref in changes.keys.items() if key in shown)
        for key, turn in self._replay.turns(records):
            if fresh := self._fresh(key, turn, again):
                yield self._remember(key, fresh)

    def _is_replaced(self) -> bool:
        """Whether the name now belongs to another file, or the file lost lines that were read."""
        try:
            now, ours = self._path.lstat(), os.fstat(self._source.descriptor)
        except OSError:
            return False  # gone: what is open can still be read
        return now.st_ino != ours.st_ino or ours.st_size < self._history.end

    def _said_before(self, changes: Changes) -> Counter[int]:
        """What was said in messages whose ids are gone from a rebuilt list, and may come again under new ids."""
        gone = Counter(self._words)
        for key in changes.keys.keys() & self._keys:
            message = self._history.message(key, changes.keys[key])
            if message and (words := said(message)) is not None:
                gone[words] -= 1
        return gone

    def _records(self, places: Iterable[tuple[str, Ref]]) -> Iterator[Record]:
        for key, ref in places:
            if (message := self._history.message(key, ref)) is not None:
                yield Record(key, message)

    def _fresh(self, key: str, turn: Turn, again: Counter[int]) -> Turn | None:
        """The turn without the parts that were shown already; None when nothing is left."""
        if key in self._keys:
            parts = [part for part in turn.parts if isinstance(part, ToolCall) or _number(key, part) not in self._parts]
        elif (words := _words_of(turn)) is not None and again[words] > 0:
            again[words] -= 1
            parts = [part for part in turn.parts if isinstance(part, ToolCall)]
            self._remember(key, replace(turn, parts=tuple(part for part in turn.parts if part not in parts)))
        else:
            return turn
        return replace(turn, parts=tuple(parts)) if parts else None

    def _remember(self, key: str, turn: Turn) -> Turn:
        self._keys.add(key)
        self._parts.update(_number(key, part) for part in turn.parts if not isinstance(part, ToolCall))
        if (words := _words_of(turn)) is not None:
            self._words[words] += 1
        return turn

    def _dropped_call(self, identity: str) -> JsonMap | None:
        """The full record of a call of which the rewritten list kept only what the model needs."""
        for key, ref in self._history.dropped.items():
            if key not in self._dropped_seen:
                self._dropped_seen.add(key)
                for call in maps((self._history.message(key, ref) or {}).get("toolCalls")):
                    self._dropped_calls[string(call.get("id"))] = (key, ref)
        if identity not in self._dropped_calls:
            return None
        message = self._history.message(*self._dropped_calls[identity]) or {}
        return next((call for call in maps(message.get("toolCalls")) if call.get("id") == identity), None)

    def _subagent(self, agent_id: str, name: str) -> SubagentRun | None:
        path = self._side.subagent(agent_id) if agent_id else None
        if path is None or path in self._ancestors or len(self._ancestors) > _DEEPEST:
            return None
        return SubagentRun(agent_id, name or "sub-agent", lambda: self._subagent_turns(path, agent_id))

    def _subagent_turns(self, path: Path, agent_id: str) -> Iterator[Turn]:
        try:
            transcript = ChatTranscript(path, agent_id, self._cwd, self._ancestors)
        except TranscriptError as error:
            self._problems.add(Problem(path, "unreadable", str(error)))
            return
        try:
            yield from transcript.turns()
        finally:
            transcript.close()

    def _unknown(self, name: str) -> None:
        self._problems.add(Problem(self._path, "unknown-record", name))

    def _count_left_out(self) -> int:
        messages = ((key, self._history.message(key, ref)) for key, ref in self._history.dropped.items())
        return sum(
            key not in self._keys and message is not None and self._is_lost(message) for key, message in messages
        )

    def _is_lost(self, message: JsonMap) -> bool:
        """Whether something in a dropped message is shown nowhere else."""
        if (words := said(message)) is not None:
            return words not in self._words
        calls = [string(call.get("id")) for call in maps(message.get("toolCalls"))]
        return message_type(message) == "gemini" and any(call not in self._replay.calls for call in calls)

    @property
    def left_out(self) -> int:
        """Messages that the tool dropped: rewound, cancelled, failed."""
        return self._left_out

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read so far."""
        return self._problems.all()

    @property
    def usage(self) -> Usage | None:
        """Tokens of the last answer that recorded them."""
        return self._replay.usage

    def close(self) -> None:
        """Close the file."""
        self._stack.close()


def _words_of(turn: Turn) -> int | None:
    """As `messages.said`, of a turn."""
    if turn.synthetic:
        return None
    separator, kind = ("\n\n", "user") if turn.role == "user" else ("", "gemini")
    return number_of(kind, separator.join(part.text for part in turn.parts if isinstance(part, Text)))


def _number(key: str, part: Part) -> int:
    if isinstance(part, Text | Thought):
        return hash((key, type(part), " ".join(part.text.split())))
    return hash((key, part))
