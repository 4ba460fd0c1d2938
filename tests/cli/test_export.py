"""`bridge export`: files that are whole or not there."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_history_bridge.cli.writing import write_whole
from acp_history_bridge.errors import BridgeError
from tests.cli.conftest import Inside
from tests.conftest import digest_tree


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("x.md", "# "), ("x.html", "<!DOCTYPE html>"), ("x.json", '{"session":{"id":'), ("x.jsonl", '{"session":{"id":')],
)
def test_the_files_name_says_which_form(inside: Inside, tmp_path: Path, name: str, beginning: str) -> None:
    """And the file is its owner's alone, for conversations hold secrets."""
    result = inside("export", "last", "-o", str(tmp_path / name))

    assert (result.status, result.out, result.err) == (0, "", "")
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(beginning)
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_without_a_file_it_is_printed(inside: Inside) -> None:
    """Markdown unless another form is named."""
    assert inside("export", "last").out.startswith("# Respect quantities in the cart total\n\n- Claude Code, `claude:")
    assert inside("export", "last", "--format", "html").out.endswith("</html>\n")


def test_json_lines_are_json_on_every_line(inside: Inside) -> None:
    """Each line is a value of its own."""
    first, *turns = [json.loads(line) for line in inside("export", "last", "--format", "jsonl").out.splitlines()]

    assert first["session"]["id"].startswith("claude:")
    assert turns
    assert all(set(line) == {"turn"} for line in turns)


@pytest.mark.parametrize("form", ["md", "html", "json", "jsonl"])
def test_all_sessions_can_be_exported_with_an_index(inside: Inside, tmp_path: Path, form: str) -> None:
    """A file each, and an index that names them all; filters hold."""
    result = inside("export", "--all", "--tool", "gemini", "--format", form, "-o", str(tmp_path / "out"))
    files = {path.name for path in (tmp_path / "out").iterdir()}
    index = (tmp_path / "out" / f"index.{form}").read_text(encoding="utf-8")

    assert (result.status, result.err) == (0, f"2 sessions written to {tmp_path / 'out'}\n")
    assert len(files) == 3
    assert all(name in index for name in files - {f"index.{form}"})


def test_a_session_that_cannot_be_read_costs_itself_only(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are written, it is named, and the status tells."""
    from acp_history_bridge.adapter import Transcript
    from acp_history_bridge.errors import TranscriptError
    from acp_history_bridge.index.library import Library
    from acp_history_bridge.sessions import Session

    opened = Library.open

    def open_or_fail(library: Library, session: Session) -> Transcript:
        if "6513" in session.id:
            raise TranscriptError("cannot open it")
        return opened(library, session)

    monkeypatch.setattr(Library, "open", open_or_fail)
    result = inside("export", "--all", "-o", str(tmp_path / "out"))

    assert result.status == 1
    assert "6513270e-269e-4d37-b2a7-4de452e6b438: cannot open it\n4 sessions written" in result.err
    assert len(list((tmp_path / "out").iterdir())) == 5


@pytest.mark.parametrize("arguments", [[], ["last", "--all"], ["--all"], ["last", "--format", "pdf"]])
def test_what_makes_no_sense_is_wrong_usage(inside: Inside, arguments: list[str]) -> None:
    """A session or --all, and a form that there is."""
    assert inside("export", *arguments).status == 2


@pytest.mark.parametrize("target", ["missing/x.md", "."])
def test_a_place_that_cannot_be_written_is_named(inside: Inside, tmp_path: Path, target: str) -> None:
    """One line, status 1, and nothing is left there."""
    before = digest_tree(tmp_path / "home")
    result = inside("export", "last", "-o", str(tmp_path / "home" / target))

    assert result.status == 1
    assert result.err.startswith("bridge: cannot write ")
    assert digest_tree(tmp_path / "home") == before


@pytest.mark.fault("J7")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("x"), OSError(28, "No space left on device")])
def test_what_is_interrupted_leaves_what_was_there(tmp_path: Path, error: BaseException) -> None:
    """The old file stays, and no half one lies beside it."""
    path = tmp_path / "x.md"
    path.write_text("old", encoding="utf-8")

    def pieces() -> Iterator[str]:
        yield "new"
        raise error

    with pytest.raises((KeyboardInterrupt, RuntimeError, BridgeError)):
        write_whole(path, pieces())

    assert [(found.name, found.read_text(encoding="utf-8")) for found in tmp_path.iterdir()] == [("x.md", "old")]
