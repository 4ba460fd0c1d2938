"""Tool calls of one conversation: each with its outcome and the agents it started, wherever those lie.

Policy: call and outcome belong together by the call's id alone. An id that was used twice names two calls, each with
the first outcome after it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from acp_history_bridge.turns import Part, SubagentRun, Turn
from acp_history_bridge.values import JsonMap, first_string, mapping, string

from .lines import LineReader
from .outcomes import LongOutput, Outcome, tool_call
from .plans import PLAN_TOOLS, TaskList, todo_plan
from .prompts import Notification, read_notification
from .records import results_in
from .skeleton import Node, Skeleton, notification_text
from .subagents import AgentFile, AgentFiles
from .tools import AGENT_TOOLS, Call

__all__ = ["CALL_BLOCKS", "CallReader", "Surroundings"]

CALL_BLOCKS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What lies around a conversation.

    Attributes:
        home: The session's directory, which titles are shortened by.
        agents: The sub-agents' files of the session.
        long_output: Reads an output that was too long for its line.
        side_turns: Reads an inline sub-agent's conversation, by its root.
        agent_turns: Reads a sub-agent's file.
        ancestors: Ids of the agents this conversation runs in; an agent cannot contain itself.
    """

    home: str | None
    agents: AgentFiles
    long_output: LongOutput
    side_turns: Callable[[int], Iterator[Turn]]
    agent_turns: Callable[[AgentFile], Iterator[Turn]]
    ancestors: frozenset[str] = frozenset()


class CallReader:
    """Makes the parts of tool calls; keeps the task list that several calls build together."""

    def __init__(self, skeleton: Skeleton, around: Surroundings) -> None:
        self._skeleton = skeleton
        self._around = around
        self._tasks = TaskList()
        self._sides: dict[str, int] = {}  # which inline sub-agent each call has got
        self._next_side: dict[int, int] = {}
        self._outcomes: tuple[int, dict[str, Outcome]] = (-1, {})

    def parts(self, lines: LineReader, block: JsonMap, record: JsonMap, index: int) -> Iterator[Part]:
        """What to show of one call: a tool call, or a plan for the tools that keep to-do lists."""
        name = first_string(block, "name") or "tool"
        made = self._skeleton.calls.get(string(block.get("id")), [index])
        outcome = self._outcome(lines, string(block.get("id")), index, made)
        arguments = mapping(block.get("input"))
        if name == "TodoWrite":
            plan = todo_plan(arguments)
            yield from () if plan is None else (plan,)
        elif name in PLAN_TOOLS:
            yield from self._task_plan(name, arguments, outcome)
        else:
            call = Call(
                id=_unique(string(block.get("id")), index, made),
                name=name,
                input=arguments,
                server=first_string(block, "server_name") if block.get("type") == "mcp_tool_use" else "",
                cwd=string(record.get("cwd")) or self._around.home,
                home=self._around.home,
            )
            notes = self._notifications(lines, string(block.get("id")))
            runs = self._runs(call, string(block.get("id")), outcome, index) if name in AGENT_TOOLS else ()
            yield tool_call(call, outcome, notes, runs, self._around.long_output)

    def _task_plan(self, name: str, arguments: JsonMap, outcome: Outcome | None) -> Iterator[Part]:
        if outcome is not None and not outcome.failed:
            plan = self._tasks.apply(name, arguments, outcome.content, outcome.detail)
            if plan is not None:
                yield plan

    def _outcome(self, lines: LineReader, call_id: str, index: int, made: list[int]) -> Outcome | None:
        found = self._skeleton.results.get(call_id, [])
        following = bisect_right(made, index)
        at = bisect_left(found, index)
        if at == len(found) or (following < len(made) and found[at] >= made[following]):
            if len(made) > 1 or not found:
                return None
            at = 0  # written before its call, but there is no other
        node = self._skeleton.nodes[found[at]]
        return self._outcomes_in(lines, node).get(call_id)

    def _outcomes_in(self, lines: LineReader, node: Node) -> dict[str, Outcome]:
        if node.offset != self._outcomes[0]:  # one line can hold the results of many calls
            record = lines.record(node.offset, node.size)
            results = results_in(record)
            detail = mapping(record.get("toolUseResult") if len(results) == 1 else None)
            outcomes = {
                string(block["tool_use_id"]): Outcome(block.get("content"), block.get("is_error") is True, detail)
                for block in results
            }
            self._outcomes = (node.offset, outcomes)
        return self._outcomes[1]

    def _notifications(self, lines: LineReader, call_id: str) -> list[Notification]:
        places = self._skeleton.notifications.get(call_id, [])
        notes = [read_notification(notification_text(lines.record(*place))) for place in places]
        return list(dict.fromkeys(notes))  # a report is queued first and then given, with the same words

    def _runs(self, call: Call, call_id: str, outcome: Outcome | None, index: int) -> tuple[SubagentRun, ...]:
        name = first_string(call.input, "subagent_type") or "agent"
        root = self._side_of(call, index)
        if root is not None:
            return (SubagentRun(f"{call.id}-agent", name, lambda: self._around.side_turns(root)),)
        agent_id = first_string(outcome.detail, "agentId") if outcome else ""
        found = self._around.agents.started_by(replace(call, id=call_id), agent_id)
        return tuple(self._run(agent, name) for agent in found if agent.id not in self._around.ancestors)

    def _run(self, agent: AgentFile, name: str) -> SubagentRun:
        return SubagentRun(agent.id, agent.name or name, lambda: self._around.agent_turns(agent))

    def _side_of(self, call: Call, index: int) -> int | None:
        prompt = hash(first_string(call.input, "prompt").strip())
        roots = self._skeleton.side_prompts.get(prompt, [])
        if call.id in self._sides or not roots:
            return self._sides.get(call.id)
        at = max(bisect_right(roots, index), self._next_side.get(prompt, 0))
        if at == len(roots):
            return None
        self._next_side[prompt] = at + 1
        self._sides[call.id] = roots[at]
        return roots[at]


def _unique(call_id: str, index: int, made: list[int]) -> str:
    position = bisect_left(made, index)
    wanted = call_id or f"call-{index}"
    return wanted if position == 0 else f"{wanted}~{position + 1}"
