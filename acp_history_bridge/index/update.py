"""Storing what was found: units and records in, sessions resolved again, changes out; all in the caller's transaction.

Work is bounded by what was found: only sessions that share a native id with a record that came, went or changed are
resolved again, and those that were waiting for a directory which has just become known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from acp_history_bridge.adapter import SessionRecord, Store
from acp_history_bridge.index.directories import Directories, digest_in
from acp_history_bridge.index.look import Finding
from acp_history_bridge.index.query import sessions_of
from acp_history_bridge.index.records import encode_record
from acp_history_bridge.index.resolve import Resolved, Surroundings, folded, resolve, sort_key
from acp_history_bridge.index.tables import Place, RecordRow, SessionRow, Tables, UnitRow
from acp_history_bridge.sessions import Change, Session, plain_id

__all__ = ["Gone", "learn", "resolve_again", "store_findings"]

Gone = tuple[Store, Path]


def store_findings(
    tables: Tables,
    surroundings: Surroundings,
    findings: Sequence[Finding],
    gone: Iterable[Gone] = (),
) -> tuple[Change, ...]:
    """Store what was found and drop the units that are gone."""
    gone_ids = [row.id for store, path in gone if (row := tables.unit(store, path)) is not None]
    rows = [tables.unit(finding.unit.store, finding.unit.path) for finding in findings]
    touched = tables.plain_ids([*gone_ids, *(row.id for row in rows if row is not None)])
    merged = [_with_kept(tables, finding, row) for finding, row in zip(findings, rows, strict=True)]
    ids = [[_plain_id(finding, record, surroundings) for record, _ in finding.records] for finding in merged]
    touched.update(*ids)

    touched |= _learn(
        tables, surroundings.directories, _named_in(record for finding in merged for record, _ in finding.records)
    )

    before = sessions_of(tables, touched, surroundings.home)
    if gone_ids:
        tables.remove_units(gone_ids)
    fresh = _put(tables, merged, rows, ids)
    return _resolve_touched(tables, surroundings, touched, before, fresh)


def learn(tables: Tables, surroundings: Surroundings, path: str) -> tuple[Change, ...]:
    """Take note of a directory; sessions of which only its digest was known now have it as their working directory."""
    return resolve_again(tables, surroundings, _learn(tables, surroundings.directories, [path]))


def resolve_again(tables: Tables, surroundings: Surroundings, touched: set[str]) -> tuple[Change, ...]:
    """Resolve the sessions of these plain ids again, whose records or surroundings have changed already."""
    before = sessions_of(tables, touched, surroundings.home)
    return _resolve_touched(tables, surroundings, touched, before, {})


def _learn(tables: Tables, directories: Directories, names: Iterable[str]) -> set[str]:
    return tables.learn(directories.families(names))


def _named_in(records: Iterable[SessionRecord]) -> set[str]:
    return {name for record in records for name in (record.cwd, *record.additional_directories) if name}


def _plain_id(finding: Finding, record: SessionRecord, surroundings: Surroundings) -> str:
    return plain_id(surroundings.prefixes[finding.unit.store.tool], record.native_id)


def _with_kept(tables: Tables, finding: Finding, row: UnitRow | None) -> Finding:
    """After an incomplete look, add the old records that it did not find again."""
    if not finding.keeps or row is None:
        return finding
    found = {(record.native_id, record.origin) for record, _ in finding.records}
    kept = [record for record in tables.records(row.id) if (record.native_id, record.origin) not in found]
    return replace(finding, records=(*finding.records, *((record, encode_record(record)) for record in kept)))


def _put(
    tables: Tables, findings: Sequence[Finding], rows: Sequence[UnitRow | None], ids: Sequence[Sequence[str]]
) -> dict[tuple[int, int], Place]:
    fresh: dict[tuple[int, int], Place] = {}
    records: list[RecordRow] = []
    for finding, row, plain_ids in zip(findings, rows, ids, strict=True):
        unit_id = tables.put_unit(finding.unit, row, (finding.again, finding.offset, finding.prefix, finding.state))
        if row is not None and not finding.adds:
            tables.forget_problems(unit_id)
        if finding.problems:
            tables.add_problems(unit_id, finding.problems)
        for position, (plain, (record, data)) in enumerate(zip(plain_ids, finding.records, strict=True)):
            records.append((unit_id, position, plain, digest_in(record), data))
            fresh[unit_id, position] = Place(finding.unit, unit_id, position, record)
    tables.put_records(records)
    return fresh


def _resolve_touched(
    tables: Tables,
    surroundings: Surroundings,
    touched: set[str],
    before: Mapping[str, Session],
    fresh: Mapping[tuple[int, int], Place],
) -> tuple[Change, ...]:
    places = tables.places(touched, fresh)
    known = tables.directories(
        {digest for group in places.values() for place in group if (digest := digest_in(place.record))}
    )
    resolved = [item for name, group in places.items() for item in resolve(group, surroundings, known, name)]
    tables.replace_sessions(touched, [_row(item, surroundings.directories) for item in resolved])
    return _changes(before, resolved, fresh)


def _row(item: Resolved, directories: Directories) -> SessionRow:
    session = item.session
    cwd = session.cwd if session.cwd_known else None  # the home directory can be another one next time
    return (
        item.key,
        session.id,
        item.plain_id,
        item.place.unit_id,
        item.place.position,
        session.tool,
        sort_key(session.updated_at),
        session.title,
        folded(session.title or ""),
        None if cwd is None else cwd.encode("utf-8", errors="surrogatepass"),
        None if cwd is None else directories.key(cwd),
        session.record.headless,
        session.record.archived,
    )


def _changes(
    before: Mapping[str, Session], resolved: Sequence[Resolved], fresh: Mapping[tuple[int, int], Place]
) -> tuple[Change, ...]:
    after = {item.session.id: item for item in resolved}
    changes = [Change("removed", session) for wire_id, session in before.items() if wire_id not in after]
    for wire_id, item in after.items():
        old = before.get(wire_id)
        # In a unit of one session, new bytes belong to that session, even where they change nothing that a list shows.
        alone = (item.place.unit_id, 1) not in fresh
        if old is None:
            changes.append(Change("added", item.session))
        elif _visible(old, alone=alone) != _visible(item.session, alone=alone):
            changes.append(Change("changed", item.session, old))
    return tuple(changes)


def _visible(session: Session, *, alone: bool) -> tuple[object, ...]:
    fingerprint = session.unit.fingerprint
    content = (fingerprint.size, fingerprint.inode) if alone else ()
    return session.unit.path, session.record, session.title, session.cwd, session.cwd_known, content
