"""Parameters of requests, validated by pydantic; imported with the first request after `initialize`.

Policy: required parameters are strict, everything we have no use for (MCP servers, additional directories) may hold
anything and is not even looked at. `_meta` is read on its own and never becomes a parameter. An error names the place
and what was expected, never what was sent: parameters carry credentials of MCP servers.
"""

import ntpath
import posixpath
from datetime import datetime
from typing import Annotated, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from acp_history_bridge.errors import ProtocolError
from acp_history_bridge.protocol.jsonrpc import INVALID_PARAMS
from acp_history_bridge.protocol.listing import MAX_RESULTS
from acp_history_bridge.protocol.wire import META_KEY
from acp_history_bridge.sessions import Inclusion
from acp_history_bridge.timestamps import parse_time
from acp_history_bridge.values import JsonMap, mapping

__all__ = [
    "GetParams",
    "ListFilter",
    "ListParams",
    "LoadParams",
    "NewParams",
    "PromptParams",
    "SessionParams",
    "SetConfigOptionParams",
    "SetModeParams",
    "SetTitleParams",
    "SubscribeParams",
    "SubscriptionParams",
    "list_filter",
    "validated",
]


def _absolute(path: str) -> str:
    if "\0" in path or not (posixpath.isabs(path) or ntpath.isabs(path)):
        raise ValueError("must be an absolute path")
    return path


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _as_time(value: object) -> object:
    if value is None:
        return None
    time = parse_time(value) if isinstance(value, str) else None
    if time is None:
        raise ValueError("must be an RFC 3339 time")
    return time


def _in_range(limit: int) -> int:
    return min(max(limit, 1), MAX_RESULTS)


AbsolutePath = Annotated[str, AfterValidator(_absolute)]
Limit = Annotated[int, AfterValidator(_in_range)]
Offset = Annotated[int, Field(ge=0, lt=2**31)]


class _Params(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, defer_build=True, extra="ignore", frozen=True, strict=True)


class ListFilter(_Params):
    """Our extensions of `session/list`, in `_meta["acp-history-bridge"]`.

    Attributes:
        limit: Sessions in a page; brought into 1 … 1000.
        tool: One adapter name, or several.
        since: Only sessions with activity at or after this time.
        search: Only sessions that this full-text query finds, best match first.
        include_hidden: Show hidden sessions, too.
        archived: What to do with archived sessions.
    """

    limit: Limit | None = None
    tool: Annotated[list[str] | None, BeforeValidator(_as_list)] = None
    since: Annotated[datetime | None, BeforeValidator(_as_time)] = None
    search: str | None = None
    include_hidden: bool = False
    archived: Inclusion | None = None


class ListParams(_Params):
    """`session/list`.

    Attributes:
        archived: Unstable.
        limit: Of the older proposal, as the two that follow.
    """

    cwd: AbsolutePath | None = None
    cursor: str | None = None
    archived: Inclusion | None = None
    limit: Limit | None = None
    offset: Offset | None = None
    search: str | None = None


class _AirList(_Params):
    """`_meta.jetbrains.air.list` of `session/list`."""

    limit: Limit | None = None
    archived: Literal["unarchived", "archived", "all"] = "all"


class NewParams(_Params):
    """`session/new`."""

    cwd: AbsolutePath


class SessionParams(_Params):
    """Methods that take nothing but a session."""

    session_id: str


class LoadParams(SessionParams):
    """`session/load`, `session/resume` and `session/fork`."""

    cwd: AbsolutePath


class SetModeParams(SessionParams):
    """`session/set_mode`."""

    mode_id: str


class SetConfigOptionParams(SessionParams):
    """`session/set_config_option`; there are no boolean options."""

    config_id: str
    value: str


class SetTitleParams(SessionParams):
    """`session/set_title`."""

    title: str


class GetParams(SessionParams):
    """`session/get`."""

    limit: Limit | None = None
    offset: Offset | None = None


class SubscribeParams(_Params):
    """`_session/list/subscribe`."""

    cwd: AbsolutePath | None = None


class SubscriptionParams(_Params):
    """`_session/list/unsubscribe`."""

    subscription_id: str


class _Block(_Params):
    """A content block of a prompt; only text is of use."""

    type: str
    text: str = ""


class PromptParams(SessionParams):
    """`session/prompt`."""

    prompt: list[_Block] = Field(max_length=10_000)

    @property
    def text(self) -> str:
        """The text blocks, a line each."""
        return "\n".join(block.text for block in self.prompt if block.type == "text").strip()


Model = TypeVar("Model", bound=_Params)

_AIR_ARCHIVED: Final[dict[str, Inclusion]] = {"unarchived": "exclude", "archived": "only", "all": "include"}


def validated(model: type[Model], params: JsonMap) -> Model:
    """Check parameters.

    Raises:
        ProtocolError: One is missing or wrong.
    """
    return _validated(model, params, "params")


def list_filter(params: JsonMap, *, air: bool) -> ListFilter:
    """The filters of a list that are in `_meta`: ours, or those of AIR's session index.

    Raises:
        ProtocolError: One is wrong: a filter that is ignored would answer another question.
    """
    meta = mapping(params.get("_meta"))
    theirs = mapping(mapping(mapping(meta.get("jetbrains")).get("air")).get("list"))
    if air and theirs:
        asked = _validated(_AirList, theirs, "_meta.jetbrains.air.list")
        return ListFilter(limit=asked.limit, archived=_AIR_ARCHIVED[asked.archived])
    return _validated(ListFilter, mapping(meta.get(META_KEY)), f"_meta.{META_KEY}")


def _validated(model: type[Model], value: JsonMap, place: str) -> Model:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        loc = ".".join(str(part) for part in (place, *first["loc"]))
        raise ProtocolError(INVALID_PARAMS, "Invalid params", f"{loc}: {first['msg']}") from error
