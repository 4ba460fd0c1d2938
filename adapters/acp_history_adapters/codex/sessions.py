"""From what is known of a rollout to the session record of its thread.

Policy: all rollouts of a thread are copies of one session, and the newest name is the current one. A fork is called by
the first prompt of its base until it has a name of its own. Headless runs are sessions like others; sub-agents belong
into the call that started them.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from acp_history_adapters.codex.chains import base_of, bases_of
from acp_history_adapters.codex.lines import open_source
from acp_history_adapters.codex.metadata import Facts, facts_of
from acp_history_adapters.codex.rollouts import Rollouts, parse_name
from acp_history_bridge.adapter import Problem, SessionKind, SessionRecord
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.timestamps import parse_time
from acp_history_bridge.values import JsonMap, first_string, items, mapping, string

__all__ = ["inherited_prompt", "native_id", "record_of"]


def inherited_prompt(facts: Facts, path: Path, roots: Sequence[Path], problems: list[Problem]) -> str | None:
    """The first prompt of what a fork or rewind continues; a sub-agent has its task in its own rollout."""
    if base_of(facts.meta) is None or _is_subagent(facts.meta):
        return None
    for segment in bases_of(facts.meta, path, Rollouts(roots), problems):
        try:
            with open_source(segment.path) as source:
                base, _ = facts_of(source, source.size(), problems)
        except TranscriptError as error:
            problems.append(Problem(segment.path, "unreadable", str(error)))
            continue
        if base.prompt and (segment.end is None or base.prompt_ordinal < segment.end):
            return base.prompt
    return None


def native_id(facts: Facts, path: Path) -> str:
    """The thread's id: what the rollout says, else what its name says."""
    name = parse_name(path.name)
    return string(facts.meta.get("id")) or (name.thread if name else "") or path.name


def record_of(facts: Facts, path: Path, modified: datetime, *, title: str | None, archived: bool) -> SessionRecord:
    """Make the session record; `title` goes before what the rollout itself offers."""
    meta = facts.meta
    last = parse_time(facts.last)
    parsed = parse_name(path.name)
    cwd = facts.cwd or string(meta.get("cwd")) or None
    roots = [string(root) for root in items(meta.get("runtime_workspace_roots"))]
    return SessionRecord(
        native_id=native_id(facts, path),
        updated_at=modified if last is None else min(last, modified),
        rank=parsed.rank if parsed else 0,
        title=title or facts.prompt or facts.goal,
        cwd=cwd,
        additional_directories=tuple(root for root in roots if root and root != cwd),
        created_at=parse_time(meta.get("timestamp")),
        kind=_kind(meta),
        listed=not _is_subagent(meta) and (facts.talked or facts.goal is not None or base_of(meta) is not None),
        parent=_parent(meta),
        archived=archived,
        headless=meta.get("source") == "exec" or meta.get("originator") == "codex_exec",
        branch=facts.branch,
        model=facts.model,
        mode=facts.mode,
        tool_version=string(meta.get("cli_version")) or None,
    )


def _is_subagent(meta: JsonMap) -> bool:
    return "subagent" in mapping(meta.get("source")) or meta.get("thread_source") == "subagent"


def _kind(meta: JsonMap) -> SessionKind:
    if _is_subagent(meta):
        return "subagent"
    return "fork" if _parent(meta) else "main"


def _parent(meta: JsonMap) -> str | None:
    own = string(meta.get("id"))
    if _is_subagent(meta):
        spawn = mapping(mapping(mapping(meta.get("source")).get("subagent")).get("thread_spawn"))
        parent = string(meta.get("parent_thread_id")) or first_string(spawn, "parent_thread_id")
        parent = parent or string(meta.get("session_id"))
    else:
        parent = string(meta.get("forked_from_id"))
    return parent if parent and parent != own else None
