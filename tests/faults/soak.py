"""`make soak`: fifty changes a second, random loads, lists, searches and cancels, and now and then a kill.

Each agent's memory, descriptors and threads are compared between its warmed-up start and its quiet end; all messages
are checked as in every other test; in the end the index equals one that is built from nothing. Exit status 1 if not.
"""

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import digest_tree
from tests.faults.agents import agent
from tests.faults.tools import TOOLS, library_at, listed, write_opencode
from tests.peers.bridge import BridgeProcess

_SESSIONS = 40
_CHANGES_PER_SECOND = 50
_LIFETIMES = 6
_GROWTH = {"memory": 48 * 1024, "descriptors": 3, "threads": 3}


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process holds; memory in KiB."""

    memory: int
    descriptors: int
    threads: int

    @classmethod
    def of(cls, pid: int) -> "Usage":
        """Look at a process now."""
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        fields = dict(line.split(":", 1) for line in status)
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        return cls(int(fields["VmRSS"].split()[0]), descriptors, int(fields["Threads"]))


class Writer(threading.Thread):
    """The tools at work: they append, replace, truncate, remove and write again."""

    def __init__(self, home: Path, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.stopping = threading.Event()
        self.changes = 0
        self._home = home
        self._chance = chance

    def run(self) -> None:
        """Change something at the given rate until stopped."""
        while not self.stopping.wait(1 / _CHANGES_PER_SECOND):
            self._change()
            self.changes += 1

    def _change(self) -> None:
        number = self._chance.randrange(1, _SESSIONS)
        name = self._chance.choice((*TOOLS, "opencode"))
        conversation = [f"words {self._chance.random()}"] * self._chance.choice((1, 2, 3, 30))
        if name == "opencode":
            write_opencode(self._home, number, conversation)
            return
        path = TOOLS[name].write(self._home, number, conversation)
        os.utime(path)  # builders set times of their own, under which a rewrite of equal size could not be seen
        match self._chance.randrange(8):
            case 0:
                path.unlink()
            case 1:
                data = path.read_bytes()
                path.write_bytes(data[: self._chance.randrange(len(data))])
            case 2:
                path.with_suffix(".tmp").write_bytes(path.read_bytes())
                path.with_suffix(".tmp").replace(path)
            case _:
                pass


def _use(bridge: BridgeProcess, chance: random.Random) -> str:
    """One thing a client does with some session, and which; that it has just been removed is an answer, too."""
    sessions = bridge.request("session/list")["sessions"]
    session_id = str(chance.choice(sessions)["sessionId"])
    load = {"sessionId": session_id, "cwd": "/"}
    match chance.randrange(5):
        case 0:
            bridge.request("session/list", {"_meta": {"acp-history-bridge": {"search": "words"}}})
        case 1:
            id_ = bridge.start("session/load", load)
            bridge.notify("$/cancel_request", {"requestId": id_})
            bridge.answer(id_)
        case 2:
            bridge.answer(bridge.start("session/close", {"sessionId": session_id}))
        case _:
            bridge.answer(bridge.start("session/load", load))
    bridge.messages.clear()
    bridge.lines.clear()
    bridge.times.clear()
    return session_id


def _life(home: Path, seconds: float, writer: Writer, chance: random.Random, *, killed: bool) -> list[str]:
    """One agent from its start to its end; what grew."""
    with agent(home) as bridge:
        opened = {_use(bridge, chance) for _ in range(50)}
        before = Usage.of(bridge.process.pid)
        ends, uses, changes = time.monotonic() + seconds, 0, writer.changes
        while time.monotonic() < ends:
            opened.add(_use(bridge, chance))
            uses += 1
        for session_id in {session["sessionId"] for session in bridge.request("session/list")["sessions"]} | opened:
            bridge.answer(bridge.start("session/close", {"sessionId": session_id}))
        after = Usage.of(bridge.process.pid)
        print(f"{uses} uses, {writer.changes - changes} changes, {before} -> {after}{', killed' if killed else ''}")
        if killed:
            bridge.process.kill()
            return []
        bridge.close_input()
        code, stderr = bridge.wait(5)
        wrong = [f"it ended with {code}: {stderr!r}"] if (code, stderr) != (0, b"") else []
        return wrong + [
            f"{what} grew: {before} -> {after}"
            for what, bound in _GROWTH.items()
            if getattr(after, what) > getattr(before, what) + bound
        ]


def _write_all(home: Path) -> None:
    for number in range(1, _SESSIONS):
        for tool in TOOLS.values():
            os.utime(tool.write(home, number, ["words", "more words"]))
        write_opencode(home, number, ["words"])


def soak(home: Path, seconds: float, seed: int) -> list[str]:
    """Run for about so many seconds; what was wrong."""
    chance = random.Random(seed)
    _write_all(home)
    writer = Writer(home, chance)
    writer.start()
    wrong: list[str] = []
    for life in range(_LIFETIMES):
        wrong += _life(home, seconds / _LIFETIMES, writer, chance, killed=life % 3 == 2)
    writer.stopping.set()
    writer.join()
    _write_all(home)  # of a file that was left torn the index keeps what it knew, as it should
    before = {path: digest for path, digest in digest_tree(home).items() if "acp-history-bridge" not in path}
    with library_at(home, home / ".cache" / "acp-history-bridge" / "index.db") as kept, library_at(home) as rebuilt:
        if listed(kept) != listed(rebuilt):
            wrong.append("the index is not what a rebuild gives")
    after = {path: digest for path, digest in digest_tree(home).items() if "acp-history-bridge" not in path}
    return wrong + (["a transcript was touched"] if before != after else [])


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory() as directory:
        wrong = soak(Path(directory), arguments.seconds, arguments.seed)
    print(*(wrong or ["all is as it was"]), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
