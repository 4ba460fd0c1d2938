"""How many messages a conversation has: the one rule, for lists, the terminal and the protocol.

A message is a turn of the user or the agent that says something: text or an image. Turns that the tool itself wrote,
thoughts alone and tool calls alone do not count. Turns with the same id are one message, interrupted by tool results.
"""

from collections.abc import Iterable

from acp_history_bridge.turns import Image, Text, Turn

__all__ = ["count_messages", "is_message"]


def is_message(turn: Turn) -> bool:
    """Whether somebody says something in this turn."""
    return not turn.synthetic and any(
        isinstance(part, Image) or (isinstance(part, Text) and part.text.strip() != "") for part in turn.parts
    )


def count_messages(turns: Iterable[Turn]) -> int:
    """Count the messages of a whole history; holds one id at a time, however long it is."""
    count = 0
    current: str | None = None
    counted = False
    for turn in turns:
        if turn.id != current:
            current, counted = turn.id, False
        if not counted and is_message(turn):
            count, counted = count + 1, True
    return count
