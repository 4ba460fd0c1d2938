import os
import shutil
from pathlib import Path

import pytest

from acp_history_bridge.watch.polling import PolledTree
from tests.watch.listener import append, make_directory


class Reports:
    """What a tree reported."""

    def __init__(self, root: Path, *, recursive: bool = True) -> None:
        self.seen: list[tuple[str, str]] = []
        self.tree = PolledTree(lambda path, happening: self.seen.append((path, happening)), recursive=recursive)
        self.tree.add_tree(str(root))

    def sweep(self, *, everything: bool = True) -> set[tuple[str, str]]:
        """What one look brings."""
        self.seen.clear()
        self.tree.sweep(everything=everything)
        return set(self.seen)


def test_what_is_there_at_first_is_not_reported(tmp_path: Path) -> None:
    """Only changes are."""
    append(make_directory(tmp_path / "a/b") / "file")
    assert Reports(tmp_path).sweep() == set()


@pytest.mark.fault("W7")
def test_a_change_is_reported_once(tmp_path: Path) -> None:
    """A second look at the same state brings nothing."""
    path = append(tmp_path / "file")
    reports = Reports(tmp_path)
    append(path)
    assert reports.sweep() == {(str(path), "file")}
    assert reports.sweep() == set()


@pytest.mark.fault("R6")
def test_a_rewrite_of_equal_size_and_time_is_seen_by_its_inode(tmp_path: Path) -> None:
    """A replaced file is another file."""
    path = append(tmp_path / "file")
    os.utime(path, ns=(5, 5))
    reports = Reports(tmp_path)
    other = append(tmp_path / "other")
    os.utime(other, ns=(5, 5))
    other.replace(path)
    assert (str(path), "file") in reports.sweep()


def test_a_removed_tree_is_reported_once(tmp_path: Path) -> None:
    """The directories that went are named, and forgotten."""
    append(make_directory(tmp_path / "a/b") / "file")
    reports = Reports(tmp_path)
    shutil.rmtree(tmp_path / "a")
    assert reports.sweep() == {(str(tmp_path / "a"), "gone"), (str(tmp_path / "a/b"), "gone")}
    assert reports.sweep() == set()
    assert len(reports.tree) == 1


def test_a_new_tree_is_reported_with_all_its_files(tmp_path: Path) -> None:
    """Directories that came are looked into at once."""
    reports = Reports(tmp_path)
    path = append(make_directory(tmp_path / "a/b") / "file")
    assert reports.sweep() == {(str(tmp_path / "a"), "directory"), (str(path.parent), "directory"), (str(path), "file")}


def test_without_recursion_only_the_directory_itself_counts(tmp_path: Path) -> None:
    """What happens in its directories, old or new, is not looked at."""
    old = make_directory(tmp_path / "old")
    reports = Reports(tmp_path, recursive=False)
    new = make_directory(tmp_path / "new")
    assert reports.sweep() == {(str(new), "directory")}
    append(old / "file")
    append(new / "file")
    assert reports.sweep() == set()
    assert len(reports.tree) == 1


def test_quiet_directories_are_looked_at_rarely(tmp_path: Path) -> None:
    """A directory whose newest file is old is left to the full look; after a change it counts as active."""
    path = append(make_directory(tmp_path / "project") / "file")
    os.utime(path, ns=(0, 0))
    reports = Reports(tmp_path)
    append(path)
    assert reports.sweep(everything=False) == set()
    assert reports.sweep() == {(str(path), "file")}
    append(path)
    assert reports.sweep(everything=False) == {(str(path), "file")}


@pytest.mark.fault("W4")
def test_a_file_in_place_of_a_directory_ends_looking_into_it(tmp_path: Path) -> None:
    """The directory is reported as gone and forgotten."""
    place = make_directory(tmp_path / "place")
    reports = Reports(tmp_path)
    place.rmdir()
    append(place)
    assert reports.sweep() == {(str(place), "gone")}
    assert len(reports.tree) == 1


@pytest.mark.fault("W4", "W7")
def test_a_root_that_goes_and_returns_is_followed(tmp_path: Path) -> None:
    """The top is kept in mind, whatever happens to it."""
    root = make_directory(tmp_path / "root")
    append(root / "file")
    reports = Reports(root)
    shutil.rmtree(root)
    assert reports.sweep() == {(str(root), "gone")}
    assert reports.sweep() == set()
    path = append(make_directory(root) / "again")
    assert reports.sweep() == {(str(path), "file")}
