"""To-do lists: `TodoWrite` (up to 2.1.126) writes the whole list, the `Task…` tools change one entry at a time."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from acp_history_bridge.toolcalls import plan_entry
from acp_history_bridge.turns import Plan, PlanEntry
from acp_history_bridge.values import JsonMap, first_string, mapping, maps

from .prompts import joined_text

__all__ = ["PLAN_TOOLS", "TaskList", "todo_plan"]

PLAN_TOOLS = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"})

_CREATED = re.compile(r"Task #(\S{1,40}) created")


def todo_plan(arguments: JsonMap) -> Plan | None:
    """The list a `TodoWrite` call wrote; None when it wrote none."""
    if not isinstance(arguments.get("todos"), list):
        return None
    entries: list[PlanEntry] = []
    for item in maps(arguments.get("todos")):
        keys = ("activeForm", "content") if item.get("status") == "in_progress" else ("content", "activeForm")
        if (entry := plan_entry(item, *keys)) is not None:
            entries.append(entry)
    return Plan(tuple(entries))


@dataclass(slots=True)
class _Task:
    subject: str
    active_form: str
    status: str


class TaskList:
    """The list that the `Task…` tools have built so far."""

    def __init__(self) -> None:
        self._tasks: dict[str, _Task] = {}

    def apply(self, name: str, arguments: JsonMap, content: object, detail: JsonMap) -> Plan | None:
        """Take a successful call in; None when it changes and shows nothing."""
        if name == "TaskCreate":
            self._create(arguments, content, detail)
        elif name == "TaskUpdate":
            self._update(arguments)
        elif name == "TaskList":
            self._complete(detail)
        else:
            return None
        return self._plan()

    def _create(self, arguments: JsonMap, content: object, detail: JsonMap) -> None:
        created = _CREATED.search(joined_text(content))
        task = _identifier(mapping(detail.get("task"))) or (created[1] if created else str(len(self._tasks) + 1))
        self._tasks[task] = _Task(first_string(arguments, "subject"), first_string(arguments, "activeForm"), "pending")

    def _update(self, arguments: JsonMap) -> None:
        task = _identifier(arguments, "taskId")
        status = first_string(arguments, "status")
        if status == "deleted":
            self._tasks.pop(task, None)
        elif (known := self._tasks.get(task)) is not None:
            known.status = status or known.status
            known.subject = first_string(arguments, "subject") or known.subject
            known.active_form = first_string(arguments, "activeForm") or known.active_form

    def _complete(self, detail: JsonMap) -> None:
        for task in maps(detail.get("tasks")):
            subject, status = first_string(task, "subject"), first_string(task, "status") or "pending"
            # What is known stays: updates made beside this call are later than its answer.
            self._tasks.setdefault(_identifier(task), _Task(subject, "", status))

    def _plan(self) -> Plan:
        found = (plan_entry(_as_item(task), "content") for task in self._tasks.values())
        return Plan(tuple(entry for entry in found if entry is not None))


def _identifier(source: JsonMap, key: str = "id") -> str:
    value = source.get(key)
    return str(value) if isinstance(value, str | int) else ""


def _as_item(task: _Task) -> Mapping[str, object]:
    shown = task.active_form if task.status == "in_progress" and task.active_form else task.subject
    return {"content": shown, "status": task.status}
