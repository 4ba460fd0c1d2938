"""A fork as Qwen Code 0.24 writes it: the active branch under a new session id.

Policy: records keep their ids and times, each follows the one before it and names what it was copied from. Whatever was
rewound stays behind. What is numbered by session (`ID########2`) is renamed. A title of the user's says that it is a
fork; the tool itself gives none.
"""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

from acp_history_adapters.qwen_code.chain import Chain
from acp_history_adapters.qwen_code.places import is_archived
from acp_history_bridge.adapter import Fork, Problem, SessionRecord, Unit
from acp_history_bridge.errors import ForkError
from acp_history_bridge.files import open_regular
from acp_history_bridge.forking import encode_line, fork_title
from acp_history_bridge.jsonl import LINE_LIMIT, decode, read_at
from acp_history_bridge.timestamps import format_time
from acp_history_bridge.values import JsonMap, mapping

__all__ = ["fork_session"]

_NUMBERED = b"########"


def fork_session(unit: Unit, record: SessionRecord) -> Fork:
    """A new session beside the original, which may lie in the archive.

    Raises:
        TranscriptError: The original is gone.
    """
    with open_regular(unit.path):
        pass  # only to say at once that it is gone
    native_id = str(uuid.uuid4())
    chats = unit.path.parents[1] if is_archived(unit.path) else unit.path.parent
    return Fork(native_id, chats / f"{native_id}.jsonl", _lines(unit, native_id, fork_title(record)))


def _lines(unit: Unit, native_id: str, title: str) -> Iterator[bytes]:
    problems: list[Problem] = []
    chain = Chain(unit.path, problems)
    last: JsonMap = {}
    with open_regular(unit.path) as descriptor:
        chain.read(descriptor)
        for index in chain.active()[0]:
            node = chain.nodes[index]
            if node.size > LINE_LIMIT:
                raise ForkError(f"a record of {node.size >> 20} MiB is too large to be copied")
            data = read_at(descriptor, node.offset, node.size)
            record = mapping(decode(_renamed(data, unit.path.stem, native_id)))
            origin = {"sessionId": unit.path.stem, "messageUuid": record.get("uuid")}
            parent = last.get("uuid")
            own = {"uuid": node.id, "parentUuid": parent, "sessionId": native_id}
            last = {**record, **own, "forkedFrom": origin}
            yield encode_line(last)
    if not last:
        raise ForkError("there is nothing in this session to go on from")
    yield encode_line(_title(last, native_id, title))


def _renamed(data: bytes, old: str, new: str) -> bytes:
    return data.replace(b'"' + old.encode() + _NUMBERED, b'"' + new.encode() + _NUMBERED)


def _title(last: JsonMap, native_id: str, title: str) -> JsonMap:
    place = {name: last[name] for name in ("cwd", "version", "gitBranch") if name in last}
    return {
        "uuid": str(uuid.uuid4()),
        "parentUuid": last.get("uuid"),
        "sessionId": native_id,
        "timestamp": format_time(datetime.now(UTC)),
        "type": "system",
        "subtype": "custom_title",
        **place,
        "systemPayload": {"customTitle": title, "titleSource": "manual"},
    }
