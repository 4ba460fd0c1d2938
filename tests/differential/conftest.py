"""The table of accepted differences, printed at the end of the run that found them."""

import pytest

AcceptedRows = list[tuple[str, int, str, str]]

_ROWS = pytest.StashKey[AcceptedRows]()


@pytest.fixture(scope="session")
def accepted_rows(pytestconfig: pytest.Config) -> AcceptedRows:
    """Collects group, count, rule and reason."""
    return pytestconfig.stash.setdefault(_ROWS, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how often each accepted difference occurred."""
    rows = config.stash.get(_ROWS, AcceptedRows())
    if rows:
        terminalreporter.section("accepted differences to the tools' own agents")
    for group, count, name, reason in rows:
        terminalreporter.write_line(f"{group:<12} {count:>4}  {name}: {reason}")
