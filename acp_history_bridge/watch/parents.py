"""Waiting for roots that do not exist yet.

Tools make their directories on first use, often several levels at once. So the nearest directory that does exist is
watched, alone and not what is below it, until the next part of the missing path appears there.
"""

from collections.abc import Iterable
from pathlib import Path

from acp_history_bridge.watch.events import EventSource, Subscription
from acp_history_bridge.watch.polling import Happening
from acp_history_bridge.watch.root import Means, identity_of

__all__ = ["ParentWatch"]


class ParentWatch:
    """Subscriptions to the nearest existing parents of missing roots."""

    def __init__(self, events: EventSource, means: Means) -> None:
        self._events = events
        self._means = means
        self._subscriptions: dict[Path, Subscription] = {}
        self._awaited: frozenset[str] = frozenset()

    def wait_for(self, missing: Iterable[Path]) -> bool:
        """Watch for these roots and no others; False when something came or went before the watches stood."""
        missing = list(missing)
        steps = [_next_step(path) for path in missing]
        self._awaited = frozenset(str(part) for step in steps for part in (step, step.parent))
        self._watch_exactly({step.parent for step in steps})
        appeared = any(identity_of(path) is not None for path in missing)
        return not appeared and steps == [_next_step(path) for path in missing]

    def _watch_exactly(self, places: set[Path]) -> None:
        for place, subscription in list(self._subscriptions.items()):
            if place not in places or not self._events.watching(subscription):
                self._events.unwatch(self._subscriptions.pop(place))
        for place in places - self._subscriptions.keys():
            try:
                self._subscriptions[place] = self._events.watch(place, self._report, recursive=False)
            except OSError as error:
                self._means.notice(f"{place} cannot be watched ({error.strerror}); what appears there is seen later")

    def _report(self, path: str, happening: Happening) -> None:
        del happening
        if path in self._awaited:
            self._means.reshape()


def _next_step(missing: Path) -> Path:
    """The nearest part of a path that does not exist, below its parent's real place; the path itself if it exists."""
    step = missing
    for parent in missing.parents:
        if identity_of(step) is not None or identity_of(parent) is not None:
            return parent.resolve() / step.name
        step = parent
    return step
