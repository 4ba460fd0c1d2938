"""All adapters behind one guard: what any of them raises or returns against the contract stays its own problem.

An adapter that fails while listing a store has listed it incompletely; one that fails on a changed path is asked for
the whole store instead. `look` guards the inspection of a unit in the same way.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from acp_history_bridge import __version__
from acp_history_bridge.adapter import (
    RESCAN,
    Adapter,
    Affected,
    Discovery,
    Environment,
    Problem,
    Store,
    Transcript,
    Unit,
)
from acp_history_bridge.errors import AdapterError, TranscriptError
from acp_history_bridge.index.look import adapter_failed
from acp_history_bridge.index.tables import ProblemCount
from acp_history_bridge.sessions import Session

__all__ = ["Adapters"]

T = TypeVar("T")


class Adapters:
    """The adapters and their stores.

    Attributes:
        stores: Each real directory once per tool and layout, in the order of the adapters.
    """

    def __init__(self, adapters: Sequence[Adapter], environment: Environment) -> None:
        self._adapters = {adapter.name: adapter for adapter in adapters}
        self._problems: dict[tuple[str, Path], tuple[Problem, ...]] = {}
        self._versions: dict[Path | None, str] = {}
        self._real: dict[Store, Path] = {}
        seen: set[tuple[str, str, Path]] = set()
        for store in (store for adapter in adapters for store in self._stores_of(adapter, environment)):
            real = Path(os.path.realpath(store.root))
            if (identity := (store.tool, store.layout, real)) not in seen:
                seen.add(identity)
                self._real[store] = real
        self.stores = tuple(self._real)

    def named(self, tool: str) -> Adapter:
        """The adapter of a tool.

        Raises:
            AdapterError: There is none of this name.
        """
        if (adapter := self._adapters.get(tool)) is None:
            raise AdapterError(f"there is no adapter named {tool}")
        return adapter

    def reader(self, store: Store) -> str:
        """A version of the code that reads this store; what older code found is looked at again."""
        source = _source(type(self.named(store.tool)).__module__)
        if (version := self._versions.get(source)) is None:  # the built-in adapters come in one package
            version = self._versions[source] = _version(source)
        return version

    def discover(self, store: Store) -> Discovery:
        """List a store; an adapter that fails has listed nothing, and incompletely."""
        adapter = self.named(store.tool)

        def call() -> Discovery:
            return _checked(adapter.discover(store))

        discovery = self._guarded(adapter, store.root, call, lambda problem: Discovery((), (problem,), complete=False))
        self._problems[store.tool, store.root] = discovery.problems
        return discovery

    def unit(self, store: Store, path: Path) -> tuple[Unit | None, bool]:
        """Stat a unit now: the unit if there is one, and whether it is certain that there is none."""
        adapter = self.named(store.tool)

        def call() -> tuple[Unit | None, bool]:
            unit = adapter.unit(store, path)
            return unit, unit is None and _is_certain(path)

        return self._guarded(adapter, path, call, lambda _: (None, False))

    def affected(self, path: Path) -> list[tuple[Store, Path, Affected]]:
        """What a changed path means to each store it lies in; the path comes back as that store would name it."""
        return [
            (store, inside, self._affected(store, inside))
            for store in self.stores
            if (inside := self._inside(store, path)) is not None
        ]

    def open(self, session: Session) -> Transcript:
        """Open a session.

        Raises:
            TranscriptError: It is gone, or cannot be opened.
        """
        adapter = self.named(session.tool)
        try:
            return adapter.open(session.unit, session.record)
        except TranscriptError:
            raise
        except (Exception, SystemExit) as error:
            problem = adapter_failed(adapter, session.unit.path, error)
            raise TranscriptError(f"{session.unit.path.name} cannot be opened: {problem.detail}") from error

    def problem_counts(self) -> list[ProblemCount]:
        """What went wrong outside of any unit."""
        return [
            ProblemCount(tool, problem.kind, 1, problem)
            for (tool, _), problems in self._problems.items()
            for problem in problems
        ]

    def _stores_of(self, adapter: Adapter, environment: Environment) -> Sequence[Store]:
        def none(problem: Problem) -> tuple[Store, ...]:
            self._problems[adapter.name, environment.home] = (problem,)
            return ()

        return self._guarded(adapter, environment.home, lambda: tuple(adapter.stores(environment)), none)

    def _affected(self, store: Store, path: Path) -> Affected:
        if path == store.root:
            return RESCAN
        adapter = self.named(store.tool)
        return self._guarded(adapter, path, lambda: adapter.affected(store, path), lambda _: RESCAN)

    def _inside(self, store: Store, path: Path) -> Path | None:
        if path.is_relative_to(store.root):
            return path
        real = self._real[store]  # watchers may resolve links in the root
        return store.root / path.relative_to(real) if path.is_relative_to(real) else None

    def _guarded(self, adapter: Adapter, path: Path, call: Callable[[], T], fallback: Callable[[Problem], T]) -> T:
        try:
            return call()
        except (Exception, SystemExit) as error:  # noqa: BLE001  # third-party code can fail in any way
            return fallback(adapter_failed(adapter, path, error))


def _checked(found: object) -> Discovery:
    if not isinstance(found, Discovery):
        raise AdapterError(f"discover returned a {type(found).__name__}")
    return found


def _is_certain(path: Path) -> bool:
    """Whether "no unit" means that: a directory that may not be entered says nothing about what is in it."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return True


def _source(module: str) -> Path | None:
    """The `__init__.py` of the package an adapter comes with, or its single module."""
    names = (module.partition(".")[0], module)
    files = (getattr(sys.modules.get(name), "__file__", None) for name in names)
    return next((Path(file) for file in files if file is not None), None)


def _version(source: Path | None) -> str:
    digest = hashlib.blake2b(__version__.encode(), digest_size=16)
    for path in _files(source):
        stat = path.stat()
        digest.update(f"\0{path.name} {stat.st_size} {stat.st_mtime_ns}".encode())
    return digest.hexdigest()


def _files(source: Path | None) -> list[Path]:
    if source is None:
        return []
    return sorted(source.parent.rglob("*.py")) if source.name == "__init__.py" else [source]
