"""Writing a fork: beside the others, as a whole or not at all, and never over anything."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from acp_history_bridge.adapter import Fork, SessionRecord, Unit
from acp_history_bridge.errors import ForkError, TranscriptError
from acp_history_bridge.forking import encode_line, fork_title, take_in, write_fork
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.jsonl import decode
from acp_history_bridge.sessions import Session
from acp_history_bridge.text import TITLE_LIMIT
from acp_history_bridge.values import mapping
from tests.builders.fake_adapter import START, FakeAdapter, note, notes_at
from tests.conftest import digest_tree, environment_at

CONTENT = note("new", "Hello again").encode()


class ForkingAdapter(FakeAdapter):
    """Forks as it is told."""

    def __init__(self, path: Path, content: Callable[[], Iterable[bytes]] = lambda: [CONTENT]) -> None:
        super().__init__()
        self.place = path
        self.content = content

    def fork(self, unit: Unit, record: SessionRecord) -> Fork:
        """The fork it was told."""
        del unit, record
        return Fork("new", self.place, self.content())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one session."""
    notes_at(tmp_path, "a/one.jsonl", note("one"))
    return tmp_path


def session_in(home: Path, adapter: FakeAdapter) -> tuple[Library, Session]:
    """The one session."""
    library = Library([adapter], environment_at(home), IndexStore.open(None))
    for _ in library.scan():
        pass
    session = library.find("notes:one")
    assert session is not None
    return library, session


def names_in(directory: Path) -> list[str]:
    """What lies in a directory."""
    return sorted(path.name for path in directory.iterdir())


def test_a_fork_appears_whole_and_for_the_user_alone(home: Path) -> None:
    """Its file is 0600, nothing else is left beside it, and the index has it at once."""
    adapter = ForkingAdapter(home / ".notes/a/new.jsonl")
    library, session = session_in(home, adapter)
    found, changes = take_in(library, adapter, session, write_fork(adapter, session))
    assert found.unit.path.read_bytes() == CONTENT
    assert found.unit.path.stat().st_mode & 0o777 == 0o600
    assert names_in(home / ".notes/a") == ["new.jsonl", "one.jsonl"]
    assert [change.kind for change in changes][:1] == ["added"]
    library.close()


def test_a_title_that_the_format_has_no_place_for_is_kept_by_the_bridge(home: Path) -> None:
    """So that every fork says that it is one."""
    adapter = ForkingAdapter(home / ".notes/a/new.jsonl")
    library, session = session_in(home, adapter)
    found, _ = take_in(library, adapter, replace(session, title="Tea"), write_fork(adapter, session))
    assert found.title == "Tea (fork)"
    library.close()


def test_missing_directories_are_made_for_the_user_alone(home: Path) -> None:
    """Codex keeps a folder for each day."""
    adapter = ForkingAdapter(home / ".notes/2026/11/new.jsonl")
    library, session = session_in(home, adapter)
    write_fork(adapter, session)
    assert (home / ".notes/2026/11").stat().st_mode & 0o777 == 0o700
    library.close()


@pytest.mark.parametrize("name", ["../new.jsonl", ".notes/../new.jsonl", "link/new.jsonl", ".notes/link/new.jsonl"])
def test_nothing_is_written_outside_the_store(home: Path, name: str) -> None:
    """Neither by name nor through a link."""
    (home / "elsewhere").mkdir()
    for link in (home / "link", home / ".notes/link"):
        link.symlink_to(home / "elsewhere")
    before = digest_tree(home)
    adapter = ForkingAdapter(home / name)
    library, session = session_in(home, adapter)
    with pytest.raises(ForkError, match="outside"):
        write_fork(adapter, session)
    assert digest_tree(home) == before
    library.close()


