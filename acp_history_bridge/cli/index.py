"""`bridge index`: the sessions of all tools in one list."""

from argparse import Namespace
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from shutil import get_terminal_size

from acp_history_bridge.adapter import Adapter
from acp_history_bridge.cli.context import Context
from acp_history_bridge.cli.output import home_relative, is_terminal, prepare_stdout, write_json, write_lines
from acp_history_bridge.cli.progress import scan
from acp_history_bridge.cli.query import make_query, sessions_of
from acp_history_bridge.cli.rows import as_json, as_line, rows_of
from acp_history_bridge.index.library import Library
from acp_history_bridge.sessions import SessionQuery

__all__ = ["print_sessions", "run", "titles_of"]

_ROWS_ON_A_TERMINAL = 50


def run(arguments: Namespace, context: Context) -> int:
    """List the sessions that the options ask for."""
    prepare_stdout()
    adapters = context.adapters()
    query = make_query(arguments, adapters)
    with closing(context.library(adapters)) as library:
        scan(library)
        if arguments.group is not None:
            _print_groups(arguments, context, adapters, library, query)
        elif arguments.stats:
            _print_statistics(arguments, adapters, library, query)
        else:
            _print(arguments, context, adapters, library, query)
    return 0


def _print_groups(
    arguments: Namespace, context: Context, adapters: Sequence[Adapter], library: Library, query: SessionQuery
) -> None:
    from acp_history_bridge.cli.groups import as_json, as_line, groups

    key: str = arguments.group
    found = groups(sessions_of(library, query, 0), key)
    if arguments.limit:
        found = found[: arguments.limit]
    if arguments.json:
        write_json({"groups": [as_json(group, key) for group in found]})
    elif arguments.jsonl:
        for group in found:
            write_json(as_json(group, key))
    elif is_terminal():
        from acp_history_bridge.cli.table import print_groups

        names = titles_of(adapters) if key == "tool" else {}
        print_groups(found, names, context.environment.home, datetime.now(UTC))
    else:
        write_lines(map(as_line, found))


def _print_statistics(arguments: Namespace, adapters: Sequence[Adapter], library: Library, query: SessionQuery) -> None:
    from acp_history_bridge.cli.groups import chart, statistics

    found = statistics(sessions_of(library, query, 0), datetime.now().astimezone().date())
    if arguments.json or arguments.jsonl:
        days = {day.isoformat(): count for day, count in found.days.items()}
        write_json({"total": found.total, "tools": found.tools, "days": days})
    else:
        write_lines(chart(found, titles_of(adapters), get_terminal_size().columns))


def titles_of(adapters: Sequence[Adapter]) -> dict[str, str]:
    """The tools' names as people write them."""
    return {adapter.name: adapter.title for adapter in adapters}


def _print(
    arguments: Namespace, context: Context, adapters: Sequence[Adapter], library: Library, query: SessionQuery
) -> None:
    as_table = is_terminal() and not (arguments.json or arguments.jsonl)
    limit: int = arguments.limit if arguments.limit is not None else _ROWS_ON_A_TERMINAL if as_table else 0
    if as_table:
        if not print_sessions(context, adapters, library, query, limit):
            write_lines(["No session matches."] if query != SessionQuery() else _where_it_looked(context, library))
        return
    rows = rows_of(library, sessions_of(library, query, limit))
    if arguments.json:
        write_json({"sessions": [as_json(row) for row in rows], "total": library.count(query)})
    elif arguments.jsonl:
        for row in rows:
            write_json(as_json(row))
    else:
        write_lines(as_line(row) for row in rows)


def print_sessions(
    context: Context, adapters: Sequence[Adapter], library: Library, query: SessionQuery, limit: int
) -> int:
    """Show the newest `limit` sessions as a table, with what it leaves out.

    Returns:
        How many sessions the query has.
    """
    from acp_history_bridge.cli.table import print_table

    rows = list(rows_of(library, sessions_of(library, query, limit)))
    total = library.count(query)
    if rows:
        print_table(rows, titles_of(adapters), context.environment.home, datetime.now(UTC))
    if total > len(rows):
        write_lines(["", f"{len(rows)} of {total} sessions; --limit 0 shows all."])
    return total


def _where_it_looked(context: Context, library: Library) -> list[str]:
    """What to tell somebody who has no histories, or not where they are looked for."""
    places = dict.fromkeys(home_relative(str(store.root), context.environment.home) for store in library.stores)
    return ["No histories found in:", *(f"  {place}" for place in places), "`bridge index --demo` shows a sample."]
