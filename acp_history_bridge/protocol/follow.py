"""Open sessions: the replay of a load, and what is added to the transcript afterwards.

Policy:

- A transcript is read and encoded in a worker thread, in batches of about 256 KiB or 50 ms; the next batch is read when
  the client has taken the one before, so neither memory nor the client's queue grows with the session.
- Loads of one session follow each other, loads of different sessions run side by side, a few at a time.
- An opened transcript stays open, and when its session changes, what is new is sent: not before the load has been
  answered for a while (`calm.py`), at most four times a second, until the session is closed. Beyond 64 open sessions
  the one that was loaded longest ago is no longer followed.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from weakref import WeakValueDictionary

import anyio
from anyio import CapacityLimiter, to_thread

from acp_history_bridge.adapter import Transcript
from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.calm import Calm
from acp_history_bridge.protocol.jsonrpc import where
from acp_history_bridge.protocol.replay import Replay
from acp_history_bridge.protocol.wire import Json
from acp_history_bridge.sessions import Change, Session
from acp_history_bridge.turns import Turn

__all__ = ["Ending", "OpenSessions"]

_BATCH_BYTES = 256 * 1024
_BATCH_SECONDS = 0.05
_INTERVAL = 0.25
_FOLLOWED_LIMIT = 64
_LOADS_AT_ONCE = 4

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ending:
    """What is known of a replay once it is through.

    Attributes:
        left_out: Messages off the active branch.
        problems: Records that could not be read.
    """

    left_out: int
    problems: int


@dataclass(frozen=True, slots=True)
class _Opened:
    session: Session
    transcript: Transcript
    replay: Replay


class OpenSessions:
    """The sessions that a client has loaded."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], calm: Calm, *, follow: bool) -> None:
        self._send = send
        self._calm = calm
        self._follow = follow
        self._opened: dict[str, _Opened] = {}
        self._dirty: set[str] = set()
        self._wake = anyio.Event()
        self._threads = CapacityLimiter(_LOADS_AT_ONCE)
        self._slots = CapacityLimiter(_LOADS_AT_ONCE)  # of open descriptors, and of replays in memory
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def load(self, session: Session, open_: Callable[[], Awaitable[Transcript]], replay: Replay) -> Ending:
        """Send a session's title and its whole replay, and follow it from then on.

        Raises:
            TranscriptError: It cannot be opened.
        """
        async with self._lock(session.id), self._slots:
            transcript = await open_()
            try:
                title = wire.session_info_update(session.title, session.updated_at)
                await self._send(wire.update(session.id, title))
                await self._stream(session.id, transcript, replay)
                ending = await to_thread.run_sync(_ending, session.id, transcript, limiter=self._threads)
                await self._send(ending[1])
            except BaseException:
                await _close(transcript)
                raise
            await self._keep(_Opened(session, transcript, replay))
        return ending[0]

    async def resume(self, session: Session, open_: Callable[[], Awaitable[Transcript]], replay: Replay) -> None:
        """Follow a session from its present end on, and send nothing of what is there already.

        Raises:
            TranscriptError: It cannot be opened.
        """
        async with self._lock(session.id), self._slots:
            transcript = await open_()
            try:
                turns = transcript.turns()
                while await to_thread.run_sync(_skip, turns, limiter=self._threads):
                    pass
            except BaseException:
                await _close(transcript)
                raise
            await self._keep(_Opened(session, transcript, replay))

    async def close(self, session_id: str) -> None:
        """Let go of a session; nothing is sent for it any more."""
        opened = self._opened.pop(session_id, None)
        if opened is not None:
            async with self._lock(session_id):
                await _close(opened.transcript)

    async def close_all(self) -> None:
        """Let go of all sessions."""
        for session_id in list(self._opened):
            await self.close(session_id)

    def changed(self, changes: Iterable[Change]) -> None:
        """Note which open sessions have something new."""
        self._mark(change.session.id for change in changes if change.kind == "changed")

    async def run(self) -> None:
        """Send what is added to open sessions, for ever."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            while self._dirty:
                await self._calm.wait()
                session_id = self._dirty.pop()
                opened = self._opened.get(session_id)
                if opened is not None:
                    await self._catch_up(opened)
            await anyio.sleep(_INTERVAL)

    def _lock(self, session_id: str) -> anyio.Lock:
        return self._locks.setdefault(session_id, anyio.Lock())

    def _mark(self, session_ids: Iterable[str]) -> None:
        self._dirty.update(session_id for session_id in session_ids if session_id in self._opened)
        if self._dirty:
            self._wake.set()

    async def _keep(self, opened: _Opened) -> None:
        before = self._opened.pop(opened.session.id, None)
        stale = [] if before is None else [before]
        if self._follow:
            self._opened[opened.session.id] = opened
            # What was written while the replay ran was announced before anyone listened.
            self._mark([opened.session.id])
        else:
            stale.append(opened)
        if len(self._opened) > _FOLLOWED_LIMIT:
            stale.append(self._opened.pop(next(iter(self._opened))))
        for old in stale:
            await _close(old.transcript)

    async def _catch_up(self, opened: _Opened) -> None:
        session_id = opened.session.id
        async with self._lock(session_id):
            if self._opened.get(session_id) is not opened:  # closed or loaded again meanwhile
                return
            opened.replay.live = True
            try:
                await self._stream(session_id, opened.transcript, opened.replay)
            except Exception as error:  # noqa: BLE001 - one transcript's trouble must not end the others' following
                _log.warning("%s is no longer followed: %s", session_id, where(error))
                del self._opened[session_id]
                await _close(opened.transcript)

    async def _stream(self, session_id: str, transcript: Transcript, replay: Replay) -> None:
        updates = (update for turn in transcript.turns() for update in replay.updates(turn))
        more = True
        while more:
            frames, more = await to_thread.run_sync(_batch, session_id, updates, limiter=self._threads)
            await self._send(frames)


def _batch(session_id: str, updates: Iterator[Json]) -> tuple[bytes, bool]:
    frames = bytearray()
    deadline = time.monotonic() + _BATCH_SECONDS
    for update in updates:
        frames += wire.update(session_id, update)
        if len(frames) >= _BATCH_BYTES or time.monotonic() > deadline:
            return bytes(frames), True
    return bytes(frames), False


def _skip(turns: Iterator[Turn]) -> bool:
    """Read on for a moment; False at the end."""
    deadline = time.monotonic() + _BATCH_SECONDS
    return any(time.monotonic() > deadline for _ in turns)


def _ending(session_id: str, transcript: Transcript) -> tuple[Ending, bytes]:
    recorded = transcript.usage
    usage = None if recorded is None else wire.usage(recorded)
    frame = b"" if usage is None else wire.update(session_id, usage)
    return Ending(transcript.left_out, len(transcript.problems)), frame


async def _close(transcript: Transcript) -> None:
    with anyio.CancelScope(shield=True):
        await to_thread.run_sync(transcript.close)
