"""The chain of a transcript: what lies where and what follows what, without any content.

Policy: each record names its parent, and the tool goes on from the last record of the file, whatever that is. What is
not on the way from there to the root was rewound. Parents lie before their children; one that is missing, that comes
later or is the record itself is replaced by the record before, so damage and cycles cut nothing off. Only a rewind to
the very beginning has no parent.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from acp_history_adapters.qwen_code.records import Kind, classify, content_parts
from acp_history_bridge.adapter import Problem
from acp_history_bridge.jsonl import Line, decode, read_at, read_lines
from acp_history_bridge.values import JsonMap, mapping, string

__all__ = ["Chain", "Node"]

_PROBLEM_LIMIT = 1000


@dataclass(slots=True)
class Node:
    """One record.

    Attributes:
        id: Its uuid; made from its place where it has none.
        parent: Index of the node it follows; -1 for none.
    """

    offset: int
    size: int
    id: str
    kind: Kind
    parent: int


class Chain:
    """What has been read of one transcript so far.

    Attributes:
        nodes: All records, in file order.
        calls: For each id of a tool call, the nodes that make one.
        results: For each id of a tool call, the nodes with an outcome.
        touched: Calls whose outcome was found by the last reading.
    """

    def __init__(self, path: Path, problems: list[Problem]) -> None:
        self.nodes: list[Node] = []
        self.calls: dict[str, list[int]] = {}
        self.results: dict[str, list[int]] = {}
        self.touched: set[str] = set()
        self._path = path
        self._problems = problems
        self._by_id: dict[str, int] = {}
        self._offset = 0
        self._joined = False  # the last line was taken without its newline
        self._again = False

    def read(self, descriptor: int) -> int:
        """Read what was added; gives the index of the first new node.

        A last line without a newline counts as soon as it is a whole object; else it waits for its writer.
        """
        first = len(self.nodes)
        self.touched.clear()
        size = os.fstat(descriptor).st_size
        # A file that was rewritten is read again; the records that are known by their ids are not taken twice.
        self._again = size < self._offset
        if self._again:
            self._offset, self._joined = 0, False
        for line in read_lines(descriptor, self._offset, size):
            if not (self._joined and not line.size) and not self._take(line):
                break
            self._joined = line.pending
            self._offset = line.end
        return first

    def active(self, first: int = 0) -> tuple[list[int], int]:
        """Choose the nodes from `first` on that are on the way from the last one to the root.

        Returns:
            Their indexes in order, and how many messages are not among them.
        """
        shown: list[int] = []
        index = len(self.nodes) - 1
        while index >= first:
            shown.append(index)
            index = self.nodes[index].parent  # always smaller
        kept = set(shown)
        said = (Kind.PROMPT, Kind.ANSWER)
        left_out = sum(
            node.kind in said and number not in kept for number, node in enumerate(self.nodes[first:], start=first)
        )
        return shown[::-1], left_out

    def record(self, descriptor: int, index: int) -> JsonMap:
        """Read a record again; empty when the file was rewritten meanwhile."""
        node = self.nodes[index]
        try:
            return mapping(decode(read_at(descriptor, node.offset, node.size)))
        except ValueError:
            return {}

    def _take(self, line: Line) -> bool:
        """Take a line in; False for one that is not finished."""
        if line.data is None:
            self._problem("too-large", f"line of {line.size // 1_000_000} MB")
            if not line.pending:
                self._add(line, Kind.TOO_LARGE, {})
            return not line.pending
        try:
            value = decode(line.data)
        except ValueError:
            value = None
        if isinstance(value, dict):
            self._add_record(line, cast("JsonMap", value))
        elif not line.pending and line.data.strip():
            self._problem("bad-line", f"at byte {line.offset}")
        return isinstance(value, dict) or not line.pending

    def _add_record(self, line: Line, record: JsonMap) -> None:
        kind = classify(record)
        if kind is None:
            name = "/".join(string(record.get(field)) for field in ("type", "subtype"))
            self._problem("unknown-record", name[:80])
        index = self._add(line, kind or Kind.SILENT, record)
        for part in content_parts(record):
            for field, places in (("functionCall", self.calls), ("functionResponse", self.results)):
                if (call := string(mapping(part.get(field)).get("id"))) and index not in places.get(call, ()):
                    places.setdefault(call, []).append(index)
                    self.touched |= {call} if places is self.results else set()

    def _add(self, line: Line, kind: Kind, record: JsonMap) -> int:
        own = string(record.get("uuid")) or f"line-{line.offset}"
        if own in self._by_id and not self._again:
            own = f"{own}#{line.offset}"
        if own in self._by_id:
            node = self.nodes[self._by_id[own]]
            node.offset, node.size = line.offset, line.size
            return self._by_id[own]
        last = len(self.nodes) - 1
        parent = self._by_id.get(string(record.get("parentUuid")), last)
        if kind is Kind.REWIND and record.get("parentUuid", "") is None:
            parent = -1
        self.nodes.append(Node(line.offset, line.size, own, kind, parent))
        self._by_id[own] = last + 1
        return last + 1

    def _problem(self, kind: str, detail: str) -> None:
        if len(self._problems) < _PROBLEM_LIMIT:
            self._problems.append(Problem(self._path, kind, detail))
