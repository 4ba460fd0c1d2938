"""`bridge watch`: what happens to the sessions of all tools, as it happens, until it is interrupted.

One line, or one JSON object, per session and burst of changes. What the first scan finds is no news.
"""

import sys
from argparse import Namespace
from collections.abc import Callable
from datetime import datetime

import anyio

from acp_history_bridge.cli.context import Context
from acp_history_bridge.cli.output import home_relative, is_terminal, prepare_stdout, terminal_line, write_json
from acp_history_bridge.cli.query import make_query
from acp_history_bridge.cli.rows import Row, as_json
from acp_history_bridge.history import History, HistoryOptions
from acp_history_bridge.sessions import Change, Session, SessionQuery
from acp_history_bridge.text import shorten
from acp_history_bridge.timestamps import format_time
from acp_history_bridge.watch.root import WatchOptions

__all__ = ["follow", "matches", "run"]

_TITLE = 60


def run(arguments: Namespace, context: Context) -> int:
    """Follow all tools, or those that the options name."""
    prepare_stdout()
    adapters = context.adapters()
    query = make_query(arguments, adapters)
    watch = context.settings.watch
    options = HistoryOptions(
        watch=watch.mode != "off",
        debounce=watch.debounce_ms / 1000,
        ceiling=watch.ceiling_ms / 1000,
        reconcile=watch.reconcile_seconds,
        watching=WatchOptions(force_polling=watch.mode == "poll", poll_interval=watch.poll_seconds),
    )

    def show(change: Change) -> None:
        if matches(change.session, query):
            _print(change, context, as_lines=not arguments.jsonl)

    async def until_interrupted() -> None:
        history = History(lambda: context.library(adapters), options)
        await follow(history, show, lambda: _say_ready(arguments))

    anyio.run(until_interrupted)
    return 0


async def follow(history: History, show: Callable[[Change], None], ready: Callable[[], None]) -> None:
    """Hand every change over; `ready` is called when all that is there is known."""
    async with history, history.changes() as changes:
        await history.scanned()
        ready()
        async for batch in changes:
            for change in batch:
                show(change)


def matches(session: Session, query: SessionQuery) -> bool:
    """Whether the options ask for this session."""
    return (
        session.listed
        and (query.tools is None or session.tool in query.tools)
        and (query.cwd is None or session.cwd.rstrip("/") == str(query.cwd).rstrip("/"))
    )


def _say_ready(arguments: Namespace) -> None:
    if is_terminal() and not arguments.jsonl:
        print("Watching; Ctrl-C ends it.", file=sys.stderr)


def _print(change: Change, context: Context, *, as_lines: bool) -> None:
    session = change.session
    if not as_lines:
        row = as_json(Row(session, session.record.message_count))
        write_json({"change": change.kind, "time": format_time(datetime.now().astimezone()), "session": row})
    else:
        title = terminal_line(shorten(session.title or "(no title)", _TITLE))
        place = home_relative(session.cwd, context.environment.home) if session.cwd_known else "?"
        now = datetime.now().astimezone()
        sys.stdout.write(f"{now:%H:%M:%S}  {change.kind:<7}  {terminal_line(session.id)}  {title}  {place}\n")
    sys.stdout.flush()
