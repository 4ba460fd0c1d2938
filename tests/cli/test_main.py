"""The program itself: what it costs to start, how it ends, what its documentation says."""

import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from acp_history_bridge import __version__
from acp_history_bridge.cli.parser import COMMANDS, EXAMPLES, build_parser
from tests.cli.conftest import Bridge

pytestmark = pytest.mark.process

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "cli.md"
_HEAVY = {"pydantic", "watchdog", "rich", "anyio", "sqlite3", "orjson", "logging", "asyncio", "platformdirs"}


def _loaded(bridge: Bridge, *arguments: str) -> set[str]:
    """Top-level modules that a run of the program has loaded when it ends."""
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr))\n"
        f"sys.argv = ['bridge', *{arguments!r}]\n"
        "from acp_history_bridge.cli import main\n"
        "sys.exit(main())"
    )
    result = subprocess.run(
        [bridge.argv()[0], "-c", code], env=bridge.variables, capture_output=True, text=True, check=True
    )
    return set(result.stderr.split())


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("index", "--help")])
def test_help_and_version_load_nothing_heavy(bridge: Bridge, arguments: tuple[str, ...]) -> None:
    """Asking a program what it is must not take as long as using it."""
    assert _loaded(bridge, *arguments) & _HEAVY == set()


@pytest.mark.parametrize("arguments", [("index",), ("index", "--json"), ("index", "--jsonl")])
def test_a_list_for_a_program_loads_neither_the_protocol_nor_the_table(
    bridge: Bridge, arguments: tuple[str, ...]
) -> None:
    """A pipe needs no rich, and a list needs no event loop, no validation and no watching."""
    assert _loaded(bridge, *arguments) & {"pydantic", "watchdog", "rich", "anyio", "asyncio"} == set()


def test_the_version_is_printed(bridge: Bridge) -> None:
    """One line, on standard output."""
    result = bridge("--version")

    assert (result.status, result.out, result.err) == (0, f"acp-history-bridge {__version__}\n", "")


@pytest.mark.parametrize(
    "arguments",
    [(), ("nothing",), ("index", "--limit", "many"), ("index", "--limit", "-1"), ("index", "--json", "--jsonl")],
)
def test_wrong_usage_ends_with_2(bridge: Bridge, arguments: tuple[str, ...]) -> None:
    """The usage goes to standard error, nothing to standard output."""
    result = bridge(*arguments)

    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("usage: ")


@pytest.mark.parametrize(
    ("arguments", "variables", "complaint"),
    [
        (("--tool", "emacs"), {}, r"--tool emacs: not one of claude-code, "),
        (("--since", "yesterday"), {}, r"--since yesterday: not a time like "),
        (("--config", "/nonexistent/x.toml"), {}, r"/nonexistent/x\.toml: there is no such file"),
        ((), {"ACP_HISTORY_BRIDGE_PAGE_SIZE": "many"}, r"ACP_HISTORY_BRIDGE_PAGE_SIZE: page_size: "),
        ((), {"ACP_HISTORY_BRIDGE_TOOLS": "emacs"}, r"tools: there is no adapter called emacs"),
    ],
)
def test_a_wrong_setting_ends_with_2_and_is_named(
    bridge: Bridge, arguments: tuple[str, ...], variables: dict[str, str], complaint: str
) -> None:
    """One line says what is wrong and where it was said."""
    result = bridge("index", *arguments, cwd=None, **variables)

    assert (result.status, result.out) == (2, "")
    assert re.fullmatch(f"bridge: {complaint}.*\n", result.err)


def test_an_unexpected_error_is_one_line_and_a_traceback_in_the_log(bridge: Bridge) -> None:
    """A person is told what happened, and where those who can mend it find more."""
    code = (
        "import sys, acp_history_bridge.index.library as library\n"
        "def fail(*_): raise RuntimeError('sky fell\\ndown')\n"
        "library.Library.scan = fail\n"
        "from acp_history_bridge.cli import main\n"
        "sys.exit(main(['index']))"
    )
    result = subprocess.run(
        [bridge.argv()[0], "-c", code], env=bridge.variables, capture_output=True, text=True, check=False
    )
    log = bridge.home.with_name("state") / "acp-history-bridge" / "bridge.log"

    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr == f"bridge: unexpected RuntimeError: sky fell down (more in {log})\n"
    assert "Traceback" in log.read_text(encoding="utf-8")
    assert (log.stat().st_mode & 0o777, log.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.fault("J6")
def test_a_reader_that_leaves_early_is_no_error(bridge: Bridge) -> None:
    """`bridge index | head -1` ends quietly and well."""
    ours, theirs = os.pipe()
    os.close(ours)
    process = subprocess.run(
        bridge.argv("index", "--demo"), env=bridge.variables, stdout=theirs, stderr=subprocess.PIPE, check=False
    )
    os.close(theirs)

    assert (process.returncode, process.stderr) == (0, b"")


@pytest.mark.fault("J7")
def test_an_interrupt_ends_with_130_and_without_a_traceback(bridge: Bridge) -> None:
    """Ctrl-C is an answer, not an accident."""
    code = (
        "import os, signal, acp_history_bridge.index.library as library\n"
        "library.Library.scan = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        "import sys; from acp_history_bridge.cli import main; sys.exit(main(['index']))"
    )
    result = subprocess.run(
        [bridge.argv()[0], "-c", code],
        env=bridge.variables,
        capture_output=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )

    assert (result.returncode, result.stderr) == (130, b"")


@pytest.mark.fault("F12")
def test_a_log_that_cannot_be_written_is_no_error(bridge: Bridge) -> None:
    """A state directory that is a file costs the log, nothing else."""
    (bridge.home / "state").touch()

    result = bridge("index", "--json", "--log-level", "debug", XDG_STATE_HOME=str(bridge.home / "state"))

    assert (result.status, result.err) == (0, "")


def test_every_command_and_option_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    """docs/cli.md has a section for each command and names each of its options."""
    text = DOCUMENTATION.read_text(encoding="utf-8")
    options: set[str] = set()
    for command in COMMANDS:
        with pytest.raises(SystemExit):
            build_parser().parse_args([command, "--help"])
        options |= set(re.findall(r"--[a-z-]+", capsys.readouterr().out))

    headings = " ".join(re.findall(r"^## (.+)$", text, re.MULTILINE))
    assert set(re.findall(r"`bridge (\S+)`", headings)) == set(COMMANDS)
    assert [option for option in sorted(options) if f"`{option}" not in text and f" {option}`" not in text] == []


def test_every_command_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """`bridge --help` names each command that can be run."""
    with pytest.raises(SystemExit):
        build_parser().parse_args(["--help"])

    assert re.findall(r"^    (\w+)(?:  |$)", capsys.readouterr().out, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_every_example_of_the_help_is_valid(line: str) -> None:
    """What the help shows can be typed."""
    words = shlex.split(line.removeprefix("source <(").partition(" | ")[0].rstrip(")"))

    assert words[0] == "bridge"
    assert build_parser().parse_args(words[1:]).command in COMMANDS
