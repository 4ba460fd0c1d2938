"""The newest CLIs go on from forks of what their old versions wrote: one recorded session of each version."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_history_bridge.adapter import Environment
from acp_history_bridge.forking import take_in, write_fork
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.registry import load_adapters
from acp_history_bridge.sessions import Session, SessionQuery
from tests.conftest import DATA, environment_at
from tests.drift.clis import CLIS, Cli, run
from tests.drift.conftest import Install
from tests.model_servers.server import Model, model_server

pytestmark = [pytest.mark.drift, pytest.mark.timeout(900)]

PROMPT = "And now, after the fork?"
# Where a tool looks for the sessions of a directory. Gemini CLI's documents have no version in them.
FOLDERS = {"claude-code": ".claude/projects/{slug}", "qwen-code": ".qwen/projects/{slug}/chats"}


def recorded(tool: str) -> Iterator[Session]:
    """The newest recorded session of each version whose directory was known."""
    library = Library(load_adapters([tool]), Environment(DATA / tool / "home"), IndexStore.open(None))
    for _ in library.scan():
        pass
    versions: set[str | None] = {None}
    for session in library.page(SessionQuery(), 1000).sessions:
        if session.record.tool_version not in versions and session.unit.path.suffix == ".jsonl":
            versions.add(session.record.tool_version)
            yield session
    library.close()


def moved(session: Session, folder: Path, work: Path) -> None:
    """Put a transcript into a folder, as if it had been made in another directory."""
    data = session.unit.path.read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    named = json.dumps(session.cwd, ensure_ascii=False).encode()
    (folder / session.unit.path.name).write_bytes(data.replace(named, json.dumps(str(work)).encode()))


@pytest.mark.parametrize("cli", [cli for cli in CLIS if cli.tool in FOLDERS], ids=lambda cli: cli.tool)
def test_the_tool_goes_on_from_forks_of_old_versions(cli: Cli, install: Install, tmp_path: Path) -> None:
    """It accepts every one of them, and asks the model with it."""
    program = install(cli)
    work = tmp_path / "work"
    work.mkdir()
    slug = re.sub("[^A-Za-z0-9]", "-", str(work))
    versions = [session.record.tool_version for session in recorded(cli.tool)]
    for session in recorded(cli.tool):
        moved(session, tmp_path / FOLDERS[cli.tool].format(slug=slug), work)
    (adapter,) = load_adapters([cli.tool])
    library = Library([adapter], environment_at(tmp_path), IndexStore.open(None))
    for _ in library.scan():
        pass
    originals = library.page(SessionQuery(), 1000).sessions
    assert len(originals) == len(versions) > 3
    for original in originals:
        fork, _ = take_in(library, adapter, original, write_fork(adapter, original))
        with model_server(Model("Fine.")) as model:
            arguments = cli.go_on(fork.record.native_id, PROMPT)
            run(cli, program, arguments, home=tmp_path, work=work, url=model.url)
            assert any(PROMPT in asked for asked in model.asked), original.record.tool_version
        assert PROMPT.encode() in fork.unit.path.read_bytes()
    library.close()
