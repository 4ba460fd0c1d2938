"""The index while the disk fails, the power goes and others use it, in real processes."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from acp_history_bridge.index.store import IndexStore
from tests.faults.agents import ACP, agent, environment, list_all, run, traced
from tests.faults.tools import TOOLS, library_at, listed, write_opencode
from tests.peers.bridge import ROOT, BridgeProcess, running

pytestmark = pytest.mark.process_slow

_INDEX = Path(".cache") / "acp-history-bridge" / "index.db"


def _many(home: Path, count: int = 3) -> int:
    """Write sessions of every tool; how many."""
    for number in range(1, count + 1):
        for tool in TOOLS.values():
            tool.write(home, number, [f"question {number}", f"answer {number}"])
        write_opencode(home, number, [f"question {number}"])
    return count * (len(TOOLS) + 1)


@pytest.mark.fault("I2")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("call", "error"), [("pwrite64", "EIO"), ("pwrite64", "ENOSPC"), ("fdatasync", "EIO"), ("ftruncate", "ENOSPC")]
)
@pytest.mark.parametrize("stays", [False, True])
def test_whichever_write_fails_every_session_is_listed(call: str, error: str, stays: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a parameter
    """The n-th one, or all from the n-th one on, until a run needs no more of them; each next start is sound."""
    home = tmp_path / "home"
    expected = _many(home, 1)
    index = home / _INDEX
    log = tmp_path / "trace"
    places = [option for suffix in ("", "-wal", "-shm") for option in ("-P", f"{index}{suffix}")]
    number, step = 1, 1 if call != "pwrite64" else 3
    while True:
        shutil.rmtree(index.parent, ignore_errors=True)
        when = f"when={number}{'+' if stays else ''}"
        fault = traced("-o", str(log), *places, "-e", f"trace={call}", "-e", f"inject={call}:error={error}:{when}")
        done = run(home, "index", "--jsonl", before=fault)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == expected
        with library_at(home, index) as library:
            assert len(listed(library)) == expected
        store = IndexStore.open(index)
        assert (store.persistent, store.notice) == (True, None)
        store.close()
        if "(INJECTED)" not in log.read_text(encoding="utf-8"):
            return
        number += step


_INDEXING = """
import sys
from pathlib import Path
from tests.faults.tools import library_at
while True:
    with library_at(Path(sys.argv[1]), Path(sys.argv[2])):
        print("scanned", flush=True)
    for path in Path(sys.argv[1]).rglob("*.jsonl"):
        path.touch()
