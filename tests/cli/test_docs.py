"""The documentation says what is: its example runs, its tables are complete, its links lead somewhere."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from acp_history_bridge.adapter import Adapter
from acp_history_bridge.cli.clients import CLIENTS
from acp_history_bridge.cli.parser import COMMANDS, build_parser
from acp_history_bridge.index.library import Library
from acp_history_bridge.index.store import IndexStore
from acp_history_bridge.registry import BUILT_IN, load_adapters
from acp_history_bridge.sessions import SessionQuery
from acp_history_bridge.turns import Text
from tests.conftest import environment_at

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.fixture
def scribe() -> Adapter:
    """The adapter whose whole code stands in docs/adding-a-tool.md."""
    text = (ROOT / "docs" / "adding-a-tool.md").read_text(encoding="utf-8")
    code = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[0]
    names: dict[str, Any] = {}
    exec(compile(code, "docs/adding-a-tool.md", "exec"), names)
    adapter: Adapter = names["Scribe"]()
    return adapter


def _append(path: Path, *lines: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)


def test_the_example_adapter_lists_and_replays(scribe: Adapter, tmp_path: Path) -> None:
    """What the page shows is complete: with it, sessions of the imaginary tool are listed, read and followed."""
    path = tmp_path / ".scribe" / "chats" / "one.jsonl"
    _append(
        path, {"cwd": "/w"}, {"role": "user", "text": "Hello", "time": "2020-01-01T00:00:00Z"}, "garbage\n", "[1]\n"
    )
    library = Library([scribe], environment_at(tmp_path), IndexStore.open(None))
    for _ in library.scan():
        pass

    [session] = library.page(SessionQuery(), 10).sessions
    transcript = library.open(session)
    first = [turn.parts for turn in transcript.turns()]
    _append(path, {"role": "agent", "text": "Hi"}, '{"role": "agent", "te')
    later = [turn.parts for turn in transcript.turns()]
    transcript.close()

    assert (session.id, session.title, session.cwd) == ("scribe:one", "Hello", "/w")
    assert (first, later) == ([(Text("Hello"),)], [(Text("Hi"),)])
    assert [problem.kind for problem in transcript.problems] == ["bad-line"]
    library.close()


def test_the_readme_names_every_built_in_tool() -> None:
    """The table of tools is the registry's."""
    rows = re.findall(r"^\| (.+?) \| `(.+?)` \| ", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert {name: title for title, name in rows} == {
        adapter.name: adapter.title for adapter in load_adapters(BUILT_IN, third_party=False)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    """Pages are found from each other."""
    targets = re.findall(r"\]\(([^)#:]+?)\)", page.read_text(encoding="utf-8"))

    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_readmes_snippets_are_what_setup_prints() -> None:
    """A person who copies them gets what `bridge setup --write` would have written."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    snippets = [json.loads(code) for code in re.findall(r"^```json\n(.*?)^```", text, re.DOTALL | re.MULTILINE)]
    command = ["acp-history-bridge", "acp"]

    assert snippets == [json.loads(client.snippet(command)) for client in CLIENTS if client.file is not None]


def test_the_readmes_commands_can_be_typed() -> None:
    """Every indented `bridge …` line is understood by the parser."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^    bridge (.+?)(?: {2,}#.*)?$", text, re.MULTILINE)

    assert len(lines) >= 9
    assert {build_parser().parse_args(shlex.split(line)).command for line in lines} <= set(COMMANDS)


def test_the_index_names_every_page() -> None:
    """docs/index.md leads everywhere."""
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/**/*.md")} - {"index.md"}

    assert [page for page in sorted(pages) if f"]({page})" not in text] == []


def test_every_module_of_the_core_is_on_the_map() -> None:
    """docs/architecture.md has a place for each module, so that a newcomer finds it."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    parts = [path for path in (ROOT / "acp_history_bridge").iterdir() if not path.name.startswith("__")]

    names = {f"`{path.name}/`" for path in parts if path.is_dir()} | {f"`{path.name}`" for path in parts if path.suffix}
    assert {name for name in names if name not in text} == {"`py.typed`"}
