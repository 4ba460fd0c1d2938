"""Which adapters there are.

Built-in adapters are a static table, because reading entry points costs 38 ms at start-up and an uninstalled checkout
has none. Third parties come by the entry-point group `acp_history_bridge.adapters`, read on first need. An adapter
that cannot be loaded is reported and skipped: one bad package must not take the others' histories away.
"""

import importlib
import logging
from collections.abc import Iterable

from acp_history_bridge.adapter import Adapter
from acp_history_bridge.errors import AdapterError

__all__ = ["BUILT_IN", "ENTRY_POINT_GROUP", "load_adapters"]

ENTRY_POINT_GROUP = "acp_history_bridge.adapters"

BUILT_IN: dict[str, str] = {
    "claude-code": "acp_history_adapters.claude_code:ClaudeCode",
    "gemini-cli": "acp_history_adapters.gemini_cli:GeminiCli",
    "codex": "acp_history_adapters.codex:Codex",
    "opencode": "acp_history_adapters.opencode:Opencode",
    "qwen-code": "acp_history_adapters.qwen_code:QwenCode",
}

_log = logging.getLogger(__name__)


def load_adapters(only: Iterable[str] | None = None, *, third_party: bool = True) -> list[Adapter]:
    """Make one instance of each adapter, built-in ones first, in a fixed order.

    Args:
        only: Names to load; None for all.
        third_party: Whether to look for adapters of other distributions.
    """
    wanted = None if only is None else frozenset(only)
    targets = dict(BUILT_IN)
    if third_party and (wanted is None or not wanted <= BUILT_IN.keys()):
        targets = _third_party() | targets
    adapters: list[Adapter] = []
    for name in [*BUILT_IN, *sorted(targets.keys() - BUILT_IN.keys())]:
        if wanted is None or name in wanted:
            try:
                adapters.append(_distinct(_load(name, targets[name]), adapters))
            except AdapterError as error:
                _log.error("%s", error)
    return adapters


def _third_party() -> dict[str, str]:
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=ENTRY_POINT_GROUP)}


def _load(name: str, target: str) -> Adapter:
    module, _, attribute = target.partition(":")
    try:
        adapter = getattr(importlib.import_module(module), attribute)()
    except Exception as error:  # third-party code can fail in any way while it is imported
        raise AdapterError(f"the adapter {name} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(adapter, Adapter):
        raise AdapterError(f"the adapter {name} does not implement the contract in acp_history_bridge.adapter")
    return adapter


def _distinct(adapter: Adapter, others: Iterable[Adapter]) -> Adapter:
    """Refuse an adapter whose sessions could not be told from another one's: names and prefixes are unique."""
    for other in others:
        if adapter.name == other.name or adapter.prefix == other.prefix:
            raise AdapterError(f"the adapter {adapter.name} has the name or prefix of {other.name}, which was first")
    return adapter
