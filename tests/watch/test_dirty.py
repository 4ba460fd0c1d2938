from pathlib import Path

import pytest

from acp_history_bridge.watch.dirty import Dirty, DirtySet

ROOT, OTHER = Path("/root"), Path("/other")


def test_the_consumer_is_woken_once_per_batch() -> None:
    """However many paths are marked, one wake-up stands until they are taken."""
    wakes: list[None] = []
    dirty = DirtySet(lambda: wakes.append(None))
    for number in range(100):
        dirty.mark(ROOT, f"/root/{number}")
    assert len(wakes) == 1
    assert len(dirty.take().paths) == 100
    dirty.mark(ROOT, "/root/again")
    assert len(wakes) == 2


@pytest.mark.fault("W5")
def test_too_many_paths_become_a_rescan_of_their_root() -> None:
    """The set is bounded per root, and other roots keep their paths."""
    dirty = DirtySet(lambda: None, limit=10)
    dirty.mark(OTHER, "/other/one")
    for number in range(11):
        dirty.mark(ROOT, f"/root/{number}")
    dirty.mark(ROOT, "/root/late")
    assert dirty.take() == Dirty(frozenset({OTHER / "one"}), frozenset({ROOT}))


def test_a_taken_batch_is_gone() -> None:
    """Nothing is handed over twice."""
    dirty = DirtySet(lambda: None)
    dirty.mark(ROOT, "/root/a")
    dirty.mark_root(OTHER)
    assert dirty.take()
    assert not dirty.take()


def test_a_poke_wakes_without_marking() -> None:
    """The consumer can be called although no path is known."""
    wakes: list[None] = []
    dirty = DirtySet(lambda: wakes.append(None))
    dirty.poke()
    dirty.poke()
    assert len(wakes) == 1
    assert not dirty.take()
