"""Which lines belong to the conversation as it went, and which were taken back.

Policy: everything is shown but what was provably abandoned. The way from the last line up to the root is the active
branch, across compactions. What hangs on it beside that way is kept if it belongs to the same answer (results of
parallel calls, further blocks of a message) or is no conversation at all; a prompt or another answer that hangs
there was rewound, with everything below it.
"""

from collections.abc import Sequence

from .records import Kind
from .skeleton import Node

__all__ = ["active_branch"]

_SEPARATE = frozenset({Kind.PROMPT, Kind.ASSISTANT})
_SAID = frozenset({Kind.PROMPT, Kind.ASSISTANT, Kind.MIXED, Kind.SUMMARY, Kind.QUEUED, Kind.NOTIFICATION})


def active_branch(nodes: Sequence[Node]) -> tuple[list[int], int]:
    """Choose the nodes of the main conversation that are shown.

    Returns:
        Their indexes in file order, and how many messages were left out.
    """
    chain = _chain(nodes)
    groups = {node.group for node, on_chain in zip(nodes, chain, strict=True) if on_chain and node.group}
    kept = bytearray(len(nodes))
    shown: list[int] = []
    abandoned: set[str] = set()
    for index, node in enumerate(nodes):
        if node.side:
            continue
        if chain[index] or _stays(node, kept, groups):
            kept[index] = True
            shown.append(index)
        elif node.kind in {Kind.PROMPT, Kind.QUEUED, Kind.ASSISTANT}:
            abandoned.add(node.group or f"user {index}")
    return shown, len(abandoned)


def _chain(nodes: Sequence[Node]) -> bytearray:
    chain = bytearray(len(nodes))
    # Results and context do not lead: they can be written late, by a tool or a hook of a branch that was left.
    said = (index for index in range(len(nodes) - 1, -1, -1) if nodes[index].kind in _SAID and not nodes[index].side)
    index = next(said, -1)
    while index >= 0:
        chain[index] = True
        index = nodes[index].parent  # always smaller
    return chain


def _stays(node: Node, kept: bytearray, groups: set[str]) -> bool:
    if node.parent >= 0 and not kept[node.parent]:
        return False
    if node.kind is Kind.ASSISTANT:
        return node.group in groups
    return node.kind not in _SEPARATE
