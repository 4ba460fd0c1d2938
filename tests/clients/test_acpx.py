"""acpx, the command-line client: lists, opens and prompts; it shows no replay, and keeps none."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.install import npm_packages, offline
from tests.clients.world import NEW_TITLE, RESUME, UNKNOWN, World

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

PACKAGE = "acpx@0.19.1"


class Acpx:
    """acpx as `bridge setup` configures it, without a network."""

    def __init__(self, program: Path, world: World) -> None:
        world.setup("acpx", "--write")
        self._command = (*offline(), str(program), "--ttl", "20")
        self._world = world

    def run(self, *arguments: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Run one command with the bridge as the agent."""
        return subprocess.run(
            [*self._command, *options, "history", *arguments],
            cwd=self._world.editor,
            env=self._world.environment,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    def out(self, *arguments: str, options: tuple[str, ...] = ()) -> str:
        """What a command that succeeds prints."""
        done = self.run(*arguments, options=options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *arguments: str) -> Any:  # noqa: ANN401 - whatever it prints
        """The last value that a command prints as JSON."""
        return json.loads(self.out(*arguments, options=("--format", "json")).splitlines()[-1])


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed program."""
    return npm_packages(tmp_path_factory.mktemp("npm"), PACKAGE) / ".bin" / "acpx"


@pytest.fixture
def acpx(program: Path, world: World) -> Iterator[Acpx]:
    """A machine of its own; the process that it keeps in the background is ended."""
    client = Acpx(program, world)
    yield client
    client.run("sessions", "close")


def test_it_lists_all_sessions_or_those_of_a_directory(acpx: Acpx, world: World) -> None:
    """With id, title, directory and time, newest first."""
    sessions = acpx.json("sessions", "list")["sessions"]
    assert [(session["sessionId"], session["title"], session["cwd"]) for session in sessions] == [
        (recorded.id, recorded.title, recorded.cwd) for recorded in world.newest_first
    ]
    here = acpx.out("sessions", "list", "--filter-cwd", f"{world.greeting.cwd}/", options=("--format", "quiet"))
    assert here.split() == [world.greeting.id]


@pytest.mark.parametrize("name", ["shop", "long", "greeting"])
def test_it_opens_a_session(acpx: Acpx, world: World, name: str) -> None:
    """The replay comes before the answer, and then there is the silence that acpx waits for."""
    recorded = getattr(world, name)
    opened = acpx.run("sessions", "new", "--resume-session", recorded.id)
    assert (opened.returncode, opened.stdout.strip()) == (0, recorded.id), opened.stderr
    assert "Timed out" not in opened.stderr


def test_a_prompt_to_a_record_says_how_to_continue(acpx: Acpx, world: World) -> None:
    """The answer is text, not an error."""
    acpx.out("sessions", "new", "--resume-session", world.shop.id)
    assert RESUME in acpx.out("Go on.", options=("--format", "quiet"))


def test_a_new_title_is_in_the_next_list(acpx: Acpx, world: World) -> None:
    """What is pushed meanwhile to the connection that acpx keeps open does it no harm."""
    acpx.out("sessions", "new", "--resume-session", world.shop.id)
    acpx.out("Go on.")
    world.rename()
    assert acpx.json("sessions", "list")["sessions"][0]["title"] == NEW_TITLE
    assert RESUME in acpx.out("And on.", options=("--format", "quiet"))


def test_an_unknown_session_is_told_from_other_failures(acpx: Acpx) -> None:
    """There is an exit status for it, and acpx does not start another session instead."""
    failed = acpx.run("sessions", "new", "--resume-session", UNKNOWN)
    assert failed.returncode == 4
    assert f"Resource not found: {UNKNOWN}" in failed.stderr


def test_it_browses(acpx: Acpx, world: World) -> None:
    """A single prompt in a new session lists, another shows a whole conversation."""
    listed = acpx.out("exec", "/list keys", options=("--format", "quiet"))
    assert f"/show {world.shop.id}" in listed
    assert world.greeting.id not in listed
    shown = acpx.out("exec", f"/show {world.shop.id}", options=("--format", "quiet"))
    for text in (*world.shop.texts("user_message_chunk"), *world.shop.texts("agent_message_chunk")):
        assert text in shown
