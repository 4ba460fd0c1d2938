"""`bridge hide`, `bridge unhide` and `bridge index --hidden`."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Bridge
from tests.conftest import CopyCorpus

pytestmark = pytest.mark.process


@pytest.fixture
def recorded(copy_corpus: CopyCorpus) -> Bridge:
    """The program on a recorded home, which may not change."""
    return Bridge(copy_corpus("gemini-cli"))


def ids(bridge: Bridge, *arguments: str) -> set[str]:
    """What a list shows."""
    result = bridge("index", "--json", *arguments)
    assert (result.status, result.err) == (0, "")
    found = json.loads(result.out)
    assert found["total"] == len(found["sessions"])
    return {row["id"] for row in found["sessions"]}


def test_a_hidden_session_is_in_no_list_until_it_is_shown_again(recorded: Bridge) -> None:
    """Over restarts and a deleted index; both commands can be repeated and say what they did."""
    everything = ids(recorded)
    chosen = min(everything)
    for _ in range(2):
        result = recorded("hide", chosen)
        assert (result.status, result.err) == (0, "")
        assert result.out.startswith(f"Hidden: {chosen}")
    shutil.rmtree(Path(recorded.variables["XDG_CACHE_HOME"]))
    assert (ids(recorded), ids(recorded, "--hidden")) == (everything - {chosen}, {chosen})
    assert recorded("show", chosen).status == 0
    for _ in range(2):
        assert recorded("unhide", chosen).out.startswith(f"Shown again: {chosen}")
    assert (ids(recorded), ids(recorded, "--hidden")) == (everything, set())


def test_hiding_what_there_is_not_is_an_error(recorded: Bridge) -> None:
    """One line says so."""
    for command in ("hide", "unhide"):
        result = recorded(command, "gemini:none")
        assert (result.status, result.out) == (1, "")
        assert "there is no session gemini:none" in result.err


def test_a_decision_that_would_be_lost_is_refused(recorded: Bridge, tmp_path: Path) -> None:
    """Where the data directory cannot be made, hiding fails rather than being forgotten."""
    (tmp_path / "file").touch()
    chosen = min(ids(recorded))
    result = recorded("hide", chosen, XDG_DATA_HOME=str(tmp_path / "file"))
    assert result.status == 1
    assert "could not be stored" in result.err
