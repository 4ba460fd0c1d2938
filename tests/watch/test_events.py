# pyright: reportPrivateUsage=false
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_history_bridge.watch.dirty import DirtySet
from acp_history_bridge.watch.events import EventSource, Subscription
from acp_history_bridge.watch.parents import ParentWatch
from acp_history_bridge.watch.polling import Happening, Poller
from acp_history_bridge.watch.root import Means, WatchOptions
from tests.watch.listener import append, make_directory


class Ear:
    """Waits until a path was reported to it."""

    def __init__(self) -> None:
        self._reported: set[tuple[str, str]] = set()
        self._news = threading.Condition()

    def report(self, path: str, happening: Happening) -> None:
        """Take note, on the observer's thread."""
        with self._news:
            self._reported.add((path, happening))
            self._news.notify_all()

    def heard(self, path: Path, happening: Happening = "file") -> bool:
        """Whether it was reported within a few seconds."""
        with self._news:
            return self._news.wait_for(lambda: (str(path), happening) in self._reported, timeout=5)


@pytest.fixture
def source() -> Iterator[EventSource]:
    """A source of events that is closed at the end."""
    source = EventSource(lambda: None)
    yield source
    source.close(5)


def listen(source: EventSource, path: Path) -> tuple[Ear, Subscription]:
    """Subscribe another listener to a tree."""
    ear = Ear()
    return ear, source.watch(path, ear.report, recursive=True)


def test_listeners_on_one_directory_do_not_disturb_each_other(source: EventSource, tmp_path: Path) -> None:
    """One that leaves takes nobody else's events away."""
    (first, leaving), (second, _) = listen(source, tmp_path), listen(source, tmp_path)
    path = append(tmp_path / "a")
    assert first.heard(path)
    assert second.heard(path)
    source.unwatch(leaving)
    path = append(tmp_path / "b")
    assert second.heard(path)


def test_a_directory_that_returned_is_watched_for_all_its_listeners(source: EventSource, tmp_path: Path) -> None:
    """The library's own watch ends with the directory and would take the place of a new one for ever."""
    place = make_directory(tmp_path / "place")
    old, subscription = listen(source, place)
    place.rmdir()
    assert old.heard(place, "gone")
    for emitter in source._observer.emitters:  # it ends just after it has reported the end
        emitter.join(5)
    assert not source.watching(subscription)
    make_directory(place)
    new, _ = listen(source, place)
    path = append(place / "a")
    assert new.heard(path)
    assert old.heard(path)


def test_ending_a_subscription_twice_does_no_harm(source: EventSource, tmp_path: Path) -> None:
    """The second time there is nothing to end."""
    _, subscription = listen(source, tmp_path)
    source.unwatch(subscription)
    source.unwatch(subscription)
    assert not source.watching(subscription)


def test_a_root_that_appears_before_its_parent_is_watched_is_noticed(source: EventSource, tmp_path: Path) -> None:
    """Whoever begins to wait is told that there is nothing to wait for any more."""
    means = Means(WatchOptions(), DirtySet(lambda: None), Poller(1, 1))
    parents = ParentWatch(source, means)
    root = tmp_path / "a/root"
    assert parents.wait_for([root])
    make_directory(root)
    assert not parents.wait_for([root])
