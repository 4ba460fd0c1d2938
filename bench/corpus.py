"""A made-up home full of histories, the same for the same arguments: Claude Code, Gemini CLI and Codex.

Sizes are log-normal with one giant, as people's histories are; record shapes are those of the tools, the words are
not. Every session holds a word of its own (`needle000042`), so that searches have something rare to find.

    python -m bench.corpus HOME --sessions 5000 --bytes 1500M
"""

import argparse
import json
import math
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

__all__ = ["Plan", "append_turn", "make_home", "parse_size"]

_NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
_COMMON = (
    *("the", "of", "to", "and", "in", "is", "that", "for", "it", "as", "with", "on", "be", "at", "by", "this"),
    *("from", "or", "an", "are", "we", "not", "but", "can", "error", "test", "cache", "file", "code", "fix"),
    *("parser", "index", "token", "stream", "client", "server", "middleware", "pagination"),
)
_SHARES = (("claude-code", 0.55), ("gemini-cli", 0.2), ("codex", 0.25))
_SMALLEST = 3 * 1024
_SPREAD = 1.75
# A step of an agent: what was thought, said, called and returned; tools return most of the bytes.
_RESULT_SIZE = 6000

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Plan:
    """How large the home is.

    Attributes:
        giant: Bytes of the largest session, which is one of Claude Code.
    """

    sessions: int
    total: int
    giant: int
    seed: int = 7


class _Writer:
    """What the three tools have in common: time, words, and the size that was asked for."""

    def __init__(self, random_: random.Random, number: int, cwd: str) -> None:
        self.random = random_
        self.number = number
        self.cwd = cwd
        self.id = _uuid(random_)
        self.last: str | None = None
        self.time = _NOW - timedelta(seconds=random_.random() ** 1.5 * 180 * 86400)

    def words(self, count: int) -> str:
        """Prose of common words and, now and then, one that is nearly unique."""
        common = self.random.choices(_COMMON, k=count)
        for place in range(0, count, 9):
            common[place] = f"{common[place]}_{self.random.getrandbits(20):05x}"
        return " ".join(common)

    def output(self) -> str:
        """What a tool printed."""
        size = min(80_000, int(_RESULT_SIZE * math.exp(self.random.gauss(0, 1)) / 2))
        return (self.words(60) + "\n") * (size // 400 + 1)

    def prompt(self) -> str:
        """What the user wrote."""
        return f"{self.words(25)} needle{self.number:06d}"

    def stamp(self) -> str:
        """The next time stamp."""
        self.time += timedelta(seconds=1 + self.random.random() * 20)
        return self.time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _claude(writer: _Writer, *, first: bool) -> Iterator[Json]:
    del first  # these transcripts have no header

    def line(kind: str, content: object, **fields: object) -> Json:
        parent, writer.last = writer.last, _uuid(writer.random)
        return {
            "parentUuid": parent,
            "isSidechain": False,
            "type": kind,
            "message": {"role": kind, "model": "claude-opus-5", "id": f"msg_{writer.number}", "content": content},
            "uuid": writer.last,
            "timestamp": writer.stamp(),
            "cwd": writer.cwd,
            "sessionId": writer.id,
            "version": "2.1.328",
            "gitBranch": "main",
            **fields,
        }

    yield line("user", writer.prompt())
    for _ in range(4):
        call = f"toolu_{writer.random.getrandbits(64):016x}"
        path = f"{writer.cwd}/src/{writer.random.choice(_COMMON)}.py"
        yield line("assistant", [{"type": "text", "text": writer.words(40)}])
        yield line("assistant", [{"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": path}}])
        result = {"tool_use_id": call, "type": "tool_result", "content": writer.output()}
        yield line("user", [result], toolUseResult={"type": "text"})


def _gemini(writer: _Writer, *, first: bool) -> Iterator[Json]:
    if first:
        started = writer.stamp()
        yield {"sessionId": writer.id, "projectHash": "0" * 64, "startTime": started, "lastUpdated": started}
    yield {"id": _uuid(writer.random), "timestamp": writer.stamp(), "type": "user", "content": [_text(writer.prompt())]}
    for _ in range(4):
        said = {"id": _uuid(writer.random), "timestamp": writer.stamp(), "type": "gemini", "content": writer.words(40)}
        yield {**said, "thoughts": [], "model": "gemini-3-pro"}
        call = {"id": f"read_file-{writer.random.getrandbits(40)}", "name": "read_file", "status": "success"}
        arguments = {"file_path": f"{writer.cwd}/src/{writer.random.choice(_COMMON)}.py"}
        result = {"functionResponse": {"id": call["id"], "response": {"output": writer.output()}}}
        yield {**said, "thoughts": [], "toolCalls": [{**call, "args": arguments, "result": [result]}]}
        yield {"$set": {"lastUpdated": writer.stamp()}}


