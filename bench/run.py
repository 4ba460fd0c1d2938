"""`make bench`: what every path that a user waits for costs, against `cat` of the same files and against the targets.

    python -m bench.run                 # a small made-up home, about a minute
    python -m bench.run --full         # 5,000 sessions, 1.5 GB
    python -m bench.run --home DIR     # histories that are there; they are linked, and only the largest is copied

The home is made up and thrown away, and nothing here uses the network. docs/performance.md explains the rows.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from bench.corpus import Plan, append_turn, make_home, parse_size
from bench.measure import Agent, bridge, count_reads, environment, peak_rss, run

_NO_TEXT = {"ACP_HISTORY_BRIDGE_SEARCH_FULL_TEXT": "false"}  # so that nothing runs beside what is measured
_DECODE = "import orjson,sys\nfor line in open(sys.argv[1],'rb'): orjson.loads(line)"
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    target: str
    got: str


class Bench:
    """Everything that is measured on one home."""

    def __init__(self, home: Path, giant: Path, work: Path, repeat: int, idle: float) -> None:
        self._home = home
        self._giant = giant
        self._work = work
        self._repeat = repeat
        self._idle = idle
        self._caches = 0
        self._scan_takes = 1.0
        self._files = [path for path in home.rglob("*.json*") if path.is_file()]
        listing = work / "files"
        listing.write_bytes(b"\0".join(os.fsencode(path) for path in self._files))
        self._cat = min(run(["sh", "-c", f"xargs -0 cat < {listing}"], os.environ).cpu for _ in range(max(3, repeat)))

    def rows(self) -> Iterator[Row]:
        """Measure everything, the cheapest first."""
        size = sum(path.stat().st_size for path in self._files)
        yield Row(f"`cat` of {len(self._files)} files, {size / 1e6:.0f} MB", "", f"{self._cat:.3f} s CPU")
        yield self._initialize()
        yield self._first_page()
        yield self._reads("first page, no index: bytes and files read", self._page_input())
        yield self._everything()
        yield from self._with_index()
        yield self._append()
        yield self._replay()
        yield self._idling()
        yield from self._text()

    def _fresh(self, settings: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
        self._caches += 1
        return environment(self._home, self._work / f"cache{self._caches}", settings)

    def _times_cat(self, cpu: float) -> str:
        return f"{cpu:.3f} s = {cpu / self._cat:.2f} times `cat`"

    def _initialize(self) -> Row:
        bare: list[float] = []
        ready: list[float] = []
        for _ in range(self._repeat + 2):
            bare.append(run([sys.executable, "-c", "pass"], os.environ).cpu)
            with Agent(self._fresh()) as agent:
                agent.initialize()
                ready.append(agent.answered)
        return Row("spawn → `initialize`", "≤ 110 ms over python", f"{1000 * (min(ready) - min(bare)):.0f} ms")

    def _first_page(self) -> Row:
        costs: list[float] = []
        walls: list[float] = []
        memory = 0.0
        for _ in range(self._repeat):
            with Agent(self._fresh()) as agent:
                agent.initialize()
                at, _ = agent.answer(agent.start("session/list"))
                costs.append(agent.answered)
                walls.append(at - agent.started)
                memory = max(memory, peak_rss(agent.pid))
        got = f"{self._times_cat(min(costs))}, {min(walls):.2f} s wall, {memory:.0f} MiB"
        return Row("spawn → first page, no index", "≤ 0.6 times `cat`, ≤ 60 MiB", got)

    @staticmethod
    def _page_input() -> list[bytes]:
        return [
            b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}\n',
            b'{"jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {}}\n',
        ]

    def _reads(self, name: str, requests: list[bytes]) -> Row:
        found = count_reads(bridge("acp"), self._fresh(_NO_TEXT), self._home, requests)
        return Row(name, "", "no strace" if found is None else f"{found[0] / 1e6:.1f} MB, {found[1]} files")

    def _everything(self) -> Row:
        costs = [run(bridge("index", "--json", "--limit", "0"), self._fresh()) for _ in range(self._repeat)]
        best = min(costs, key=lambda cost: cost.cpu)
        self._scan_takes = 2 * best.wall
        got = f"{self._times_cat(best.cpu)}, {best.rss:.0f} MiB"
        return Row("all metadata, no index", "≤ 1.5 times `cat`, ≤ 60 MiB", got)

    def _with_index(self) -> Iterator[Row]:
        env = self._fresh()
        run(bridge("index", "--json"), env)
        costs: list[float] = []
        for _ in range(self._repeat):
            with Agent(env) as agent:
                agent.initialize()
                agent.ask("session/list")
                costs.append(agent.answered)
        with Agent(env | _NO_TEXT) as agent:
            agent.initialize()
            agent.settle()
            whole, small = list(_further(agent, 500)), list(_further(agent, 50))
        yield Row("spawn → first page, with index", "≤ 0.25 s CPU", f"{min(costs):.3f} s")
        if small:
            got = f"{1000 * statistics.median(small):.1f} ms for 50 sessions"
            got += f", {1000 * statistics.median(whole):.1f} ms for 500" if whole else ""
            yield Row("a further page", "≤ 2 ms", got)

    def _append(self) -> Row:
        told: list[float] = []
        with Agent(self._fresh(_NO_TEXT)) as agent:
            agent.initialize()
            agent.listen(lambda line, at: told.append(at) if b'"session_info_update"' in line else None)
            agent.ask("session/list")
            agent.settle()
            costs: list[float] = []
            reads: list[int] = []
            waits: list[float] = []
            for number in range(self._repeat + 2):
                told.clear()
                cpu, read = agent.cpu(), agent.bytes_read()
                start = time.perf_counter()
                size = append_turn(self._giant, f"appended {number}")
                while not told and time.perf_counter() - start < 5:
                    time.sleep(0.005)
                time.sleep(1.3)  # pushes come at most once a second
                costs.append(agent.cpu() - cpu)
                reads.append(agent.bytes_read() - read - size)
                waits.append(told[0] - start if told else float("inf"))
        got = (
            f"{1000 * min(costs):.1f} ms CPU, {statistics.median(reads) / 1024:.0f} KiB over the turn, "
            f"told after {1000 * statistics.median(waits):.0f} ms"
        )
        name = f"one turn appended to {self._giant.stat().st_size / 1e6:.0f} MB"
        return Row(name, "≤ 5 ms CPU, ≤ 64 KiB, ≤ 300 ms", got)

    def _replay(self) -> Row:
        decode = run([sys.executable, "-c", _DECODE, str(self._giant)], os.environ)
        bare = run([sys.executable, "-c", "import orjson"], os.environ)
        with Agent(self._fresh(_NO_TEXT)) as agent:
            agent.initialize()
            session = f"claude:{self._giant.stem}"
            agent.ask("session/list")
            agent.settle()
            updates: list[float] = []
            agent.listen(lambda _, at: updates.append(at))
            cpu, start = agent.cpu(), time.perf_counter()
            agent.ask("session/load", sessionId=session, cwd="/", mcpServers=[])
            spent, wall = agent.cpu() - cpu, time.perf_counter() - start
            memory = peak_rss(agent.pid)
        ratio = spent / (decode.cpu - bare.cpu)
        got = (
            f"first update {1000 * (updates[0] - start):.0f} ms, {spent:.2f} s CPU = {ratio:.1f} times orjson, "
            f"{wall:.2f} s wall, {memory:.0f} MiB, {len(updates)} updates"
        )
        name = f"replay of {self._giant.stat().st_size / 1e6:.0f} MB"
        return Row(name, "first ≤ 100 ms, ≤ 2 times orjson, ≤ 80 MiB", got)

    def _idling(self) -> Row:
        with Agent(self._fresh(_NO_TEXT)) as agent:
            agent.initialize()
            agent.ask("session/list")
            agent.settle()
            cpu = agent.cpu()
            time.sleep(self._idle)
            share = (agent.cpu() - cpu) / self._idle
            memory = peak_rss(agent.pid)
        directories = sum(1 for path in self._home.rglob("*") if path.is_dir())
        got = f"{100 * share:.2f} % CPU over {self._idle:.0f} s, {memory:.0f} MiB"
        return Row(f"idle, watching {directories} directories", "≤ 0.1 % CPU, ≤ 60 MiB", got)

    def _text(self) -> Iterator[Row]:
        env = self._fresh()
        cost = run(bridge("search", "--update", "--quiet"), env)
        cache = Path(env["XDG_CACHE_HOME"])
        size = sum(path.stat().st_size for path in cache.rglob("text.db*"))
        got = f"{self._times_cat(cost.cpu)}, {cost.rss:.0f} MiB, {size / 1e6:.0f} MB on disk"
        yield Row("full-text build, with the list", "≤ fast-resume, ≤ 130 MiB, ≤ 70 MB", got)
        with Agent(env) as agent:
            agent.initialize()
            agent.ask("session/list")
            agent.settle()
            for name, words, target in (
                ("search: rare word", "needle000042", "≤ 1 ms"),
                ("search: two common words", "middleware pagination", "≤ 30 ms"),
            ):
                before = agent.cpu()
                times = list(_search(agent, words, 20))
                spent = (agent.cpu() - before) / len(times)
                yield Row(name, target, f"{1000 * spent:.1f} ms CPU, {1000 * statistics.median(times):.1f} ms (p50)")
        yield self._list_while_building()

    def _list_while_building(self) -> Row:
        env = self._fresh()
        with Agent(env) as agent:
            agent.initialize()
            agent.ask("session/list")
            times: list[float] = []
            time.sleep(self._scan_takes)  # the text index is built when the first scan is over
            stop = time.perf_counter() + 10
            while time.perf_counter() < stop:
                start = time.perf_counter()
                at, _ = agent.answer(agent.start("session/list"))
                times.append(at - start)
                time.sleep(0.02)
        times.sort()
        got = f"p50 {1000 * times[len(times) // 2]:.1f} ms, p99 {1000 * times[int(len(times) * 0.99)]:.1f} ms"
        return Row("list while the text index builds", "p99 ≤ 50 ms", got)


def _further(agent: Agent, limit: int) -> Iterator[float]:
    meta = {"acp-history-bridge": {"limit": limit}}
    page = agent.ask("session/list", _meta=meta)
    while cursor := page.get("nextCursor"):
        start = time.perf_counter()
        at, page = agent.answer(agent.start("session/list", cursor=cursor, _meta=meta))
        yield at - start


def _search(agent: Agent, words: str, times: int) -> Iterator[float]:
    meta = {"acp-history-bridge": {"search": words, "limit": 20}}
    for _ in range(times):
        start = time.perf_counter()
        at, found = agent.answer(agent.start("session/list", _meta=meta))
        if not found["sessions"]:
            raise RuntimeError(f"nothing found for {words}")
        yield at - start


def _linked(source: Path, target: Path) -> Path:
    """Link a home and copy its largest transcript of Claude Code, which is appended to."""
    shutil.copytree(source, target, copy_function=os.link, symlinks=True)
    giant = max((target / ".claude").rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    own = giant.with_suffix(".copy")
    shutil.copy2(giant, own)
    own.replace(giant)
    return giant


def main() -> None:
    """Make or link a home, measure, and print a table."""
    parser = argparse.ArgumentParser(description="Measure the bridge on a home full of histories.")
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--bytes", type=parse_size, default=parse_size("150M"))
    parser.add_argument("--full", action="store_true", help="5,000 sessions, 1.5 GB, the largest of 129 MB")
    parser.add_argument("--home", type=Path, help="measure these histories")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench", dir=given.home.parent if given.home else None) as directory:
        work = Path(directory)
        home = work / "home"
        if given.home:
            giant = _linked(given.home, home)
        elif given.full:
            giant = make_home(home, Plan(5000, parse_size("1500M"), parse_size("129M")))
        else:
            giant = make_home(home, Plan(given.sessions, given.bytes, given.bytes // 5))
        print("| what | target (full) | got |\n| --- | --- | --- |")
        for row in Bench(home, giant, work, given.repeat, 60 if given.full or given.home else 10).rows():
            print(f"| {row.name} | {row.target} | {row.got} |", flush=True)


if __name__ == "__main__":
    main()
