"""`bridge try` and `bridge acp`: the whole program, from the list to a replay over real pipes."""

import json
import re
import subprocess

import pytest

from tests.cli.conftest import Bridge
from tests.conftest import CopyCorpus, digest_tree

pytestmark = pytest.mark.process


def test_a_machine_without_histories_sees_the_sample(bridge: Bridge) -> None:
    """`make run` shows something on every machine, and leaves the home directory as it was."""
    result = bridge("try")

    assert (result.status, result.err) == (0, "")
    assert "here is the bundled sample" in result.out
    assert re.search(r"session/load +\d+ ms +\d+ updates: 2 user messages, 3 agent messages", result.out)
    assert "Respect quantities in the cart total\n  user     The cart ignores quantities" in result.out
    assert digest_tree(bridge.home) == {}


def test_a_machine_with_histories_sees_its_own(copy_corpus: CopyCorpus) -> None:
    """The newest session of this home is replayed, through the agent and without a change to any file."""
    result = Bridge(copy_corpus("claude-code"))("try")

    assert (result.status, result.err) == (0, "")
    assert "sample" not in result.out
    assert re.search(r"session/list +\d+ ms +\d\d sessions on the first page", result.out)


@pytest.mark.fault("S1")
def test_nothing_that_is_replayed_acts_on_the_terminal(bridge: Bridge) -> None:
    """The excerpt is sanitised; only the table's own styles are there."""
    shown = bridge.on_terminal("try", "--demo").out

    assert set(re.findall(r"\x1b[^m]*m", shown)) <= {"\x1b[0m", "\x1b[1m", "\x1b[2m"}


@pytest.mark.fault("J8")
def test_the_agent_writes_protocol_to_stdout_and_nothing_to_stderr(bridge: Bridge) -> None:
    """An editor sees JSON lines only, and the process ends with its input."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}

    process = subprocess.run(
        bridge.argv("acp", "--demo", "--log-level", "debug"),
        input=json.dumps(request).encode() + b"\n",
        env=bridge.variables,
        capture_output=True,
        timeout=25,
        check=False,
    )

    assert (process.returncode, process.stderr) == (0, b"")
    [answer] = [json.loads(line) for line in process.stdout.splitlines()]
    assert answer["result"]["agentInfo"]["name"] == "acp-history-bridge"


def test_the_agent_with_a_wrong_setting_says_so_and_ends(bridge: Bridge) -> None:
    """An editor shows why the agent did not start."""
    result = bridge("acp", cwd=None, ACP_HISTORY_BRIDGE_PUSHES="loud")

    assert (result.status, result.out) == (2, "")
    assert "ACP_HISTORY_BRIDGE_PUSHES" in result.err


def test_the_agent_answers_initialize_without_what_it_does_not_need(bridge: Bridge) -> None:
    """Neither validation, nor watching, nor the table, nor adapters are loaded before the first answer is out."""
    code = (
        "import os, sys\n"
        "write = os.write\n"
        "def spy(descriptor, data):\n"
        "    heavy = {'pydantic', 'watchdog', 'rich', 'sqlite3', 'acp_history_adapters'} & set(sys.modules)\n"
        "    if b'protocolVersion' in bytes(data): open('loaded', 'w', encoding='utf-8').write(repr(sorted(heavy)))\n"
        "    return write(descriptor, data)\n"
        "os.write = spy\n"
        "from acp_history_bridge.cli import main\n"
        "sys.exit(main(['acp']))"
    )
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    process = subprocess.run(
        [bridge.argv()[0], "-c", code],
        input=json.dumps(request).encode() + b"\n",
        env=bridge.variables,
        cwd=bridge.home,
        capture_output=True,
        timeout=25,
        check=False,
    )

    assert (process.returncode, process.stderr) == (0, b"")
    assert (bridge.home / "loaded").read_text(encoding="utf-8") == "[]"
