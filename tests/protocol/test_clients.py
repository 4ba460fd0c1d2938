"""The official Python SDK drives the agent; tests/clients drives the whole program with more clients."""

from typing import Any

import pytest

from tests.peers.bridge import MEMORY_AGENT, ROOT

acp = pytest.importorskip("acp", reason="the Python SDK has no release for this Python")


@pytest.mark.process
@pytest.mark.fault("J11")
async def test_the_python_sdk_lists_and_loads() -> None:
    """Through its own transport and models, in the stripped environment it gives to agents."""
    updates: list[tuple[str, Any]] = []

    class Client:
        async def session_update(self, session_id: str, update: object, **_: object) -> None:
            updates.append((session_id, update))

        def on_connect(self, conn: object) -> None:
            del conn

    async with acp.spawn_agent_process(Client(), *MEMORY_AGENT, cwd=ROOT, use_unstable_protocol=True) as (agent, _):
        hello = await agent.initialize(protocol_version=1)
        assert hello.agent_info.name == "acp-history-bridge"
        listed = await agent.list_sessions()
        assert [session.session_id for session in listed.sessions] == ["made:1", "made:long"]
        for session in listed.sessions:
            await agent.load_session(cwd=session.cwd, session_id=session.session_id, mcp_servers=[])
        with pytest.raises(acp.RequestError) as caught:
            await agent.load_session(cwd="/", session_id="no:such", mcp_servers=[])
        assert caught.value.code == -32002
        created = await agent.new_session(cwd="/", mcp_servers=[])
        answer = await agent.prompt(session_id=created.session_id, prompt=[acp.text_block("/list")])
        assert answer.stop_reason == "end_turn"
    chunks = [update for session_id, update in updates if session_id == "made:long" and hasattr(update, "message_id")]
    assert sorted(int(chunk.message_id[1:]) for chunk in chunks) == list(range(1000))
