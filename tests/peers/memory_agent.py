"""The agent over made-up histories, as a program: `python -m tests.peers.memory_agent [turns] [text length]`.

`made:1` is a short session, `made:long` one with the given number of turns. With `NOISY` in the environment it prints,
and has a child print, while it serves; with `STUCK` there is `made:stuck`, whose reading never ends.
"""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

from acp_history_bridge.protocol.server import serve
from acp_history_bridge.settings import Settings
from acp_history_bridge.turns import Turn
from tests.peers.memory import MemorySource, say, session


class _Turns:
    """A long conversation that takes no memory."""

    def __init__(self, count: int, length: int) -> None:
        self._count = count
        self._text = "x" * length

    def __iter__(self) -> Iterator[Turn]:
        return (say(number, f"{number} {self._text}") for number in range(self._count))


class _Stuck:
    """A conversation that cannot be read to its end, as on a network mount that has gone."""

    def __iter__(self) -> Iterator[Turn]:
        yield say(0)
        threading.Event().wait()


def _disturb() -> None:
    print("a stray print")  # noqa: T201 - that is the point
    os.write(1, b"a stray write\n")
    subprocess.run(["/bin/echo", "a stray child"], check=True)


@asynccontextmanager
async def _source() -> AsyncGenerator[MemorySource]:
    if "NOISY" in os.environ:
        _disturb()
    source = MemorySource()
    source.add(session("made:1"), [say(0), say(1)])
    count, length = (int(argument) for argument in (*sys.argv[1:], "1000", "100")[:2])
    source.add(session("made:long", "A long one"), _Turns(count, length))
    if "STUCK" in os.environ:
        source.add(session("made:stuck", "A stuck one"), _Stuck())
    yield source


if __name__ == "__main__":
    logging.getLogger().addHandler(logging.NullHandler())
    sys.exit(serve(_source, Settings()))
