"""What the three JSON trees and the database have in common: sessions of messages of parts.

Everything behind this file sees one shape, that of opencode 1.x: a session's info, its messages in order, and the
parts of each message. How they lie on disk is the business of `database.py` and `trees.py`.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from acp_history_bridge.adapter import Problem
from acp_history_bridge.values import JsonMap

__all__ = ["TOO_LARGE", "Head", "Message", "MessagePart", "Reader", "Storage", "too_large"]

TOO_LARGE = "[record too large to show: more than 16 MB]"


@dataclass(frozen=True, slots=True)
class Head:
    """A message that is known to exist.

    Attributes:
        id: The message's id.
        position: Where it stands in its session, in the storage's own terms; what comes later compares greater.
    """

    id: str
    position: object


@dataclass(frozen=True, slots=True)
class MessagePart:
    """One part; `id` is unique in the session."""

    id: str
    data: JsonMap


@dataclass(frozen=True, slots=True)
class Message:
    """One message with its parts in order."""

    id: str
    data: JsonMap
    parts: tuple[MessagePart, ...]


class Reader(Protocol):
    """A storage opened for reading. What cannot be read is left out and becomes a problem."""

    problems: list[Problem]

    def info(self, session_id: str) -> JsonMap:
        """What is stored of a session itself; empty when there is no such session."""
        ...

    def heads(self, session_id: str, after: object = None) -> Sequence[Head]:
        """The messages of a session in order, all or those after a position."""
        ...

    def message(self, session_id: str, head: Head) -> Message | None:
        """Read one message; None when it has gone or is damaged."""
        ...


class Storage(Protocol):
    """A place that holds sessions.

    Attributes:
        outputs: Directory where opencode puts the full text of tool outputs that it shortened.
    """

    outputs: Path

    def reading(self) -> AbstractContextManager[Reader]:
        """Open the storage.

        Raises:
            TranscriptError: It is gone or cannot be opened.
        """
        ...


def too_large(part_id: str) -> MessagePart:
    """What stands in place of a part that is too large to be held in memory."""
    return MessagePart(part_id, {"type": "text", "text": TOO_LARGE})
