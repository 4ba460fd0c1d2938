"""`bridge doctor`: what is found where, what could not be understood, and the state of everything of our own.

Policy: it only looks. No content of a conversation is printed, so the output can be put into a bug report; paths can.
"""

import os
import platform
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from shutil import which

from acp_history_bridge import __version__
from acp_history_bridge.adapter import Adapter, Store
from acp_history_bridge.cli.checkup import check_transcripts
from acp_history_bridge.cli.clients import CLIENTS
from acp_history_bridge.cli.context import Context
from acp_history_bridge.cli.output import home_relative, prepare_stdout, terminal_line, write_json, write_lines
from acp_history_bridge.cli.progress import scan
from acp_history_bridge.cli.query import sessions_of
from acp_history_bridge.directories import cache_directory, config_file, data_directory, state_directory
from acp_history_bridge.files import read_small
from acp_history_bridge.index.library import Library, ProblemCount
from acp_history_bridge.sessions import SessionQuery
from acp_history_bridge.text import replace_surrogates
from acp_history_bridge.values import boolean, integer, mapping, maps, string

__all__ = ["run"]

_WATCH_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")
_CONFIGURATION_LIMIT = 4 * 1024 * 1024

_EVERYTHING = SessionQuery(hidden="include")

Fields = dict[str, object]


def run(arguments: Namespace, context: Context) -> int:
    """Look at everything and report."""
    prepare_stdout()
    adapters = context.adapters()
    with closing(context.library(adapters)) as library:
        scan(library)
        report = _report(context, adapters, library)
        if arguments.deep:
            found = check_transcripts(library, list(sessions_of(library, _EVERYTHING, 0)))
            report["transcripts"] = {"read": found.read, "problems": [*map(_problem, found.problems)]}
    if arguments.json:
        write_json(report)
    else:
        write_lines(_lines(report, context.environment.home))
    return 0


def _report(context: Context, adapters: Sequence[Adapter], library: Library) -> Fields:
    home = context.environment.home
    sessions = Counter(session.unit.store for session in sessions_of(library, _EVERYTHING, 0))
    return {
        "version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "stores": [_store(library, store, sessions[store]) for store in library.stores],
        "problems": [*map(_problem, library.problems())],
        "watch": _watch(context, library.stores),
        "files": {
            "settings": _file(config_file(home)),
            "index": _file(cache_directory(home) / "index.db"),
            "textIndex": _file(cache_directory(home) / "text.db"),
            "decisions": _file(data_directory(home) / "decisions.db"),
            "log": _file(state_directory(home) / "bridge.log"),
        },
        "programs": {adapter.name: _program(library, adapter) for adapter in adapters},
        "clients": list(_clients(context)),
    }


def _problem(found: ProblemCount) -> Fields:
    return {
        "tool": found.tool,
        "kind": found.kind,
        "number": found.number,
        "path": _text(found.example.path),
        "detail": replace_surrogates(found.example.detail),
    }


def _store(library: Library, store: Store, sessions: int) -> Fields:
    discovery = library.adapter(store.tool).discover(store)
    return {
        "tool": store.tool,
        "path": _text(store.root),
        "exists": store.root.is_dir(),
        "sessions": sessions,
        "units": len(discovery.units),
        "bytes": sum(unit.fingerprint.size for unit in discovery.units),
        "complete": discovery.complete,
    }


def _watch(context: Context, stores: Sequence[Store]) -> Fields:
    """Watching needs a kernel watch per directory; all programs of a user share the limit."""
    directories = sum(sum(1 for _ in os.walk(top)) for store in stores for top in _watched(store))
    found: Fields = {"mode": context.settings.watch.mode, "directories": directories}
    try:
        found["limit"] = int(_WATCH_LIMIT.read_text(encoding="ascii"))
    except (OSError, ValueError):  # not Linux
        return found
    return found


def _watched(store: Store) -> list[Path]:
    return [store.root] if store.watched is None else [store.root / name for name in store.watched]


def _file(path: Path) -> Fields:
    try:
        return {"path": _text(path), "bytes": path.stat().st_size}
    except OSError:
        return {"path": _text(path)}


