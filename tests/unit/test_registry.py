"""Which adapters are found, and what a bad one costs: only itself."""

import logging
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from acp_history_bridge import registry
from acp_history_bridge.adapter import (
    Adapter,
    Affected,
    Discovery,
    Environment,
    Inspection,
    Known,
    SessionRecord,
    Store,
    Transcript,
    Unit,
)
from acp_history_bridge.registry import BUILT_IN, ENTRY_POINT_GROUP, load_adapters


class Minimal(Adapter):
    """The least that is an adapter."""

    name = "minimal"
    prefix = "minimal"
    title = "Minimal"

    def stores(self, environment: Environment) -> Iterable[Store]:
        """One store."""
        return (Store(self.name, environment.home),)

    def discover(self, store: Store) -> Discovery:
        """Nothing in it."""
        del store
        return Discovery(())

    def unit(self, store: Store, path: Path) -> Unit | None:
        """No unit."""
        del store, path
        return None

    def affected(self, store: Store, path: Path) -> Affected:
        """No effect."""
        del store, path
        return Affected()

    def inspect(self, unit: Unit, known: Known | None = None) -> Inspection:
        """No session."""
        del unit, known
        return Inspection(())

    def open(self, unit: Unit, record: SessionRecord) -> Transcript:
        """Nothing to open."""
        raise NotImplementedError


class Impostor(Minimal):
    """Claims the prefix of a built-in tool."""

    name = "impostor"
    prefix = "claude"


class Failing(Minimal):
    """Cannot be made."""

    def __init__(self) -> None:
        raise OSError("no licence file")


Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """A function that pretends other distributions bring these adapters, by entry-point name."""
    module = ModuleType("somebodys_adapters")
    vars(module).update(Minimal=Minimal, Impostor=Impostor, Failing=Failing, NotOne=dict)
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def install(**adapters: str) -> None:
        points = [EntryPoint(name, value, ENTRY_POINT_GROUP) for name, value in adapters.items()]

        def entry_points(*, group: str) -> list[EntryPoint]:
            return [point for point in points if point.group == group]

        monkeypatch.setattr("importlib.metadata.entry_points", entry_points)

    return install


def _names(adapters: Iterable[Adapter]) -> list[str]:
    return [adapter.name for adapter in adapters]


def test_every_built_in_adapter_loads_under_its_own_name() -> None:
    """The table's names are the adapters' names, which settings and filters use."""
    adapters = load_adapters(third_party=False)

    assert _names(adapters) == list(BUILT_IN)
    assert len({adapter.prefix for adapter in adapters}) == len(adapters)


def test_adapters_of_others_come_after_the_built_in_ones(install: Install) -> None:
    """An entry point is enough."""
    install(minimal="somebodys_adapters:Minimal")

    assert _names(load_adapters()) == [*BUILT_IN, "minimal"]


@pytest.mark.parametrize("target", ["nowhere:X", "somebodys_adapters:Missing", "somebodys_adapters:Failing", "x"])
@pytest.mark.fault("C6")
def test_an_adapter_that_cannot_be_loaded_is_reported_and_skipped(
    install: Install, caplog: pytest.LogCaptureFixture, target: str
) -> None:
    """One bad package does not take the others' histories away."""
    install(bad=target, minimal="somebodys_adapters:Minimal")

    assert _names(load_adapters()) == [*BUILT_IN, "minimal"]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "the adapter bad cannot be loaded" in caplog.text


@pytest.mark.fault("C6")
def test_something_else_than_an_adapter_is_skipped(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    """What does not have the contract's methods is not used."""
    install(bad="somebodys_adapters:NotOne")

    assert _names(load_adapters()) == list(BUILT_IN)
    assert "does not implement the contract" in caplog.text


@pytest.mark.fault("C6")
def test_nobody_takes_the_prefix_of_another_adapter(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    """Wire ids begin with the prefix; two tools with one prefix could not be told apart."""
    install(impostor="somebodys_adapters:Impostor")

    assert _names(load_adapters()) == list(BUILT_IN)
    assert "has the name or prefix of claude-code" in caplog.text


@pytest.mark.fault("C6")
def test_nobody_replaces_a_built_in_adapter_by_its_name(install: Install) -> None:
    """The built-in one wins over an entry point of the same name."""
    install(**{"claude-code": "somebodys_adapters:Minimal"})

    assert _names(load_adapters()) == list(BUILT_IN)


def test_only_the_wanted_adapters_are_loaded(install: Install) -> None:
    """Names select; unknown ones select nothing."""
    install(minimal="somebodys_adapters:Minimal")

    assert _names(load_adapters(["minimal", "gemini-cli", "unheard-of"])) == ["gemini-cli", "minimal"]


def test_entry_points_are_not_read_when_built_in_adapters_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading them costs more than everything else at start-up."""

    def refuse() -> dict[str, str]:
        pytest.fail("entry points were read")

    monkeypatch.setattr(registry, "_third_party", refuse)

    assert _names(load_adapters(["claude-code"])) == ["claude-code"]
