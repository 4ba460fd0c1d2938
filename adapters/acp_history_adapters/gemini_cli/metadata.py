"""Session records of a chat file: what the list shows of it.

- A session is listed when the user or the agent said or did anything in it, even when the tool dropped that later: a
  session whose only prompt failed is hidden by the tool itself, but its prompt is on disk. Files with nothing but
  injected context (each start and each resume leaves one), and sub-agents, are not listed.
- The title is the tool's summary, else the first prompt of the history as it is shown, else a dropped prompt or a
  command.
- Times come from the records: `lastUpdated` of lines, the last message's of a document, whose `lastUpdated` moves when
  the tool adds a summary at a later start. For the same reason the modification time is only a bound.
- Copies of one session share id and `projectHash`; lines win over a document, the session's own project over others.
"""

from datetime import datetime

from acp_history_adapters.gemini_cli.document import (
    head_fields,
    is_document,
    message_places,
    newest_values,
    root_fields,
)
from acp_history_adapters.gemini_cli.fold import Fold
from acp_history_adapters.gemini_cli.projects import Project, Projects, is_path_hash
from acp_history_adapters.gemini_cli.records import Problems, Source, array_of
from acp_history_adapters.gemini_cli.skim import Facts, Skim
from acp_history_bridge.adapter import Inspection, Known, Problem, SessionRecord, Unit
from acp_history_bridge.timestamps import from_ns, parse_time
from acp_history_bridge.values import maps, string

__all__ = ["inspect_chat", "session_time"]

_LINES_RANK = 2


def inspect_chat(descriptor: int, unit: Unit, projects: Projects, known: Known | None) -> Inspection:
    """Look at one `session-*` file, whichever of the two forms it has."""
    project = projects.project(unit.path.parent.parent)
    if is_document(descriptor):
        return _inspect_document(descriptor, unit, projects, project)
    skim = Skim(known.state if known else None)
    offset = skim.read(descriptor, known.offset if known else 0)
    state = skim.facts.state()
    skim.read_rest(descriptor, offset)
    if skim.unsure:
        _find_prompt(skim.facts, Source(unit.path, descriptor))
        state |= {name: skim.facts.state()[name] for name in ("prompt", "prompt_id", "fallback")}
    record = _record(skim.facts, unit, projects, project)
    return Inspection(
        records=(record,) if record else (),
        problems=_problems(skim.facts, unit, found=record is not None),
        offset=offset,
        state=state,
        complete=record is not None or unit.path.suffix != ".json",  # a document may just be rewritten
    )


def _find_prompt(facts: Facts, source: Source) -> None:
    """Find the first prompt that is still shown, and what there is instead."""
    fold = Fold(source, Problems())
    fold.advance()
    shown, dropped = Facts(), Facts()
    for facts_of, places in ((shown, fold.view()), (dropped, iter(fold.dropped.items()))):
        for key, ref in places:
            facts_of.message(key, fold.message(key, ref) or {})
            if facts_of.prompt:
                break
    facts.prompt, facts.prompt_id = shown.prompt, shown.prompt_id
    facts.fallback = dropped.prompt or facts.fallback


def _problems(facts: Facts, unit: Unit, *, found: bool) -> tuple[Problem, ...]:
    problems: list[Problem] = []
    if facts.bad_lines:
        problems.append(Problem(unit.path, "bad-line", f"{facts.bad_lines} lines are no records"))
    if not found and unit.fingerprint.size:
        problems.append(Problem(unit.path, "unreadable", "no session in it"))
    return tuple(problems)


def _inspect_document(descriptor: int, unit: Unit, projects: Projects, project: Project) -> Inspection:
    fields = root_fields(descriptor)
    facts = Facts()
    facts.metadata(head_fields(descriptor) if fields is None else fields)
    facts.newest, facts.model = newest_values(descriptor)
    source = Source(unit.path, descriptor)
    for ref in message_places(descriptor):
        message = source.message(ref) or {}
        facts.message(string(message.get("id")), message)
        if facts.prompt:
            break
    else:
        for message in maps(array_of(fields or {})):  # a layout that is not the tool's
            facts.message(string(message.get("id")), message)
            facts.newest = string(message.get("timestamp")) or facts.newest
    record = _record(facts, unit, projects, project)
    problems = _problems(facts, unit, found=record is not None)
    if fields is None:  # the tool rewrites the document in place, so this may be a moment of that
        problems = (Problem(unit.path, "half-written", "the document is not whole"),)
    return Inspection(records=(record,) if record else (), problems=problems, complete=fields is not None)


def _record(facts: Facts, unit: Unit, projects: Projects, project: Project) -> SessionRecord | None:
    native_id = facts.session_id or (unit.path.stem if facts.conversation else "")
    if not native_id:
        return None
    path_hash = facts.project_hash or project.path_hash
    displaced = bool(project.path_hash) and is_path_hash(path_hash) and path_hash != project.path_hash
    cwd = project.cwd or projects.directory_of(unit.path.parent.parent, path_hash)
    whole = unit.path.suffix == ".json"
    times = (facts.newest, facts.updated) if whole else (facts.updated, facts.newest)
    subagent = facts.kind == "subagent"
    return SessionRecord(
        native_id=native_id,
        updated_at=session_time(unit, *times),
        origin=path_hash or project.name,
        displaced=displaced,
        rank=(0 if whole else _LINES_RANK) + (not displaced),
        title=facts.summary.strip() or facts.prompt or facts.fallback or None,
        cwd=cwd,
        cwd_digest=f"sha256:{path_hash}" if cwd is None and is_path_hash(path_hash) else None,
        additional_directories=tuple(dict.fromkeys(name for name in facts.directories if name not in {"", cwd})),
        created_at=parse_time(facts.created),
        kind="subagent" if subagent else "fork" if facts.parent else "main",
        listed=facts.conversation and not subagent,
        parent=facts.parent or None,
        model=facts.model or None,
    )


def session_time(unit: Unit, *times: str) -> datetime:
    """The first time that is one, but not later than the modification time; else that."""
    limit = from_ns(unit.fingerprint.mtime_ns)
    return next((min(time, limit) for text in times if (time := parse_time(text))), limit)