def _program(library: Library, adapter: Adapter) -> Fields:
    """Whether the tool's own program is installed, as far as any session can be resumed with it."""
    newest = next(sessions_of(library, replace(_EVERYTHING, tools=frozenset({adapter.name})), 1), None)
    command = None if newest is None else adapter.resume_command(newest.record)
    if command is None:
        return {}
    found = which(command.argv[0])
    found_at: Fields = {} if found is None else {"path": _text(Path(found))}
    return {"name": command.argv[0], **found_at}


def _clients(context: Context) -> Iterator[Fields]:
    """Clients whose configuration is here, and whether it names us; the name of the program in it is what counts."""
    for client in CLIENTS:
        path = None if client.file is None else client.file(context.environment)
        if path is not None and path.is_file():
            content = read_small(path.resolve(), _CONFIGURATION_LIMIT) or b""
            configured = b"acp-history-bridge" in content or b"acp_history_bridge" in content
            yield {"name": client.name, "path": _text(path), "configured": configured}


def _text(path: Path) -> str:
    return replace_surrogates(str(path))


def _lines(report: Mapping[str, object], home: Path) -> Iterator[str]:
    yield f"acp-history-bridge {report['version']}, Python {report['python']}, {report['platform']}"
    yield from ("", "Histories")
    yield from (_store_line(store, home) for store in maps(report["stores"]))
    yield from ("", "Problems with finding sessions:", *_problem_lines(report["problems"], home))
    if deep := mapping(report.get("transcripts")):
        yield from ("", f"Problems with {deep['read']:,} transcripts:", *_problem_lines(deep["problems"], home))
    yield from ("", *_watch_lines(report["watch"]), "", "Files")
    yield from (_file_line(name, file, home) for name, file in _entries(report["files"]))
    yield from ("", "Programs to resume with")
    yield from (_program_line(name, program) for name, program in _entries(report["programs"]) if program)
    yield from ("", "Clients")
    for client in maps(report["clients"]):
        state = "set up" if boolean(client["configured"]) else f"not set up; bridge setup {client['name']}"
        yield f"  {client['name']}: {state} ({home_relative(string(client['path']), home)})"


def _problem_lines(problems: object, home: Path) -> Iterator[str]:
    for problem in maps(problems):
        detail = string(problem["detail"])
        place = home_relative(string(problem["path"]), home)
        example = f"{detail}, e.g. {place}" if detail else f"e.g. {place}"
        yield terminal_line(f"  {problem['tool']}: {problem['number']} {problem['kind']}: {example}")
    if not problems:
        yield "  none"


def _entries(value: object) -> Iterator[tuple[str, Mapping[str, object]]]:
    for name, fields in mapping(value).items():
        yield name, mapping(fields)


def _store_line(store: Mapping[str, object], home: Path) -> str:
    place = home_relative(string(store["path"]), home)
    if not boolean(store["exists"]):
        return f"  {store['tool']}: nothing at {place}"
    found = f"{store['sessions']:,} sessions in {store['units']:,} files, {_size(store['bytes'])}"
    return f"  {store['tool']}: {found} at {place}" + ("" if boolean(store["complete"]) else "; parts cannot be listed")


def _watch_lines(value: object) -> Iterator[str]:
    watch = mapping(value)
    directories, limit = integer(watch["directories"]) or 0, integer(watch.get("limit"))
    room = "" if limit is None else f", of {limit:,} that all programs together may watch"
    yield f"Watching: {watch['mode']}; {directories:,} directories{room}"
    if limit is not None and directories > limit:
        yield f"  the rest is polled; `sysctl fs.inotify.max_user_watches={directories * 2}` raises the limit"


def _file_line(name: str, file: Mapping[str, object], home: Path) -> str:
    state = _size(file["bytes"]) if "bytes" in file else "not there"
    return f"  {name}: {home_relative(string(file['path']), home)} ({state})"


def _program_line(name: str, program: Mapping[str, object]) -> str:
    place = string(program.get("path")) or f"{program['name']} is not installed"
    return f"  {name}: {terminal_line(place)}"


def _size(value: object) -> str:
    size = float(integer(value) or 0)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
