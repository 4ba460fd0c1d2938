"""Settings: one TOML file, then environment variables, each value with the place it came from.

The file is `config.toml` in the platform's configuration directory (`ACP_HISTORY_BRIDGE_CONFIG` names another one). A
variable is the setting's name in capitals: `watch.mode` is `ACP_HISTORY_BRIDGE_WATCH_MODE`. An editor may pass hardly
any environment, hence the file; a test or a container may not want a file, hence the variables.

pydantic validates, but is imported only when there is something to validate: with nothing set, `initialize` must not
pay for it.
"""

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from acp_history_bridge.adapter import Environment
from acp_history_bridge.errors import ConfigurationError
from acp_history_bridge.values import JsonMap

if TYPE_CHECKING:  # loaded where there is something to validate
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

__all__ = [
    "VARIABLE_PREFIX",
    "DeleteMode",
    "IndexSettings",
    "PushMode",
    "ReplaySettings",
    "SearchSettings",
    "Setting",
    "Settings",
    "WatchMode",
    "WatchSettings",
    "effective",
    "load_settings",
]

VARIABLE_PREFIX = "ACP_HISTORY_BRIDGE_"

PushMode = Literal["off", "open", "listed", "all"]
DeleteMode = Literal["hide", "trash", "off"]
WatchMode = Literal["auto", "poll", "off"]


class _Doc(str):
    """What `bridge config` and docs/configuration.md say of a setting; pydantic passes over it."""

    __slots__ = ()


