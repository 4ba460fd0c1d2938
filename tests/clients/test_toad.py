"""Toad, the terminal client: started as its command line starts it, on a screen that is not there."""

import json
import shlex
import subprocess
from typing import Any

import pytest

from tests.clients.toad import install_toad
from tests.clients.world import NEW_TITLE, RESUME, UNKNOWN, World

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]


_BLOCKS = {
    "user_message_chunk": "UserInput",
    "agent_thought_chunk": "AgentThought",
    "agent_message_chunk": "AgentResponse",
    "tool_call": "ToolCall",
}


@pytest.fixture(scope="module")
def toad(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The command that runs the driver with the Python that Toad wants."""
    return install_toad(tmp_path_factory.mktemp("toad"))


def test_it_browses_replays_and_names_an_unknown_session(toad: tuple[str, ...], world: World) -> None:
    """Its start and its prompt, a session of its own list with every text, how to continue it, and an error's words."""
    program, *arguments = shlex.split(world.setup("toad"))
    assert program == "toad"
    last = world.shop.said[-1][1].splitlines()[-2]
    command = [*toad, world.scenario(prompt="keys", last=last), *arguments]
    done = subprocess.run(
        command, cwd=world.editor, env=world.environment, capture_output=True, check=True, timeout=200
    )
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])

    _, (kind, listed) = seen["browsed"]["blocks"]
    assert (kind, f"/show {world.shop.id}" in listed) == ("AgentResponse", True)
    assert set(seen["browsed"]["commands"]) >= {"/list", "/show", "/help"}
    replayed = [[_BLOCKS[kind], text] for kind, text in world.shop.said]
    *before, (kind, answer) = seen["loaded"]["blocks"]
    assert before == [*replayed, ["UserInput", "Go on."]]
    assert RESUME in answer
    assert "Edit basket.py" in seen["loaded"]["screen"]
    assert NEW_TITLE not in seen["loaded"]["screen"]
    [(kind, told)] = seen["unknown"]["blocks"]
    assert (kind, UNKNOWN in told) == ("Note", True)
