"""The lines of a rollout, plain or compressed.

Policy: a compressed rollout is unpacked while it is read, never to the disk and never as a whole. What it unpacks to is
capped, so that a bomb costs a bounded time. A truncated or damaged frame is a problem; what came before it is shown.
"""

import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from acp_history_adapters.codex.rollouts import COMPRESSED
from acp_history_bridge.adapter import Problem
from acp_history_bridge.files import open_regular
from acp_history_bridge.jsonl import CHUNK, Line, decode, read_at, read_lines, split_lines
from acp_history_bridge.values import JsonMap, mapping

__all__ = ["UNPACKED_LIMIT", "Source", "first_record", "open_source"]

UNPACKED_LIMIT = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Source:
    """An open rollout.

    Attributes:
        descriptor: Of the file as it lies on the disk.
        compressed: Whether its bytes must be unpacked; offsets always count unpacked bytes.
    """

    path: Path
    descriptor: int
    compressed: bool

    def size(self) -> int:
        """Bytes on the disk, now."""
        return os.fstat(self.descriptor).st_size

    def lines(self, problems: list[Problem], start: int = 0) -> Iterator[Line]:
        """Yield the lines from byte `start`, which is the start of a line."""
        if not self.compressed:
            return read_lines(self.descriptor, start)
        lines = split_lines(_unpack(self.path, self.descriptor, problems))
        return (line for line in lines if line.offset >= start)


@contextmanager
def open_source(path: Path) -> Generator[Source]:
    """Open a rollout.

    Raises:
        TranscriptError: It cannot be opened.
    """
    with open_regular(path) as descriptor:
        yield Source(path, descriptor, path.name.endswith(COMPRESSED))


def first_record(source: Source, problems: list[Problem]) -> JsonMap:
    """The first record that can be read; empty when there is none among the first lines."""
    for number, line in enumerate(source.lines(problems)):
        if line.data is not None and line.data.strip():
            try:
                return mapping(decode(line.data))
            except ValueError:
                if number >= 8:
                    break
    return {}


def _unpack(path: Path, descriptor: int, problems: list[Problem]) -> Iterator[bytes]:
    # The module is loaded only for those who have compressed rollouts; before Python 3.14 it is a backport.
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    decompressor = zstd.ZstdDecompressor()
    position = total = 0
    packed, inside = b"", False
    while True:
        if decompressor.eof:  # one frame may follow another
            packed, decompressor, inside = decompressor.unused_data, zstd.ZstdDecompressor(), False
        if decompressor.needs_input and not packed:
            packed = read_at(descriptor, position, CHUNK)
            position += len(packed)
            if not packed:
                break
        inside = True
        try:
            data = decompressor.decompress(packed, max_length=CHUNK)
        except (zstd.ZstdError, MemoryError) as error:  # MemoryError: a header that asks for a huge window
            problems.append(Problem(path, "damaged", f"zstd: {error}"))
            return
        packed = b""
        total += len(data)
        if total > UNPACKED_LIMIT:
            problems.append(Problem(path, "too-large", f"unpacks to more than {UNPACKED_LIMIT >> 20} MiB"))
            return
        yield data
    if inside:
        problems.append(Problem(path, "truncated", "the compressed file ends in the middle"))
