"""Every requirement on sessions has a test that exists."""

import ast
from collections import Counter
from pathlib import Path

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).parents[1]
AREAS = ("protocol", "index", "cli")


def existing() -> set[str]:
    """All tests of the areas that requirements name, as `module::function`."""
    found: set[str] = set()
    for area in AREAS:
        for path in (TESTS / area).glob("test_*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    found.add(f"{path.stem}::{node.name}")
                elif isinstance(node, ast.Assign):
                    found |= {f"{path.stem}::{target.id}" for target in node.targets if isinstance(target, ast.Name)}
    return found


def test_every_requirement_has_a_test() -> None:
    """At least one, and all that are named are there."""
    tests = existing()
    wrong = {item.id: item.tests for item in REQUIREMENTS if not item.tests or set(item.tests) - tests}
    assert not wrong


def test_requirements_have_ids_of_their_own() -> None:
    """`area:feature` or `area:feature:variant`, each once, with a source and a sentence."""
    assert [id_ for id_, times in Counter(item.id for item in REQUIREMENTS).items() if times > 1] == []
    assert all(item.id.count(":") in (1, 2) and item.source and item.text for item in REQUIREMENTS)
