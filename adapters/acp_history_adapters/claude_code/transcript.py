"""An opened session: reads what is there, and later only what was added.

Policy: a first pass over the new bytes builds the skeleton, a second one reads the lines of the active branch. What is
added later is on the active branch by its nature, so nothing is resolved again; a result that arrives late brings its
call back.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from acp_history_bridge.adapter import Problem
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import open_regular
from acp_history_bridge.turns import Turn, Usage

from .branch import active_branch
from .calls import Surroundings
from .lines import LineReader
from .outcomes import long_output_reader
from .paths import session_directory
from .records import ProblemLog
from .replay import Replay
from .skeleton import Skeleton
from .subagents import AgentFile, AgentFiles

__all__ = ["ClaudeTranscript"]


class ClaudeTranscript:
    """The turns of one session file. Follows the contract's `Transcript`."""

    def __init__(self, path: Path, cwd: str | None) -> None:
        """Open the file.

        Raises:
            TranscriptError: It is gone or cannot be opened.
        """
        self._path = path
        self._cwd = cwd
        self._log = ProblemLog()
        self._skeleton = Skeleton(path, self._log)
        self._agents = AgentFiles(path)
        self._long_output = long_output_reader(session_directory(path) / "tool-results")
        self._replay = Replay(self._skeleton, self._surroundings(self._skeleton, path, frozenset()), self._log)
        self._started = False
        self._left_out = 0
        self._files = ExitStack()
        self._descriptor = self._files.enter_context(open_regular(path))

    def turns(self) -> Iterator[Turn]:
        """Yield the whole history, and on later calls what was added."""
        lines = LineReader(self._path, self._descriptor)
        first = self._skeleton.read(self._descriptor)
        self._agents.look_again()
        if self._started:
            touched = sorted(self._skeleton.touched)
            yield from self._replay.calls_again(lines, touched, first)
            nodes = self._skeleton.nodes
            shown = [index for index in range(first, len(nodes)) if not nodes[index].side]
        else:
            self._started = True
            shown, self._left_out = active_branch(self._skeleton.nodes)
        yield from self._replay.turns(lines, shown)

    @property
    def left_out(self) -> int:
        """How many messages lie off the active branch."""
        return self._left_out

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read so far."""
        return self._log.all()

    @property
    def usage(self) -> Usage | None:
        """Tokens after the last answer, and the cost as last recorded."""
        used, cost = self._replay.used, self._skeleton.cost
        return Usage(used, cost=cost) if used or cost else None

    def close(self) -> None:
        """Free the descriptor."""
        self._files.close()

    def _surroundings(self, skeleton: Skeleton, path: Path, ancestors: frozenset[str]) -> Surroundings:
        return Surroundings(
            home=self._cwd,
            agents=self._agents,
            long_output=self._long_output,
            side_turns=lambda root: self._side_turns(skeleton, path, root, ancestors),
            agent_turns=lambda agent: self._agent_turns(agent, ancestors | {agent.id}),
            ancestors=ancestors,
        )

    def _side_turns(self, skeleton: Skeleton, path: Path, root: int, ancestors: frozenset[str]) -> Iterator[Turn]:
        try:
            with open_regular(path) as descriptor:
                replay = Replay(skeleton, self._surroundings(skeleton, path, ancestors), self._log)
                yield from replay.turns(LineReader(path, descriptor), list(skeleton.sides[root]))
        except (TranscriptError, OSError) as error:
            self._log.add(Problem(path, "unreadable", str(error)))

    def _agent_turns(self, agent: AgentFile, ancestors: frozenset[str]) -> Iterator[Turn]:
        try:
            with open_regular(agent.path) as descriptor:
                skeleton = Skeleton(agent.path, self._log, one_conversation=True)
                skeleton.read(descriptor)
                shown, _ = active_branch(skeleton.nodes)
                replay = Replay(skeleton, self._surroundings(skeleton, agent.path, ancestors), self._log)
                yield from replay.turns(LineReader(agent.path, descriptor), shown)
        except (TranscriptError, OSError) as error:
            self._log.add(Problem(agent.path, "unreadable", str(error)))
