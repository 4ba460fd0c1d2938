"""What the newest CLIs write can be listed, replayed and forked, and they go on from the fork.

Not part of the suite: `pytest -m drift tests/drift` installs the CLIs from npm. Nothing else needs a network; the model
is ours. When one of these tests fails, a tool has changed what it writes.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from acp_history_bridge.adapter import Adapter
from acp_history_bridge.forking import take_in, write_fork
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.registry import load_adapters
from acp_history_bridge.sessions import Session, SessionQuery
from acp_history_bridge.turns import Text, ToolCall
from tests.conftest import environment_at
from tests.drift.clis import CLIS, Cli, run
from tests.drift.conftest import Install
from tests.model_servers.server import LOOK, Model, model_server
from tests.peers.bridge import running

pytestmark = [pytest.mark.drift, pytest.mark.timeout(900)]

PROMPT = f"What is the total? {LOOK}"
ANSWER = "The total is one."
BRIDGE = (sys.executable, "-m", "acp_history_bridge", "acp")


@dataclass
class Used:
    """A CLI that has been asked once, in a home of its own."""

    cli: Cli
    program: Path
    home: Path
    work: Path
    model: Model

    def go_on(self, native_id: str, prompt: str) -> None:
        """Ask it again, in a session that is there."""
        arguments = self.cli.go_on(native_id, prompt)
        run(self.cli, self.program, arguments, home=self.home, work=self.work, url=self.model.url)

    @contextmanager
    def library(self) -> Generator[tuple[Adapter, Library]]:
        """Its histories."""
        (adapter,) = load_adapters([self.cli.tool])
        library = Library([adapter], environment_at(self.home), IndexStore.open(None))
        for _ in library.scan():
            pass
        yield adapter, library
        library.close()


@pytest.fixture(params=CLIS, ids=lambda cli: cli.tool)
def used(request: pytest.FixtureRequest, install: Install, tmp_path: Path) -> Generator[Used]:
    """Each of the CLIs, after it was asked to look into a file."""
    cli: Cli = request.param
    program = install(cli)
    work = tmp_path / "src" / "shop"
    work.mkdir(parents=True)
    (work / "cart.py").write_text("total = 1\n", encoding="utf-8")
    with model_server(Model(ANSWER, cli.look(work / "cart.py"))) as model:
        run(cli, program, cli.ask(PROMPT), home=tmp_path, work=work, url=model.url)
        yield Used(cli, program, tmp_path, work, model)


def only_session(library: Library) -> Session:
    """The one that is listed."""
    (session,) = library.page(SessionQuery(), 10).sessions
    return session


def said(library: Library, session: Session) -> list[tuple[str, str]]:
    """Who said what, in order; for a call its status."""
    transcript = library.open(session)
    parts = [(turn.role, part) for turn in transcript.turns() for part in turn.parts]
    assert not transcript.problems
    transcript.close()
    return [
        (role, part.text if isinstance(part, Text) else part.status)
        for role, part in parts
        if isinstance(part, Text | ToolCall)
    ]


def test_a_fresh_transcript_is_understood_to_the_last_record(used: Used) -> None:
    """Title, directory, prompt, the call of a tool and the answer; no record that the adapter does not know."""
    with used.library() as (_, library):
        session = only_session(library)
        assert (session.title, session.cwd) == (PROMPT, str(used.work))
        assert said(library, session) == [("user", PROMPT), ("agent", "completed"), ("agent", ANSWER)]
        assert library.problems() == ()


def test_the_bridge_lists_and_replays_it_to_a_client(used: Used) -> None:
    """The same through the real program, over its pipes."""
    with running(BRIDGE, {"HOME": str(used.home)}) as bridge:
        bridge.initialize()
        (listed,) = bridge.request("session/list")["sessions"]
        assert listed["cwd"] == str(used.work)
        bridge.load(listed["sessionId"], listed["cwd"])
        texts = [
            update["content"]["text"]
            for kind in ("user_message_chunk", "agent_message_chunk")
            for update in bridge.updates(listed["sessionId"], kind)
        ]
        assert texts == [PROMPT, ANSWER]
        assert len(bridge.updates(listed["sessionId"], "tool_call")) == 1


def test_the_tool_goes_on_from_a_fork(used: Used) -> None:
    """It sends the model what was said before, writes to the fork, and leaves the original as it was."""
    with used.library() as (adapter, library):
        original = only_session(library)
        before = original.unit.path.read_bytes()
        fork, _ = take_in(library, adapter, original, write_fork(adapter, original))
        told = said(library, original)
        assert said(library, fork) == told
    used.model.asked.clear()
    used.model.text = "Still one."
    used.go_on(fork.record.native_id, "And now?")
    assert any(PROMPT in asked and ANSWER in asked and "And now?" in asked for asked in used.model.asked)
    assert original.unit.path.read_bytes() == before
    with used.library() as (_, library):
        found = {session.record.native_id: session for session in library.page(SessionQuery(), 10).sessions}
        assert found.keys() == {original.record.native_id, fork.record.native_id}
        again = found[fork.record.native_id]
        assert again.record.parent == original.record.native_id
        assert said(library, again) == [*told, ("user", "And now?"), ("agent", "Still one.")]