class _Ge:
    """A lowest value. The package that pydantic has for this takes as long to import as all settings together."""

    def __init__(self, limit: float) -> None:
        self._limit = limit

    def __get_pydantic_core_schema__(self, source: object, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        """Tell pydantic."""
        number: Any = handler(source)
        return cast("CoreSchema", number | {"ge": self._limit})


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """`[index]`."""

    persistent: Annotated[bool, _Doc("Keep the index in the cache directory; false keeps it in memory only.")] = True


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """`[watch]`."""

    mode: Annotated[
        WatchMode,
        _Doc("`auto` uses file events and polls network mounts, `poll` polls everything, `off` does not watch."),
    ] = "auto"
    debounce_ms: Annotated[int, _Ge(10), _Doc("How long a file must be quiet before it is read again.")] = 150
    ceiling_ms: Annotated[int, _Ge(10), _Doc("How long a busy file is waited for at the most.")] = 1000
    reconcile_seconds: Annotated[float, _Ge(1), _Doc("How often everything is compared by `stat`.")] = 30.0
    poll_seconds: Annotated[float, _Ge(0.1), _Doc("How often polled directories are swept.")] = 2.0


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """`[replay]`."""

    tool_output_kib: Annotated[int, _Ge(1), _Doc("Tool output above this is shortened in the middle.")] = 100
    image_kib: Annotated[int, _Ge(0), _Doc("Images above this (in base64) are replaced by a note or a link.")] = 700
    follow: Annotated[bool, _Doc("Send what is added to an open session's transcript.")] = True


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """`[search]`."""

    full_text: Annotated[bool, _Doc("Build a full-text index in the background.")] = True
    tool_output: Annotated[bool, _Doc("Index the output of tools too; secrets mostly sit there.")] = False


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a user can decide; the top level of the file."""

    tools: Annotated[tuple[str, ...], _Doc("Adapters to use, by name; empty for all.")] = ()
    headless: Annotated[bool, _Doc("List sessions that a program made (print mode, SDKs).")] = True
    page_size: Annotated[int, _Ge(1), _Doc("Sessions in one page of `session/list`.")] = 500
    pushes: Annotated[PushMode, _Doc("For which sessions `session_info_update` is sent: off, open, listed or all.")] = (
        "all"
    )
    delete: Annotated[DeleteMode, _Doc("What `session/delete` does: hide in the bridge, move to trash, or off.")] = (
        "hide"
    )
    unstable: Annotated[bool, _Doc("Announce the unstable methods archive, status and set_title.")] = False
    index: IndexSettings = field(default_factory=IndexSettings)
    watch: WatchSettings = field(default_factory=WatchSettings)
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    search: SearchSettings = field(default_factory=SearchSettings)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as `bridge config` shows it.

    Attributes:
        name: Dotted, as in the file: `watch.mode`.
        source: `default`, the file's path, or the variable's name.
    """

    name: str
    value: object
    default: object
    source: str
    text: str


def load_settings(environment: Environment, file: Path | None = None) -> tuple[Settings, dict[str, str]]:
    """Read the file and the variables.

    Returns:
        The settings, and for each that is set, by dotted name, the path or variable it comes from.

    Raises:
        ConfigurationError: The file cannot be read, is no TOML, or a value is unknown or wrong; names the place.
    """
    named = environment.variables.get(VARIABLE_PREFIX + "CONFIG")
    path = file or (Path(named) if named else None)
    values, sources = _from_file(path, must_exist=named is not None)
    # Type hints are slow to look at, so only when there is anything to look up.
    if any(variable.startswith(VARIABLE_PREFIX) for variable in environment.variables):
        for variable, dotted in _variables().items():
            if variable in environment.variables:
                _put(values, dotted, environment.variables[variable])
                sources[dotted] = variable
    return (_validated(values, sources) if values else Settings()), sources


def _from_file(path: Path | None, *, must_exist: bool) -> tuple[dict[str, Any], dict[str, str]]:
    if path is None:
        return {}, {}
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        if must_exist:
            raise ConfigurationError(f"{path}: there is no such file") from error
        return {}, {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: {error}") from error
    import tomllib

    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    return values, dict.fromkeys(_dotted(values), str(path))


def _dotted(values: JsonMap, prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _dotted(cast("JsonMap", value), f"{prefix}{key}.")
        else:
            yield prefix + key


def _variables() -> dict[str, str]:
    return {VARIABLE_PREFIX + name.upper().replace(".", "_"): name for name in _fields()}


@dataclass(frozen=True, slots=True)
class _Field:
    """A setting's type and its documentation."""

    kind: object
    text: str


def _fields(table: type = Settings, prefix: str = "") -> dict[str, _Field]:
    """Every setting by its dotted name, in the order of the file."""
    found: dict[str, _Field] = {}
    for name, hint in typing.get_type_hints(table, include_extras=True).items():
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            found |= _fields(hint, f"{name}.")
        else:
            kind, *extras = typing.get_args(hint)
            found[prefix + name] = _Field(kind, next(extra for extra in extras if isinstance(extra, _Doc)))
    return found


def _put(values: dict[str, Any], dotted: str, text: str) -> None:
    *tables, name = dotted.split(".")
    for table in tables:
        inner: object = values.setdefault(table, {})
        if not isinstance(inner, dict):  # the file gave a plain value; validation will say so
            return
        values = cast("dict[str, Any]", inner)
    is_list = _fields()[dotted].kind == tuple[str, ...]
    values[name] = [piece.strip() for piece in text.split(",") if piece.strip()] if is_list else text


def _validated(values: dict[str, Any], sources: Mapping[str, str]) -> Settings:
    import pydantic

    config = pydantic.ConfigDict(extra="forbid")
    adapter = pydantic.TypeAdapter(_with_config(config))
    try:
        settings: Settings = adapter.validate_python(values)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        dotted = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(f"{sources.get(dotted, 'configuration')}: {dotted}: {first['msg']}") from error
    return settings


def _with_config(config: Any) -> type[Settings]:  # noqa: ANN401 - a pydantic type that must not be imported here
    """Tell pydantic to refuse unknown names in every table."""
    for kind in (Settings, IndexSettings, WatchSettings, ReplaySettings, SearchSettings):
        vars_of: Any = kind
        vars_of.__pydantic_config__ = config
    return Settings


def _value(settings: Settings, dotted: str) -> Any:  # noqa: ANN401 - settings have several types
    value: Any = settings
    for name in dotted.split("."):
        value = getattr(value, name)
    return value


def effective(settings: Settings, sources: Mapping[str, str]) -> list[Setting]:
    """Every setting with its value and where it comes from, in the order of the documentation."""
    defaults = Settings()
    return [
        Setting(name, _value(settings, name), _value(defaults, name), sources.get(name, "default"), described.text)
        for name, described in _fields().items()
    ]
