"""The official TypeScript SDK, which decodes every message by its schema."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.install import npm_packages, offline
from tests.clients.world import NEW_TITLE, UNKNOWN, World, conversation

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

PACKAGE = "@agentclientprotocol/sdk@2.4.0"

_DRIVER = Path(__file__).parent / "drivers" / "typescript_sdk.mjs"


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SDK."""
    return npm_packages(tmp_path_factory.mktemp("npm"), PACKAGE) / "@agentclientprotocol" / "sdk"


@pytest.mark.fault("J11")
def test_it_does_all_a_client_does_and_complains_of_nothing(sdk: Path, world: World) -> None:
    """Lists, loads every text and hears nothing after, hears of a title, browses, hides, and is refused the unknown."""
    command = [*offline(), "node", str(_DRIVER), str(sdk), world.scenario(), "acp-history-bridge", "acp"]
    done = subprocess.run(command, env=world.environment, capture_output=True, check=True, timeout=60)
    seen: dict[str, Any] = json.loads(done.stdout)

    assert (seen["complaints"], seen["exit"]) == ([], 0)
    assert seen["hello"]["agentInfo"]["name"] == "acp-history-bridge"
    assert [(session["sessionId"], session["title"], session["cwd"]) for session in seen["sessions"]] == [
        (recorded.id, recorded.title, recorded.cwd) for recorded in world.newest_first
    ]
    for recorded in world.newest_first:
        updates = seen["updates"][recorded.id][: seen["atAnswer"][recorded.id]]
        assert conversation(updates) == list(recorded.said)
    assert seen["later"] == seen["atAnswer"]
    assert seen["renamedSession"] == world.shop.id
    assert seen["updates"][world.shop.id][-1] == {"sessionUpdate": "session_info_update", "title": NEW_TITLE}
    assert (seen["unknown"]["code"], UNKNOWN in seen["unknown"]["message"]) == (-32002, True)
    assert seen["stopReason"] == "end_turn"
    assert f"/show {world.shop.id}" in dict(conversation(seen["browsed"]))["agent_message_chunk"]
    assert [session["sessionId"] for session in seen["inTheEnd"]] == [world.long.id, world.greeting.id]
    assert world.renaming()[0].exists()
