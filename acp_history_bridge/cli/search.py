"""`bridge search`: which sessions hold these words, and where.

The full-text index is brought up to date by `--update`, which the agent also starts in the background. A search itself
never waits for that: it answers from what is indexed, and from titles.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from acp_history_bridge.cli.context import Context
from acp_history_bridge.cli.output import is_terminal, prepare_stdout, write_json, write_lines
from acp_history_bridge.cli.progress import scan
from acp_history_bridge.cli.query import make_query, sessions_of
from acp_history_bridge.cli.rows import Row, as_json
from acp_history_bridge.errors import ConfigurationError
from acp_history_bridge.index.library import Library
from acp_history_bridge.sessions import Page, Session, SessionQuery, Snippet
from acp_history_bridge.text import terminal_safe

__all__ = ["run"]

_HITS = 20


def run(arguments: Namespace, context: Context) -> int:
    """Search, or bring the full-text index up to date."""
    prepare_stdout()
    adapters = context.adapters()
    query = make_query(arguments, adapters)
    if not query.search and not arguments.update:
        raise ConfigurationError("search: give at least one word, or --update")
    with closing(context.library(adapters)) as library:
        if not arguments.quiet:
            scan(library)
        else:
            for _ in library.scan():
                pass
        if arguments.update:
            _update(arguments, context, library)
        return _show(arguments, context, library, query) if query.search else 0


def _update(arguments: Namespace, context: Context, library: Library) -> None:
    from acp_history_bridge.search.build import lower_priority, only_builder, update_text_index
    from acp_history_bridge.search.store import TextStore

    path = context.text_index()
    if path is None:
        raise ConfigurationError("search --update: the full-text index is off (index.persistent, search.full_text)")
    if arguments.quiet:
        lower_priority()
    with only_builder(path.with_suffix(".lock")) as alone:
        if not alone:
            _say(arguments, "Another process is updating the full-text index.")
            return
        with closing(TextStore(path)) as store:
            sessions = sessions_of(library, SessionQuery(hidden="include"), 0)  # they can be unhidden
            with_output = context.settings.search.tool_output
            report = update_text_index(store, sessions, library.adapter, output=with_output)
    _say(arguments, f"{report.rebuilt} sessions read, {report.extended} extended, {report.removed} dropped.")


def _say(arguments: Namespace, text: str) -> None:
    if not arguments.quiet:
        print(text, file=sys.stderr)


def _show(arguments: Namespace, context: Context, library: Library, query: SessionQuery) -> int:
    limit: int = arguments.limit or _HITS
    page = library.page(query, limit)
    total = library.count(query)
    if arguments.json:
        found = [_as_json(page, session) for session in page.sessions]
        write_json({"sessions": found, "total": total, "textIndex": page.text_index})
    elif is_terminal():
        from acp_history_bridge.cli.hits import print_hits

        print_hits(page, _remarks(page, total, context.text_index()), context.environment.home, datetime.now(UTC))
    else:
        write_lines(_as_line(page, session) for session in page.sessions)
    return 0 if page.sessions else 1


def _as_json(page: Page, session: Session) -> dict[str, object]:
    snippet = page.snippets.get(session.id)
    row = as_json(Row(session, session.record.message_count))
    return row if snippet is None else row | {"snippet": snippet.text, "marks": [list(mark) for mark in snippet.marks]}


def _as_line(page: Page, session: Session) -> str:
    snippet = page.snippets.get(session.id, Snippet(""))
    fields = (session.id, session.title or "-", snippet.text)
    return "\t".join(terminal_safe(field).replace("\t", "\ufffd").replace("\n", "\ufffd") for field in fields)


def _remarks(page: Page, total: int, text_index: Path | None) -> Iterator[str]:
    if not page.sessions:
        yield "No session matches."
    if total > len(page.sessions):
        yield f"{len(page.sessions)} of {total} sessions; --limit N shows more."
    if text_index is None:
        yield "Only titles were searched: the full-text index is off."
    elif page.text_index != "complete":
        yield "Not everything is indexed yet; `bridge search --update` does it now."
