"""Changes on their way to one subscriber who may be slow.

Policy: what the subscriber has not taken yet is merged per session, so it is bounded by the number of sessions and
always tells the net effect; publishing never waits.
"""

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from acp_history_bridge.sessions import Change, Session

__all__ = ["ChangeFeed", "merge"]


class ChangeFeed:
    """The merging buffer of one subscriber."""

    def __init__(self, stream: MemoryObjectSendStream[tuple[Change, ...]]) -> None:
        self._stream = stream
        self._pending: dict[str, Change] = {}
        self._filled = anyio.Event()
        self._scope = anyio.CancelScope()

    def add(self, changes: tuple[Change, ...]) -> None:
        """Take changes in; returns at once."""
        for change in changes:
            merged = merge(self._pending.pop(change.session.id, None), change)
            if merged is not None:
                self._pending[change.session.id] = merged
        if self._pending:
            self._filled.set()

    async def run(self) -> None:
        """Hand batches over until the subscriber leaves or `close` is called."""
        with self._scope, self._stream:
            while True:
                await self._filled.wait()
                self._filled = anyio.Event()
                batch, self._pending = tuple(self._pending.values()), {}
                if batch:
                    try:
                        await self._stream.send(batch)
                    except anyio.BrokenResourceError:
                        return

    def close(self) -> None:
        """End `run`."""
        self._scope.cancel()


def merge(earlier: Change | None, later: Change) -> Change | None:
    """The net effect of two changes of one session; None when there is none."""
    if earlier is None:
        return later
    match earlier.kind, later.kind:
        case "added", "removed":
            return None
        case "added", _:
            return Change("added", later.session)
        case _, "removed":
            return later
        case "removed", _:
            return _changed(earlier.session, later)
        case _:
            return _changed(earlier.before or earlier.session, later)


def _changed(before: Session, later: Change) -> Change | None:
    return None if before == later.session else Change("changed", later.session, before)
