"""Parameters of requests, validated by pydantic; imported with the first request after `initialize`.

Policy: required parameters are strict, everything we have no use for (MCP servers, additional directories) may hold
anything and is not even looked at. `_meta` is read on its own and never becomes a parameter. An error names the place
and what was expected, never what was sent: parameters carry credentials of MCP servers.
"""

import ntpath
import posixpath
from datetime import datetime
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from acp_history_bridge.errors import ProtocolError
from acp_history_bridge.protocol.jsonrpc import INVALID_PARAMS
from acp_history_bridge.protocol.wire import META_KEY
from acp_history_bridge.timestamps import parse_time
from acp_history_bridge.values import JsonMap, mapping

__all__ = [
    "MAX_PAGE",
    "ListFilter",
    "ListParams",
    "LoadParams",
    "NewParams",
    "PromptParams",
    "SessionParams",
    "list_filter",
    "validated",
]

MAX_PAGE = 1000


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
    return min(max(limit, 1), MAX_PAGE)


AbsolutePath = Annotated[str, AfterValidator(_absolute)]


class _Params(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, defer_build=True, extra="ignore", frozen=True, strict=True)


class ListFilter(_Params):
    """Our extensions of `session/list`, in `_meta["acp-history-bridge"]`.

    Attributes:
        limit: Sessions in a page; brought into 1 … 1000.
        tool: One adapter name, or several.
        since: Only sessions with activity at or after this time.
    """

    limit: Annotated[int, AfterValidator(_in_range)] | None = None
    tool: Annotated[list[str] | None, BeforeValidator(_as_list)] = None
    since: Annotated[datetime | None, BeforeValidator(_as_time)] = None


class ListParams(_Params):
    """`session/list`."""

    cwd: AbsolutePath | None = None
    cursor: str | None = None


class NewParams(_Params):
    """`session/new`."""

    cwd: AbsolutePath


class SessionParams(_Params):
    """`session/close` and `session/cancel`."""

    session_id: str


class LoadParams(SessionParams):
    """`session/load`."""

    cwd: AbsolutePath


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


def validated(model: type[Model], params: JsonMap) -> Model:
    """Check parameters.

    Raises:
        ProtocolError: One is missing or wrong.
    """
    return _validated(model, params, "params")


def list_filter(params: JsonMap) -> ListFilter:
    """Our own filters of a list.

    Raises:
        ProtocolError: One is wrong: a filter that is ignored would answer another question.
    """
    return _validated(ListFilter, mapping(mapping(params.get("_meta")).get(META_KEY)), f"_meta.{META_KEY}")


def _validated(model: type[Model], value: JsonMap, place: str) -> Model:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        loc = ".".join(str(part) for part in (place, *first["loc"]))
        raise ProtocolError(INVALID_PARAMS, "Invalid params", f"{loc}: {first['msg']}") from error
