"""The real CLIs: how each is installed, pointed at a model on this machine, asked something and made to go on."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["CLIS", "Cli", "run"]

_TIMEOUT = 120


@dataclass(frozen=True)
class Cli:
    """One of them.

    Attributes:
        tool: The name of its adapter.
        package: Its package, in npm's newest version that runs here.
        ask: Its arguments for a prompt, and
        go_on: for one in the session with an id.
        look: A tool of its own that reads a file, with a way to give the path.
        environment: Variables, made from the model's address.
        settings: Files below the home, made from the model's address.
    """

    tool: str
    package: str
    program: str
    ask: Callable[[str], list[str]]
    go_on: Callable[[str, str], list[str]]
    look: Callable[[Path], tuple[str, dict[str, object]]]
    environment: Callable[[str], Mapping[str, str]] = field(default=lambda _: {})
    settings: Callable[[str], Mapping[str, str]] = field(default=lambda _: {})


def run(cli: Cli, program: Path, arguments: list[str], *, home: Path, work: Path, url: str) -> str:
    """Run a CLI to its end, in a home of its own, and give what it printed; one that fails fails the test."""
    for name, text in cli.settings(url).items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    variables = {"HOME": str(home), "PATH": os.environ["PATH"], "NO_COLOR": "1", "TERM": "dumb", **cli.environment(url)}
    done = subprocess.run(
        [str(program), *arguments],
        cwd=work,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, f"{cli.program} {arguments}: {done.stdout[-1500:]}\n{done.stderr[-3000:]}"
    return done.stdout


def _codex_settings(url: str) -> dict[str, str]:
    lines = [
        'model = "gpt-5.5"',
        'model_provider = "local"',
        "[model_providers.local]",
        'name = "local"',
        f'base_url = "{url}/v1"',
        'wire_api = "responses"',
        'env_key = "LOCAL_KEY"',
    ]
    return {".codex/config.toml": "\n".join(lines)}


CLIS = (
    Cli(
        tool="claude-code",
        package="@anthropic-ai/claude-code",
        program="claude",
        ask=lambda prompt: ["-p", prompt, "--allowedTools", "Read"],
        go_on=lambda session, prompt: ["-p", prompt, "--resume", session],
        look=lambda path: ("Read", {"file_path": str(path)}),
        environment=lambda url: {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    ),
    Cli(
        tool="gemini-cli",
        package="@google/gemini-cli",
        program="gemini",
        ask=lambda prompt: ["-p", prompt, "-m", "gemini-2.5-pro", "--skip-trust"],
        go_on=lambda session, prompt: ["--resume", session, "-p", prompt, "-m", "gemini-2.5-pro", "--skip-trust"],
        look=lambda path: ("read_file", {"file_path": str(path)}),
        environment=lambda url: {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none"},
        settings=lambda _: {
            ".gemini/settings.json": json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}})
        },
    ),
    Cli(
        tool="codex",
        package="@openai/codex",
        program="codex",
        ask=lambda prompt: ["exec", "--skip-git-repo-check", prompt],
        go_on=lambda session, prompt: ["exec", "--skip-git-repo-check", "resume", session, prompt],
        look=lambda path: ("exec_command", {"cmd": f"cat {path.name}"}),
        environment=lambda _: {"LOCAL_KEY": "none"},
        settings=_codex_settings,
    ),
    Cli(
        tool="qwen-code",
        package="@qwen-code/qwen-code",
        program="qwen",
        ask=lambda prompt: ["-p", prompt],
        go_on=lambda session, prompt: ["--resume", session, "-p", prompt],
        look=lambda path: ("read_file", {"absolute_path": str(path), "file_path": str(path)}),
        environment=lambda url: {
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": "none",
            "OPENAI_MODEL": "local",
        },
        settings=lambda _: {".qwen/settings.json": json.dumps({"security": {"auth": {"selectedType": "openai"}}})},
    ),
)
