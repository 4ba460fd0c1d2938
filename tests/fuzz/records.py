"""Mutated records between good ones: nothing raises, nothing hangs, and the good ones are shown."""

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from acp_history_adapters.opencode import Opencode
from acp_history_bridge.adapter import Adapter, Unit
from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.replay import Replay, ReplayOptions
from acp_history_bridge.protocol.tools import ToolOptions
from acp_history_bridge.turns import Text
from tests.builders import opencode
from tests.conftest import DATA, environment_at
from tests.faults.tools import TOOLS, Tool
from tests.fuzz.mutate import Mutator

__all__ = ["FINDINGS", "FUZZED", "Failure", "fuzz_records", "seeds_of", "try_records"]

FINDINGS = Path(__file__).parent / "findings"

FUZZED = (*TOOLS, "opencode")
_BATCH = 100
_FIRST, _LAST = "the first words", "the last words"
_TAKES_BACK = (b"$rewindTo", b"$set", b"rolled_back", b"rewind", b"history_base", b'"messages"')
_SECONDS = 5.0
_SEED_LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, and the records that do it again."""

    what: str
    records: tuple[bytes, ...]


def seeds_of(tool: str) -> list[bytes]:
    """The recorded lines (or the files of a tree) of a tool."""
    pattern = "*.json" if tool == "opencode" else "*.jsonl"
    found: list[bytes] = []
    for path in sorted(DATA.joinpath(tool).rglob(pattern)):
        if "reference" not in path.parts and path.is_file():
            data = path.read_bytes()
            found += [data] if tool == "opencode" else data.splitlines()
    return [line for line in found if line.strip() and len(line) < _SEED_LIMIT and _is_json(line)]


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def fuzz_records(tool: str, count: int, seed: int, directory: Path) -> tuple[list[Failure], float]:
    """Try `count` mutated records in batches; what failed, and the slowest batch in seconds."""
    mutator = Mutator(seeds_of(tool), seed)
    failures: list[Failure] = []
    slowest = 0.0
    for _ in range(-(-count // _BATCH)):
        records = tuple(mutator.record() for _ in range(_BATCH))
        begun = time.monotonic()
        try:
            with tempfile.TemporaryDirectory(dir=directory) as home:
                try_records(tool, Path(home), records)
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            failures.append(Failure(f"{type(error).__name__}: {error}", records))
        slowest = max(slowest, time.monotonic() - begun)
        if time.monotonic() - begun > _SECONDS:
            failures.append(Failure("it took too long", records))
    return failures, slowest


def try_records(tool: str, home: Path, records: Sequence[bytes]) -> None:
    """Put records between good ones, list, replay and index.

    Raises:
        AssertionError: A good record was lost. Anything else that is raised is a fault, too.
    """
    if tool == "opencode":
        _try_rows(home, records)
    else:
        _try_lines(TOOLS[tool], home, records)


def _try_lines(tool: Tool, home: Path, records: Sequence[bytes]) -> None:
    path = tool.write(home, 1, [_FIRST, "between", _LAST])
    data = path.read_bytes()
    last = data.rindex(b"\n", 0, -1) + 1
    mutated = b"".join(record + b"\n" for record in records)
    path.write_bytes(data[:last] + mutated + data[last:])
    adapter = tool.adapter()
    unit = adapter.unit(next(iter(adapter.stores(environment_at(home)))), path)
    assert unit is not None
    shown = _shown(adapter, unit)
    assert _LAST in shown, "the last record was lost"
    assert _FIRST in shown or any(mark in mutated for mark in _TAKES_BACK), "the first record was lost"


def _try_rows(home: Path, records: Sequence[bytes]) -> None:
    """The database holds no JSON that SQLite would refuse, but any text."""
    with opencode.Database(home) as database:
        database.connection.execute("PRAGMA synchronous = OFF")
        database.connection.execute("BEGIN")
        database.session()
        database.message("user", opencode.text_part(_FIRST))
        for number, record in enumerate(records):
            text = record.decode("utf-8", "replace")
            message = database.message("user" if number % 3 else "assistant")
            table = ("message", "part", "part")[number % 3]
            row = message if table == "message" else database.part(message, {})
            database.connection.execute(f"UPDATE {table} SET data = ? WHERE id = ?", (text, row))
        database.message("user", opencode.text_part(_LAST))
        database.connection.execute("COMMIT")
        shown = _shown(Opencode(), database.unit())
    assert _LAST in shown, "the last record was lost"
    assert _FIRST in shown, "the first record was lost"


def _shown(adapter: Adapter, unit: Unit) -> set[str]:
    """List and replay everything up to the bytes that a client would get; all texts."""
    replay = Replay(
        ReplayOptions(ToolOptions(cwd="/", terminal=True, output_limit=64 * 1024, image_limit=256 * 1024)), live=False
    )
    shown: set[str] = set()
    for record in adapter.inspect(unit).records:
        transcript = adapter.open(unit, record)
        for turn in transcript.turns():
            shown.update(part.text for part in turn.parts if isinstance(part, Text))
            for update in replay.updates(turn):
                assert len(wire.update("made:1", update)) < 1 << 20
        transcript.close()
        for _ in adapter.passages(unit, record, output=True):
            pass
    return shown
