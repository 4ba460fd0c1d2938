"""Progress: only for a person, only after a while, and never in the way of what is counted."""

import io
import sys

import pytest

from acp_history_bridge.cli import progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("patience", "shown"), [(0.0, True), (60.0, False)])
def test_a_count_is_shown_to_a_person_who_waits(
    monkeypatch: pytest.MonkeyPatch, patience: float, *, shown: bool
) -> None:
    """With or without a known total, and the items come through."""
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", patience)
    monkeypatch.setenv("TERM", "xterm")
    for total in (3, None):
        terminal = _Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)

        assert list(progress.counted("Working", [1, 2, 3], total)) == [1, 2, 3]
        assert ("Working" in terminal.getvalue()) is shown


def test_nothing_is_shown_to_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log gets no bars."""
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", 0.0)

    assert list(progress.counted("Working", range(3))) == [0, 1, 2]
    assert pipe.getvalue() == ""
