"""What every command starts from: the log, the environment (or the bundled sample), the settings, the adapters."""

import os
from argparse import Namespace
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from acp_history_bridge.adapter import Adapter, Environment
from acp_history_bridge.cli.parser import LOG_LEVELS
from acp_history_bridge.directories import cache_directory, config_file, data_directory, state_directory
from acp_history_bridge.environment import current_environment
from acp_history_bridge.errors import ConfigurationError
from acp_history_bridge.logs import configure
from acp_history_bridge.settings import VARIABLE_PREFIX, Settings, load_settings

if TYPE_CHECKING:  # the index is loaded by the commands that need it
    from acp_history_bridge.index.library import Library

__all__ = ["LOG_VARIABLE", "Context", "opened", "start_logging"]

LOG_VARIABLE = VARIABLE_PREFIX + "LOG"
_CONFIG_VARIABLE = VARIABLE_PREFIX + "CONFIG"


@dataclass(frozen=True, slots=True)
class Context:
    """What a command works on.

    Attributes:
        environment: The machine, or the sample pretending to be one.
        settings: What is in force.
        sources: Which file or variable each setting that is not at its default comes from.
        demo: Whether it is the sample.
    """

    environment: Environment
    settings: Settings
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    demo: bool = False

    def adapters(self) -> list[Adapter]:
        """Load the adapters that the settings name, or all.

        Raises:
            ConfigurationError: A name belongs to no adapter that can be loaded.
        """
        from acp_history_bridge.registry import load_adapters

        adapters = load_adapters(self.settings.tools or None)
        if unknown := set(self.settings.tools) - {adapter.name for adapter in adapters}:
            raise ConfigurationError(f"tools: there is no adapter called {', '.join(sorted(unknown))}")
        return adapters

    def library(self, adapters: Sequence[Adapter]) -> "Library":
        """Open the index over the histories of these tools."""
        from acp_history_bridge.index.library import Library, LibraryOptions
        from acp_history_bridge.index.store import IndexStore

        store = IndexStore.open(self._cache_file("index.db"))
        options = LibraryOptions(self.text_index(), self._decisions(), self.settings.headless)
        return Library(adapters, self.environment, store, options)

    def text_index(self) -> Path | None:
        """Where the full-text index lies; None when there is none."""
        return self._cache_file("text.db") if self.settings.search.full_text else None

    def _decisions(self) -> Path | None:
        """Where the user's decisions lie; the sample's are forgotten with it."""
        return None if self.demo else data_directory(self.environment.home) / "decisions.db"

    def _cache_file(self, name: str) -> Path | None:
        """Where a database that can be made again lies; None to keep it in memory, as the sample's is."""
        if self.demo or not self.settings.index.persistent:
            return None
        return cache_directory(self.environment.home) / name


def start_logging(arguments: Namespace) -> Path:
    """Log as the options and the environment say, and name the log file."""
    named = os.environ.get(LOG_VARIABLE, "").lower()
    level = arguments.log_level or (named if named in LOG_LEVELS else "warning")
    return configure(state_directory(current_environment().home), level, stderr=arguments.log_stderr)


@contextmanager
def opened(arguments: Namespace) -> Generator[Context]:
    """Make the context of a command.

    Raises:
        ConfigurationError: A setting is wrong.
    """
    machine = current_environment()
    settings, sources = _settings(machine, arguments.config)
    if not arguments.demo:
        yield Context(machine, settings, sources)
        return
    from acp_history_bridge.sample import sample_environment

    with sample_environment() as environment:
        yield Context(environment, settings, sources, demo=True)


def _settings(machine: Environment, named: Path | None) -> tuple[Settings, dict[str, str]]:
    """Read the settings from the file that is named, which must exist, or from the usual one, which need not."""
    if named is not None:
        machine = replace(machine, variables={**machine.variables, _CONFIG_VARIABLE: str(named)})
    usual = None if _CONFIG_VARIABLE in machine.variables else config_file(machine.home)
    return load_settings(machine, usual)
