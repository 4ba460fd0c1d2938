"""docs/reliability.md, made of the catalogue and of the tests that name its numbers: `python -m tests.faults.report`.

The tests are read, not imported, so that the page does not depend on what a machine can run.
"""

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGE", "Fault", "Test", "faults", "page", "tagged_tests"]

TESTS = Path(__file__).parent.parent
PAGE = TESTS.parent / "docs" / "reliability.md"
_HEAD = """\
# Reliability

What can go wrong around a history, what the bridge does then, and which tests prove it. Made by
`python -m tests.faults.report` from `tests/faults/catalogue.toml` and the tests that name these numbers; a test keeps
it current. Tests *in processes* run with `pytest -m process_slow`, others with plain `pytest`.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """One entry of the catalogue; `instead` says why there is no test."""

    number: str
    fault: str
    outcome: str
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Test:
    """A test that proves faults; `path` is relative to the tests, `slow` what keeps it out of the default run."""

    __test__ = False  # pytest must not take it for a test class

    path: str
    name: str
    numbers: tuple[str, ...]
    slow: str = ""


def faults() -> tuple[dict[str, str], list[Fault]]:
    """The titles of the groups, and all faults in order."""
    catalogue = tomllib.loads((TESTS / "faults" / "catalogue.toml").read_text(encoding="utf-8"))
    groups: dict[str, str] = catalogue.pop("groups")
    return groups, [Fault(number, **fields) for number, fields in catalogue.items()]


def tagged_tests() -> list[Test]:
    """All tests that name a fault, by file and place."""
    files = sorted(path for path in TESTS.rglob("*.py") if "data" not in path.relative_to(TESTS).parts)
    return [test for path in files for test in _tests_of(path)]


def _tests_of(path: Path) -> Iterator[Test]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    name = path.relative_to(TESTS).as_posix()
    everywhere = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks: list[ast.expr] = [*node.decorator_list, *everywhere]
            title = node.name.removeprefix("test_").replace("_", " ")
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            marks, title = [node.value.func], ast.unparse(node.targets[0])
        else:
            continue
        if numbers := tuple(number for mark in marks for number in _numbers(mark)):
            yield Test(name, title, numbers, _slow(marks))


def _numbers(mark: ast.expr) -> Iterator[str]:
    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fault":
        yield from (str(ast.literal_eval(argument)) for argument in mark.args)


def _slow(marks: list[ast.expr]) -> str:
    text = " ".join(map(ast.unparse, marks))
    return next((slow for slow in ("process_slow", "clients", "soak", "drift") if f"mark.{slow}" in text), "")


def page() -> str:
    """The whole page."""
    groups, catalogue = faults()
    by_number: dict[str, list[Test]] = defaultdict(list)
    for test in tagged_tests():
        for number in test.numbers:
            by_number[number].append(test)
    sections = [_HEAD]
    for letter, title in groups.items():
        members = [fault for fault in catalogue if fault.number.startswith(letter)]
        sections.append(f"## {letter}: {title}\n\n| | Fault | Outcome | Tests |\n| --- | --- | --- | --- |")
        sections[-1] += "".join(f"\n{_row(fault, by_number[fault.number])}" for fault in members) + "\n"
    sections.append("## The tests by number\n\n" + "\n".join(_lines(catalogue, by_number)) + "\n")
    return "\n".join(sections)


def _row(fault: Fault, tests: list[Test]) -> str:
    proof = f"[{len(tests)}](#{fault.number.lower()})" if tests else f"none: {fault.instead}"
    return f"| {fault.number} | {fault.fault} | {fault.outcome} | {proof} |"


def _lines(catalogue: list[Fault], by_number: dict[str, list[Test]]) -> Iterator[str]:
    for fault in catalogue:
        if tests := by_number[fault.number]:
            yield f"### {fault.number}\n"
            for test in tests:
                slow = f" (`-m {test.slow}`)" if test.slow else ""
                yield f"- [{test.path}](../tests/{test.path}): {test.name}{slow}"
            yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
