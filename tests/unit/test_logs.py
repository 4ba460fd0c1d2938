"""The log: private, bounded, shared, and never in the way."""

import logging
from collections.abc import Generator
from pathlib import Path

import pytest

from acp_history_bridge import logs
from acp_history_bridge.directories import config_file, state_directory
from acp_history_bridge.logs import LOG_NAME, configure

_log = logging.getLogger("tests.logs")


@pytest.fixture(autouse=True)
def _root_logger_as_it_was() -> Generator[None]:
    """Handlers that a test adds are closed, pytest's own come back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers[:]:
        root.removeHandler(handler)
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_nothing_is_created_before_the_first_record(tmp_path: Path) -> None:
    """A program that has nothing to say leaves no trace."""
    file = configure(tmp_path / "state", "warning")
    _log.info("too quiet")
    assert not file.parent.exists()

    _log.warning("now")

    assert file.read_text(encoding="utf-8").endswith("WARNING tests.logs: now\n")


@pytest.mark.fault("S10")
def test_log_and_directory_are_private_whatever_the_umask(tmp_path: Path) -> None:
    """Paths and session ids in the log are nobody else's business."""
    import os

    before = os.umask(0)
    try:
        file = configure(tmp_path / "state", "info")
        _log.info("x")
    finally:
        os.umask(before)

    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_the_log_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old records go when there are too many."""
    monkeypatch.setattr(logs, "_MAX_BYTES", 1000)
    file = configure(tmp_path, "info")
    for number in range(200):
        _log.info("record %d", number)

    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == [LOG_NAME, f"{LOG_NAME}.1", f"{LOG_NAME}.2"]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())
    assert "record 199" in file.read_text(encoding="utf-8")


def test_a_log_that_another_bridge_has_rotated_is_opened_again(tmp_path: Path) -> None:
    """Several bridges share one file; whoever does not rotate it notices that it was."""
    file = configure(tmp_path, "info")
    _log.info("before")
    file.rename(tmp_path / f"{LOG_NAME}.1")
    _log.info("after")

    assert "after" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["\ud800 surrogate", "nul \0"])
def test_any_text_can_be_logged(tmp_path: Path, text: str) -> None:
    """File names hold anything."""
    file = configure(tmp_path, "info")
    _log.info("%s", text)

    assert file.stat().st_size > 0


@pytest.mark.fault("F12")
def test_a_log_that_cannot_be_written_is_silent(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither an exception nor a word on stderr."""
    (tmp_path / "state").touch()
    configure(tmp_path / "state", "info")
    _log.error("nobody hears this")

    assert capfd.readouterr() == ("", "")


def test_records_go_to_stderr_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Then there is no file."""
    configure(tmp_path, "info", stderr=True)
    _log.info("hello")

    assert capsys.readouterr().err.endswith("hello\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault("F12")
def test_a_relative_directory_is_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Older versions of platformdirs hand out whatever a variable says."""

    def relative(_name: str, *, appauthor: bool) -> Path:
        return Path("relative") if not appauthor else Path("/")

    monkeypatch.setattr("platformdirs.user_state_path", relative)
    monkeypatch.setattr("platformdirs.user_config_path", relative)

    assert state_directory(Path("/home/ada")) == Path("/home/ada/.local/state/acp-history-bridge")
    assert config_file(Path("/home/ada")) == Path("/home/ada/.config/acp-history-bridge/config.toml")


def test_directory_variables_are_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absolute ones are where the bridge keeps its own files."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "s"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "c"))

    assert state_directory(Path("/")) == tmp_path / "s" / "acp-history-bridge"
    assert config_file(Path("/")) == tmp_path / "c" / "acp-history-bridge" / "config.toml"
