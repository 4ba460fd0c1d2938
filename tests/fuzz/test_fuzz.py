"""A share of `make fuzz`, always with the same seeds; and what it once found."""

from pathlib import Path

import pytest

from tests.fuzz.frames import fuzz_agent
from tests.fuzz.records import FINDINGS, FUZZED, fuzz_records, try_records


@pytest.mark.fault("Z4", "F8")
@pytest.mark.parametrize("tool", FUZZED)
def test_mutated_records_cost_no_neighbour(tool: str, tmp_path: Path) -> None:
    """They are listed, replayed and indexed without an exception, in bounded time."""
    failures, _ = fuzz_records(tool, 3000, 20, tmp_path)
    assert not failures, failures[0].what


@pytest.mark.fault("Z4")
@pytest.mark.parametrize("finding", sorted(FINDINGS.glob("*.records")), ids=lambda path: path.name)
def test_what_was_once_found_stays_fixed(finding: Path, tmp_path: Path) -> None:
    """The records of a failure of `make fuzz`."""
    try_records(finding.name.rpartition("-")[0], tmp_path, finding.read_bytes().split(b"\n"))


@pytest.mark.process_slow
@pytest.mark.fault("Z2", "J1", "J2", "J9")
def test_mutated_requests_over_mutated_transcripts_leave_the_agent_alive(tmp_path: Path) -> None:
    """Every good request between them is answered once, and the end is a normal one."""
    codes = fuzz_agent(tmp_path, 3000, 20)
    assert set(codes) <= {-32700, -32600, -32601, -32602, -32002, -32800}
