"""docs/clients.md shows what `bridge setup` prints."""

from pathlib import Path

import pytest

from acp_history_bridge.cli.clients import CLIENTS, Client

_PAGE = Path(__file__).parents[2] / "docs" / "clients.md"


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_the_page_shows_the_snippet(client: Client) -> None:
    """Each in a block of its own, with the command as the search path finds it."""
    assert f"\n{client.snippet(['acp-history-bridge', 'acp'])}\n```\n" in _PAGE.read_text(encoding="utf-8")
