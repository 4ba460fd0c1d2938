"""JSON Lines: every line exactly once, whatever the chunks, with bounded memory; a second chance for odd records."""

import json
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_history_bridge import jsonl
from acp_history_bridge.jsonl import Line, decode, read_at, read_lines, select_lines
from acp_history_bridge.values import items, mapping

_CONTENT = st.lists(st.sampled_from([b"\n", b"a", b"bc", b"def" * 5, b"\x00", b"\xff", b"\r\n"])).map(b"".join)


@contextmanager
def _opened(data: bytes) -> Generator[int]:
    """The read end of a file with this content that has no name."""
    descriptor = os.memfd_create("lines")
    try:
        os.write(descriptor, data)
        yield descriptor
    finally:
        os.close(descriptor)


def _expected(data: bytes, start: int = 0, limit: int = 1 << 30) -> list[Line]:
    """What `bytes.split` says the lines are."""
    lines: list[Line] = []
    pieces = data[start:].split(b"\n")
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        if piece or not last:
            lines.append(Line(start, len(piece), piece if len(piece) <= limit else None, pending=last))
        start += len(piece) + 1
    return lines


@given(_CONTENT, st.integers(1, 9), st.integers(0, 12))
@pytest.mark.fault("Z3", "R4")
def test_reading_in_any_chunks_gives_what_splitting_gives(data: bytes, chunk: int, limit: int) -> None:
    """Chunk borders, empty lines, missing newlines and over-long lines change nothing."""
    with pytest.MonkeyPatch.context() as patch, _opened(data) as descriptor:
        patch.setattr(jsonl, "CHUNK", chunk)

        assert list(read_lines(descriptor, limit=limit)) == _expected(data, limit=limit)


@given(_CONTENT, st.integers(1, 9), st.integers(1, 12), st.integers(1, 12))
def test_selected_lines_are_those_whose_first_bytes_are_wanted(data: bytes, chunk: int, limit: int, head: int) -> None:
    """Wherever chunks end, selecting is the same as reading all lines and judging each by its start."""
    with pytest.MonkeyPatch.context() as patch, _opened(data) as descriptor:
        patch.setattr(jsonl, "CHUNK", chunk)
        patch.setattr(jsonl, "_HEAD", head)
        wanted = [line for line in _expected(data, limit=limit) if line.data is not None and b"d" in line.data[:head]]

        assert list(select_lines(descriptor, 0, lambda start: b"d" in start, limit)) == wanted


@given(_CONTENT, st.integers(0, 40))
def test_reading_stops_at_the_given_end(data: bytes, end: int) -> None:
    """With an end, the rest of the file does not exist."""
    with _opened(data) as descriptor:
        assert list(read_lines(descriptor, end=end)) == _expected(data[:end])


@given(_CONTENT)
def test_each_line_can_be_read_again_at_its_offset(data: bytes) -> None:
    """Offsets and sizes say where a line lies, and where the next one starts."""
    with _opened(data) as descriptor:
        lines = list(read_lines(descriptor))

        assert [read_at(descriptor, line.offset, line.size) for line in lines] == [line.data for line in lines]
        assert [line.end for line in lines[:-1]] == [line.offset for line in lines[1:]]


@given(_CONTENT, st.integers(0, 40))
def test_going_on_from_the_end_of_a_line_loses_nothing(data: bytes, cut: int) -> None:
    """Reading a file while it grows gives every line once: a pending line is read again from its start."""
    with _opened(data[:cut]) as descriptor:
        first = [line for line in read_lines(descriptor) if not line.pending]
        os.lseek(descriptor, 0, os.SEEK_END)
        os.write(descriptor, data[cut:])

        assert first + list(read_lines(descriptor, first[-1].end if first else 0)) == _expected(data)


