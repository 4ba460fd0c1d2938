"""Scenarios that need another user or kernel limits; run as a program of their own by test_limits.py.

    python scenario.py NAME DIRECTORY

Everything is imported before privileges are dropped: the interpreter may lie where another user cannot read.
"""

import os
import sys
from pathlib import Path

from acp_history_bridge.watch import WatchOptions
from acp_history_bridge.watch.parents import ParentWatch
from tests.watch.listener import Listener, append, make_directory

NOBODY = 65534
IMPORTED = (ParentWatch,)  # with watchdog, which otherwise comes when a watcher starts


def drop_privileges(directory: Path) -> None:
    """Become a user to whom permissions matter, and the owner of the directory."""
    if os.geteuid() == 0:
        os.chown(directory, NOBODY, NOBODY)
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def unreadable_directories(root: Path) -> None:
    """Two unreadable directories below a root, one of which becomes readable."""
    first, second = make_directory(root / "first"), make_directory(root / "second")
    first.chmod(0)
    second.chmod(0)
    with Listener(root) as listener:
        listener.until_marked(append(root / "beside.jsonl"))
        assert listener.modes == ["events"]
        first.chmod(0o700)
        listener.watcher.check()
        listener.until_rescan(root)
        listener.forget()
        listener.until_marked(append(first / "inside.jsonl"))
        listener.watcher.check()
        assert not listener.watcher.take(), "an unreadable directory must not cost a rescan at every check"
    second.chmod(0o700)


def unreadable_root(root: Path) -> None:
    """An unreadable root that becomes readable."""
    append(make_directory(root / "project") / "old.jsonl")
    root.chmod(0)
    with Listener(root) as listener:
        assert listener.modes == ["unreadable"]
        listener.watcher.check()
        assert not listener.watcher.take()
        root.chmod(0o700)
        listener.watcher.check()
        listener.until_rescan(root)
        assert listener.modes == ["events"]
        listener.forget()
        listener.until_marked(append(root / "project/old.jsonl"))


def watch_limit_below_the_root(root: Path) -> None:
    """Fewer watches are allowed than there are directories."""
    files = [append(make_directory(root / f"{number}") / "a.jsonl") for number in range(200)]
    Path("/proc/sys/user/max_inotify_watches").write_text("50", encoding="ascii")
    with Listener(root, options=WatchOptions(poll_interval=0.05)) as listener:
        status = listener.watcher.status()
        assert [found.mode for found in status.roots] == ["events"]
        assert status.roots[0].polled == 201 - 50, status
        assert len(status.notices) == 1
        listener.until_rescan(root)
        listener.forget()
        listener.until_marked(*(append(path) for path in files))
        listener.until_marked(append(make_directory(root / "199/new") / "deep.jsonl"))


def watch_limit_at_the_root(root: Path) -> None:
    """No watch is left at all."""
    path = append(make_directory(root / "project") / "old.jsonl")
    Path("/proc/sys/user/max_inotify_watches").write_text("0", encoding="ascii")
    with Listener(root, options=WatchOptions(poll_interval=0.05)) as listener:
        assert listener.modes == ["polling"]
        assert listener.watcher.status().roots[0].reason == "inotify watch limit reached"
        listener.until_marked(append(path))


def instance_limit(root: Path) -> None:
    """No inotify instance is left at all."""
    path = append(make_directory(root / "project") / "old.jsonl")
    Path("/proc/sys/user/max_inotify_instances").write_text("0", encoding="ascii")
    with Listener(root, options=WatchOptions(poll_interval=0.05)) as listener:
        assert listener.modes == ["polling"]
        listener.until_marked(append(path))


if __name__ == "__main__":
    where = Path(sys.argv[2])
    if sys.argv[1].startswith("unreadable"):
        drop_privileges(where)
    globals()[sys.argv[1]](where)
