"""Other people's clients drive the agent."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.peers.bridge import MEMORY_AGENT, ROOT

acp = pytest.importorskip("acp", reason="the Python SDK has no release for this Python")

TYPESCRIPT_SDK = "@agentclientprotocol/sdk@2.4.0"


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


@pytest.fixture(scope="session")
def typescript_sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The official TypeScript SDK, installed by npm."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    directory = tmp_path_factory.mktemp("npm")
    install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(directory), TYPESCRIPT_SDK]
    subprocess.run(install, check=True, timeout=120, stdout=subprocess.DEVNULL)
    return directory / "node_modules" / "@agentclientprotocol" / "sdk"


@pytest.mark.clients
@pytest.mark.timeout(180)
@pytest.mark.fault("J11")
def test_the_typescript_sdk_lists_loads_and_prompts(typescript_sdk: Path) -> None:
    """It decodes every message by its schema and complains about none; nothing comes after a load's answer."""
    script = Path(__file__).parent.parent / "peers" / "sdk_client.mjs"
    node = shutil.which("node")
    assert node is not None
    command = [node, str(script), str(typescript_sdk), sys.executable, *MEMORY_AGENT[1:]]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60, cwd=ROOT)
    seen = json.loads(done.stdout)
    assert seen["complaints"] == []
    assert seen["exit"] == 0
    assert seen["agentInfo"]["title"] == "History Bridge"
    assert seen["loads"] == {
        "made:1": {"atAnswer": 3, "later": 3},
        "made:long": {"atAnswer": 1001, "later": 1001},
    }
    assert (seen["unknown"], seen["stopReason"]) == (-32002, "end_turn")
