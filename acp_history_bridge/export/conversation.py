"""A conversation on its way out: what is known of the session, and its turns, one at a time.

Policy: every form is a generator of pieces of text over a generator of turns, so a history of any size takes the memory
of its largest record.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from acp_history_bridge.turns import SubagentRun, Turn

__all__ = ["DEEPEST", "Conversation", "Numbered", "numbered", "subagent_turns"]

# Sub-agents start sub-agents. A damaged or hostile store can make that a circle.
DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Conversation:
    """One session, ready to be written.

    Attributes:
        title: One line; never empty.
        tool: The tool's name as people write it.
        resume: A shell line that goes on with it in its own tool.
        row: The session's documented JSON form (docs/cli.md).
        turns: Consumed once.
    """

    id: str
    title: str
    tool: str
    turns: Iterable[Turn]
    cwd: str | None = None
    updated_at: datetime | None = None
    model: str | None = None
    branch: str | None = None
    resume: str | None = None
    row: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Numbered:
    """A turn with its place; several turns can be pieces of one message.

    Attributes:
        number: Of the message, from 1.
        continues: It goes on with the message of the turn before.
    """

    number: int
    turn: Turn
    continues: bool


def numbered(turns: Iterable[Turn]) -> Iterator[Numbered]:
    """Number the messages; turns with the same id in a row are one."""
    number = 0
    current: str | None = None
    for turn in turns:
        continues = turn.id == current
        number += not continues
        current = turn.id
        yield Numbered(number, turn, continues)


def subagent_turns(run: SubagentRun, depth: int) -> Iterator[Turn]:
    """The sub-agent's own turns, unless its parents are too many to be true."""
    if depth < DEEPEST:
        yield from run.turns()
