"""The machine of each test, and the clients, installed once."""

from pathlib import Path

import pytest

from tests.clients.world import World, make_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A machine with three recorded sessions."""
    return make_world(tmp_path)
