"""The histories as the agent front-end sees them: always answering, always catching up with the disk.

Policy:

- All work on the index happens on one worker thread, a client's requests before any scanning. Scans are taken in short
  steps, so a list is answered while the first scan still runs, as soon as nothing found later can change it.
- One task keeps up with the disk, so a refresh and a scan never overlap: first scan, then watch, then scan again for
  what changed before the watches stood; from then on whatever the watcher marks, and all by `stat` twice a minute.
- A failure in there is logged and ends nothing: the next reconciliation tries again.
- Subscribers are told what changed. What the first scan *finds* is no news; what it finds changed is.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream

from acp_history_bridge.adapter import Adapter, Command, Store, Transcript
from acp_history_bridge.decisions import Decisions
from acp_history_bridge.feed import ChangeFeed
from acp_history_bridge.forking import take_in, write_fork
from acp_history_bridge.sessions import Change, Page, Session, SessionQuery, ToolSummary, plain_id
from acp_history_bridge.trash import move_to_trash
from acp_history_bridge.watch import Watcher, WatchOptions, WatchStatus
from acp_history_bridge.worker import Priority, Worker

__all__ = ["History", "HistoryOptions", "SessionIndex", "Step"]

_T = TypeVar("_T")

_PATHS_PER_REFRESH = 64  # so that a request never waits for a burst of thousands
_SETTLING_SECONDS = 2.0
_CLOSE_SECONDS = 0.5

_COUNTED = {"added": 1, "removed": -1}

_log = logging.getLogger(__name__)


class Step(Protocol):
    """One short step of a scan; implemented by `acp_history_bridge.index.library.ScanStep`."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """What the step found out."""
        ...


class SessionIndex(Protocol):
    """What is asked of the index, on one thread; implemented by `acp_history_bridge.index.library.Library`."""

    @property
    def decisions(self) -> Decisions: ...  # noqa: D102 - documented where it is implemented, as all below
    @property
    def stores(self) -> tuple[Store, ...]: ...  # noqa: D102

    def scan(self) -> Iterator[Step]: ...  # noqa: D102
    def rescan(self, store: Store) -> Iterator[Step]: ...  # noqa: D102
    def refresh(self, paths: Iterable[Path]) -> tuple[Change, ...]: ...  # noqa: D102
    def page(self, query: SessionQuery, limit: int, cursor: str | None = None) -> Page: ...  # noqa: D102
    def settled(self, query: SessionQuery, limit: int, cursor: str | None = None) -> bool: ...  # noqa: D102
    def count(self, query: SessionQuery) -> int: ...  # noqa: D102
    def find(self, session_id: str) -> Session | None: ...  # noqa: D102
    def decided(self) -> tuple[Change, ...]: ...  # noqa: D102
    def open(self, session: Session) -> Transcript: ...  # noqa: D102
    def adapter(self, tool: str) -> Adapter: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """How to keep up with the disk.

    Attributes:
        watch: Whether to watch at all; without it only the reconciliation notices changes.
        debounce: Seconds of quiet before changed files are read.
        ceiling: Seconds after which they are read even though changes go on.
        reconcile: Seconds between two comparisons of everything by `stat`.
        watching: See `WatchOptions`.
    """

    watch: bool = True
    debounce: float = 0.15
    ceiling: float = 1.0
    reconcile: float = 30.0
    watching: WatchOptions = field(default_factory=WatchOptions)


class History:
    """The real `SessionSource`. Enter it as an async context manager; it starts working at once, in the background."""

    def __init__(self, open_index: Callable[[], SessionIndex], options: HistoryOptions | None = None) -> None:
        """Prepare; nothing is opened before it is entered.

        Args:
            open_index: Called once, on the worker thread, which alone then uses (and closes) the index.
            options: See `HistoryOptions`.
        """
        self._open_index = open_index
        self._options = options or HistoryOptions()
        self._index: SessionIndex | None = None
        self._worker = Worker("history-index")
        self._watch_worker = Worker("history-watch")
        self._watcher: Watcher | None = None
        self._steps: Iterator[Step] | None = None
        self._tools: dict[str, Adapter] = {}
        self._counts: Counter[str] = Counter()
        self._feeds: set[ChangeFeed] = set()
        self._tasks: TaskGroup | None = None
        self._woken = anyio.Event()
        self._progress = anyio.Event()
        self._scanned = anyio.Event()

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        self._tasks.start_soon(self._keep_up)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        del kind, error, traceback
        assert self._tasks is not None
        self._tasks.cancel_scope.cancel()
        try:
            # Without the error: a task group would wrap it, although it is none of its tasks'.
            await self._tasks.__aexit__(None, None, None)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._stop_threads)

    async def page(self, query: SessionQuery, limit: int, cursor: str | None = None) -> Page:
        """List sessions; see `SessionSource.page`."""
        while True:
            progress = self._progress
            page = await self._request(partial(self._page_if_settled, query, limit, cursor))
            if page is not None:
                return page
            await progress.wait()

    async def find(self, session_id: str) -> Session | None:
        """Look a wire id up; see `SessionSource.find`."""
        session = await self._request(lambda index: index.find(session_id))
        if session is None and not self._scanned.is_set():
            await self._scanned.wait()
            session = await self._request(lambda index: index.find(session_id))
        return session

    async def scanned(self) -> None:
        """Wait for the first complete scan."""
        await self._scanned.wait()

    async def count(self, query: SessionQuery) -> int:
        """How many sessions a query finds; see `SessionSource.count`."""
        await self._scanned.wait()
        return await self._request(lambda index: index.count(query))

    async def hide(self, session: Session) -> None:
        """Leave a session out of every list; see `SessionSource.hide`."""
        await self._decide(lambda decisions: decisions.hide(session.id))

    async def archive(self, session: Session, *, archived: bool) -> None:
        """Put a session away, or back; see `SessionSource.archive`."""
        await self._decide(lambda decisions: (decisions.archive if archived else decisions.unarchive)(session.id))

    async def set_title(self, session: Session, title: str) -> None:
        """Give a session a title of the user's; see `SessionSource.set_title`."""
        await self._decide(lambda decisions: decisions.set_title(session.id, title))

    async def trash(self, session: Session) -> None:
        """Move a session's own files to the desktop's trash; see `SessionSource.trash`."""
        adapter = await self._request(lambda index: index.adapter(session.tool))
        paths = await anyio.to_thread.run_sync(move_to_trash, adapter, session)
        self._publish(await self._request(lambda index: index.refresh(paths)))
        if await self._request(lambda index: index.find(session.id)) is not None:
            await self.hide(session)  # a log that all sessions share still knows of it

    async def fork(self, session: Session) -> Session:
        """Make a new session that goes on from where this one ends; see `SessionSource.fork`."""
        adapter = await self._request(lambda index: index.adapter(session.tool))
        # The copy of a long transcript must not keep others waiting.
        fork = await anyio.to_thread.run_sync(write_fork, adapter, session)
        found, changes = await self._request(lambda index: take_in(index, adapter, session, fork))
        self._publish(changes)
        return found

    async def open(self, session: Session) -> Transcript:
        """Open a session for reading; see `SessionSource.open`."""
        return await self._request(lambda index: index.open(session))

    async def active_sessions(self) -> frozenset[str]:
        """Wire ids of the sessions that a running process of their tool has open, as far as the tools tell."""
        return await self._request(_active_sessions)

    def resume_command(self, session: Session) -> Command | None:
        """How a person goes on with this session in its own tool; None where the tool cannot."""
        adapter = self._tools.get(session.tool)
        if adapter is None:
            return None
        try:
            return adapter.resume_command(session.record)
        except Exception:  # noqa: BLE001 - a third party's adapter must not break the answer it is part of
            _log.exception("the adapter %s failed to name a resume command", session.tool)
            return None

    def tools(self) -> tuple[ToolSummary, ...]:
        """The tools whose histories are read, in the registry's order; touches no disk."""
        return tuple(ToolSummary(name, adapter.title, self._counts[name]) for name, adapter in self._tools.items())

    @asynccontextmanager
    async def changes(self) -> AsyncGenerator[MemoryObjectReceiveStream[tuple[Change, ...]]]:
        """Subscribe to what happens from now on, in batches, merged while the subscriber is busy."""
        assert self._tasks is not None
        send, receive = anyio.create_memory_object_stream[tuple[Change, ...]](0)
        feed = ChangeFeed(send)
        self._feeds.add(feed)
        self._tasks.start_soon(feed.run)
        try:
            async with receive:
                yield receive
        finally:
            self._feeds.discard(feed)
            feed.close()

    async def watch_status(self) -> WatchStatus | None:
        """How well the stores are watched; None while they are not."""
        watcher = self._watcher
        return None if watcher is None else await self._watch_worker.run(Priority.REQUEST, watcher.status)

    async def _request(self, function: Callable[[SessionIndex], _T]) -> _T:
        return await self._worker.run(Priority.REQUEST, lambda: function(self._opened()))

    async def _decide(self, decide: Callable[[Decisions], object]) -> None:
        def decide_here(index: SessionIndex) -> tuple[Change, ...]:
            decide(index.decisions)
            return index.decided()

        self._publish(await self._request(decide_here))

    def _opened(self) -> SessionIndex:
        if self._index is None:
            index = self._open_index()
            tools = {tool: index.adapter(tool) for tool in dict.fromkeys(store.tool for store in index.stores)}
            self._counts.update({tool: index.count(SessionQuery(tools=frozenset({tool}))) for tool in tools})
            self._index, self._tools = index, tools
        return self._index

    def _page_if_settled(self, query: SessionQuery, limit: int, cursor: str | None, index: SessionIndex) -> Page | None:
        if self._scanned.is_set() or index.settled(query, limit, cursor):
            return index.page(query, limit, cursor)
        return None

    async def _keep_up(self) -> None:
        await self._survive(self._scan(lambda index: index.scan(), news=False))
        self._scanned.set()
        self._advance()
        if self._options.watch:
            await self._survive(self._start_watching())
            await self._survive(self._scan(lambda index: index.scan()))
        due = time.monotonic() + self._options.reconcile
        while True:
            with anyio.move_on_after(due - time.monotonic()):
                await self._woken.wait()
            if self._woken.is_set() and await self._survive(self._catch_up()):
                due = min(due, time.monotonic() + _SETTLING_SECONDS)
            if time.monotonic() >= due:
                await self._survive(self._reconcile())
                due = time.monotonic() + self._options.reconcile

    async def _survive(self, work: Awaitable[_T]) -> _T | None:
        try:
            return await work
        except Exception:  # noqa: BLE001 - whatever it is, the next reconciliation tries again
            _log.exception("catching up with the histories on disk failed")
            return None

    async def _start_watching(self) -> None:
        index = await self._request(lambda index: index)
        loop = asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop has been closed meanwhile
                loop.call_soon_threadsafe(self._wake)

        self._watcher = Watcher(index.stores, wake, self._options.watching)
        await self._watch_worker.run(Priority.CHANGE, self._watcher.start)

    def _wake(self) -> None:
        self._woken.set()

    async def _catch_up(self) -> bool:
        """Read what the watcher marked; True when it could not say what exactly has changed."""
        assert self._watcher is not None
        await self._quiet(self._watcher)
        self._woken = anyio.Event()
        dirty = await self._watch_worker.run(Priority.CHANGE, self._watcher.take)
        paths = sorted(dirty.paths)
        for start in range(0, len(paths), _PATHS_PER_REFRESH):
            await self._refresh(paths[start : start + _PATHS_PER_REFRESH])
        for root in dirty.roots_to_rescan:
            await self._scan(partial(_rescan, root))
        return bool(dirty.roots_to_rescan)

    async def _quiet(self, watcher: Watcher) -> None:
        latest = time.monotonic() + self._options.ceiling
        while True:
            wait = min(watcher.last_change + self._options.debounce, latest) - time.monotonic()
            if wait <= 0:
                return
            await anyio.sleep(wait)

    async def _reconcile(self) -> None:
        if self._watcher is not None:
            await self._watch_worker.run(Priority.CHANGE, self._watcher.check)
        elif self._options.watch:  # the index could not be opened until now
            await self._start_watching()
        await self._scan(lambda index: index.scan())

    async def _refresh(self, paths: list[Path]) -> None:
        self._publish(await self._worker.run(Priority.CHANGE, lambda: self._opened().refresh(paths)))

    async def _scan(self, begin: Callable[[SessionIndex], Iterator[Step]], *, news: bool = True) -> None:
        def begin_here() -> None:
            self._end_steps()
            self._steps = begin(self._opened())

        await self._worker.run(Priority.SCAN, begin_here)
        while (step := await self._worker.run(Priority.SCAN, self._next_step)) is not None:
            self._publish(step.changes, news=news)
            self._advance()

    def _next_step(self) -> Step | None:
        return None if self._steps is None else next(self._steps, None)

    def _end_steps(self) -> None:
        """Close an unfinished scan where it ran; the garbage collector would do it in any thread."""
        close = getattr(self._steps, "close", None)
        if callable(close):
            close()
        self._steps = None

    def _advance(self) -> None:
        self._progress.set()
        self._progress = anyio.Event()

    def _publish(self, changes: tuple[Change, ...], *, news: bool = True) -> None:
        for change in changes:
            if change.session.listed:
                self._counts[change.session.tool] += _COUNTED.get(change.kind, 0)
        told = changes if news else tuple(change for change in changes if change.kind != "added")
        for feed in self._feeds:
            feed.add(told)

    def _stop_threads(self) -> None:
        if self._watcher is not None:
            self._watch_worker.stop(self._watcher.stop, _CLOSE_SECONDS)
        self._worker.stop(self._close_index, _CLOSE_SECONDS)

    def _close_index(self) -> None:
        self._end_steps()
        if self._index is not None:
            self._index.close()


def _rescan(root: Path, index: SessionIndex) -> Iterator[Step]:
    for store in index.stores:
        if store.root == root:
            yield from index.rescan(store)


def _active_sessions(index: SessionIndex) -> frozenset[str]:
    active: set[str] = set()
    for store in index.stores:
        adapter = index.adapter(store.tool)
        try:
            native_ids = adapter.active_sessions(store)
        except Exception:  # noqa: BLE001 - a third party's adapter must not cost the others' answers
            _log.exception("the adapter %s failed to name its active sessions", store.tool)
            continue
        sessions = [index.find(plain_id(adapter.prefix, native_id)) for native_id in native_ids]
        active.update(session.id for session in sessions if session is not None and session.unit.store == store)
    return frozenset(active)
