"""The skeleton of a transcript: what lies where and what hangs on what, without any content.

Policy: one small node per line, so that memory follows the number of lines and not their size. Parents always lie
before their children: a parent that was never written, that comes later or that is the line itself is replaced by the
line before, so cycles cannot exist and nothing is cut off by damage. Only a user line that says it has no parent
starts over. Lines of inline sub-agents (up to 2.0.14) are kept apart, each with the root of its own conversation.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from acp_history_bridge.adapter import Problem
from acp_history_bridge.jsonl import Line, decode, read_at, read_lines
from acp_history_bridge.values import JsonMap, mapping, maps, number, string

from .prompts import joined_text, read_notification
from .records import METADATA_PREFIXES, METADATA_TYPES, Kind, ProblemLog, classify, results_in

__all__ = ["METADATA_START", "Node", "Skeleton", "notification_text"]

_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_START = 256
METADATA_START = re.compile(rb'\s*\{\s*"type"\s*:\s*"(?!user"|assistant"|system"|attachment"|progress")')


@dataclass(slots=True)
class Node:
    """One line.

    Attributes:
        parent: Index of the node it hangs on; -1 for none.
        side: Belongs to an inline sub-agent's conversation.
        group: For answers, the id of the message that several lines share.
    """

    offset: int
    size: int
    number: int
    kind: Kind
    parent: int = -1
    side: bool = False
    group: str = ""


class Skeleton:
    """What has been read of one transcript file so far.

    Attributes:
        nodes: All lines of the tree, in file order.
        offset: Where the next reading starts.
        calls: For each id of a tool call, the nodes that make it.
        results: For each id of a tool call, the nodes that hold an outcome.
        notifications: For each id of a tool call, where the reports of its background task lie.
        sides: For the root of each inline sub-agent, all its nodes.
        side_prompts: For the hash of each inline sub-agent's prompt, the roots.
        touched: Calls whose outcome was found by the last reading.
        cost: Total in US dollars, as last recorded.
    """

    def __init__(self, path: Path, problems: ProblemLog, *, one_conversation: bool = False) -> None:
        """Start with nothing read.

        Args:
            path: For problems only.
            problems: Where to report damage.
            one_conversation: The file is a sub-agent's: all its lines are marked as a side chain, and none is one.
        """
        self.nodes: list[Node] = []
        self.offset = 0
        self.calls: dict[str, list[int]] = {}
        self.results: dict[str, list[int]] = {}
        self.notifications: dict[str, list[tuple[int, int]]] = {}
        self.sides: dict[int, list[int]] = {}
        self.side_prompts: dict[int, list[int]] = {}
        self.touched: set[str] = set()
        self.cost: float | None = None
        self._path = path
        self._problems = problems
        self._one_conversation = one_conversation
        self._by_uuid: dict[str, int] = {}
        self._side_root: dict[int, int] = {}
        self._last = -1  # of the main conversation
        self._last_side = -1
        self._number = 0
        self._joined = False  # the last line had no newline yet

    def read(self, descriptor: int) -> int:
        """Read what was added, and return the index of the first new node.

        A last line without a newline counts as soon as it is a whole object; else it waits for its writer.
        """
        first = len(self.nodes)
        self.touched.clear()
        size = os.fstat(descriptor).st_size
        if size < self.offset:
            self._start_over()
        for line in read_lines(descriptor, self.offset, size):
            if self._joined and not line.size:
                self._joined = False
                self.offset = line.end
                continue
            self._number += 1
            if not self._take(descriptor, line):
                self._number -= 1
                break
            self._joined = line.pending
            self.offset = line.end
        return first

    def _start_over(self) -> None:
        # A version that takes a message back rewrites the end of the file. Lines known by their uuid are not added
        # twice, so reading everything again finds just the new ones.
        self.offset = 0
        self._number = 0
        self._joined = False

    def _take(self, descriptor: int, line: Line) -> bool:
        """Take a line in; False for one that is not finished."""
        if line.data is None:
            self._take_large(descriptor, line)
            return not line.pending
        if line.data.startswith(METADATA_PREFIXES) or not line.data.strip():
            return not line.pending
        try:
            value = decode(line.data)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            if not line.pending:
                self._problem("bad-line", "not a JSON object")
            return not line.pending
        self._take_record(cast("JsonMap", value), line)
        return True

    def _problem(self, kind: str, detail: str) -> None:
        self._problems.add(Problem(self._path, kind, detail, self._number))

    def _take_large(self, descriptor: int, line: Line) -> None:
        self._problem("too-large", f"line of {line.size // 1_000_000} MB")
        start = read_at(descriptor, line.offset, _START)
        if not line.pending and not METADATA_START.match(start):
            uuid = f"line at {line.offset}"
            if uuid not in self._by_uuid:
                self._add_main(Node(line.offset, line.size, self._number, Kind.TOO_LARGE, self._last), uuid)

    def _take_record(self, record: JsonMap, line: Line) -> None:
        kind = classify(record)
        name = record.get("type")
        uuid = string(record.get("uuid"))
        if kind is None:
            self._take_metadata(record, name, line)
            if not uuid:
                return
        uuid = uuid or f"line at {line.offset}"
        node = Node(line.offset, line.size, self._number, kind or Kind.CONTEXT)
        if kind is Kind.ASSISTANT:
            node.group = string(mapping(record.get("message")).get("id")) or uuid
        if uuid in self._by_uuid:
            self._replace(self._by_uuid[uuid], node)
            return
        if record.get("isSidechain") is True and not self._one_conversation:
            index = self._add_side(node, record, uuid)
        else:
            node.parent = self._parent_of(record, node.kind)
            index = self._add_main(node, uuid)
        self._note_tools(record, node, index)

    def _take_metadata(self, record: JsonMap, name: object, line: Line) -> None:
        if name == "cost-state":
            self.cost = number(record.get("totalCostUSD"))
        elif name == "queue-operation":
            # A report that came after the last turn is found nowhere else.
            self._note_notification(string(record.get("content")), line.offset, line.size)
        elif not isinstance(name, str) or name not in METADATA_TYPES:
            self._problem("unknown-record", f"type {name}"[:80] if isinstance(name, str) else "no type")

    def _replace(self, index: int, node: Node) -> None:
        # The tool lets a later line with the same uuid win, in the place of the first one.
        old = self.nodes[index]
        if old.kind is node.kind and old.group == node.group:
            old.offset, old.size, old.number = node.offset, node.size, node.number

    def _parent_of(self, record: JsonMap, kind: Kind) -> int:
        named = record.get("logicalParentUuid" if kind is Kind.BOUNDARY else "parentUuid")
        if isinstance(named, str):
            index = self._by_uuid.get(named, -1)
            return index if index >= 0 and not self.nodes[index].side else self._last
        starts_over = named is None and "parentUuid" in record and kind in {Kind.PROMPT, Kind.CONTEXT}
        return -1 if starts_over and record.get("type") == "user" else self._last

    def _add_main(self, node: Node, uuid: str) -> int:
        self._last = self._add(node, uuid)
        return self._last

    def _add_side(self, node: Node, record: JsonMap, uuid: str) -> int:
        node.side = True
        node.parent = self._side_parent_of(record)
        index = self._add(node, uuid)
        root = self._side_root.get(node.parent, index)
        if root == index:
            prompt = joined_text(mapping(record.get("message")).get("content"))
            self.sides[index] = []
            self.side_prompts.setdefault(hash(prompt.strip()), []).append(index)
        self._side_root[index] = root
        self.sides[root].append(index)
        self._last_side = index
        return index

    def _side_parent_of(self, record: JsonMap) -> int:
        named = record.get("parentUuid")
        if not isinstance(named, str):
            return -1
        index = self._by_uuid.get(named)
        if index is None:
            return self._last_side
        return index if self.nodes[index].side else -1

    def _add(self, node: Node, uuid: str) -> int:
        self.nodes.append(node)
        self._by_uuid[uuid] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def _note_tools(self, record: JsonMap, node: Node, index: int) -> None:
        if node.kind in {Kind.RESULT, Kind.MIXED, Kind.ASSISTANT}:
            for block in results_in(record):
                self.results.setdefault(string(block["tool_use_id"]), []).append(index)
                self.touched.add(string(block["tool_use_id"]))
        if node.kind is Kind.ASSISTANT:
            for block in maps(mapping(record.get("message")).get("content")):
                if string(block.get("type")) in _CALLS and (call := string(block.get("id"))):
                    self.calls.setdefault(call, []).append(index)
        elif node.kind is Kind.NOTIFICATION:
            self._note_notification(notification_text(record), node.offset, node.size)

    def _note_notification(self, text: str, offset: int, size: int) -> None:
        if "<tool-use-id>" in text and (call := read_notification(text).tool_use_id):
            self.notifications.setdefault(call, []).append((offset, size))
            self.touched.add(call)


def notification_text(record: JsonMap) -> str:
    """The report of a background task, whichever of the three kinds of line brings it."""
    if record.get("type") == "attachment":
        return joined_text(mapping(record.get("attachment")).get("prompt"))
    if record.get("type") == "queue-operation":
        return string(record.get("content"))
    return joined_text(mapping(record.get("message")).get("content"))
