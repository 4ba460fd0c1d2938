"""What is shipped: the wheel works on its own, the source archive holds what it says, the registry's entry is true."""

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from acp_history_bridge import __version__

ROOT = Path(__file__).parents[2]
REGISTRY = ROOT / "packaging" / "acp-registry" / "acp-history-bridge"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel and the source archive of this checkout."""
    directory = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(directory)], cwd=ROOT, check=True)
    return directory


@pytest.mark.process_slow
@pytest.mark.timeout(120)
def test_the_wheel_works_without_the_checkout(built: Path, tmp_path: Path) -> None:
    """Installed into a directory of its own: the sample, its page with the style, and adapters are all there."""
    [wheel] = built.glob("*.whl")
    target, home = tmp_path / "site", tmp_path / "home"
    home.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(target)}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-P", *arguments]
        return subprocess.run(command, env=environment, cwd=home, check=True, capture_output=True, text=True).stdout

    assert run("-c", "import acp_history_bridge; print(acp_history_bridge.__file__)").startswith(str(target))
    listed = json.loads(run("-m", "acp_history_bridge", "index", "--demo", "--json"))
    page = run("-m", "acp_history_bridge", "export", "last", "--demo", "--format", "html")

    assert listed["total"] == 5
    assert "prefers-color-scheme" in page
    assert "session/load" in run("-m", "acp_history_bridge", "try", "--demo")


@pytest.mark.process_slow
@pytest.mark.timeout(120)
def test_the_wheel_holds_the_packages_and_nothing_else(built: Path) -> None:
    """No tests, no caches, no stray files; the licence, and both names of the program."""
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        points = archive.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()

    assert {name.partition("/")[0] for name in names} == {
        "acp_history_bridge",
        "acp_history_adapters",
        f"acp_history_bridge-{__version__}.dist-info",
    }
    assert [name for name in names if "__pycache__" in name or name.endswith(".pyc")] == []
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "bridge = acp_history_bridge.cli:main" in points


@pytest.mark.process_slow
@pytest.mark.timeout(120)
def test_the_source_archive_can_be_tested_and_released(built: Path) -> None:
    """Code, tests, documents and what a release needs; no virtual environment."""
    [archive] = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}

    wanted = {"pyproject.toml", "README.md", "LICENSE", "CITATION.cff", "docs/index.md", "packaging/pictures.py"}
    assert wanted - names == set()
    assert "tests/conftest.py" in names
    assert [name for name in names if name.startswith((".venv", ".git/"))] == []


def test_the_registrys_entry_is_true() -> None:
    """The form that the registry demands, and this version."""
    entry = json.loads((REGISTRY / "agent.json").read_text(encoding="utf-8"))

    assert {"id", "name", "version", "description", "distribution"} <= set(entry)
    assert entry["id"] == REGISTRY.name
    assert re.fullmatch(r"[a-z][a-z0-9-]*", entry["id"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", entry["version"])
    assert entry["version"] == __version__
    assert entry["distribution"]["uvx"]["package"] == f"acp-history-bridge=={__version__}"


def test_the_icon_is_what_the_registry_demands() -> None:
    """Square, 16 by 16, in the current colour only."""
    icon = (REGISTRY / "icon.svg").read_text(encoding="utf-8")

    assert 'width="16" height="16"' in icon
    assert set(re.findall(r'(?:fill|stroke)="([^"]+)"', icon)) <= {"currentColor", "none", "inherit"}


def test_the_citation_names_this_version() -> None:
    """CITATION.cff is not forgotten in a release."""
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
