"""What counts as a message."""

import pytest

from acp_history_bridge.counting import count_messages
from acp_history_bridge.turns import Compaction, Image, Notice, Part, Text, Thought, ToolCall, Turn

_CALL = ToolCall("1", "Bash", "ls", "execute", "completed")


@pytest.mark.parametrize(
    ("parts", "count"),
    [
        ((Text("hello"),), 1),
        ((Image("image/png", "aGk="),), 1),
        ((Thought("hm"), _CALL, Text("done")), 1),
        ((Text(" \n"),), 0),
        ((Thought("hm"), _CALL), 0),
        ((Compaction("c", "summary"), Notice("cancelled")), 0),
        ((), 0),
    ],
)
def test_only_turns_that_say_something_count(parts: tuple[Part, ...], count: int) -> None:
    """Text and images count; thoughts, tool calls, summaries and blanks do not."""
    assert count_messages([Turn("a", "agent", parts)]) == count


def test_what_the_tool_wrote_itself_does_not_count() -> None:
    """A synthetic turn is shown, but nobody said it."""
    assert count_messages([Turn("a", "user", (Text("[interrupted]"),), synthetic=True)]) == 0


def test_an_interrupted_message_counts_once() -> None:
    """Neighbouring turns with one id are one message; the same id later on is another one."""
    ids = ["a", "a", "b", "a"]

    assert count_messages(Turn(id_, "agent", (Text("x"),)) for id_ in ids) == 3


def test_a_message_counts_when_only_its_later_piece_says_something() -> None:
    """A thought comes first, the answer continues the same message."""
    assert count_messages([Turn("a", "agent", (Thought("hm"),)), Turn("a", "agent", (Text("x"),))]) == 1
