"""A tool call together with its outcome.

Policy: what the result text says to the model only is taken off (reminders, agent ids, the frame around a long output);
the rest is shown as the tool stored it. Shell output comes as such. An output that was too long for the message is read
from the session's own `tool-results` directory, never from the path that the transcript names.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from acp_history_bridge.files import read_small
from acp_history_bridge.turns import ShellResult, SubagentRun, Text, ToolCall, ToolContent, ToolStatus
from acp_history_bridge.values import JsonMap, first_string, mapping, string

from .content import Shown, plain_text, to_content
from .edits import diffs_of, places_of
from .prompts import Notification, remove_spans, tag_body
from .tools import AGENT_TOOLS, EDIT_TOOLS, PLAN_TITLE, SHELL_TOOLS, Call, look_of

__all__ = ["LONG_OUTPUT_LIMIT", "Outcome", "long_output_reader", "tool_call"]

LONG_OUTPUT_LIMIT = 4 * 1024 * 1024

_EXIT_CODE = re.compile(r"\A(?:Error: )?Exit code (\d{1,10})(?:\n|\Z)")
_SAVED_TO = re.compile(r"saved to: ([^\n]{1,4096})")
_LAUNCHED = "async_launched"
_PERSISTED = "persisted-output"
# Their result says no more than that they worked.
_QUIET = frozenset({*EDIT_TOOLS, "Skill", "ExitPlanMode", "exit_plan_mode"})
_NOTHING_PRINTED = frozenset({"(Bash completed with no output)", "Tool ran without output or errors"})
_FAILED_TASKS = frozenset({"failed", "killed", "error", "stopped"})

LongOutput = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the transcript holds of a call's outcome.

    Attributes:
        content: The result as stored, a string or blocks.
        failed: The tool said so.
        detail: The structured result; empty where it is missing or only a message.
    """

    content: object
    failed: bool
    detail: JsonMap


def long_output_reader(directory: Path) -> LongOutput:
    """Make a function that reads a named long output from the session's own directory, None when it cannot."""

    def read(named: str) -> str | None:
        # The transcript was perhaps written elsewhere, and it is not to be trusted: only the last part counts.
        name = PureWindowsPath(PurePosixPath(named.strip()).name).name
        if name in {"", ".", ".."} or not name.endswith((".txt", ".json")):
            return None
        data = read_small(directory / name, LONG_OUTPUT_LIMIT)
        return None if data is None else data.decode("utf-8", errors="replace")

    return read


def tool_call(
    call: Call,
    outcome: Outcome | None,
    notifications: list[Notification],
    subagents: tuple[SubagentRun, ...],
    long_output: LongOutput,
) -> ToolCall:
    """Put a call, its outcome and what it started together."""
    look = look_of(call)
    content: list[ToolContent] = list(look.content)
    places = look.locations
    detail = outcome.detail if outcome else mapping(None)
    if call.name in EDIT_TOOLS:
        content += diffs_of(call, detail)
        places = places_of(call, detail) or places
    status = _status(outcome, notifications)
    shell = None
    if outcome is not None and call.name in SHELL_TOOLS:
        shell = _shell(call, outcome, long_output)
        content.clear()  # the description stood in for the output
        content += (part for part in _result(call, outcome, long_output) if not isinstance(part, Text))
    elif outcome is not None:
        content += _result(call, outcome, long_output)
    content += (Text(text) for note in notifications if (text := note.result or note.summary))
    return ToolCall(
        id=call.id,
        name=call.name,
        title="Exited Plan Mode" if look.title == PLAN_TITLE and status == "completed" else look.title,
        kind=look.kind,
        status=status,
        input=call.input,
        output=_structured(call, detail),
        content=tuple(content),
        locations=places,
        shell=shell,
        subagents=subagents,
    )


def _status(outcome: Outcome | None, notifications: list[Notification]) -> ToolStatus:
    if outcome is None:
        return "unfinished"
    if outcome.failed or any(note.status in _FAILED_TASKS for note in notifications):
        return "failed"
    if outcome.detail.get("status") == _LAUNCHED and not notifications:
        return "unfinished"
    return "completed"


def _result(call: Call, outcome: Outcome, long_output: LongOutput) -> list[ToolContent]:
    if call.name in AGENT_TOOLS and outcome.detail.get("status") == _LAUNCHED:
        return []  # a launch note for the model; the answer comes as a notification
    if call.name in _QUIET and not outcome.failed:
        return []
    parts: list[ToolContent] = []
    for part in _blocks(outcome.content):
        text = _cleaned(part.text, call, long_output) if isinstance(part, Text) else ""
        if text:
            parts.append(Text(text))
        elif not isinstance(part, Text):
            parts.append(part)
    return parts


def _blocks(content: object) -> list[Shown]:
    # Tools that run at the model's provider give one block instead of a list; its error is a code.
    block = mapping(content)
    if block:
        code = first_string(block, "error_code")
        return [Text(code)] if code else list(to_content([block]))
    return list(to_content(content))


def _cleaned(text: str, call: Call, long_output: LongOutput) -> str:
    if text.lstrip().startswith(f"<{_PERSISTED}>"):
        return _persisted(text, long_output)
    if text.rstrip().endswith("</system-reminder>"):
        text = remove_spans(text, "system-reminder").rstrip()
    if text.startswith("<tool_use_error>"):
        text = tag_body(text, "tool_use_error") or text
    if call.name in AGENT_TOOLS:
        text = remove_spans(text, "usage")
        text = "\n".join(line for line in text.split("\n") if not line.startswith("agentId: ")).rstrip()
    return text


def _persisted(text: str, long_output: LongOutput) -> str:
    body = tag_body(text, _PERSISTED) or text
    saved = _SAVED_TO.search(body)
    whole = long_output(saved[1]) if saved else None
    return whole if whole is not None else body.strip()


def _shell(call: Call, outcome: Outcome, long_output: LongOutput) -> ShellResult:
    text = plain_text(_blocks(outcome.content))
    code = _EXIT_CODE.match(text)
    if code:
        return ShellResult(text[code.end() :], int(code[1]), call.cwd)
    detail = outcome.detail
    streams = [string(detail.get(key)).rstrip("\n") for key in ("stdout", "stderr")]
    if f"<{_PERSISTED}>" in text:
        named = first_string(detail, "persistedOutputPath")
        whole = long_output(named) if named else None
        return ShellResult(whole or streams[0] or _persisted(text, long_output), None, call.cwd)
    told = "" if text in _NOTHING_PRINTED else _cleaned(text, call, long_output)
    printed = "\n".join(stream for stream in streams if stream)
    if "stdout" in detail and not outcome.failed and detail.get("isImage") is not True and len(printed) >= len(told):
        return ShellResult(printed, None, call.cwd)
    return ShellResult(told, None, call.cwd)


def _structured(call: Call, detail: JsonMap) -> object:
    """The part of a structured result that the content does not say."""
    answers = mapping(detail.get("answers"))
    return {"answers": answers} if call.name == "AskUserQuestion" and answers else None