@pytest.mark.parametrize("link", [True, False])
def test_nothing_is_ever_overwritten(home: Path, link: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Not even a link that leads nowhere."""
    path = home / ".notes/a/new.jsonl"
    if link:
        path.symlink_to(home / "nowhere")
    else:
        path.write_text("mine", encoding="utf-8")
    adapter = ForkingAdapter(path)
    library, session = session_in(home, adapter)
    with pytest.raises(ForkError, match="already"):
        write_fork(adapter, session)
    assert path.is_symlink() if link else path.read_text(encoding="utf-8") == "mine"
    library.close()


def test_a_file_that_appears_meanwhile_is_not_overwritten(home: Path) -> None:
    """Between the first look and the moment when the fork gets its name."""
    path = home / ".notes/a/new.jsonl"

    def content() -> Iterator[bytes]:
        path.write_text("mine", encoding="utf-8")
        yield CONTENT

    adapter = ForkingAdapter(path, content)
    library, session = session_in(home, adapter)
    with pytest.raises(ForkError, match="already"):
        write_fork(adapter, session)
    assert path.read_text(encoding="utf-8") == "mine"
    assert names_in(path.parent) == ["new.jsonl", "one.jsonl"]
    library.close()


def test_a_file_system_without_links_gets_its_forks_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the temporary file is renamed."""

    def refuse(_self: Path, _target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    adapter = ForkingAdapter(home / ".notes/a/new.jsonl")
    library, session = session_in(home, adapter)
    assert write_fork(adapter, session).path.read_bytes() == CONTENT
    assert names_in(home / ".notes/a") == ["new.jsonl", "one.jsonl"]
    library.close()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TranscriptError("gone"), "gone"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (KeyError("x"), "the adapter notes failed: KeyError"),
    ],
)
def test_a_failure_leaves_nothing_behind(home: Path, error: Exception, said: str) -> None:
    """Whatever it is and however late: no file, and a sentence that says why."""

    def content() -> Iterator[bytes]:
        yield CONTENT
        raise error

    adapter = ForkingAdapter(home / ".notes/a/new.jsonl", content)
    library, session = session_in(home, adapter)
    before = digest_tree(home)
    with pytest.raises((ForkError, TranscriptError), match=said):
        write_fork(adapter, session)
    assert digest_tree(home) == before
    library.close()


def test_a_fork_without_a_session_in_it_is_an_error(home: Path) -> None:
    """An adapter that does not find again what it made."""
    adapter = ForkingAdapter(home / ".notes/a/new.jsonl", lambda: [b"{}\n"])
    library, session = session_in(home, adapter)
    with pytest.raises(ForkError, match="no session"):
        take_in(library, adapter, session, write_fork(adapter, session))
    library.close()


def test_a_tool_without_forks_says_so(home: Path) -> None:
    """The default of the contract."""
    adapter = FakeAdapter()
    library, session = session_in(home, adapter)
    with pytest.raises(ForkError, match="sessions of Notes cannot be forked"):
        write_fork(adapter, session)
    library.close()


@pytest.mark.parametrize(
    "line", [b'{"a":"\\ud800"}', b'{"a":123456789012345678901234567890}', b'{"a":1.0,"b":"\xc3\xa9"}']
)
def test_whatever_was_read_can_be_written_again(line: bytes) -> None:
    """Also what orjson refuses to write."""
    value = mapping(decode(line))
    assert value
    written = encode_line(value)
    assert written.endswith(b"\n")
    assert decode(written[:-1]) == value


@pytest.mark.parametrize(
    ("title", "expected"), [("Tea", "Tea (fork)"), (None, "Forked session (fork)"), ("a\nb", "a b (fork)")]
)
def test_the_title_says_that_it_is_a_fork(title: str | None, expected: str) -> None:
    """On one line."""
    assert fork_title(SessionRecord("one", START, title=title)) == expected


def test_a_long_title_keeps_its_end() -> None:
    """The words are cut, not what says that it is a fork."""
    title = fork_title(SessionRecord("one", START, title="x" * 500))
    assert len(title) == TITLE_LIMIT
    assert title.endswith("… (fork)")
