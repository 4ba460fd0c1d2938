"""The pipe to the client: who may use it, how frames come in and how they go out.

Policy:

- Descriptors 0 and 1 are taken away before anything else runs: whatever a library, a child process or a stray `print`
  writes lands on stderr, and nothing else reads the client's bytes.
- Reading and writing happen in daemon threads with raw `os.read` and `os.write`. anyio's worker threads would keep the
  process alive for as long as a read blocks, and a daemon in `sys.stdin.buffer` aborts the interpreter at its exit.
- Both directions are bounded: a client that stops reading stops the replay, one that floods us is not read further.
- A frame above the limit is skipped to its newline without being kept.
"""

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum

import anyio
from anyio.lowlevel import checkpoint

__all__ = [
    "FRAME_LIMIT",
    "OVERSIZED",
    "Frame",
    "FrameReader",
    "FrameSplitter",
    "FrameWriter",
    "Oversized",
    "take_stdio",
]

FRAME_LIMIT = 64 * 1024 * 1024
_CHUNK = 64 * 1024
_QUEUE_LIMIT = 1024 * 1024


class Oversized(Enum):
    """Stands for a frame that was too long to be kept."""

    OVERSIZED = "oversized"


OVERSIZED = Oversized.OVERSIZED
Frame = bytes | Oversized


def take_stdio() -> tuple[int, int]:
    """Move the client's pipe to private descriptors; 0 becomes the null device and 1 the same as stderr.

    Returns:
        The descriptors to read from and to write to; children do not inherit them.
    """
    private = _duplicate(0, os.O_RDONLY), _duplicate(1, os.O_WRONLY)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without a stderr
        os.dup2(null, 1)
        os.dup2(null, 2)
    if null > 2:
        os.close(null)
    return private


def _duplicate(descriptor: int, flags: int) -> int:
    """Duplicate above the standard three, even when some of them are closed and their numbers free."""
    import fcntl

    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    except OSError:  # the descriptor is closed: behave as if the client had left
        low = os.open(os.devnull, flags)
        try:
            return fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 3)
        finally:
            os.close(low)


class FrameSplitter:
    """Cuts a stream of bytes into lines, in time proportional to the bytes however they arrive."""

    def __init__(self, limit: int = FRAME_LIMIT) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that these bytes complete, without their newline."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._add(line)
            yield self._take()
        self._add(rest)

    def finish(self) -> Iterator[Frame]:
        """Yield the last frame if the stream ended without a newline."""
        if self._size:
            yield self._take()

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            self._pieces.clear()
        elif piece:
            self._pieces.append(piece)

    def _take(self) -> Frame:
        frame: Frame = OVERSIZED if self._size > self._limit else b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return frame


class FrameReader:
    """Reads frames in a daemon thread; ends when the client closes its side."""

    def __init__(self, descriptor: int, limit: int = FRAME_LIMIT) -> None:
        self._descriptor = descriptor
        self._splitter = FrameSplitter(limit)
        self._loop = asyncio.get_running_loop()
        self._frames, self._received = anyio.create_memory_object_stream[Frame](float("inf"))
        self._room = threading.Condition()
        self._waiting = 0
        threading.Thread(target=self._run, name="acp-read", daemon=True).start()

    async def receive(self) -> Frame | None:
        """Wait for the next frame; None when there will be no more."""
        try:
            frame = await self._received.receive()
        except anyio.EndOfStream:
            return None
        with self._room:
            self._waiting -= _weight(frame)
            self._room.notify()
        return frame

    def close(self) -> None:
        """Free the queue. The thread may stay in its read: nobody can wake it, and as a daemon it holds nobody up."""
        self._frames.close()
        self._received.close()

    def _run(self) -> None:
        try:
            while data := os.read(self._descriptor, _CHUNK):
                for frame in self._splitter.feed(data):
                    self._hand_over(frame)
            for frame in self._splitter.finish():
                self._hand_over(frame)
        except OSError:  # a terminal that hung up; the same as an end
            pass
        except RuntimeError:  # the loop is closed
            return
        self._call(self._frames.close)

    def _hand_over(self, frame: Frame) -> None:
        with self._room:
            self._room.wait_for(lambda: self._waiting < _QUEUE_LIMIT)
            self._waiting += _weight(frame)
        self._loop.call_soon_threadsafe(self._deliver, frame)

    def _deliver(self, frame: Frame) -> None:
        try:
            self._frames.send_nowait(frame)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # the server is on its way out

    def _call(self, callback: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:  # the loop is closed
            return


def _weight(frame: Frame) -> int:
    # A frame costs its bytes and the objects around it, so that a flood of empty lines is bounded, too.
    return 128 + (0 if isinstance(frame, Oversized) else len(frame))


class FrameWriter:
    """Writes frames in a daemon thread, up to 64 KiB at a time; `send` waits while the client is slow."""

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Condition()
        self._queue: deque[bytes] = deque()
        self._pending = 0
        self._broken = False
        self._progress = anyio.Event()
        threading.Thread(target=self._run, name="acp-write", daemon=True).start()

    async def send(self, frames: bytes) -> None:
        """Queue whole frames, each with its newline. Once the client is gone they are dropped."""
        await self._wait_below(_QUEUE_LIMIT)
        with self._lock:
            if frames and not self._broken:
                self._queue.append(frames)
                self._pending += len(frames)
                self._lock.notify()

    async def drain(self) -> None:
        """Wait until everything queued is in the pipe, or the client is gone."""
        await self._wait_below(1)

    async def _wait_below(self, limit: int) -> None:
        await checkpoint()
        while self._pending >= limit and not self._broken:
            if self._progress.is_set():
                self._progress = anyio.Event()
                continue  # the thread may have finished between the check and the new event
            await self._progress.wait()

    def _run(self) -> None:
        try:
            while True:
                batch = self._next_batch()
                self._write(batch)
                with self._lock:
                    self._pending -= len(batch)
                self._loop.call_soon_threadsafe(self._signal)
        except OSError:
            self._break()
        except RuntimeError:  # the loop is closed
            return

    def _next_batch(self) -> bytes:
        with self._lock:
            self._lock.wait_for(lambda: self._queue)
            batch = [self._queue.popleft()]
            size = len(batch[0])
            while self._queue and size + len(self._queue[0]) <= _CHUNK:
                batch.append(self._queue.popleft())
                size += len(batch[-1])
        return batch[0] if len(batch) == 1 else b"".join(batch)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def _break(self) -> None:
        with self._lock:
            self._broken = True
            self._queue.clear()
        try:
            self._loop.call_soon_threadsafe(self._signal)
            self._loop.call_soon_threadsafe(self._on_broken)
        except RuntimeError:  # the loop is closed
            return

    def _signal(self) -> None:
        self._progress.set()
