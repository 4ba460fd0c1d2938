"""A machine with three recorded sessions, and the bridge as its users start it there."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import acp_history_adapters
import acp_history_bridge
from tests.builders import claude_code, gemini_cli

__all__ = [
    "NEW_TITLE",
    "RESUME",
    "UNKNOWN",
    "Recorded",
    "World",
    "conversation",
    "make_machine",
    "make_world",
]

Update = Mapping[str, Any]

NEW_TITLE = "Keys, not names"
UNKNOWN = "claude:00000000-0000-4000-8000-000000000000"
RESUME = f"cd {claude_code.CWD} && claude --resume {claude_code.SESSION}"

_LONG = "22222222-2222-4333-8444-555555555555"
_ANSWER = """\
Fixed: the basket now compares *keys*.

- `name` was not unique
- 日本語 and "quotes" survive, as do <b>tags</b> & a backslash \\

```python
self.items[item.key] = item
```"""


@dataclasses.dataclass(frozen=True, slots=True)
class Recorded:
    """A session as every client has to show it.

    Attributes:
        id: As the client names it.
        title: As it is listed.
        cwd: Its directory.
        said: Kind and text of its messages, thoughts and tool calls, in order.
    """

    id: str
    title: str
    cwd: str
    said: tuple[tuple[str, str], ...]

    def texts(self, kind: str) -> list[str]:
        """The texts of one kind."""
        return [text for said, text in self.said if said == kind]


@dataclasses.dataclass(frozen=True, slots=True)
class World:
    """The machine.

    Attributes:
        home: The home directory.
        editor: Where the editor was started; no session belongs there.
        shop: The newest session, with a tool call.
        long: One whose last message is much longer than a line may be.
        greeting: One of another tool.
        environment: What a program started by the user gets to see.
    """

    home: Path
    editor: Path
    shop: Recorded
    long: Recorded
    greeting: Recorded
    environment: Mapping[str, str]

    @property
    def newest_first(self) -> list[Recorded]:
        """All sessions in the order of a list."""
        return [self.shop, self.long, self.greeting]

    def rename(self) -> None:
        """Have Claude Code give its first session a new title."""
        path, line = self.renaming()
        with path.open("a", encoding="utf-8") as file:
            file.write(line)

    def renaming(self) -> tuple[Path, str]:
        """The file that `rename` extends, and by what."""
        record = {"type": "custom-title", "customTitle": NEW_TITLE, "sessionId": claude_code.SESSION}
        path = self.home / ".claude" / "projects" / claude_code.SLUG / f"{claude_code.SESSION}.jsonl"
        return path, json.dumps(record) + "\n"

    def setup(self, *arguments: str) -> str:
        """What `bridge setup` prints."""
        command = ["acp-history-bridge", "setup", *arguments]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, encoding="utf-8", check=True, timeout=30
        )
        return done.stdout

    def scenario(self, **more: object) -> str:
        """All that a driver in another language has to know, as JSON."""
        path, line = self.renaming()
        facts = {"load": self.shop.id, "unknown": UNKNOWN, "editor": str(self.editor), "title": NEW_TITLE}
        return json.dumps({**facts, "transcript": str(path), "line": line, **more})


def make_world(directory: Path) -> World:
    """Lay out a machine with the three sessions."""
    home, editor, environment = make_machine(directory)
    return World(home, editor, _record_shop(home), _record_long(home), _record_greeting(home), environment)


def make_machine(directory: Path) -> tuple[Path, Path, Mapping[str, str]]:
    """Lay out a home, an editor's directory, and an environment with the command `acp-history-bridge`."""
    home, editor, programs = (directory / name for name in ("home", "editor", "bin"))
    for path in (home, editor, programs):
        path.mkdir(parents=True)
    paths = {str(Path(package.__path__[0]).parent) for package in (acp_history_bridge, acp_history_adapters)}
    program = programs / "acp-history-bridge"
    code = f'#!/bin/sh\nPYTHONPATH={":".join(paths)} exec {sys.executable} -m acp_history_bridge "$@"\n'
    program.write_text(code, encoding="utf-8")
    program.chmod(0o755)
    return (
        home,
        editor,
        {
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PATH": f"{programs}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
        },
    )


def conversation(updates: Iterable[Update]) -> list[tuple[str, str]]:
    """What a client was sent, as `Recorded.said` has it: the pieces of a message joined, other updates left out."""
    said: list[tuple[str, str]] = []
    last: object = None
    for update in updates:
        kind, message = str(update["sessionUpdate"]), update.get("messageId")
        if kind == "tool_call":
            said.append((kind, update["title"]))
        elif kind.endswith("_chunk"):
            before = said.pop()[1] if last == (kind, message) else ""
            said.append((kind, before + update["content"]["text"]))
        last = (kind, message)
    return said


def _record_shop(home: Path) -> Recorded:
    lines = claude_code.ClaudeLines()
    question, thought = "Why does the basket lose items? 🧺\nIt worked yesterday.", "Perhaps the key."
    lines.prompt(question)
    lines.answer({"type": "thinking", "thinking": thought, "signature": ""}, "I look.", group="m")
    path = f"{claude_code.CWD}/basket.py"
    lines.call("Edit", {"file_path": path, "old_string": "[item.name]", "new_string": "[item.key]"}, group="m")
    lines.result("The file has been updated.")
    lines.answer(_ANSWER)
    lines.metadata("custom-title", customTitle="Basket keys")
    _settle(lines.save(home), claude_code.START.timestamp() + 60)
    said = (
        ("user_message_chunk", question),
        ("agent_thought_chunk", thought),
        ("agent_message_chunk", "I look."),
        ("tool_call", "Edit basket.py"),
        ("agent_message_chunk", _ANSWER),
    )
    return Recorded(f"claude:{claude_code.SESSION}", "Basket keys", claude_code.CWD, said)


def _record_long(home: Path) -> Recorded:
    lines = claude_code.ClaudeLines(session=_LONG)
    question, answer = "Count.", "\n".join(f"{number} → {number:b}" for number in range(80_000))
    lines.prompt(question)
    lines.answer(answer)
    _settle(lines.save(home, session=_LONG), claude_code.START.timestamp() + 30)
    said = (("user_message_chunk", question), ("agent_message_chunk", answer))
    return Recorded(f"claude:{_LONG}", question, claude_code.CWD, said)


def _record_greeting(home: Path) -> Recorded:
    chat = gemini_cli.Chat(cwd="/home/ada/src/blog").user("Say hello in Japanese.").agent("こんにちは。")
    _settle(chat.write(home), gemini_cli.START.timestamp() + 60)
    said = (("user_message_chunk", "Say hello in Japanese."), ("agent_message_chunk", "こんにちは。"))
    return Recorded(f"gemini:{chat.session}", "Say hello in Japanese.", chat.cwd, said)


def _settle(path: Path, time: float) -> None:
    """Give a transcript the time it was last written."""
    os.utime(path, (time, time))
