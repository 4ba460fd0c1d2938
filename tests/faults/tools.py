"""One way to write and to read histories of every tool, for faults that any of them can meet."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from acp_history_adapters.claude_code import ClaudeCode
from acp_history_adapters.codex import Codex
from acp_history_adapters.gemini_cli import GeminiCli
from acp_history_adapters.opencode import Opencode
from acp_history_adapters.qwen_code import QwenCode
from acp_history_bridge.adapter import Adapter
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.sessions import Session, SessionQuery
from acp_history_bridge.turns import Text, Turn
from tests.builders import claude_code, codex, gemini_cli, opencode, qwen_code
from tests.conftest import environment_at

__all__ = [
    "ADAPTERS",
    "TOOLS",
    "Tool",
    "each_tool",
    "library_at",
    "listed",
    "said",
    "said_in",
    "session_uuid",
    "turns_of",
    "write_opencode",
]

ADAPTERS: tuple[Callable[[], Adapter], ...] = (ClaudeCode, Codex, GeminiCli, Opencode, QwenCode)

Conversation = Sequence[str]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool whose transcripts are lines.

    Attributes:
        adapter: Makes its adapter.
        write: Writes session number N, prompts and answers in turn, where the tool would; gives the path.
    """

    adapter: Callable[[], Adapter]
    write: Callable[[Path, int, Conversation], Path]


def session_uuid(number: int) -> str:
    """A native id for tools that use UUIDs."""
    return f"{number:08x}-2222-4333-8444-555555555555"


def _claude(home: Path, number: int, conversation: Conversation) -> Path:
    lines = claude_code.ClaudeLines(session=session_uuid(number))
    for place, text in enumerate(conversation):
        _ = lines.answer(text) if place % 2 else lines.prompt(text)
    return lines.save(home, session=session_uuid(number))


def _codex(home: Path, number: int, conversation: Conversation) -> Path:
    rollout = codex.Paginated(codex.thread_id(number), minute=number % 500)
    for place, text in enumerate(conversation):
        _ = rollout.agent(text) if place % 2 else rollout.user(text)
    return rollout.write(home)


def _gemini(home: Path, number: int, conversation: Conversation) -> Path:
    chat = gemini_cli.Chat(session_uuid(number))
    for place, text in enumerate(conversation):
        _ = chat.agent(text) if place % 2 else chat.user(text)
    return chat.write(home)


def _qwen(home: Path, number: int, conversation: Conversation) -> Path:
    lines = qwen_code.Lines(home, session_uuid(number))
    lines.path.write_bytes(b"")
    for place, text in enumerate(conversation):
        _ = lines.answer(text) if place % 2 else lines.user(text)
    return lines.path


def write_opencode(home: Path, number: int, conversation: Conversation) -> Path:
    """Write a session as a tree, the form of opencode that consists of files."""
    messages: list[tuple[Mapping[str, object], tuple[Mapping[str, object], ...]]] = [
        ({"role": "assistant" if place % 2 else "user"}, (opencode.text_part(text),))
        for place, text in enumerate(conversation)
    ]
    return opencode.write_tree(home, *messages, session=f"ses_{number}")


TOOLS = {
    "claude-code": Tool(ClaudeCode, _claude),
    "codex": Tool(Codex, _codex),
    "gemini-cli": Tool(GeminiCli, _gemini),
    "qwen-code": Tool(QwenCode, _qwen),
}
each_tool = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)


@contextmanager
def library_at(home: Path, database: Path | None = None) -> Generator[Library]:
    """A library of all tools over a home, scanned."""
    environment = environment_at(home)
    library = Library([adapter() for adapter in ADAPTERS], environment, IndexStore.open(database))
    try:
        for _ in library.scan():
            pass
        yield library
    finally:
        library.close()


def listed(library: Library) -> list[Session]:
    """All sessions."""
    return list(library.page(SessionQuery(), 100_000).sessions)


def turns_of(library: Library, session: Session) -> list[Turn]:
    """The whole conversation."""
    transcript = library.open(session)
    try:
        return list(transcript.turns())
    finally:
        transcript.close()


def said(library: Library, session: Session) -> list[str]:
    """What was said, in order."""
    return [part.text for turn in turns_of(library, session) for part in turn.parts if isinstance(part, Text)]


def said_in(home: Path) -> list[str]:
    """What was said in the only session of a home."""
    with library_at(home) as library:
        (session,) = listed(library)
        return said(library, session)
