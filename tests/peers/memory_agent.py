"""The agent over made-up histories, as a program: `python -m tests.peers.memory_agent [turns] [text length]`.

`made:1` is a short session, `made:long` one with the given number of turns. With `NOISY` in the environment it prints,
and has a child print, while it serves.
"""

import logging
import os
import subprocess
import sys
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
    yield source


if __name__ == "__main__":
    logging.getLogger().addHandler(logging.NullHandler())
    sys.exit(serve(_source, Settings()))