@pytest.mark.fault("F4")
def test_a_line_over_the_limit_is_reported_with_its_size_and_costs_no_memory() -> None:
    """The neighbours of a giant line are read, and of itself only the size is kept."""
    giant = 3 * jsonl.CHUNK + 17
    with _opened(b"a\n" + b"x" * giant + b"\nb\n") as descriptor:
        lines = list(read_lines(descriptor, limit=1000))

    assert [(line.size, line.data) for line in lines] == [(1, b"a"), (giant, None), (1, b"b")]


@pytest.mark.fault("F1")
def test_a_torn_last_line_is_kept_pending() -> None:
    """A line without newline may still be written."""
    with _opened(b'{"a":1}\n{"b"') as descriptor:
        lines = list(read_lines(descriptor))

    assert [(line.data, line.pending) for line in lines] == [(b'{"a":1}', False), (b'{"b"', True)]
    assert lines[-1].end == 12


@pytest.mark.fault("R3")
def test_a_file_that_is_truncated_while_it_is_read_just_ends(tmp_path: Path) -> None:
    """The lines that are gone do not come, and nothing is raised."""
    path = tmp_path / "shrinking.jsonl"
    path.write_bytes(b"x" * 10 + b"\n" + b"y" * jsonl.CHUNK)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        lines = read_lines(descriptor)
        first = next(lines)
        os.truncate(path, 0)

        assert first.data == b"x" * 10
        assert all(line.pending for line in lines)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b'"\\ud800"', "\ud800"),
        (b"[NaN]", None),
        (b"12345678901234567890123", 1.2345678901234568e22),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b"\x00\x00\x00[1]", [1]),
        (b'"\xff"', "\ufffd"),
        (b'"a\tb"', "a\tb"),
        (b"[1]\r", [1]),
    ],
)
@pytest.mark.fault("F2", "F3", "F6", "F7")
def test_odd_records_get_a_second_chance(data: bytes, value: object) -> None:
    """Lone surrogates, NaN, big numbers, marks, NUL runs, broken UTF-8 and raw controls cost no record."""
    decoded = decode(data)

    assert decoded == value or (data == b"[NaN]" and str(decoded) == "[nan]")


@pytest.mark.parametrize(
    "data",
    [b"", b"   ", b"{", b'{"a"', b"not json", b"\x00" * 100, b"[" * 5000 + b"]" * 5000, b'{"a":' * 5000, b"[1] [2]"],
    ids=["empty", "blank", "open", "torn", "text", "nul", "deep", "deep-torn", "two"],
)
@pytest.mark.fault("F6", "F7")
def test_what_is_no_json_is_a_value_error(data: bytes) -> None:
    """Also nesting of any depth: a hostile line must not end in a RecursionError."""
    assert _is_refused(data)


@pytest.mark.fault("F7")
def test_deep_nesting_with_something_odd_before_it_is_a_value_error() -> None:
    """The second chance has a limit, too."""
    assert _is_refused(b'["\\ud800",' + b"[" * 200_000)


@pytest.mark.fault("F7")
def test_the_limit_of_nesting_is_not_the_interpreters() -> None:
    """Where the standard library would decode more, its value would break whoever walks through it."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        assert _is_refused(b"[" * 5000 + b"]" * 5000)
    finally:
        sys.setrecursionlimit(before)


def _is_refused(data: bytes) -> bool:
    try:
        decode(data)
    except ValueError:
        return True
    return False


@given(st.binary())
@pytest.mark.fault("F7")
def test_decoding_any_bytes_gives_a_value_or_a_value_error(data: bytes) -> None:
    """Nothing else is ever raised."""
    _is_refused(data)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(codec=None)),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_every_json_value_is_decoded_as_the_standard_library_does(value: object) -> None:
    """The fast way and the second chance agree; big integers may become floats of the same size."""
    decoded = decode(json.dumps(value).encode())

    assert decoded == value or _has_big_integer(value)


def _has_big_integer(value: object) -> bool:
    inner = [*mapping(value).values(), *items(value)]
    return any(map(_has_big_integer, inner)) or (isinstance(value, int) and abs(value) > 2**63)
