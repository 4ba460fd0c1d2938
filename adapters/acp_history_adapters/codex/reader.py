"""From records to turns, one record at a time: the one place that knows which copy of a message is shown.

Policy:

- Paginated records (they have an `ordinal`) show items only: their response items repeat everything. The one exception
  is the plan, which has no item.
- Legacy records show messages and thoughts from events, and tool calls from response items, joined by `call_id`. A tool
  end that has an event of its own replaces the call, because it says more.
- Bare records (no envelope; also the items of a JSON document) have response items only.
- A call is shown when its output arrives, so that memory holds no more than the calls in flight. What is still open
  when its turn ends, or at the end of the file, is shown unfinished and again when its output comes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from acp_history_adapters.codex.calls import CALL_TYPES, OUTPUT_TYPES, Call, plan_of, read_call
from acp_history_adapters.codex.items import (
    TOOL_ITEMS,
    Spawned,
    item_of_event,
    review_text,
    spawned_agents,
    tool_of_item,
)
from acp_history_adapters.codex.outputs import read_output
from acp_history_adapters.codex.prompts import (
    event_prompt,
    item_prompt,
    message_parts,
    shell_notice,
    thoughts,
    wrapped_cwd,
)
from acp_history_bridge.jsonl import decode
from acp_history_bridge.timestamps import parse_time
from acp_history_bridge.turns import Compaction, Notice, Part, Role, SubagentRun, Text, ToolCall, Turn, Usage
from acp_history_bridge.values import JsonMap, first_string, integer, mapping, maps, string

__all__ = ["Reader"]

_SILENT_RECORDS = frozenset(
    {
        "dynamic_tools_updated",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "realtime_item",
        "retained_context",
        "security_risk_score",
        "session_meta",
        "token_usage_record",
        "world_state",
    }
)
_SILENT_EVENTS = frozenset(
    {
        "agent_reasoning_raw_content",
        "agent_reasoning_section_break",
        "background_event",
        "exec_command_begin",
        "mcp_tool_call_begin",
        "patch_apply_begin",
        "session_configured",
        "thread_goal_updated",
        "thread_name_updated",
        "thread_settings_applied",
        "turn_diff",
        "web_search_begin",
    }
)
_SILENT_ITEMS = frozenset({"HookPrompt", "FunctionCallOutput", "Sleep"})
_SILENT_RESPONSES = frozenset(
    {
        "additional_tools",
        "agent_message",
        "compaction",
        "compaction_summary",
        "compaction_trigger",
        "context_compaction",
        "ghost_snapshot",
        "image_generation_call",
        "message",
        "other",
        "reasoning",
        "tool_search_call",
        "tool_search_output",
    }
)


_SAID: dict[str, tuple[Role, Callable[[JsonMap], Sequence[Part]]]] = {
    "UserMessage": ("user", lambda item: item_prompt(item.get("content"))),
    "AgentMessage": ("agent", lambda item: item_prompt(item.get("content"))),
    "Plan": ("agent", lambda item: (Text(string(item.get("text"))),)),
    "Reasoning": ("agent", lambda item: thoughts(item.get("summary_text"), item.get("raw_content"))),
}


@dataclass(frozen=True, slots=True)
class _Stamp:
    """Where a record lies. `key` is unique in the session and the same at every load."""

    key: str
    time: datetime | None
    paginated: bool


@dataclass(slots=True)
class _Open:
    call: Call
    stamp: _Stamp
    shown: bool = False


class Reader:
    """Reads the records of one session in file order.

    Args:
        runs: Makes the folded conversation of a sub-agent, or None when its rollout is not there.
        unknown: Is told the kind and type of every record that is not understood.
    """

    def __init__(
        self, runs: Callable[[Spawned], SubagentRun | None], unknown: Callable[[str, str], None], cwd: str | None = None
    ) -> None:
        self.usage: Usage | None = None
        self._runs = runs
        self._unknown = unknown
        self._cwd = cwd
        self._model: str | None = None
        self._summary = ""
        self._open: dict[str, _Open] = {}
        # Ids that were shown, with a digest of what they said: models of some servers repeat their ids.
        self._seen: dict[str, int] = {}
        self._marked_turns = False
        self._events: dict[str, Callable[[JsonMap, _Stamp], Iterator[Turn]]] = {
            "item_completed": self._item_completed,
            "user_message": self._user_message,
            "agent_message": self._agent_message,
            "agent_reasoning": self._agent_reasoning,
            "context_compacted": self._compacted,
            "entered_review_mode": self._entered_review,
            "exited_review_mode": self._exited_review,
            "task_started": self._turn_started,
            "turn_started": self._turn_started,
            "task_complete": self._turn_complete,
            "turn_complete": self._turn_complete,
            "turn_aborted": self._turn_aborted,
            "error": self._failed,
            "stream_error": self._failed,
            "thread_rolled_back": self._rolled_back,
            "token_count": self._token_count,
        }
        self._items: dict[str, Callable[[JsonMap, _Stamp], Iterator[Turn]]] = {
            "ContextCompaction": self._compacted,
            "EnteredReviewMode": self._entered_review,
            "ExitedReviewMode": self._exited_review,
        }

    def read(self, record: JsonMap, key: str) -> Iterator[Turn]:
        """Yield the turns that a record adds."""
        if "payload" not in record:
            yield from self._bare(record, _Stamp(key, None, paginated=False))
            return
        payload = mapping(record["payload"])
        stamp = _Stamp(key, parse_time(record.get("timestamp")), "ordinal" in record)
        kind = string(record.get("type"))
        match kind:
            case "event_msg":
                yield from self._event(payload, stamp)
            case "response_item":
                yield from self._response(payload, stamp)
            case "turn_context":
                self._cwd = string(payload.get("cwd")) or self._cwd
                self._model = string(payload.get("model")) or self._model
            case "compacted":
                self._summary = string(payload.get("message"))
            case _ if kind not in _SILENT_RECORDS:
                self._unknown("record", kind)
            case _:
                self._cwd = self._cwd or string(payload.get("cwd")) or None

    def unanswered(self) -> Iterator[Turn]:
        """Yield the calls whose output is not there, each once; they stay open."""
        for waiting in self._open.values():
            if not waiting.shown and not waiting.stamp.paginated:
                waiting.shown = True
                yield self._called(waiting, waiting.call.finished(None, answered=False))

    # -- events ------------------------------------------------------------------------------------------------------

    def _event(self, event: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        kind = string(event.get("type"))
        handler = self._events.get(kind)
        if handler is not None:
            yield from handler(event, stamp)
        elif (item := item_of_event(event)) is not None:
            if not stamp.paginated:
                waiting = self._open.pop(string(item.get("id")), None)
                yield from self._tool(item, stamp, waiting)
        elif kind not in _SILENT_EVENTS:
            self._unknown("event", kind)

    def _user_message(self, event: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        if not stamp.paginated:
            if not self._marked_turns:
                yield from self._turn_over()
            yield from self._say("user", event_prompt(event), stamp)

    def _agent_message(self, event: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        if not stamp.paginated:
            yield from self._say("agent", (Text(string(event.get("message"))),), stamp)

    def _agent_reasoning(self, event: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        if not stamp.paginated:
            yield from self._say("agent", thoughts([event.get("text")]), stamp)

    def _compacted(self, item: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        identifier = string(item.get("id")) or stamp.key
        summary, self._summary = self._summary, ""
        yield from self._say("agent", (Compaction(identifier, summary),), stamp, identifier, synthetic=True)

    def _entered_review(self, item: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        text = f"Entered review mode: {first_string(item, 'user_facing_hint', 'prompt') or 'current changes'}"
        yield from self._say("agent", (Text(text),), stamp, string(item.get("id")), synthetic=True)

    def _exited_review(self, item: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        text = f"Exited review mode: {review_text(mapping(item.get('review_output'))) or 'no outcome'}"
        yield from self._say("agent", (Text(text),), stamp, string(item.get("id")), synthetic=True)

    def _turn_started(self, _event: JsonMap, _stamp: _Stamp) -> Iterator[Turn]:
        self._marked_turns = True
        yield from self._turn_over()

    def _turn_complete(self, event: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        yield from self._turn_over()
        yield from self._failed(mapping(event.get("error")), stamp)

    def _turn_aborted(self, event: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        yield from self._turn_over()
        reason = string(event.get("reason")) or "interrupted"
        yield from self._say("agent", (Notice(f"The turn ended early: {reason}."),), stamp, synthetic=True)

    def _failed(self, error: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        message = string(error.get("message"))
        if message:
            yield from self._say("agent", (Notice(message),), stamp, synthetic=True)

    def _rolled_back(self, event: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        # A first reading leaves out what was rolled back; this one comes when the session is followed.
        count = integer(event.get("num_turns")) or 0
        told = "The last turn was taken back." if count == 1 else f"The last {count} turns were taken back."
        yield from self._say("agent", (Notice(told),), stamp, synthetic=True)

    def _token_count(self, event: JsonMap, _stamp: _Stamp) -> Iterator[Turn]:
        info = mapping(event.get("info"))
        used = integer(mapping(info.get("last_token_usage")).get("total_tokens"))
        if used is not None:
            self.usage = Usage(used, integer(info.get("model_context_window")))
        yield from ()

    def _turn_over(self) -> Iterator[Turn]:
        """Show what is still open when a turn ends; nothing answers it any more."""
        yield from self.unanswered()
        self._open.clear()

    # -- items -------------------------------------------------------------------------------------------------------

    def _item_completed(self, event: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        item = mapping(event.get("item"))
        kind, identifier, turn = string(item.get("type")), string(item.get("id")), string(event.get("turn_id"))
        if not stamp.paginated and kind != "Plan":
            return
        said = _SAID.get(kind)
        if said is not None:
            role, parts = said
            yield from self._say(role, parts(item), stamp, identifier, turn)
        elif kind in self._items:
            yield from self._items[kind](item, stamp)
        elif kind in TOOL_ITEMS:
            yield from self._tool(item, stamp)
        elif kind not in _SILENT_ITEMS:
            self._unknown("item", kind)

    def _tool(self, item: JsonMap, stamp: _Stamp, waiting: _Open | None = None) -> Iterator[Turn]:
        call = replace(tool_of_item(item, self._cwd), subagents=self._subagents(spawned_agents(item)))
        if waiting is not None:
            yield self._called(waiting, replace(call, id=waiting.call.id))
        else:
            yield self._turn(stamp, "agent", (replace(call, id=self._unique(call.id, stamp)),), stamp.key)

    def _subagents(self, agents: Sequence[Spawned]) -> tuple[SubagentRun, ...]:
        return tuple(run for agent in agents if (run := self._runs(agent)) is not None)

    # -- response items ----------------------------------------------------------------------------------------------

    def _response(self, item: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        kind = string(item.get("type"))
        if kind in CALL_TYPES:
            yield from self._call(item, stamp)
        elif kind in OUTPUT_TYPES:
            yield from self._output(item)
        elif kind == "message":
            if not stamp.paginated and (told := shell_notice(item)):
                yield from self._say("user", (Notice(told),), stamp, synthetic=True)
        elif kind not in _SILENT_RESPONSES:
            self._unknown("response", kind)

    def _call(self, item: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        call = read_call(item, self._cwd)
        if stamp.paginated and call.name != "update_plan":
            return
        waiting = _Open(replace(call, id=self._unique(call.id, stamp)), stamp)
        if string(item.get("type")) == "web_search_call":  # the model's server runs these; no output follows
            yield self._called(waiting, waiting.call.finished(None))
        elif call.id:
            self._open[call.id] = waiting
        else:
            yield self._called(waiting, waiting.call.finished(None, answered=False))

    def _output(self, item: JsonMap) -> Iterator[Turn]:
        waiting = self._open.pop(string(item.get("call_id")), None)
        if waiting is None:
            return
        output = item.get("output")
        call = waiting.call.finished(output)
        agent = _agent_of(output) if call.name == "spawn_agent" else None
        plan = plan_of(waiting.call.arguments) if call.name == "update_plan" and call.status == "completed" else None
        if agent is not None:
            call = replace(call, subagents=self._subagents([agent]))
        if not waiting.stamp.paginated:
            yield self._called(waiting, call, *([plan] if plan else []))
        elif plan:
            yield self._turn(waiting.stamp, "agent", (plan,), waiting.stamp.key)

    def _called(self, waiting: _Open, call: ToolCall, *more: Part) -> Turn:
        return self._turn(waiting.stamp, "agent", (call, *more), waiting.stamp.key)

    # -- records without an envelope -----------------------------------------------------------------------------------

    def _bare(self, record: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        kind = string(record.get("type"))
        if kind == "message":
            yield from self._message(record, stamp)
        elif kind == "reasoning":
            said = thoughts(record.get("summary"), record.get("content"))
            yield from self._say("agent", said, stamp, string(record.get("id")))
        elif kind:
            yield from self._response(record, stamp)

    def _message(self, message: JsonMap, stamp: _Stamp) -> Iterator[Turn]:
        role = message.get("role")
        if role == "user":
            for part in maps(message.get("content")):
                self._cwd = wrapped_cwd(string(part.get("text"))) or self._cwd
            prompt = message_parts(message)
            if prompt:
                yield from self._turn_over()
            yield from self._say("user", prompt, stamp, string(message.get("id")))
        elif role == "assistant":
            yield from self._say("agent", message_parts(message), stamp, string(message.get("id")))

    # -- turns ---------------------------------------------------------------------------------------------------------

    def _say(  # noqa: PLR0913 - everything a turn is made of
        self,
        role: Role,
        parts: Sequence[Part],
        stamp: _Stamp,
        identifier: str = "",
        turn: str = "",
        *,
        synthetic: bool = False,
    ) -> Iterator[Turn]:
        shown = tuple(part for part in parts if not (isinstance(part, Text) and not part.text.strip()))
        if not shown:
            return
        digest = hash((turn, shown))
        if identifier and self._seen.get(identifier) == digest:
            return  # the very same message again, as a crash between two writes leaves it
        unique = self._unique(identifier, stamp, digest)
        yield self._turn(stamp, role, shown, unique, synthetic=synthetic)

    def _unique(self, identifier: str, stamp: _Stamp, digest: int = 0) -> str:
        if not identifier:
            return stamp.key
        repeated = identifier in self._seen
        self._seen[identifier] = digest
        return f"{identifier}#{stamp.key}" if repeated else identifier

    def _turn(
        self, stamp: _Stamp, role: Role, parts: tuple[Part, ...], identifier: str, *, synthetic: bool = False
    ) -> Turn:
        model = self._model if role == "agent" else None
        return Turn(identifier, role, parts, timestamp=stamp.time, model=model, synthetic=synthetic)


def _agent_of(output: object) -> Spawned | None:
    """The sub-agent that a `spawn_agent` call reports."""
    text = read_output(output).text
    if not text.startswith("{"):
        return None
    try:
        told = mapping(decode(text.encode("utf-8", errors="surrogatepass")))
    except ValueError:  # cut, or an error message
        return None
    thread = first_string(told, "agent_id", "thread_id")
    return Spawned(thread, first_string(told, "nickname", "agent_nickname") or "sub-agent") if thread else None
