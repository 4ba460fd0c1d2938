"""Files that change between any two steps of reading them."""

import os
from pathlib import Path

import pytest

from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from tests.conftest import environment_at
from tests.faults.tools import ADAPTERS, TOOLS, Tool, each_tool, library_at, listed, said, said_in, turns_of


def _unscanned(home: Path) -> Library:
    return Library([adapter() for adapter in ADAPTERS], environment_at(home), IndexStore.open(None))


@pytest.mark.fault("R1")
@each_tool
def test_a_file_that_vanishes_between_listing_and_reading_is_no_error(tool: Tool, tmp_path: Path) -> None:
    """Its neighbours are listed; after the next scan it is gone."""
    path = tool.write(tmp_path, 1, ["eins", "zwei"])
    tool.write(tmp_path, 2, ["drei", "vier"])
    library = _unscanned(tmp_path)
    steps = library.scan()
    while not next(steps).changes and path.exists():
        path.unlink()
    for _ in steps:
        pass
    for _ in library.scan():
        pass
    (left,) = listed(library)
    assert said(library, left) == ["drei", "vier"]
    library.close()


@pytest.mark.fault("R1", "R2")
@each_tool
@pytest.mark.parametrize("fate", ["removed", "renamed", "replaced", "directory moved"])
def test_a_replay_ends_on_the_file_it_began_with(tool: Tool, fate: str, tmp_path: Path) -> None:
    """Nothing of a file that takes its name is mixed in."""
    conversation = [f"{number} {'x' * 5000}" for number in range(200)]
    path = tool.write(tmp_path / "home", 1, conversation)
    other = tool.write(tmp_path / "other", 1, ["not mine"] * 3)
    with library_at(tmp_path / "home") as library:
        (session,) = listed(library)
        transcript = library.open(session)
        turns = transcript.turns()
        first = next(turns)
        match fate:
            case "removed":
                path.unlink()
            case "renamed":
                path.rename(path.with_name("elsewhere"))
            case "replaced":
                other.replace(path)
            case _:
                path.parent.rename(path.parent.with_name("gone"))
        assert len([first, *turns]) == 200
        transcript.close()


@pytest.mark.fault("R3")
@each_tool
def test_a_rewritten_file_is_read_anew(tool: Tool, tmp_path: Path) -> None:
    """Shorter, longer, or with another head and the same tail: title and conversation are those of the file."""
    home = tmp_path / "home"
    path = tool.write(home, 1, ["eins", "zwei " * 20_000, "drei"])
    inode = path.stat().st_ino
    with library_at(home) as library:
        for conversation in (["a"], ["b", "zwei " * 20_000, "drei", "vier"], ["c", "d", "e"]):
            whole = tool.write(tmp_path / conversation[0], 1, conversation).read_bytes()
            path.write_bytes(whole)  # in place, as a compaction does
            assert path.stat().st_ino == inode
            library.refresh([path])
            (session,) = listed(library)
            assert session.title == conversation[0]
            assert said(library, session) == conversation


@pytest.mark.fault("R6")
@each_tool
@pytest.mark.parametrize("years", [-10, 10])
def test_a_rewrite_under_another_time_is_noticed(tool: Tool, years: int, tmp_path: Path) -> None:
    """The clock of the machine, or of another one, went back or is ahead."""
    path = tool.write(tmp_path, 1, ["eins", "zwei"])
    with library_at(tmp_path) as library:
        other = tool.write(tmp_path / "other", 1, ["ZWEI", "EINS"])
        path.write_bytes(other.read_bytes())
        moment = path.stat().st_mtime + years * 365 * 86400
        os.utime(path, (moment, moment))
        for _ in library.scan():
            pass
        (session,) = listed(library)
        assert session.title == "ZWEI"


@pytest.mark.fault("R7")
def test_a_root_that_is_moved_away_and_back_gives_the_same_ids(tmp_path: Path) -> None:
    """While it is away its sessions are not listed; those of other tools are."""
    for tool in TOOLS.values():
        tool.write(tmp_path, 1, ["eins", "zwei"])
    with library_at(tmp_path) as library:
        before = {session.id for session in listed(library)}
        for name in (".claude", ".gemini"):
            (tmp_path / name).rename(tmp_path / f"away{name}")
        for _ in library.scan():
            pass
        assert {session.tool for session in listed(library)} == {"codex", "qwen-code"}
        for name in (".claude", ".gemini"):
            (tmp_path / f"away{name}").rename(tmp_path / name)
        for _ in library.scan():
            pass
        assert {session.id for session in listed(library)} == before


@pytest.mark.fault("R7", "T2")
@each_tool
def test_a_project_directory_that_is_moved_keeps_its_sessions(tool: Tool, tmp_path: Path) -> None:
    """Under their ids, with all that was said, and once."""
    path = tool.write(tmp_path, 1, ["eins", "zwei"])
    with library_at(tmp_path) as library:
        (before,) = listed(library)
        project = path.parent.parent if path.parent.name == "chats" else path.parent
        project.rename(project.with_name("15" if project.name.isdigit() else f"{project.name}-moved"))
        for _ in library.scan():
            pass
        (after,) = listed(library)
        assert after.record.native_id == before.record.native_id
        assert [turn.role for turn in turns_of(library, after)] == ["user", "agent"]


@pytest.mark.fault("S5")
@each_tool
def test_links_lead_nowhere(tool: Tool, tmp_path: Path) -> None:
    """Neither a linked file nor a linked directory nor a circle adds a session from outside of the store."""
    path = tool.write(tmp_path / "home", 1, ["eins", "zwei"])
    outside = tool.write(tmp_path / "outside", 2, ["secret", "secret"])
    (path.parent / outside.name).symlink_to(outside)
    (path.parent.parent / "linked").symlink_to(outside.parent)
    (path.parent / "circle").symlink_to(path.parent.parent)
    assert said_in(tmp_path / "home") == ["eins", "zwei"]


@pytest.mark.fault("S5")
@each_tool
def test_a_file_exchanged_for_a_link_after_it_was_listed_is_not_opened(tool: Tool, tmp_path: Path) -> None:
    """The check and the opening are one step."""
    path = tool.write(tmp_path / "home", 1, ["eins", "zwei"])
    outside = tool.write(tmp_path / "outside", 1, ["secret", "secret"])
    library = _unscanned(tmp_path / "home")
    steps = library.scan()
    while not next(steps).changes and not path.is_symlink():
        path.unlink()
        path.symlink_to(outside)
    for _ in steps:
        pass
    assert listed(library) == []
    library.close()


@pytest.mark.fault("T2")
@each_tool
def test_a_copied_transcript_mixes_nothing_up(tool: Tool, tmp_path: Path) -> None:
    """A copy beside it, under a name that counts, is the same session or one of its own."""
    path = tool.write(tmp_path, 1, ["eins", "zwei"])
    path.with_name(path.name.replace("00000001", "00000002")).write_bytes(path.read_bytes())
    with library_at(tmp_path) as library:
        sessions = listed(library)
        assert len({session.id for session in sessions}) == len(sessions)
        assert all(said(library, session) == ["eins", "zwei"] for session in sessions)
