"""Damaged and odd files of every tool, through the whole library."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.tools import TOOLS, Tool, each_tool, library_at, listed, said, said_in, session_uuid, write_opencode

_WIDE = ("é", "€", "😀")


def _unescaped(data: bytes) -> bytes:
    """The same JSON with the characters themselves, as the tools write them."""
    for character in _WIDE:
        escaped = character.encode("utf-16-be").hex()
        escape = "".join(f"\\u{escaped[start : start + 4]}" for start in range(0, len(escaped), 4))
        data = data.replace(escape.encode(), character.encode())
    return data


def _last_line(data: bytes) -> int:
    """Where the last line begins."""
    return data.rindex(b"\n", 0, -1) + 1


@pytest.mark.fault("F1", "F2")
@each_tool
@pytest.mark.parametrize("character", _WIDE)
def test_a_file_torn_within_a_character_waits_for_the_rest(tool: Tool, character: str, tmp_path: Path) -> None:
    """At every byte of the character: what is whole is served without a problem, and then the rest."""
    path = tool.write(tmp_path, 1, ["eins", f"before {character} after"])
    whole = _unescaped(path.read_bytes())
    start = whole.index(character.encode())
    for size in range(start, start + len(character.encode()) + 1):
        path.write_bytes(whole[:size])
        with library_at(tmp_path) as library:
            (session,) = listed(library)
            transcript = library.open(session)
            first = [turn.role for turn in transcript.turns()]
            assert library.problems() == ()
            path.write_bytes(whole)
            assert first + [turn.role for turn in transcript.turns()] == ["user", "agent"]
            assert not transcript.problems
            transcript.close()
    assert said_in(tmp_path) == ["eins", f"before {character} after"]


@pytest.mark.fault("F2")
@each_tool
def test_broken_characters_in_the_middle_cost_no_text(tool: Tool, tmp_path: Path) -> None:
    """Each broken sequence is shown as a replacement; the text around it and the neighbours stay."""
    path = tool.write(tmp_path, 1, ["eins", "before € after", "drei"])
    whole = _unescaped(path.read_bytes())
    for broken in (b"\xe2", b"\xe2\x82", b"\xff", b"\xed\xa0\x80"):
        path.write_bytes(whole.replace("€".encode(), broken))
        first, second, third = said_in(tmp_path)
        assert (first, third) == ("eins", "drei")
        assert second.startswith("before \ufffd")
        assert second.endswith(" after")


@pytest.mark.fault("F3")
@each_tool
def test_an_escaped_nul_is_a_sign_like_any_other(tool: Tool, tmp_path: Path) -> None:
    """A title shows it as a replacement; the conversation has it as it was."""
    tool.write(tmp_path, 1, ["a\0b", "zwei"])
    with library_at(tmp_path) as library:
        (session,) = listed(library)
        assert session.title == "a\ufffdb"
        assert said(library, session) == ["a\0b", "zwei"]


@pytest.mark.fault("F3")
@each_tool
def test_a_tail_of_nul_costs_nothing(tool: Tool, tmp_path: Path) -> None:
    """After a power loss the file has its old size and zeros at the end; what is written behind them is read."""
    path = tool.write(tmp_path, 1, ["eins", "zwei", "drei"])
    whole = path.read_bytes()
    third = _last_line(whole)
    path.write_bytes(whole[:third] + b"\0" * 5000)
    assert said_in(tmp_path) == ["eins", "zwei"]
    path.write_bytes(whole[:third] + b"\0" * 5000 + whole[third:])
    assert said_in(tmp_path) == ["eins", "zwei", "drei"]


@pytest.mark.fault("F4")
@each_tool
@pytest.mark.parametrize("newline", [b"\n", b""])
def test_a_record_beyond_the_limit_costs_itself_only(tool: Tool, newline: bytes, tmp_path: Path) -> None:
    """Here of 40 MB, a hole in the file; a placeholder stands for it once it is complete."""
    path = tool.write(tmp_path, 1, ["eins", "zwei", "drei"])
    whole = path.read_bytes()
    third = _last_line(whole)
    with path.open("wb") as stream:
        stream.write(whole[:third])
        stream.truncate(third + 40_000_000)
        stream.seek(0, os.SEEK_END)
        stream.write(newline + (whole[third:] if newline else b""))
    with library_at(tmp_path) as library:
        (session,) = listed(library)
        shown = said(library, session)
    assert shown[:2] == ["eins", "zwei"]
    assert shown[-1] == ("drei" if newline else "zwei")


@pytest.mark.fault("F4", "R4", "Z3")
@each_tool
def test_a_record_beyond_the_limit_that_is_still_being_written_is_left_for_later(tool: Tool, tmp_path: Path) -> None:
    """When it is complete, an index that saw half of it says the same as one that did not."""
    home = tmp_path / "home"
    path = tool.write(home, 1, ["eins", "zwei", "x" * 70_000, "drei"])
    whole = path.read_bytes()
    last = _last_line(whole)
    path.write_bytes(whole[:last] + b'{"type":"zzz","x":"' + b"x" * 17_000_000)
    with library_at(home) as library:
        with path.open("ab") as stream:
            stream.write(b'xxx"}\n' + whole[last:])
        library.refresh([path])
        with library_at(home) as rebuilt:
            assert listed(library) == listed(rebuilt)
            assert library.problems() == rebuilt.problems()


def _make_fifo(path: Path) -> None:
    os.mkfifo(path)


def _make_socket(path: Path) -> None:
    short = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)  # a socket's address has to be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{short}/{path.name}")
    finally:
        os.close(short)


_ODD: dict[str, Callable[[Path], object]] = {
    "fifo": _make_fifo,
    "socket": _make_socket,
    "directory": Path.mkdir,
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link to itself": lambda path: path.symlink_to(path),
    "dangling link": lambda path: path.symlink_to(path.parent / "nothing"),
    "empty": Path.touch,
}


@pytest.mark.fault("F5", "F9", "S5")
@pytest.mark.parametrize("kind", _ODD)
def test_what_is_no_file_but_has_its_name_is_passed_over(kind: str, tmp_path: Path) -> None:
    """The scan ends, and every real session beside it is listed and served."""
    for tool in TOOLS.values():
        tool.write(tmp_path, 1, ["eins", "zwei"])
        odd = tool.write(tmp_path, 2, ["drei", "vier"])
        odd.unlink()
        _ODD[kind](odd)
    odd = write_opencode(tmp_path, 2, ["drei", "vier"])
    odd.unlink()
    _ODD[kind](odd)
    write_opencode(tmp_path, 1, ["eins", "zwei"])
    with library_at(tmp_path) as library:
        sessions = listed(library)
        assert len(sessions) == len(TOOLS) + 1
        assert all(said(library, session) == ["eins", "zwei"] for session in sessions)


_VARIANTS: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "cr lf": (lambda data: data.replace(b"\n", b"\r\n"), 0),
    "blank lines": (lambda data: data.replace(b"\n", b"\n\n  \n"), 0),
    "byte order mark": (lambda data: b"\xef\xbb\xbf" + data, 0),
    "comma on a line between": (lambda data: data[: _last_line(data)] + b"{},\n" + data[_last_line(data) :], 0),
    "comma in the last line": (lambda data: data[:-2] + b"},\n", 1),
}


@pytest.mark.fault("F6")
@each_tool
@pytest.mark.parametrize("variant", _VARIANTS)
def test_other_line_ends_and_signs_cost_no_neighbour(tool: Tool, variant: str, tmp_path: Path) -> None:
    """Where there is one meaning nothing is lost, else that line."""
    damage, lost = _VARIANTS[variant]
    path = tool.write(tmp_path, 1, ["eins", "zwei", "drei"])
    path.write_bytes(damage(path.read_bytes()))
    assert said_in(tmp_path) == ["eins", "zwei", "drei"][: 3 - lost]


@pytest.mark.fault("F7")
@each_tool
@pytest.mark.parametrize("odd", [b'"\\ud800x"', b'"a\\udc00"', b"NaN", b"-Infinity", b"1e999", b"9" * 400])
def test_odd_values_beside_the_known_ones_cost_nothing(tool: Tool, odd: bytes, tmp_path: Path) -> None:
    """A field that nobody knows can hold them."""
    path = tool.write(tmp_path, 1, ["eins", "zwei", "drei"])
    lines = path.read_bytes().splitlines(keepends=True)
    lines[-1] = b'{"zzz":' + odd + b"," + lines[-1][1:]
    path.write_bytes(b"".join(lines))
    assert said_in(tmp_path) == ["eins", "zwei", "drei"]


@pytest.mark.fault("F7")
@each_tool
@pytest.mark.parametrize("depth", [900, 1500, 5000, 200_000])
def test_deep_nesting_costs_that_record_at_most(tool: Tool, depth: int, tmp_path: Path) -> None:
    """Whatever the parser's limit, no neighbour is lost and nothing recurses."""
    path = tool.write(tmp_path, 1, ["eins", "zwei", "drei"])
    lines = path.read_bytes().splitlines(keepends=True)
    deep = b'{"zzz":' + b'{"a":[' * depth + b"]}" * depth + b","
    lines.insert(-1, deep + lines[-1][1:])
    path.write_bytes(b"".join(lines))
    shown = said_in(tmp_path)
    assert shown[:2] == ["eins", "zwei"]
    assert shown[-1] == "drei"


