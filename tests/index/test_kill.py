"""A bridge that is killed at any moment leaves a database that opens clean and is completed by the next scan."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from acp_history_bridge.index.store import IndexStore
from tests.builders.fake_adapter import FakeAdapter, note, notes_at
from tests.index.conftest import OpenLibrary, listed, scan

_SCRIPT = """
import sys
from pathlib import Path
from acp_history_bridge.adapter import Environment
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from tests.builders.fake_adapter import FakeAdapter
library = Library([FakeAdapter()], Environment(Path(sys.argv[1])), IndexStore.open(Path(sys.argv[2])))
print("open", flush=True)
for step in library.scan():
    print(len(step.changes), flush=True)
while True:  # each round looks at everything again, as after a clock that went wrong
    for path in (Path(sys.argv[1]) / ".notes").rglob("*.jsonl"):
        path.touch()
    for step in library.scan():
        pass
"""
_ROUNDS = 20


@pytest.mark.process_slow
@pytest.mark.timeout(300)
@pytest.mark.fault("I4")
def test_a_killed_bridge_leaves_a_sound_index(home: Path, tmp_path: Path, open_library: OpenLibrary) -> None:
    """Twenty bridges are killed while they write; each time the file is sound, and nothing is missing after a scan."""
    path = tmp_path / "cache" / "index.db"
    chance = random.Random(7)
    for number in range(600):
        notes_at(home, f"a/{number}.jsonl", note(f"s{number}"), minute=number)
    for round_number in range(_ROUNDS):
        for number in range(20):
            notes_at(home, f"r{round_number}/{number}.jsonl", note(f"r{round_number}-{number}"))
        with subprocess.Popen(
            [sys.executable, "-c", _SCRIPT, str(home), str(path)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            try:
                process.wait(chance.uniform(0, 0.4))
            except subprocess.TimeoutExpired:
                process.kill()
        store = IndexStore.open(path)
        assert (store.persistent, store.notice) == (True, None)
        assert store.read(lambda connection: connection.execute("PRAGMA integrity_check").fetchall()) == [("ok",)]
        store.close()
        assert not any(".broken-" in entry.name for entry in path.parent.iterdir())
    library = open_library(path, adapters=[FakeAdapter()])
    scan(library)
    rebuilt = open_library(adapters=[FakeAdapter()])
    scan(rebuilt)
    assert listed(library) == listed(rebuilt)
    assert len(listed(library)) == 600 + 20 * _ROUNDS
