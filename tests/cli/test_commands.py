"""`bridge resume`, `doctor`, `setup`, `completion`, and the counts of `bridge index`."""

import io
import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from acp_history_adapters.claude_code import ClaudeCode
from acp_history_bridge.adapter import Adapter
from acp_history_bridge.cli.clients import CLIENTS, Client
from acp_history_bridge.cli.completion import SHELLS, script
from acp_history_bridge.cli.groups import Statistics, chart
from acp_history_bridge.cli.parser import CLIENT_NAMES, COMMANDS
from acp_history_bridge.cli.parser import SHELLS as SHELL_NAMES
from acp_history_bridge.registry import BUILT_IN
from tests.cli.conftest import Inside
from tests.conftest import digest_tree

CART = "6513270e-269e-4d37-b2a7-4de452e6b438"


def _program(directory: Path, name: str, script: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (directory / name).chmod(0o755)


def _moved_to(inside: Inside, cwd: Path) -> None:
    """Let the cart session have been in this directory."""
    path = next((inside.home / ".claude").rglob(f"{CART}.jsonl"))
    path.write_text(path.read_text(encoding="utf-8").replace("/home/ada/src/shop", str(cwd)), encoding="utf-8")


def test_resume_can_print_the_command_for_a_shell(inside: Inside, tmp_path: Path) -> None:
    """Quoted, so that a directory of any name is a directory."""
    _moved_to(inside, tmp_path / "a'b; rm -rf")

    line = inside("resume", CART, "--print").out

    assert line == f"cd '{tmp_path}/a'\"'\"'b; rm -rf' && claude --resume {CART}\n"


@pytest.mark.process
def test_resume_becomes_the_tool_in_the_sessions_directory(inside: Inside, tmp_path: Path) -> None:
    """The tool sees its arguments as they are, and no shell in between."""
    project = tmp_path / "a b; $(x)"
    project.mkdir()
    _moved_to(inside, project)
    _program(tmp_path / "bin", "claude", 'printf "%s\\n" "$PWD" "$@"')

    result = subprocess.run(
        [sys.executable, "-m", "acp_history_bridge", "resume", CART],
        env={**os.environ, "PATH": f"{tmp_path / 'bin'}:/bin:/usr/bin"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=False,
        text=True,
    )

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [str(project), "--resume", CART]


@pytest.mark.parametrize(
    ("installed", "complaint"),
    [(False, "claude is not installed, or not in PATH"), (True, "its directory /home/ada/src/shop: No such file")],
)
def test_resume_says_why_it_cannot(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complaint: str, *, installed: bool
) -> None:
    """One line, status 1."""
    if installed:
        _program(tmp_path / "bin", "claude", "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    result = inside("resume", CART)

    assert result.status == 1
    assert result.err.startswith(f"bridge: {complaint}")


def test_a_session_that_no_tool_can_go_on_with_is_said_so(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way to read it is named instead."""
    monkeypatch.setattr(ClaudeCode, "resume_command", Adapter.resume_command)

    assert inside("resume", CART).err == (
        f"bridge: Claude Code cannot go on with claude:{CART}; `bridge show claude:{CART}` shows it\n"
    )


def _doctor(inside: Inside) -> dict[str, Any]:
    result = inside("doctor", "--json")
    assert (result.status, result.err) == (0, "")
    report: dict[str, Any] = json.loads(result.out)
    return report


def test_doctor_counts_what_is_where(inside: Inside) -> None:
    """Stores, sessions and sizes."""
    stores = {
        (store["tool"], store["sessions"], store["units"]) for store in _doctor(inside)["stores"] if store["exists"]
    }

    assert stores == {("claude-code", 3, 3), ("gemini-cli", 2, 2)}


def test_a_deep_doctor_reports_what_was_not_understood_without_quoting_it(inside: Inside) -> None:
    """By tool and kind, with an example file, in both forms."""
    path = next((inside.home / ".claude").rglob(f"{CART}.jsonl"))
    path.write_text(path.read_text(encoding="utf-8") + "the secret garbage\n", encoding="utf-8")

    problems = json.loads(inside("doctor", "--deep", "--json").out)["transcripts"]["problems"]
    shown = inside("doctor", "--deep").out

    assert [(problem["tool"], problem["number"], problem["path"]) for problem in problems] == [
        ("claude-code", 1, str(path))
    ]
    assert "claude-code: 1 bad-line" in shown
    assert "secret" not in shown


def test_doctor_knows_the_bridges_own_files_and_the_clients(inside: Inside) -> None:
    """What exists has a size; a client's configuration is set up or not."""
    inside("setup", "acpx", "--write")
    (inside.home / ".jetbrains").mkdir()
    (inside.home / ".jetbrains" / "acp.json").write_text("{}", encoding="utf-8")

    report = _doctor(inside)

    assert report["files"]["index"]["bytes"] > 0
    assert "bytes" not in report["files"]["settings"]
    assert {client["name"]: client["configured"] for client in report["clients"]} == {"acpx": True, "jetbrains": False}


def test_doctor_changes_nothing(inside: Inside) -> None:
    """It only looks."""
    before = digest_tree(inside.home)
    inside("doctor")

    assert digest_tree(inside.home) == before


def test_the_parsers_lists_are_the_real_ones() -> None:
    """They are repeated in the parser, which loads nothing."""
    assert tuple(client.name for client in CLIENTS) == CLIENT_NAMES
    assert tuple(SHELLS) == SHELL_NAMES


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_every_client_has_a_snippet_with_the_command_in_it(inside: Inside, client: Client) -> None:
    """Nothing of the template is left; JSON is JSON."""
    result = inside("setup", client.name)

    assert result.status == 0
    assert "acp" in result.out
    assert "@" not in result.out
    if client.file is not None:
        assert json.loads(result.out)


def test_setup_without_a_client_names_them(inside: Inside) -> None:
    """One per line."""
    assert [line.split()[0] for line in inside("setup").out.splitlines()] == list(CLIENT_NAMES)


@pytest.mark.parametrize("name", ["zed", "jetbrains", "vscode", "acpx"])
def test_setup_writes_a_configuration_that_was_not_there(inside: Inside, name: str) -> None:
    """What is written is what would have been printed; writing again changes nothing."""
    client = next(client for client in CLIENTS if client.name == name)
    assert client.file is not None
    from acp_history_bridge.environment import current_environment

    file = client.file(current_environment())
    result = inside("setup", name, "--write")
    written = file.read_text(encoding="utf-8")

    assert result.status == 0
    assert json.loads(written) == json.loads(inside("setup", name).out)
    assert "already" in inside("setup", name, "--write").err
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_setup_keeps_everything_else_and_a_copy(inside: Inside) -> None:
    """Other servers, other settings, their order, and the file's mode; the old file lies beside it."""
    file = inside.home / ".jetbrains" / "acp.json"
    file.parent.mkdir()
    old = '{"z": 1, "agent_servers": {"Other": {"command": "x"}}, "ä": [1.5, null]}'
    file.write_text(old, encoding="utf-8")
    file.chmod(0o640)

    inside("setup", "jetbrains", "--write")
    new = json.loads(file.read_text(encoding="utf-8"))
    [backup] = [path for path in file.parent.iterdir() if path != file]

    assert list(new) == ["z", "agent_servers", "ä"]
    assert list(new["agent_servers"]) == ["Other", "History Bridge"]
    assert (new["z"], new["ä"]) == (1, [1.5, None])
    assert backup.read_text(encoding="utf-8") == old
    assert file.stat().st_mode & 0o777 == 0o640


def test_setup_follows_a_link(inside: Inside, tmp_path: Path) -> None:
    """Settings kept in a repository of dot files stay there."""
    real = tmp_path / "dotfiles.json"
    real.write_text("{}", encoding="utf-8")
    (inside.home / ".jetbrains").mkdir()
    (inside.home / ".jetbrains" / "acp.json").symlink_to(real)

    inside("setup", "jetbrains", "--write")

    assert (inside.home / ".jetbrains" / "acp.json").is_symlink()
    assert "History Bridge" in real.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"a": 1, // mine\n}', "is not strict JSON"),
        ("[]", "holds no JSON object"),
        ('{"agent_servers": []}', "agent_servers is no JSON object"),
        ("\udcff", "cannot read"),
    ],
)
def test_setup_leaves_a_file_alone_that_it_could_damage(inside: Inside, content: str, complaint: str) -> None:
    """Comments and surprises are for the person to handle."""
    file = inside.home / ".jetbrains" / "acp.json"
    file.parent.mkdir()
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    before = digest_tree(inside.home)

    result = inside("setup", "jetbrains", "--write")

    assert result.status == 1
    assert complaint in result.err
    assert digest_tree(inside.home) == before


def test_setup_cannot_write_what_is_not_json(inside: Inside) -> None:
    """Lua and Lisp are added by hand."""
    assert inside("setup", "avante", "--write").status == 2


@pytest.mark.parametrize("shell", SHELL_NAMES)
def test_completion_names_every_command_and_its_options(inside: Inside, shell: str) -> None:
    """It is made from the parser."""
    printed = inside("completion", shell).out

    assert [command for command in COMMANDS if command not in printed] == []
    assert "group" in printed


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["bridge", "res"], ["resume"]),
        (["bridge", "index", "--gr"], ["--group"]),
        (["bridge", "index", "--group", ""], ["cwd", "tool", "day"]),
        (["bridge", "--demo", "completion", "z"], ["zsh"]),
        (["bridge", "show", "l"], ["last"]),
    ],
)
def test_completion_works_in_bash(words: list[str], offered: list[str]) -> None:
    """Commands, options and choices."""
    typed = " ".join(f"'{word}'" for word in words)
    ask = f'COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _acp_history_bridge; echo "${{COMPREPLY[@]}}"'
    result = subprocess.run(
        ["bash", "--norc", "-c", f"{script('bash')}\n{ask}"], capture_output=True, text=True, check=True
    )

    assert result.stdout.split() == offered


