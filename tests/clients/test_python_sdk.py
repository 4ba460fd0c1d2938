"""The official Python SDK, in the stripped environment it gives to agents."""

from typing import Any

import anyio
import pytest

from tests.clients.world import NEW_TITLE, RESUME, UNKNOWN, World, conversation

acp = pytest.importorskip("acp", reason="the Python SDK has no release for this Python")

pytestmark = [pytest.mark.clients, pytest.mark.timeout(60)]


class _Client:
    """Keeps what it is told, by session."""

    def __init__(self) -> None:
        self.updates: dict[str, list[dict[str, Any]]] = {}
        self.titles: dict[str, str] = {}
        self.renamed = anyio.Event()

    async def session_update(self, session_id: str, update: Any, **_: object) -> None:  # noqa: ANN401 - any of its models
        known = update.model_dump(by_alias=True, exclude_none=True)
        self.updates.setdefault(session_id, []).append(known)
        if known["sessionUpdate"] == "session_info_update":
            self.titles[session_id] = known.get("title", self.titles.get(session_id))
            if known.get("title") == NEW_TITLE:
                self.renamed.set()

    def on_connect(self, conn: object) -> None:
        del conn


@pytest.fixture
def command(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The bridge, in the world's environment: the SDK passes on the six variables it thinks safe."""
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    return ("acp-history-bridge", "acp")


async def test_it_lists_and_loads_every_text(world: World, command: tuple[str, ...]) -> None:
    """Sessions come newest first, and each load has brought all texts and the title when it is answered."""
    client = _Client()
    async with acp.spawn_agent_process(client, *command, cwd=world.editor, use_unstable_protocol=True) as (agent, _):
        hello = await agent.initialize(protocol_version=1)
        assert (hello.protocol_version, hello.agent_info.name) == (1, "acp-history-bridge")
        listed = await agent.list_sessions()
        facts = [(session.session_id, session.title, session.cwd) for session in listed.sessions]
        assert facts == [(recorded.id, recorded.title, recorded.cwd) for recorded in world.newest_first]
        for recorded in world.newest_first:
            await agent.load_session(cwd=str(world.editor), session_id=recorded.id, mcp_servers=[])
            assert conversation(client.updates[recorded.id]) == list(recorded.said)
            assert client.titles[recorded.id] == recorded.title


async def test_it_hears_of_a_new_title(world: World, command: tuple[str, ...]) -> None:
    """A session that is open gets its new title while the client looks on."""
    client = _Client()
    async with acp.spawn_agent_process(client, *command, cwd=world.editor, use_unstable_protocol=True) as (agent, _):
        await agent.initialize(protocol_version=1)
        await agent.load_session(cwd=str(world.editor), session_id=world.shop.id, mcp_servers=[])
        world.rename()
        with anyio.fail_after(15):
            await client.renamed.wait()


async def test_it_is_told_that_a_session_is_unknown(world: World, command: tuple[str, ...]) -> None:
    """By code, and in words that name it."""
    async with acp.spawn_agent_process(_Client(), *command, cwd=world.editor) as (agent, _):
        await agent.initialize(protocol_version=1)
        with pytest.raises(acp.RequestError, match=UNKNOWN) as caught:
            await agent.load_session(cwd=str(world.editor), session_id=UNKNOWN, mcp_servers=[])
        assert caught.value.code == -32002


async def test_it_browses_and_learns_how_to_continue(world: World, command: tuple[str, ...]) -> None:
    """A new session answers commands; a recorded one says how its own tool goes on with it."""
    client = _Client()
    async with acp.spawn_agent_process(client, *command, cwd=world.editor) as (agent, _):
        await agent.initialize(protocol_version=1)
        created = await agent.new_session(cwd=str(world.editor), mcp_servers=[])
        answers: list[str] = []
        for session_id, prompt in ((created.session_id, "/list keys"), (world.shop.id, "Go on.")):
            done = await agent.prompt(session_id=session_id, prompt=[acp.text_block(prompt)])
            assert done.stop_reason == "end_turn"
            [(kind, text)] = conversation(client.updates[session_id])
            assert kind == "agent_message_chunk"
            answers.append(text)
    assert f"/show {world.shop.id}" in answers[0]
    assert world.greeting.id not in answers[0]
    assert RESUME in answers[1]


async def test_it_copies_a_session_for_its_own_tool(world: World, command: tuple[str, ...]) -> None:
    """The copy has all that the original has, which stays as it is."""
    original = world.renaming()[0]
    before = original.read_bytes()
    client = _Client()
    async with acp.spawn_agent_process(client, *command, cwd=world.editor, use_unstable_protocol=True) as (agent, _):
        await agent.initialize(protocol_version=1)
        copy = await agent.fork_session(cwd=world.shop.cwd, session_id=world.shop.id, mcp_servers=[])
        await agent.load_session(cwd=str(world.editor), session_id=copy.session_id, mcp_servers=[])
    assert conversation(client.updates[copy.session_id]) == list(world.shop.said)
    assert (original.read_bytes(), len(list(original.parent.iterdir()))) == (before, 3)
