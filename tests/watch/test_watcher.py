# watchdog's threads are killed and held up from inside
# pyright: reportPrivateUsage=false
import logging
import shutil
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from watchdog.observers.inotify_c import InotifyFD

from acp_history_bridge.adapter import Store
from acp_history_bridge.watch import WatchOptions
from acp_history_bridge.watch.parents import ParentWatch
from tests.watch.listener import POLLING, Listener, append, make_directory

BOTH = pytest.mark.parametrize("options", [WatchOptions(), POLLING], ids=["events", "polling"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An existing root with one file in a project."""
    append(make_directory(tmp_path / "store/project") / "old.jsonl")
    return tmp_path / "store"


def open_descriptors() -> int:
    """How many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def reader_of(listener: Listener) -> InotifyFD:
    """The thread that reads the kernel's queue."""
    events = listener.watcher._means.events
    assert events is not None
    reader = events._reader
    assert isinstance(reader, InotifyFD)
    return reader


@BOTH
def test_an_append_is_reported(root: Path, options: WatchOptions) -> None:
    """A file that grows is marked."""
    with Listener(root, options=options) as listener:
        listener.until_marked(append(root / "project/old.jsonl"))


@BOTH
def test_a_new_file_is_reported(root: Path, options: WatchOptions) -> None:
    """A file that appears is marked."""
    with Listener(root, options=options) as listener:
        listener.until_marked(append(root / "project/new.jsonl"))


@BOTH
def test_a_deleted_file_is_reported(root: Path, options: WatchOptions) -> None:
    """A file that goes away is marked."""
    with Listener(root, options=options) as listener:
        (root / "project/old.jsonl").unlink()
        listener.until_marked(root / "project/old.jsonl")


@BOTH
def test_both_names_of_a_renamed_file_are_reported(root: Path, options: WatchOptions) -> None:
    """The old name and the new one are marked."""
    with Listener(root, options=options) as listener:
        (root / "project/old.jsonl").rename(root / "project/renamed.jsonl")
        listener.until_marked(root / "project/old.jsonl", root / "project/renamed.jsonl")


@BOTH
def test_an_atomic_replacement_is_reported(root: Path, options: WatchOptions) -> None:
    """A file that is written beside and moved onto its name is marked under its name."""
    with Listener(root, options=options) as listener:
        append(root / "project/old.tmp").replace(root / "project/old.jsonl")
        listener.until_marked(root / "project/old.jsonl")


@BOTH
def test_a_file_in_new_directories_is_reported(root: Path, options: WatchOptions) -> None:
    """Directories made together with a file in them lose nothing, and are watched from then on."""
    with Listener(root, options=options) as listener:
        path = append(make_directory(root / "a/b/c") / "new.jsonl")
        listener.until_marked(path)
        listener.forget()
        listener.until_marked(append(path), append(path.with_name("second.jsonl")))


@BOTH
def test_a_directory_that_is_moved_out_is_reported(root: Path, tmp_path: Path, options: WatchOptions) -> None:
    """The directory is marked, for nothing tells which files it held."""
    with Listener(root, options=options) as listener:
        (root / "project").rename(tmp_path / "elsewhere")
        listener.until_marked(root / "project")


@BOTH
@pytest.mark.fault("W4")
def test_a_missing_root_is_seen_when_it_appears(tmp_path: Path, options: WatchOptions) -> None:
    """A root several levels below anything that exists is watched as soon as it is made."""
    root = tmp_path / "home/.tool/projects"
    with Listener(root, options=options) as listener:
        append(make_directory(root) / "first.jsonl")
        listener.until_rescan(root) if options is not POLLING else listener.until_marked(root / "first.jsonl")
        listener.forget()
        listener.until_marked(append(root / "second.jsonl"))


@BOTH
@pytest.mark.fault("W4", "R7")
def test_a_removed_root_is_watched_again_when_it_returns(root: Path, options: WatchOptions) -> None:
    """Removal and return each mean a rescan, and afterwards changes are reported as before."""
    with Listener(root, options=options) as listener:
        shutil.rmtree(root)
        listener.until_rescan(root)
        listener.until(lambda _: listener.modes == ["polling" if options is POLLING else "waiting"])
        listener.forget()
        append(make_directory(root) / "again.jsonl")
        listener.until(lambda seen: seen.roots_to_rescan or seen.paths)
        listener.forget()
        listener.until_marked(append(root / "later.jsonl"))


@BOTH
@pytest.mark.fault("W5")
def test_reading_causes_no_events(root: Path, options: WatchOptions) -> None:
    """Listing and reading files marks nothing; the file written afterwards is the only one marked."""
    with Listener(root, options=options) as listener:
        for _ in range(20):
            for path in root.rglob("*"):
                _ = path.stat(), path.is_file() and path.read_bytes()
        marker = append(root / "project/marker.jsonl")
        assert listener.until_marked(marker).paths == {marker}


@BOTH
@pytest.mark.fault("S5")
def test_links_to_directories_are_not_followed(root: Path, tmp_path: Path, options: WatchOptions) -> None:
    """What happens behind a link inside a root is none of ours."""
    outside = make_directory(tmp_path / "outside")
    (root / "link").symlink_to(outside)
    with Listener(root, options=options) as listener:
        append(outside / "secret.jsonl")
        marker = append(root / "marker.jsonl")
        assert listener.until_marked(marker).paths == {marker}


@BOTH
def test_a_root_that_is_a_link_is_reported_under_its_own_name(
    root: Path, tmp_path: Path, options: WatchOptions
) -> None:
    """People keep their configuration elsewhere and link to it."""
    link = tmp_path / "link"
    link.symlink_to(root)
    with Listener(link, options=options) as listener:
        append(root / "project/old.jsonl")
        append(root / "top.jsonl")
        listener.until_marked(link / "project/old.jsonl", link / "top.jsonl")


@BOTH
def test_only_the_named_parts_of_a_store_are_watched(tmp_path: Path, options: WatchOptions) -> None:
    """A store can keep large foreign trees out: its root alone and the named directories are watched."""
    store = Store("notes", tmp_path / "tool", watched=("sessions", "archive/old"))
    foreign = make_directory(store.root / "cache/deep")
    make_directory(store.root / "sessions/2026")
    with Listener(store, options=options) as listener:
        append(foreign / "noise.bin")
        append(foreign.parent / "noise.bin")
        top, inside = append(store.root / "index.json"), append(store.root / "sessions/2026/one.jsonl")
        assert listener.until_marked(top, inside).paths == {top, inside}
        append(make_directory(store.root / "archive/old") / "two.jsonl")
        listener.until(lambda seen: seen.roots_to_rescan or store.root / "archive/old/two.jsonl" in seen.paths)
        listener.forget()
        listener.until_marked(append(store.root / "archive/old/three.jsonl"))


def test_waiting_for_a_part_of_a_store_leaves_its_root_watched(tmp_path: Path) -> None:
    """The root is both a target and the place to wait at for a missing part; ending the one keeps the other."""
    store = Store("notes", make_directory(tmp_path / "tool"), watched=("sessions",))
    with Listener(store) as listener:
        make_directory(store.root / "sessions")
        listener.until_rescan(store.root)
        assert listener.modes == ["events", "events"]
        listener.until_marked(append(store.root / "index.json"))


@pytest.mark.fault("W4")
def test_a_replaced_root_is_noticed_by_the_check(root: Path, tmp_path: Path) -> None:
    """The kernel says nothing when the watched directory itself is moved; its inode does."""
    with Listener(root) as listener:
        make_directory(tmp_path / "other")
        root.rename(tmp_path / "backup")
        (tmp_path / "other").rename(root)
        listener.watcher.check()
        listener.until_rescan(root)
        listener.forget()
        listener.until_marked(append(root / "new.jsonl"))


def test_a_root_that_appears_while_watching_begins_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between looking for a root and waiting for it there is no gap."""
    root = tmp_path / "home/store"
    wait_for = ParentWatch.wait_for

    def make_it_first(self: ParentWatch, missing: Iterable[Path]) -> bool:
        make_directory(root)
        return wait_for(self, missing)

    monkeypatch.setattr(ParentWatch, "wait_for", make_it_first)
    with Listener(root) as listener:
        assert listener.modes == ["events"]


def test_a_file_in_place_of_a_root_is_waited_out(tmp_path: Path) -> None:
    """A root that is no directory counts as missing."""
    root = append(tmp_path / "store")
    with Listener(root) as listener:
        assert listener.modes == ["waiting"]
        root.unlink()
        make_directory(root)
        listener.until_rescan(root)
        assert listener.modes == ["events"]


@pytest.mark.fault("W7")
def test_a_root_on_a_network_mount_is_polled(root: Path, tmp_path: Path) -> None:
    """The mount table decides."""
    mountinfo = append(tmp_path / "mountinfo", f"1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / {root} rw - nfs4 s:/ rw\n")
    with Listener(root, tmp_path / "b", options=WatchOptions(mountinfo=mountinfo, poll_interval=0.02)) as listener:
        assert listener.modes == ["polling", "waiting"]
        listener.until_marked(append(root / "project/old.jsonl"))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.fault("W6")
def test_a_dead_observer_thread_is_replaced_by_the_check(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception in the thread that delivers events ends it; the next check starts another and asks for a rescan."""
    with Listener(root) as listener:
        events = listener.watcher._means.events
        assert events is not None
        with monkeypatch.context() as patch:
            patch.setattr(listener.watcher._means.dirty, "mark", None)
            append(root / "project/old.jsonl")
            events._observer.join(10)
        listener.watcher.check()
        listener.until_rescan(root)
        assert listener.watcher.status().restarts == 1
        listener.forget()
        listener.until_marked(append(root / "project/old.jsonl"))


@pytest.mark.fault("W6")
def test_a_dead_reader_thread_is_replaced_by_the_check(root: Path) -> None:
    """The thread that reads the kernel's queue is no part of watchdog's own list."""
    with Listener(root) as listener:
        reader = reader_of(listener)
        reader.stop()
        reader.join(10)
        listener.watcher.check()
        listener.until_rescan(root)
        listener.forget()
        listener.until_marked(append(root / "project/old.jsonl"))


@pytest.mark.fault("W2")
def test_lost_events_mean_a_rescan(root: Path) -> None:
    """When the kernel's queue really overflows, every root is to be scanned again, and watching goes on."""
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text(encoding="ascii"))
    if limit > 50_000:
        pytest.skip("the kernel's queue is too long to be filled in a test")
    with Listener(root) as listener:
        with reader_of(listener)._lock:
            append(root / "first")
            for number in range(limit // 2 + 500):
                (root / f"{number % 2}").touch()
                (root / f"{number % 2}").unlink()
        listener.until_rescan(root)
        assert listener.watcher.status().overflows == 1
        path = append(root / "project/old.jsonl")
        listener.until(lambda seen: path in seen.paths)


@pytest.mark.fault("W3")
def test_without_inotify_instances_everything_is_polled(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many programs watch already: changes are found by looking, the user is told once, the kernel asked once."""
    asked: list[None] = []

    def refuse() -> None:
        asked.append(None)
        raise OSError(24, "inotify instance limit reached")

    monkeypatch.setattr("acp_history_bridge.watch.events.Observer", refuse)
    with Listener(root, options=WatchOptions(poll_interval=0.02)) as listener:
        assert listener.modes == ["polling"]
        listener.watcher.check()
        assert len(asked) == len(listener.watcher.status().notices) == 1
        listener.until_marked(append(root / "project/old.jsonl"))


def test_kernel_events_are_tried_again_after_a_while(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that has gone is noticed by the check."""

    def refuse() -> None:
        raise OSError(24, "inotify instance limit reached")

    with monkeypatch.context() as patch:
        patch.setattr("acp_history_bridge.watch.events.Observer", refuse)
        listener = Listener(root, options=WatchOptions(retry_interval=0)).__enter__()
    assert listener.modes == ["polling"]
    listener.watcher.check()
    assert listener.modes == ["events"]
    listener.watcher.stop()


def test_watchdog_never_logs_events(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A debug log inside a watched tree would feed itself."""
    caplog.set_level(logging.DEBUG)
    with Listener(root) as listener:
        listener.until_marked(append(root / "project/old.jsonl"))
    assert not [record for record in caplog.records if record.name.startswith("watchdog")]


def test_stopping_leaves_no_thread_and_no_descriptor(root: Path) -> None:
    """A stopped watcher has given everything back."""
    with Listener(root):
        pass  # what is imported and opened once for the process
    threads, descriptors = threading.active_count(), open_descriptors()
    with Listener(root, root.parent / "missing", options=WatchOptions()), Listener(root, options=POLLING):
        assert threading.active_count() > threads
    assert threading.active_count() == threads
    assert open_descriptors() == descriptors
