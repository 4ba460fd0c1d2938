"""Mutated requests against a live agent, while its transcripts are mutated, too.

Every so often there is a request with an id of its own. The agent must answer each of these once, write nothing but
messages, and end as it should when the client leaves.
"""

import contextlib
import json
from collections import Counter
from pathlib import Path

from tests.faults.agents import ACP, environment
from tests.faults.tools import TOOLS, write_opencode
from tests.fuzz.mutate import Mutator
from tests.fuzz.records import seeds_of
from tests.peers.bridge import BridgeProcess, Message

__all__ = ["fuzz_agent"]

_METHODS = (
    *("initialize", "session/list", "session/load", "session/new", "session/prompt", "session/cancel", "session/close"),
    *("session/delete", "session/fork", "session/resume", "session/set_mode", "session/get", "authenticate", "logout"),
    *("$/cancel_request", "_session/list/subscribe", "_acp-history-bridge/session/get", "no/such"),
)
_EVERY = 100


def _frames(ids: list[str]) -> list[bytes]:
    """One good request of each kind, as seeds."""
    params = {
        "protocolVersion": 1,
        "sessionId": ids[0],
        "cwd": "/",
        "mcpServers": [],
        "cursor": "x",
        "modeId": "read-only",
        "prompt": [{"type": "text", "text": "/list"}],
        "offset": 1,
        "limit": 2,
        "search": "words",
        "requestId": 5,
        "clientCapabilities": {"fs": {"readTextFile": True}, "_meta": {"terminal_output": True}},
        "_meta": {"acp-history-bridge": {"limit": 3, "tool": "codex", "since": "7d", "includeHidden": True}},
    }
    messages = [{"jsonrpc": "2.0", "id": 7, "method": method, "params": params} for method in _METHODS]
    messages += [{**message, "params": {**params, "sessionId": id_}} for message in messages for id_ in ids[1:]]
    return [json.dumps(message).encode() for message in messages]


class _Loose(BridgeProcess):
    """Checks what can be said of a line whatever was asked."""

    codes: Counter[int]

    def _take(self, line: bytes, time_: float) -> Message:
        del time_
        message: Message = json.loads(line.decode("utf-8"))
        assert line.endswith(b"\n")
        assert message["jsonrpc"] == "2.0"
        assert {"method", "params"} <= message.keys() or (
            "id" in message and ("result" in message) != ("error" in message)
        )
        if "error" in message:
            self.codes[message["error"]["code"]] += 1
        return message


def fuzz_agent(home: Path, frames: int, seed: int) -> Counter[int]:
    """Send `frames` mutated frames while transcripts grow by mutated records; how often each error code came back.

    Raises:
        AssertionError: A line was no message, a request was not answered once, or the end was no normal one.
    """
    paths = {name: tool.write(home, 1, ["one", "two", "three"]) for name, tool in TOOLS.items()}
    write_opencode(home, 1, ["one", "two"])
    # Without programs: a mutated request must never start somebody's agent.
    bridge = _Loose(ACP, environment(home, PATH=str(home / "none")))
    bridge.codes = Counter()
    try:
        bridge.start("initialize", {"protocolVersion": 1})
        _until(bridge, 1)
        bridge.start("session/list")
        ids = [session["sessionId"] for session in _until(bridge, 2)["result"]["sessions"]]
        requests = Mutator(_frames(ids), seed)
        records = {name: Mutator(seeds_of(name), seed) for name in paths}
        for number in range(0, frames, _EVERY):
            name = requests.chance.choice(list(paths))
            with paths[name].open("ab") as stream:
                stream.write(records[name].record() + requests.chance.choice((b"\n", b"\n", b"")))
            bridge.send_bytes(b"".join(requests.record().replace(b"\n", b" ") + b"\n" for _ in range(_EVERY)))
            _until(bridge, bridge.start("session/list", id_=f"sentinel {number}"))
        bridge.close_input()
        assert bridge.wait(10) == (0, b"")
    finally:
        bridge.process.kill()
        bridge.process.wait()
        for pipe in (bridge.process.stdin, bridge.process.stdout, bridge.process.stderr):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
    return bridge.codes


def _until(bridge: _Loose, id_: object) -> Message:
    """Wait for the one answer to a request."""
    while True:
        message = bridge.next(30)
        if "method" not in message and message["id"] == id_:
            assert "result" in message, message
            return message