@pytest.mark.fault("F13")
def test_a_compressed_rollout_beside_its_plain_twin_is_one_session(tmp_path: Path) -> None:
    """However broken the compressed one is."""
    path = TOOLS["codex"].write(tmp_path, 1, ["eins", "zwei"])
    path.with_name(path.name + ".zst").write_bytes(b"garbage")
    assert said_in(tmp_path) == ["eins", "zwei"]


@pytest.mark.fault("T3")
@each_tool
def test_a_session_that_is_deleted_and_made_again_is_the_new_one(tool: Tool, tmp_path: Path) -> None:
    """Nothing of the old one comes back."""
    database = tmp_path / "index.db"
    home = tmp_path / "home"
    path = tool.write(home, 1, ["old question", "old answer"])
    with library_at(home, database) as library:
        (before,) = listed(library)
        path.unlink()
        assert [change.kind for change in library.refresh([path])] == ["removed"]
        assert listed(library) == []
        assert library.find(before.id) is None
        tool.write(home, 1, ["new question", "new answer"])
        library.refresh([path])
        (after,) = listed(library)
        assert (after.id, after.title) == (before.id, "new question")
        assert said(library, after) == ["new question", "new answer"]


@pytest.mark.fault("S8")
@pytest.mark.parametrize("hostile", ["-p", "--dangerously-skip-permissions", "$(touch x)", "a; rm -rf b", "`x`", ""])
def test_no_id_becomes_an_option_of_the_tool_that_is_started(hostile: str, tmp_path: Path) -> None:
    """Either there is no command, or the id is one argument that no tool takes for an option."""
    for tool in TOOLS.values():
        path = tool.write(tmp_path, 1, ["eins", "zwei"])
        data = path.read_bytes()
        for identifier in (session_uuid(1), path.stem.removeprefix("rollout-2026-01-02T03-05-05-")):
            data = data.replace(identifier.encode(), hostile.encode())
        path.write_bytes(data)
        path.rename(path.with_name(f"{hostile or 'x'}.jsonl".replace("/", "")))
    with library_at(tmp_path) as library:
        for session in listed(library):
            command = library.adapter(session.tool).resume_command(session.record)
            assert command is None or not any(argument.startswith("-") for argument in command.argv[2:])
            assert command is None or session.record.native_id in command.argv