"""


@pytest.mark.fault("I5")
@pytest.mark.timeout(120)
def test_files_copied_while_they_are_written_never_give_a_wrong_answer(tmp_path: Path) -> None:
    """As after a loss of power: the copy opens or is built anew, and after a scan it is complete."""
    home = tmp_path / "home"
    expected = _many(home, 10)
    index = tmp_path / "cache" / "index.db"
    chance = random.Random(5)
    command = [sys.executable, "-c", _INDEXING, str(home), str(index)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as writer:
        assert writer.stdout is not None
        try:
            for round_number in range(20):
                writer.stdout.read(chance.randrange(1, 9))  # some moment
                copy = tmp_path / f"copy{round_number}" / "index.db"
                copy.parent.mkdir()
                for suffix in chance.sample(("", "-wal", "-shm"), 3):
                    if (source := index.with_name(f"index.db{suffix}")).exists():
                        shutil.copyfile(source, copy.with_name(f"index.db{suffix}"))
                with library_at(home, copy) as library:
                    assert len(listed(library)) == expected
        finally:
            writer.kill()


@pytest.mark.fault("C1")
@pytest.mark.timeout(120)
def test_eight_bridges_that_start_at_once_list_the_same(tmp_path: Path) -> None:
    """Without an index at first, and while one of them is killed: nobody hears of a lock."""
    expected = _many(tmp_path, 20)
    for _ in range(2):
        agents = [BridgeProcess(ACP, environment(tmp_path)) for _ in range(8)]
        try:
            for one in agents:
                one.start("initialize", {"protocolVersion": 1})
            for one in agents[1:]:
                one.next()
            agents[0].process.kill()
            lists = [set(list_all(one)) for one in agents[1:]]
            assert all(found == lists[0] for found in lists)
            assert len(lists[0]) == expected
            for one in agents[1:]:
                one.close_input()
                assert one.wait(5) == (0, b"")
        finally:
            for one in agents:
                one.process.kill()
                one.process.wait()
                for stream in (one.process.stdin, one.process.stdout, one.process.stderr):
                    if stream is not None and not stream.closed:
                        stream.close()
    logs = list((tmp_path / ".local" / "state").rglob("*.log"))
    assert not any("locked" in log.read_text(encoding="utf-8") for log in logs)


@pytest.mark.fault("C2")
def test_an_index_that_is_removed_and_built_anew_by_others_disturbs_nobody(tmp_path: Path) -> None:
    """The running bridge goes on with its own, hears of changes, and the new file is sound."""
    expected = _many(tmp_path)
    with agent(tmp_path) as bridge:
        assert len(list_all(bridge)) == expected
        shutil.rmtree((tmp_path / _INDEX).parent)
        assert len(run(tmp_path, "index", "--jsonl").stdout.splitlines()) == expected
        TOOLS["claude-code"].write(tmp_path, 99, ["new", "newer"])
        while not any(update["title"] == "new" for update in _news(bridge)):
            bridge.next()
        assert len(list_all(bridge)) == expected + 1
        bridge.close_input()
        assert bridge.wait() == (0, b"")
    assert len(run(tmp_path, "index", "--jsonl").stdout.splitlines()) == expected + 1
    store = IndexStore.open(tmp_path / _INDEX)
    assert (store.persistent, store.notice) == (True, None)
    store.close()


def _news(bridge: BridgeProcess) -> list[dict[str, str]]:
    updates = [message["params"]["update"] for message in bridge.messages if message.get("method") == "session/update"]
    return [update for update in updates if update["sessionUpdate"] == "session_info_update" and "title" in update]


@pytest.mark.fault("W5")
def test_ten_thousand_appends_are_few_notifications(tmp_path: Path) -> None:
    """At most one a second, and the last one says what is in the file."""
    path = TOOLS["claude-code"].write(tmp_path, 1, ["eins", "zwei"] * 5000)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))
    with agent(tmp_path) as bridge:
        list_all(bridge)
        bridge.silent(1.5)  # the watches stand
        before = len(bridge.messages)
        with path.open("ab", buffering=0) as stream:
            for line in lines[2:]:
                stream.write(line)
        while bridge.silent(3) < 3:
            pass
        assert 1 <= len(bridge.messages) - before <= 5
        bridge.close_input()
        assert bridge.wait() == (0, b"")


@pytest.mark.fault("C6")
@pytest.mark.parametrize("fault", ["raise", "exit", "hang", "print", "nonsense", "absent"])
def test_a_bad_adapter_of_somebody_else_costs_the_others_nothing(fault: str, tmp_path: Path) -> None:
    """It is installed beside the built-in ones; their sessions are listed, and the output is protocol only."""
    plugins = tmp_path / "plugins"
    (plugins / "bad-1.dist-info").mkdir(parents=True)
    (plugins / "bad-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1\n")
    module = "nowhere" if fault == "absent" else "bad_adapter"
    (plugins / "bad-1.dist-info" / "entry_points.txt").write_text(
        f"[acp_history_bridge.adapters]\nbad = {module}:Bad\n"
    )
    (plugins / "bad_adapter.py").write_text(_BAD.replace("FAULT", _FAULTS.get(fault, "pass")), encoding="utf-8")
    home = tmp_path / "home"
    expected = _many(home, 1)
    path = os.pathsep.join(filter(None, [str(plugins), os.environ.get("PYTHONPATH", "")]))
    with running(ACP, environment(home, PYTHONPATH=path)) as bridge:
        bridge.initialize()
        assert len(list_all(bridge)) == expected
        bridge.close_input()
        code, stderr = bridge.wait(3.5)
        assert code == 0
        assert stderr.strip() == (b"printed" if fault == "print" else b"")


_FAULTS = {
    "raise": "raise KeyError('x')",
    "exit": "raise SystemExit(3)",
    "print": "print('printed', flush=True)",
    "nonsense": "return 7",
    "hang": "pass",
}
_BAD = """
from acp_history_bridge.adapter import Adapter, Discovery, Store
from pathlib import Path

class Bad(Adapter):
    name = prefix = "bad"
    title = "Bad"
    def stores(self, environment):
        return [Store("bad", environment.home / "bad")]
    def discover(self, store):
        FAULT
        return Discovery(())
    def unit(self, store, path): return None
    def affected(self, store, path): raise KeyError
    def inspect(self, unit, known=None): raise KeyError
    def open(self, unit, record): raise KeyError
"""
