"""Which directories the kernel really watches.

watchdog swallows the two failures that matter below a root: the watch limit (ENOSPC) and unreadable directories. Both
leave a directory deaf without a word. The kernel itself lists the inodes that this process watches in
`/proc/self/fdinfo`, so the deaf ones are those directories whose inode is not listed.
"""

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["deaf_directories", "watched_inodes"]


def watched_inodes(process: Path = Path("/proc/self")) -> frozenset[int] | None:
    """Inodes with an inotify watch of this process; None where the system does not tell."""
    inodes: set[int] = set()
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:
        return None
    for descriptor in descriptors:
        try:
            if str(descriptor.readlink()) == "anon_inode:inotify":
                inodes.update(_inodes((process / "fdinfo" / descriptor.name).read_text(encoding="utf-8")))
        except OSError:  # closed by another thread meanwhile
            continue
    return frozenset(inodes)


def _inodes(fdinfo: str) -> Iterator[int]:
    # "inotify wd:29 ino:210080 sdev:fe00000 mask:7c6 ...", numbers in hexadecimal
    for line in fdinfo.splitlines():
        if line.startswith("inotify "):
            yield int(line.split("ino:", 1)[1].split(" ", 1)[0], 16)


def deaf_directories(root: Path) -> frozenset[str]:
    """Directories at and below a watched root whose changes the kernel does not report to this process."""
    watched = watched_inodes()
    # A file system may show other inode numbers to programs than to fdinfo (some overlays): then nothing can be said.
    if watched is None or _inode(str(root)) not in watched:
        return frozenset()
    suspects = [path for path, inode in _directories(str(root)) if inode not in watched]
    if not suspects:
        return frozenset()
    # Asked again: new directories get their watch while we walk, and a mount point's entry shows the inode beneath it.
    watched = watched_inodes() or watched
    return frozenset(path for path in suspects if _inode(path) not in {*watched, None})


def _directories(top: str) -> Iterator[tuple[str, int]]:
    pending = [top]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                found = [(entry.path, entry.inode()) for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:  # vanished, or unreadable: then it is reported by its own entry
            continue
        yield from found
        pending += [path for path, _ in found]


def _inode(path: str) -> int | None:
    try:
        return Path(path).stat().st_ino
    except OSError:
        return None