def _codex(writer: _Writer, *, first: bool) -> Iterator[Json]:
    def line(kind: str, **payload: object) -> Json:
        return {"timestamp": writer.stamp(), "type": kind, "payload": payload}

    if first:
        yield line("session_meta", id=writer.id, cwd=writer.cwd, originator="codex_cli_rs", cli_version="0.119.0")
    yield line("event_msg", type="task_started", turn_id=_uuid(writer.random))
    yield line("event_msg", type="user_message", message=writer.prompt(), images=[])
    for _ in range(4):
        yield line("event_msg", type="agent_message", message=writer.words(40))
        call = f"call_{writer.random.getrandbits(64):016x}"
        arguments = json.dumps({"cmd": f"sed -n 1,80p src/{writer.random.choice(_COMMON)}.py"})
        yield line("response_item", type="function_call", name="exec_command", arguments=arguments, call_id=call)
        yield line("response_item", type="function_call_output", call_id=call, output=writer.output())
        yield line("event_msg", type="token_count", info={"last_token_usage": {"total_tokens": 1000}})
    yield line("event_msg", type="task_complete")


_TURNS: dict[str, Callable[..., Iterator[Json]]] = {"claude-code": _claude, "gemini-cli": _gemini, "codex": _codex}


def _text(text: str) -> Json:
    return {"text": text}


def _uuid(random_: random.Random) -> str:
    digits = f"{random_.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def _place(tool: str, writer: _Writer) -> Path:
    slug = writer.cwd.replace("/", "-")
    time = writer.time
    match tool:
        case "claude-code":
            return Path(".claude", "projects", slug, f"{writer.id}.jsonl")
        case "gemini-cli":
            name = f"session-{time:%Y-%m-%dT%H-%M}-{writer.id[:8]}.jsonl"
            return Path(".gemini", "tmp", writer.cwd.rpartition("/")[2], "chats", name)
        case _:
            return Path(".codex", "sessions", f"{time:%Y/%m/%d}", f"rollout-{time:%Y-%m-%dT%H-%M-%S}-{writer.id}.jsonl")


def _write(home: Path, tool: str, writer: _Writer, size: int) -> Path:
    path = home / _place(tool, writer)
    path.parent.mkdir(parents=True, exist_ok=True)
    if tool == "gemini-cli":
        marker = path.parent.parent / ".project_root"
        marker.write_text(writer.cwd, encoding="utf-8")
        os.utime(marker, (0, 0))
    with path.open("wb") as file:
        first = True
        while file.tell() < size:
            for record in _TURNS[tool](writer, first=first):
                file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")
            first = False
    os.utime(path, (writer.time.timestamp(), writer.time.timestamp()))
    return path


def make_home(home: Path, plan: Plan) -> Path:
    """Write all histories; the path of the giant is returned."""
    random_ = random.Random(plan.seed)
    directories = [f"/home/ada/code/{_COMMON[n % len(_COMMON)]}-{n}" for n in range(max(2, int(plan.sessions**0.6)))]
    raw = [math.exp(_SPREAD * random_.gauss(0, 1)) for _ in range(plan.sessions - 1)]
    scale = (plan.total - plan.giant) / sum(raw)
    for number, share in enumerate(raw):
        tool = random_.choices([name for name, _ in _SHARES], [weight for _, weight in _SHARES])[0]
        writer = _Writer(random.Random(f"{plan.seed} {number}"), number, random_.choice(directories))
        _write(home, tool, writer, max(_SMALLEST, int(share * scale)))
    return _write(home, "claude-code", _Writer(random.Random(plan.seed), plan.sessions, directories[0]), plan.giant)


def append_turn(path: Path, word: str) -> int:
    """Append what Claude Code writes for one prompt and its answer; the number of bytes is returned."""
    writer = _Writer(random.Random(word), 0, "/home/ada/code/appended")
    writer.id, writer.time = path.stem, datetime.now(UTC)
    writer.last = _uuid(writer.random)  # with a parent, even an unknown one, it goes on; without, it would start over
    records = list(_claude(writer, first=False))[:2]
    data = b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)
    with path.open("ab") as file:
        file.write(data)
    return len(data)


def parse_size(text: str) -> int:
    """Read `50M` or `1.5G`."""
    factor = {"K": 10**3, "M": 10**6, "G": 10**9}.get(text[-1:].upper(), 1)
    return int(float(text.rstrip("kKmMgG")) * factor)


def main() -> None:
    """Make a home from the command line."""
    parser = argparse.ArgumentParser(description="Make a home full of histories.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--bytes", type=parse_size, default=parse_size("60M"))
    parser.add_argument("--giant", type=parse_size, default=0, help="the largest session (default: a twelfth)")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    print(make_home(given.home, Plan(given.sessions, given.bytes, given.giant or given.bytes // 12, given.seed)))


if __name__ == "__main__":
    main()
