"""`bridge config`: which settings are in force, and where each comes from."""

from argparse import Namespace
from typing import cast

from acp_history_bridge.cli.context import Context
from acp_history_bridge.cli.output import prepare_stdout, write_json, write_lines
from acp_history_bridge.directories import config_file
from acp_history_bridge.settings import Setting, effective
from acp_history_bridge.text import terminal_safe

__all__ = ["run"]


def run(arguments: Namespace, context: Context) -> int:
    """Print every setting."""
    prepare_stdout()
    settings = effective(context.settings, context.sources)
    file = arguments.config or config_file(context.environment.home)
    if arguments.json:
        write_json({"file": str(file), "settings": {setting.name: _as_json(setting) for setting in settings}})
        return 0
    width = max(len(setting.name) for setting in settings)
    write_lines([f"# {terminal_safe(str(file))}{'' if file.exists() else ' (does not exist)'}"])
    write_lines(f"{setting.name:{width}} = {_shown(setting.value)}{_origin(setting)}" for setting in settings)
    return 0


def _as_json(setting: Setting) -> dict[str, object]:
    return {"value": setting.value, "source": setting.source}


def _shown(value: object) -> str:
    """A value as the file would hold it."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, cast('tuple[object, ...]', value)))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{terminal_safe(value)}"' if isinstance(value, str) else str(value)


def _origin(setting: Setting) -> str:
    return "" if setting.source == "default" else f"  # from {terminal_safe(setting.source)}"
