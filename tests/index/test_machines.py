"""State machines: the incremental index equals a rebuilt one, and paging is stable while everything moves."""
# ruff: noqa: D102  # the names of the rules say what happens; the class says what must hold

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from acp_history_bridge.adapter import Environment
from acp_history_bridge.errors import CursorError
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.sessions import Change, Session, SessionQuery
from tests.builders.fake_adapter import FakeAdapter, note, notes_at
from tests.index.conftest import LATER, LONG_AGO, listed

LONG = "LONG"  # written as 70,000 characters: files above that size are continued, smaller ones are read anew

_NAMES = st.sampled_from(["a/1.jsonl", "a/2.jsonl", "b/1.jsonl", "b/3.jsonl"])
_IDS = st.sampled_from(["one", "two", "three"])
_LINES = st.builds(
    note,
    _IDS,
    st.sampled_from(["Hello", "World", LONG]),
    minute=st.integers(0, 9),
    origin=st.sampled_from(["", "x"]),
    displaced=st.booleans(),
    listed=st.sampled_from([True, True, True, False]),
    rank=st.integers(0, 1),
    cwd=st.sampled_from(["/work", "/work/deep/", None]),
    cwd_digest=st.sampled_from(["md5:" + "0" * 32, None]),
)
_GARBAGE = st.sampled_from(["\n", "{}\n", "garbage\n", '{"id": "one", "text', "\x00\x00\n", '"}\n'])


def _expanded(lines: list[str]) -> list[str]:
    return [line.replace(LONG, "x" * 70_000) for line in lines]


