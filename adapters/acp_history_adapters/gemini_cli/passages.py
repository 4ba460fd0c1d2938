"""What the text index holds of a JSON Lines transcript, read from the middle on.

The lines are taken one by one, not folded: text that was rewound is found, too. A rebuilt message list repeats what
stands in lines before it, so from the middle on only its summaries are new.
"""

from collections.abc import Iterator

from acp_history_adapters.gemini_cli.messages import snapshot_of
from acp_history_adapters.gemini_cli.records import array_of, key_of, object_of
from acp_history_adapters.gemini_cli.replay import Record, Replay
from acp_history_adapters.gemini_cli.tools import Surroundings
from acp_history_bridge.adapter import Passage
from acp_history_bridge.jsonl import Line, decode, read_lines
from acp_history_bridge.values import JsonMap, mapping

__all__ = ["line_passages"]

_RESPONSE = b'"content":[{"functionResponse":'


def line_passages(descriptor: int, cwd: str | None, since: int, *, output: bool) -> Iterator[Passage]:
    """Yield the passages of all whole lines from byte `since` on, each text once."""
    from acp_history_bridge.search.passages import passages_of

    nothing = Surroundings(cwd, spilled=lambda _: None, subagent=lambda _id, _name: None)
    replay = Replay(nothing, dropped_call=lambda _: None, unknown=lambda _: None)
    seen: set[int] = set()
    for line in read_lines(descriptor, since):
        if line.pending:
            return
        for record in _records(line, from_start=not since, output=output):
            for passage in passages_of((turn for _, turn in replay.turns([record])), output=output):
                number = hash((record.key, passage.kind, passage.text))
                if number not in seen:
                    seen.add(number)
                    yield Passage(passage.kind, passage.text, line.end)


def _records(line: Line, *, from_start: bool, output: bool) -> Iterator[Record]:
    value = _decoded(line, output=output)
    if isinstance(key := value.get("id"), str):
        yield Record(key, value)
        return
    for place, item in enumerate(array_of(value) or ()):
        message = mapping(item)
        if from_start or snapshot_of(message) is not None:
            yield Record(key_of(message, place), message)


def _decoded(line: Line, *, output: bool) -> JsonMap:
    if line.data is None or (not output and _RESPONSE in line.data[:300]):
        return {}
    try:
        return object_of(decode(line.data)) or {}
    except ValueError:
        return {}
