"""Reading every transcript whole, to see what cannot be read or understood; `bridge doctor --deep`.

Looking for sessions reads as little of a file as it can. Only this finds every damaged line and unknown record.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from acp_history_bridge.adapter import Problem
from acp_history_bridge.cli.progress import counted
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.index.library import Library, ProblemCount
from acp_history_bridge.sessions import Session

__all__ = ["Checkup", "check_transcripts"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Checkup:
    """What reading everything has shown.

    Attributes:
        read: How many transcripts were read to their end.
        problems: By tool and kind, the most frequent first; a transcript that could not be read is one of them.
    """

    read: int
    problems: tuple[ProblemCount, ...]


def check_transcripts(library: Library, sessions: Sequence[Session]) -> Checkup:
    """Read them all, one after the other."""
    counts: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], Problem] = {}
    read = 0
    for session in counted("Reading transcripts", sessions, len(sessions)):
        problems, complete = _problems_of(library, session)
        read += complete
        for problem in problems:
            counts[session.tool, problem.kind] += 1
            examples.setdefault((session.tool, problem.kind), problem)
    return Checkup(
        read,
        tuple(ProblemCount(tool, kind, number, examples[tool, kind]) for (tool, kind), number in counts.most_common()),
    )


def _problems_of(library: Library, session: Session) -> tuple[Sequence[Problem], bool]:
    try:
        with closing(library.open(session)) as transcript:
            for _ in transcript.turns():
                pass
            return tuple(transcript.problems), True
    except TranscriptError as error:
        return [Problem(session.unit.path, "unreadable", str(error))], False
    except Exception as error:  # noqa: BLE001 - adapters can be third parties' code
        _log.exception("%s: reading it failed", session.id)
        return [Problem(session.unit.path, "adapter-failed", type(error).__name__)], False
