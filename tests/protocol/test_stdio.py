"""Frames in and out of pipes."""

import os
from collections.abc import Generator

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_history_bridge.protocol.stdio import OVERSIZED, Frame, FrameReader, FrameSplitter, FrameWriter

Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Generator[Pipe]:
    """The two ends of a pipe; the test may close either."""
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


@given(lines=st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)), size=st.integers(1, 50))
@pytest.mark.fault("J4")
def test_frames_do_not_depend_on_how_their_bytes_arrive(lines: list[bytes], size: int) -> None:
    """J4: one byte at a time or all at once, and the last one without a newline."""
    stream = b"\n".join(lines)
    splitter = FrameSplitter(limit=10)
    frames: list[Frame] = []
    for start in range(0, len(stream), size):
        frames += splitter.feed(stream[start : start + size])
    frames += splitter.finish()
    expected = [OVERSIZED if len(line) > 10 else line for line in lines]
    assert frames == (expected[:-1] if lines and not lines[-1] else expected)


async def test_a_reader_yields_frames_and_then_none(pipe: Pipe) -> None:
    """The end comes after everything that was written."""
    read, write = pipe
    reader = FrameReader(read)
    os.write(write, b"one\ntwo")
    os.close(write)
    assert [await reader.receive() for _ in range(3)] == [b"one", b"two", None]
    reader.close()


@pytest.mark.fault("J5")
async def test_a_writer_waits_for_a_slow_client(pipe: Pipe) -> None:
    """J5: what the client does not read is bounded, and goes on when it reads again."""
    read, write = pipe
    writer = FrameWriter(write, on_broken=lambda: None)
    frame = b"x" * 99_999 + b"\n"
    sent, ten = 0, anyio.Event()

    async def send() -> None:
        nonlocal sent
        for _ in range(100):
            await writer.send(frame)
            sent += 1
            if sent == 10:
                ten.set()

    def take(count: int) -> int:
        return sum(len(os.read(read, 65536)) for _ in range(count))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        await ten.wait()
        with anyio.move_on_after(0.2):
            await writer.drain()
        assert sent < 15
        received = 0
        while received < 100 * len(frame):
            received += await anyio.to_thread.run_sync(take, 1)
    await writer.drain()
    assert sent == 100


async def test_a_writer_without_a_client_says_so_and_drops(pipe: Pipe) -> None:
    """Nobody waits for a client that has gone."""
    read, write = pipe
    broken = anyio.Event()
    writer = FrameWriter(write, on_broken=broken.set)
    os.close(read)
    with anyio.fail_after(5):
        for _ in range(100):
            await writer.send(b"x" * 100_000)
        await broken.wait()
        await writer.drain()
