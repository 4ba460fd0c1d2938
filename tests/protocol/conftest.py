"""Connections for the tests of the agent."""

from collections.abc import Generator

import pytest

from tests.peers.bridge import Connection, connected
from tests.peers.memory import MemorySource, say, session


@pytest.fixture
def source() -> MemorySource:
    """Histories with one session of two turns."""
    made = MemorySource()
    made.add(session(), [say(0), say(1)])
    return made


@pytest.fixture
def raw(source: MemorySource) -> Generator[Connection]:
    """A connection before `initialize`."""
    with connected(source) as connection:
        yield connection


@pytest.fixture
def bridge(raw: Connection) -> Connection:
    """A connection after `initialize`."""
    raw.initialize()
    return raw