class _Machine(RuleBasedStateMachine):
    """Files come, grow, shrink, move and go; the index hears of it by scans and refreshes."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.home = self.directory / "home"
        self.path = self.directory / "index.db"
        self.tick = 0
        self.dirty: set[Path] = set()
        self.seen: dict[str, Session] = {}
        self.library = self.open(self.path)

    def teardown(self) -> None:
        self.library.close()
        shutil.rmtree(self.directory)

    def open(self, path: Path | None) -> Library:
        return Library([FakeAdapter()], Environment(self.home), IndexStore.open(path), clock=lambda: LATER)

    def touch(self, path: Path) -> None:
        """Every change has a time of its own: changes within one tick are the subject of another test."""
        self.tick += 1
        os.utime(path, ns=(LONG_AGO, LONG_AGO + 3600 * 10**9 + self.tick * 10**6))
        self.dirty.add(path)

    def file(self, name: str) -> Path:
        return self.home / ".notes" / name

    def apply(self, changes: tuple[Change, ...]) -> None:
        """Keep a list by changes alone, as a client does."""
        for change in changes:
            before = self.seen.pop(change.session.id, None)
            if change.kind == "removed":
                assert before is not None
                assert _shown(before) == _shown(change.session)
            else:
                assert (before is None) == (change.kind == "added")
                assert change.before is None or (before is not None and _shown(change.before) == _shown(before))
                self.seen[change.session.id] = change.session


def _shown(session: Session) -> tuple[object, ...]:
    return session.id, session.unit.path, session.record, session.title, session.cwd, session.cwd_known


class IndexMachine(_Machine):
    """After hearing of everything, incremental and rebuilt index are the same."""

    @rule(name=_NAMES, lines=st.lists(_LINES, max_size=4))
    def create(self, name: str, lines: list[str]) -> None:
        self.touch(notes_at(self.home, name, *_expanded(lines)))

    @rule(name=_NAMES, lines=st.lists(_LINES | _GARBAGE, max_size=3))
    def append(self, name: str, lines: list[str]) -> None:
        if (path := self.file(name)).exists():
            with path.open("a", encoding="utf-8") as file:
                file.writelines(_expanded(lines))
            self.touch(path)

    @rule(name=_NAMES, part=st.floats(0, 1))
    def truncate(self, name: str, part: float) -> None:
        if (path := self.file(name)).exists():
            os.truncate(path, int(path.stat().st_size * part))
            self.touch(path)

    @rule(name=_NAMES, lines=st.lists(_LINES, max_size=4))
    def replace(self, name: str, lines: list[str]) -> None:
        if (path := self.file(name)).exists():
            new = notes_at(self.home, f"{name}.new", *_expanded(lines))
            new.replace(path)
            self.touch(path)

    @rule(name=_NAMES, new_name=_NAMES)
    def rename(self, name: str, new_name: str) -> None:
        if (path := self.file(name)).exists():
            new = self.file(new_name)
            new.parent.mkdir(exist_ok=True)
            path.rename(new)
            self.dirty |= {path, new}

    @rule(name=_NAMES)
    def delete(self, name: str) -> None:
        if (path := self.file(name)).exists():
            path.unlink()
            self.dirty.add(path)

    @rule(folder=st.sampled_from("ab"))
    def delete_folder(self, folder: str) -> None:
        if (path := self.file(folder)).exists():
            shutil.rmtree(path)
            self.dirty.add(path)

    @rule()
    def refresh(self) -> None:
        self.apply(self.library.refresh(self.dirty))
        self.dirty.clear()
        self.compare()

    @rule()
    def scan(self) -> None:
        for step in self.library.scan():
            self.apply(step.changes)
        self.dirty.clear()
        self.compare()

    @rule(data=st.data())
    def scan_with_refreshes(self, data: st.DataObject) -> None:
        for step in self.library.scan():
            self.apply(step.changes)
            if data.draw(st.booleans()):
                self.apply(self.library.refresh(self.dirty))
        self.dirty.clear()
        self.compare()

    @rule()
    def restart(self) -> None:
        self.library.close()
        self.library = self.open(self.path)

    def compare(self) -> None:
        rebuilt = self.open(None)
        for _ in rebuilt.scan():
            pass
        assert listed(self.library) == listed(rebuilt)
        assert self.library.problems() == rebuilt.problems()
        assert {key: _shown(session) for key, session in self.seen.items()} == {
            session.id: _shown(session) for session in listed(rebuilt)
        }
        rebuilt.close()


class PagingMachine(_Machine):
    """A client pages through the list while sessions come, go and move."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[str] = []
        self.moved: set[str] = set()
        self.at_start: set[str] = set()
        self.cursor: str | None = None
        self.paging = False

    @initialize(numbers=st.sets(st.integers(0, 20), min_size=3))
    def fill(self, numbers: set[int]) -> None:
        for number in numbers:
            self.change(number, number % 5)

    def change(self, number: int, minute: int) -> None:
        path = notes_at(self.home, f"a/{number}.jsonl", note(str(number), minute=minute))
        self.touch(path)
        self.moved.add(f"notes:{number}")
        self.library.refresh([path])

    @rule(number=st.integers(0, 20), minute=st.integers(0, 5))
    def add_or_move(self, number: int, minute: int) -> None:
        self.change(number, minute)

    @rule(number=st.integers(0, 20))
    def remove(self, number: int) -> None:
        path = self.file(f"a/{number}.jsonl")
        path.unlink(missing_ok=True)
        self.moved.add(f"notes:{number}")
        self.library.refresh([path])

    @precondition(lambda self: not self.paging)
    @rule()
    def begin(self) -> None:
        self.shown, self.moved, self.cursor, self.paging = [], set(), None, True
        self.at_start = {session.id for session in listed(self.library)}

    @precondition(lambda self: self.paging)
    @rule(size=st.integers(1, 4))
    def next_page(self, size: int) -> None:
        page = self.library.page(SessionQuery(), size, self.cursor)
        self.shown += [session.id for session in page.sessions]
        self.cursor, self.paging = page.next_cursor, page.next_cursor is not None
        if not self.paging:
            assert self.at_start - self.moved <= set(self.shown)

    @invariant()
    def nothing_unmoved_appears_twice(self) -> None:
        unmoved = [session_id for session_id in self.shown if session_id not in self.moved]
        assert len(unmoved) == len(set(unmoved))

    @invariant()
    def a_cursor_fits_no_other_query(self) -> None:
        if self.cursor is not None:
            try:
                self.library.page(SessionQuery(words="x"), 1, self.cursor)
            except CursorError:
                return
            raise AssertionError("a cursor was accepted for another query")


TestIndex = pytest.mark.fault("Z1", "R2", "R3")(IndexMachine.TestCase)
TestIndex.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
TestPaging = pytest.mark.fault("Z1", "T4")(PagingMachine.TestCase)
TestPaging.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
