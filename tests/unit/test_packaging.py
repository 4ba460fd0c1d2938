"""What the distribution promises: the same adapters everywhere, a core that knows none of them, complete wheels."""

import ast
import subprocess
import sys
import zipfile
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

import acp_history_bridge
from acp_history_bridge.registry import BUILT_IN, ENTRY_POINT_GROUP

ROOT = Path(__file__).parents[2]
CORE = ROOT / "acp_history_bridge"


def _imports(file: Path) -> set[str]:
    """The top-level names of all modules a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def test_the_core_never_imports_an_adapter() -> None:
    """Adapters are named as strings in the registry, so that built-in and third-party ones are alike."""
    assert [file for file in CORE.rglob("*.py") if "acp_history_adapters" in _imports(file)] == []


def test_the_built_in_table_and_the_entry_points_are_the_same() -> None:
    """An uninstalled checkout uses the table, other programs use the metadata."""
    declared = {
        point.name: point.value
        for point in entry_points(group=ENTRY_POINT_GROUP)
        if point.value.startswith("acp_history_adapters.")
    }

    assert declared == BUILT_IN


def test_the_version_is_the_distributions() -> None:
    """`--version` says what is installed."""
    assert acp_history_bridge.__version__ == version("acp-history-bridge")


@pytest.mark.process
def test_importing_the_package_loads_nothing_else() -> None:
    """The package itself costs nothing."""
    code = "import sys; a = set(sys.modules); import acp_history_bridge; print(set(sys.modules) - a)"

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.strip() == "{'acp_history_bridge'}"


@pytest.mark.process
def test_a_wheel_holds_every_file_of_the_packages(tmp_path: Path) -> None:
    """Type markers and the sample history, hidden directories included, are installed as well."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}

    expected = {
        str(file.relative_to(root))
        for root, package in ((ROOT, CORE), (ROOT / "adapters", ROOT / "adapters" / "acp_history_adapters"))
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert expected - packed == set()
    assert any("/.claude/" in name for name in packed)