@pytest.mark.process
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_completion_is_valid_fish() -> None:
    """The shell itself says so."""
    subprocess.run(["fish", "--no-execute"], input=script("fish"), text=True, check=True)


def test_sessions_are_counted_by_directory_tool_or_day(inside: Inside) -> None:
    """Newest group first; filters hold; three forms."""
    by_tool = json.loads(inside("index", "--group", "tool", "--json").out)["groups"]
    by_directory = inside("index", "--group", "cwd", "--tool", "claude").out.splitlines()
    by_day = [
        json.loads(line) for line in inside("index", "--group", "day", "--jsonl", "--limit", "2").out.splitlines()
    ]

    assert [(group["tool"], group["sessions"]) for group in by_tool] == [("claude-code", 3), ("gemini-cli", 2)]
    assert by_directory[0].startswith("2\t2026-11-18T")
    assert by_directory[0].endswith("\t/home/ada/src/shop")
    assert len(by_day) == 2
    assert set(by_day[0]) == {"day", "sessions", "updatedAt"}


def test_statistics_count_all_and_the_last_days(inside: Inside) -> None:
    """Thirty days up to today; what is older counts in the total."""
    found = json.loads(inside("index", "--stats", "--json").out)

    assert (found["total"], found["tools"]) == (5, {"claude-code": 3, "gemini-cli": 2})
    assert len(found["days"]) == 30
    assert list(found["days"])[-1] == f"{datetime.now(UTC).astimezone():%Y-%m-%d}"


@pytest.mark.parametrize("width", [10, 60, 200])
def test_a_chart_fits_and_shows_the_smallest_number(width: int) -> None:
    """One session beside a million is still a mark."""
    found = Statistics(1_000_001, {"a": 1_000_000, "b": 1}, {date(2026, 11, 18): 1, date(2026, 11, 19): 0})
    lines = list(chart(found, {"a": "A"}, width))

    assert lines[2].startswith("A ████")
    assert "▏ 1" in lines[3]
    assert max(len(line) for line in lines if "█" in line) <= max(width, 30)


def test_a_group_on_a_terminal_is_a_table(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools by the names people know."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    with closing(Terminal()) as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        monkeypatch.setenv("COLUMNS", "60")
        assert inside("index", "--group", "tool").status == 0
        shown = terminal.getvalue()

    assert "Claude Code" in shown
    assert max(map(len, shown.splitlines())) <= 60 + 20
    assert set(BUILT_IN) & set(shown.split()) == set()
