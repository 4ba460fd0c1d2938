"""`bridge setup`: what has to stand in a client's configuration, or putting it there.

Policy: the entry is merged, nothing else in the file changes its value, and a copy of the file is kept. A file that is
not strict JSON (comments, trailing commas) is left alone, for writing it again would lose what a person wrote there.
"""

import json
import shutil
import sys
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from acp_history_bridge.cli.clients import CLIENTS, Client
from acp_history_bridge.cli.context import Context
from acp_history_bridge.cli.output import prepare_stdout, write_lines
from acp_history_bridge.cli.writing import write_whole
from acp_history_bridge.errors import BridgeError, ConfigurationError

__all__ = ["agent_command", "merged", "run"]

_NEW_FILE_MODE = 0o644


def agent_command() -> list[str]:
    """What a client has to start; absolute, for editors know another PATH than terminals."""
    beside = Path(sys.executable).with_name("acp-history-bridge")  # an environment that is not in PATH
    installed = shutil.which("acp-history-bridge") or (str(beside) if beside.is_file() else None)
    return [installed, "acp"] if installed else [sys.executable, "-m", "acp_history_bridge", "acp"]


def run(arguments: Namespace, context: Context) -> int:
    """Print the snippet, or merge it."""
    prepare_stdout()
    if arguments.client is None:
        width = max(len(client.name) for client in CLIENTS)
        write_lines(f"{client.name:{width}}  {client.title}" for client in CLIENTS)
        return 0
    client = next(client for client in CLIENTS if client.name == arguments.client)
    file = None if client.file is None else client.file(context.environment)
    command = agent_command()
    if not arguments.write:
        print(f"{client.title}: {file or client.hint}", file=sys.stderr)
        write_lines([client.snippet(command)])
        return 0
    if file is None:
        raise ConfigurationError(f"setup --write: {client.title} has no JSON configuration; add the snippet by hand")
    print(f"{_write(client, file, command)}; {client.hint}", file=sys.stderr)
    return 0


def _write(client: Client, file: Path, command: Sequence[str]) -> str:
    """Merge the entry into the file, following links; says what was done."""
    assert client.entry is not None
    target = file.resolve()
    old = _read(target)
    new = merged({} if old is None else _parsed(target, old), client.keys, client.entry(command), target)
    if old is not None and new == _parsed(target, old):
        return f"{file} has the entry already"
    backup = None
    mode = _NEW_FILE_MODE
    try:
        if old is None:
            target.parent.mkdir(parents=True, exist_ok=True)
        else:
            mode = target.stat().st_mode & 0o777
            backup = target.with_name(f"{target.name}.bak-{datetime.now(UTC):%Y%m%d-%H%M%S}")
            shutil.copy2(target, backup)
    except OSError as error:
        raise BridgeError(f"cannot write {target}: {error.strerror}") from error
    write_whole(target, [json.dumps(new, indent=2, ensure_ascii=False), "\n"], mode)
    return f"{file} written" + ("" if backup is None else f", the old one is {backup.name}")


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BridgeError(f"cannot read {file}: {error}") from error


def _parsed(file: Path, text: str) -> dict[str, object]:
    try:
        value: object = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise BridgeError(
            f"{file} is not strict JSON (comments?), and would lose them; add the snippet by hand"
        ) from error
    if not isinstance(value, dict):
        raise BridgeError(f"{file} holds no JSON object; add the snippet by hand")
    return cast("dict[str, object]", value)


def merged(value: dict[str, object], keys: Sequence[str], entry: object, file: Path) -> dict[str, object]:
    """The configuration with the entry below these keys; everything else as it was, in its order.

    Raises:
        BridgeError: Something else stands on the way.
    """
    first, *rest = keys
    if not rest:
        return {**value, first: entry}
    inner = value.get(first, {})
    if not isinstance(inner, dict):
        raise BridgeError(f"{file}: {first} is no JSON object; add the snippet by hand")
    return {**value, first: merged(cast("dict[str, object]", inner), rest, entry, file)}
