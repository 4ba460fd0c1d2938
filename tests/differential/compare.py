"""What differs between two replays of one session, each difference in a form that a rule can name.

Messages are aligned line by line and in order; calls by id, or by their place where two agents number them differently.
Which agent is the authority for what stands in the corpora's READMEs: for Codex's legacy sessions the older agent for
tool calls and the newer one for everything else, for its paginated sessions the newer one alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from difflib import SequenceMatcher
from itertools import groupby

from tests.differential.items import Call, Item, Replayed

__all__ = ["Difference", "differences"]

_UNMATCHED = Item("call", "?")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not the same.

    Attributes:
        what: `missing KIND` and `extra KIND` for what only one side has, `call.FIELD`, `usage`.
        tool_call: Our name of the call, for differences in calls.
        theirs: What the tool's agent has; lines of a message that follow each other are one difference.
        ours: What we have.
    """

    what: str
    tool_call: str
    theirs: str
    ours: str


def differences(theirs: Replayed, ours: Replayed) -> Iterator[Difference]:
    """Compare whole replays."""
    shared = theirs.calls.keys() & ours.calls.keys()
    pairs = [(identity, identity) for identity in theirs.calls if identity in shared]
    left, right = _aligned(theirs, shared), _aligned(ours, shared)
    for operation, start, end, our_start, our_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if operation == "equal":
            both = zip(theirs.items[start:end], ours.items[our_start:our_end], strict=True)
            pairs += [(one.text, other.text) for one, other in both if one.kind == "call" and one.text not in shared]
        else:
            yield from _one_sided("missing", theirs, theirs.items[start:end])
            yield from _one_sided("extra", ours, ours.items[our_start:our_end])
    for one, other in pairs:
        yield from _in_calls(theirs.calls[one], ours.calls[other])
    if theirs.usage != ours.usage:
        yield Difference("usage", "", str(theirs.usage), str(ours.usage))


def _aligned(side: Replayed, shared: set[str]) -> list[Item]:
    return [_UNMATCHED if item.kind == "call" and item.text not in shared else item for item in side.items]


def _one_sided(what: str, side: Replayed, items: list[Item]) -> Iterator[Difference]:
    for kind, group in groupby(items, key=lambda item: item.kind):
        texts = [item.text for item in group]
        if kind not in {"user", "agent", "thought"}:
            names = [side.calls[text].name or side.calls[text].title for text in texts] if kind == "call" else texts
            yield from (_sided(what, kind, text, name) for text, name in zip(texts, names, strict=True))
        else:
            yield _sided(what, kind, "\n".join(texts), "")


def _sided(what: str, kind: str, text: str, name: str) -> Difference:
    call = name if kind == "call" else ""
    return Difference(f"{what} {kind}", call, *((text, "") if what == "missing" else ("", text)))


def _in_calls(theirs: Call, ours: Call) -> Iterator[Difference]:
    for name in (field.name for field in fields(Call)):
        one, other = getattr(theirs, name), getattr(ours, name)
        if one != other:
            yield Difference(f"call.{name}", ours.name, _shown(one), _shown(other))


def _shown(value: object) -> str:
    return value if isinstance(value, str) else repr(value) if value else ""
