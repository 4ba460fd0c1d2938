"""The worked exchanges of docs/protocol.md happen as they stand there."""

import dataclasses
import json
import re
from datetime import UTC, datetime
from typing import cast

import pytest

from acp_history_bridge.protocol.agent import Agent
from acp_history_bridge.settings import Settings
from acp_history_bridge.turns import Text, ToolCall, Turn
from tests.peers.bridge import ROOT, Connection
from tests.peers.memory import MemorySource, session

PAGE = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```acp\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
NINE, TEN = datetime(2026, 11, 1, 9, tzinfo=UTC), datetime(2026, 11, 1, 10, tzinfo=UTC)


@pytest.fixture
def source() -> MemorySource:
    """The one session that the page tells of."""
    made = MemorySource()
    call = ToolCall("t1", "Read", "Read parser.py", "read", "completed", content=(Text("def parse(): …"),))
    turns = [
        Turn("u1", "user", (Text("Why does it fail?"),), NINE),
        Turn("a1", "agent", (call, Text("The token is never read."))),
    ]
    told = session("claude:7f3a", "Fix the parser", updated_at=TEN, created_at=NINE, mode="plan")
    made.add(dataclasses.replace(told, tool="claude-code"), turns)
    return made


def matches(expected: object, found: object) -> bool:
    """Equal, but for `…`: as a value anything, as a key any further members."""
    if expected == "…":
        return True
    if isinstance(expected, dict) and isinstance(found, dict):
        wanted, given = cast("dict[str, object]", expected), cast("dict[str, object]", found)
        known = wanted.keys() - {"…"}
        complete = known <= given.keys() if "…" in wanted else known == given.keys()
        return complete and all(matches(wanted[name], given[name]) for name in known)
    if isinstance(expected, list) and isinstance(found, list):
        items, others = cast("list[object]", expected), cast("list[object]", found)
        return len(items) == len(others) and all(map(matches, items, others))
    return expected == found


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: str(PAGE[: PAGE.index(block)].count("\n") + 1))
def test_a_worked_exchange_happens_as_documented(raw: Connection, block: str) -> None:
    """What is sent gets exactly what follows, in that order."""
    if '"initialize"' not in block:
        raw.initialize()
    for line in block.splitlines():
        arrow, message = line[0], json.loads(line[1:])
        if arrow == "→":
            raw.start(message["method"], message["params"])
            continue
        found = {name: value for name, value in raw.next().items() if name not in ("jsonrpc", "id")}
        assert matches(message, found), f"{found} is not {message}"


def test_the_page_has_a_row_for_every_method() -> None:
    """With every setting on."""

    async def nothing(*_: object) -> None: ...

    settings = dataclasses.replace(Settings(), unstable=True)
    agent = Agent(settings, nothing, nothing)
    rows = "\n".join(line.split(" | ")[0] for line in PAGE.splitlines() if line.startswith("| "))
    missing = [name for name in (*agent.requests, *agent.notifications) if f"`{name}`" not in rows]
    assert not missing
