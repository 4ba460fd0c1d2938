"""Toad, the terminal client: started as its command line starts it, on a screen that is not there."""

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.install import debian_packages, debian_program, offline, python_packages
from tests.clients.world import NEW_TITLE, RESUME, UNKNOWN, World, snippet

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

PACKAGE = "batrachian-toad==0.6.20"

_PYTHON = "3.14"
_DRIVER = Path(__file__).parent / "drivers" / "toad_app.py"
_BLOCKS = {
    "user_message_chunk": "UserInput",
    "agent_thought_chunk": "AgentThought",
    "agent_message_chunk": "AgentResponse",
    "tool_call": "ToolCall",
}


@pytest.fixture(scope="module")
def toad(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The command that runs the driver with the Python that Toad wants."""
    site = python_packages(tmp_path_factory.mktemp("toad"), _PYTHON, PACKAGE)
    root = debian_packages(tmp_path_factory.mktemp("debian"), f"python{_PYTHON}")
    # Toad reports its use over the network unless it is told not to; here it has none.
    return (*offline(), *debian_program(root, f"python{_PYTHON}"), str(_DRIVER), str(site))


def test_it_browses_replays_and_names_an_unknown_session(toad: tuple[str, ...], world: World) -> None:
    """Its start and its prompt, a session of its own list with every text, how to continue it, and an error's words."""
    program, *arguments = shlex.split(snippet("Toad"))
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
