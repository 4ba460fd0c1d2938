"""Touching other tools' files: only regular files, no links, nothing blocks."""

import os
import socket
from pathlib import Path

import pytest

from acp_history_bridge.adapter import Problem
from acp_history_bridge.errors import TranscriptError
from acp_history_bridge.files import fingerprint_of, list_directory, open_regular, read_small, stat_regular


def _make_odd(path: Path, kind: str) -> None:
    """Put something that is no regular file where a transcript is expected."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "link":
        path.with_name("target").write_bytes(b"secret")
        path.symlink_to("target")
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))


_ODD = ["fifo", "directory", "link", "loop", "device", "socket", "missing"]


@pytest.mark.timeout(5)
@pytest.mark.parametrize("kind", _ODD)
@pytest.mark.fault("F5", "S5")
def test_what_is_no_regular_file_is_not_opened(tmp_path: Path, kind: str) -> None:
    """A FIFO does not block, a link is not followed, and the error names the file only by its last part."""
    path = tmp_path / "x.jsonl"
    _make_odd(path, kind)

    with pytest.raises(TranscriptError, match=r"^cannot open x\.jsonl: "), open_regular(path):
        pytest.fail("it was opened")
    assert read_small(path, 100) is None
    assert stat_regular(path) is None


@pytest.mark.parametrize("name", ["a\0b", "\ud800"], ids=["nul", "surrogate"])
@pytest.mark.fault("S4")
def test_a_name_that_no_file_can_have_is_an_ordinary_failure(tmp_path: Path, name: str) -> None:
    """Names made from hostile content end in the same error as a missing file."""
    with pytest.raises(TranscriptError), open_regular(tmp_path / name):
        pytest.fail("it was opened")
    assert stat_regular(tmp_path / name) is None


def test_opening_frees_the_descriptor(tmp_path: Path) -> None:
    """The descriptor lives as long as the block."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"x")
    with open_regular(path) as descriptor:
        os.fstat(descriptor)

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_refused_file_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    """A directory can be opened by the system; the descriptor is closed when it turns out to be none."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with pytest.raises(TranscriptError), open_regular(tmp_path):
            pytest.fail("it was opened")

    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_side_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    """A file of exactly the limit is read, one byte more is refused as a whole."""
    path = tmp_path / "side.json"
    path.write_bytes(b"x" * 100)

    assert read_small(path, 100) == b"x" * 100
    assert read_small(path, 99) is None


def test_a_directory_is_listed_by_name(tmp_path: Path) -> None:
    """The order does not depend on the file system, and bytes that are no UTF-8 are a name like any other."""
    for name in (b"b", b"a", b"\xff"):
        (Path(os.fsdecode(bytes(tmp_path) + b"/" + name))).touch()
    problems: list[Problem] = []

    entries = list_directory(tmp_path, problems)

    assert entries is not None
    assert [os.fsencode(entry.name) for entry in entries] == [b"a", b"b", b"\xff"]
    assert problems == []


@pytest.mark.fault("F10", "F12")
def test_a_missing_directory_is_empty_and_an_unreadable_one_is_a_problem(tmp_path: Path) -> None:
    """A tool that was never used is no problem; what cannot be listed must not look empty."""
    problems: list[Problem] = []
    file = tmp_path / "file"
    file.touch()

    assert list_directory(tmp_path / "missing", problems) == []
    assert problems == []
    assert list_directory(file, problems) is None
    assert [(problem.path, problem.kind) for problem in problems] == [(file, "unreadable")]


@pytest.mark.fault("S5")
def test_the_entries_of_a_directory_are_not_followed(tmp_path: Path) -> None:
    """A link in a listing is no file, even if it leads to one."""
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to("real")
    entries = list_directory(tmp_path, [])

    assert entries is not None
    assert [entry.name for entry in entries if stat_regular(entry)] == ["real"]


def test_a_fingerprint_changes_with_the_file_and_with_its_companions(tmp_path: Path) -> None:
    """A grown file, a new side file, and a changed one are all seen; nothing else is."""
    file, side = tmp_path / "x.jsonl", tmp_path / "title.json"
    file.write_bytes(b"1")

    def look() -> object:
        return fingerprint_of(file.lstat(), stat_regular(side))

    alone = look()
    side.write_bytes(b"t")
    beside = look()
    side.write_bytes(b"tt")
    changed = look()
    file.write_bytes(b"12")

    assert len({alone, beside, changed, look()}) == 4
    assert look() == look()
