"""Both sides of a comparison: the recorded replay of a tool's own agent, and ours from the same files.

Ours goes the product's whole way in process: library, adapter, turns, the mapping to the wire, encoded and decoded.
"""

import json
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import orjson

from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.replay import Replay, ReplayOptions
from acp_history_bridge.protocol.tools import ToolOptions
from acp_history_bridge.registry import load_adapters
from acp_history_bridge.sessions import Session
from tests.conftest import DATA, copy_home, environment_at

__all__ = ["PREFIXES", "REFERENCES", "Reference", "frames", "lay_out", "library_at", "our_replay"]

PREFIXES = {
    "claude-code": "claude",
    "codex": "codex",
    "gemini-cli": "gemini",
    "opencode": "opencode",
    "qwen-code": "qwen",
}
_OLDER = {"zed-0.16.0": "codex-zed", "opencode-1.1.65": "opencode-1.1"}
_OUTPUT_LIMIT = 100 * 1024
_IMAGE_LIMIT = 700 * 1024
_CODEX_FORMATS = {
    entry["sessionId"]: entry["format"]
    for entry in json.loads((DATA / "codex" / "expected.json").read_text(encoding="utf-8"))
}


@dataclass(frozen=True, slots=True)
class Reference:
    """One recorded load.

    Attributes:
        tool: Whose.
        group: The recordings it belongs to: the tool's, or those of an older agent.
        path: The log.
    """

    tool: str
    group: str
    path: Path

    @property
    def session_id(self) -> str:
        """Our wire id for the session."""
        return f"{PREFIXES[self.tool]}:{self.path.stem}"

    def updates(self) -> list[dict[str, Any]]:
        """What the tool's agent sent, as far as it got."""
        lines = [json.loads(line) for line in self.path.read_text(encoding="utf-8").split("\n") if line]
        messages = [line.get("msg", line) for line in lines]
        return [message["params"]["update"] for message in messages if message.get("method") == "session/update"]

    def is_authority(self, what: str) -> bool:
        """Whether this agent is to be measured against: of two for Codex, one is for the calls of legacy sessions."""
        if self.tool != "codex":
            return True
        is_call = fnmatchcase(what, "call.*") or what in {"missing call", "extra call", "extra plan"}
        legacy = _CODEX_FORMATS[self.path.stem] != "paginated"
        return (self.group == "codex-zed") == (legacy and is_call)


def _references() -> Iterator[Reference]:
    for tool in PREFIXES:
        for path in sorted((DATA / tool / "reference").rglob("[!_]*.jsonl")):
            if not path.parent.name.startswith("caps-"):  # the same sessions for clients with other capabilities
                yield Reference(tool, _OLDER.get(path.parent.name, tool), path)


REFERENCES = tuple(_references())


def lay_out(group: str, target: Path) -> Path:
    """The home that a group of references was recorded on."""
    home = copy_home({"codex-zed": "codex", "opencode-1.1": "opencode"}.get(group, group), target)
    if group == "opencode-1.1":
        (home / ".local" / "share" / "opencode" / "opencode.db").unlink()
    return home


@contextmanager
def library_at(home: Path) -> Generator[Library]:
    """A library over a home, after its first scan."""
    with closing(Library(load_adapters(third_party=False), environment_at(home), IndexStore.open(None))) as library:
        for _ in library.scan():
            pass
        yield library


def frames(library: Library, session: Session) -> tuple[list[bytes], int]:
    """The notifications of a load, and how many messages it left out."""
    options = ToolOptions(session.cwd, terminal=False, output_limit=_OUTPUT_LIMIT, image_limit=_IMAGE_LIMIT)
    replay = Replay(ReplayOptions(options), live=False)
    with closing(library.open(session)) as transcript:
        updates = [update for turn in transcript.turns() for update in replay.updates(turn)]
        recorded = transcript.usage
        if recorded is not None and (usage := wire.usage(recorded)):
            updates.append(usage)
        return [wire.update(session.id, update) for update in updates], transcript.left_out


def our_replay(library: Library, session: Session) -> tuple[list[dict[str, Any]], int]:
    """Our replay as a client decodes it, and how many messages it left out."""
    sent, left_out = frames(library, session)
    return [orjson.loads(frame)["params"]["update"] for frame in sent], left_out
