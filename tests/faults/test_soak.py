from pathlib import Path

import pytest

from tests.faults.soak import soak


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.fault("P4")
def test_ten_minutes_of_everything_leave_nothing_behind(tmp_path: Path) -> None:
    """As `make soak`."""
    assert soak(tmp_path, 600, 1) == []
