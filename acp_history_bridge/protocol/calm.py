"""Silence around loads.

acpx wants 80 ms without updates within 5 s after a load's answer, and other clients draw an update that comes during
a replay into the wrong place. So whatever is not asked for waits until no load runs and the last one's answer has been
in the pipe for a while.
"""

from typing import Final

import anyio

__all__ = ["Calm"]

_SILENCE: Final = 0.25


class Calm:
    """Counts the loads of a connection."""

    def __init__(self) -> None:
        self._loads = 0
        self._quiet_from = 0.0
        self._ended = anyio.Event()

    def begin(self) -> None:
        """A load starts."""
        if self._loads == 0:
            self._ended = anyio.Event()
        self._loads += 1

    def end(self) -> None:
        """A load has been answered."""
        self._loads -= 1
        self._quiet_from = anyio.current_time() + _SILENCE
        if self._loads == 0:
            self._ended.set()

    async def wait(self) -> None:
        """Wait until an update disturbs nobody."""
        while True:
            if self._loads:
                await self._ended.wait()
            elif (remaining := self._quiet_from - anyio.current_time()) > 0:
                await anyio.sleep(remaining)
            else:
                return
