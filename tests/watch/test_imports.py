import subprocess
import sys

import pytest


@pytest.mark.process
def test_watchdog_is_not_imported_before_a_watcher_starts() -> None:
    """It costs start-up time that an editor would wait for."""
    program = (
        "import sys, pathlib, acp_history_bridge.history as history, acp_history_bridge.watch as watch;"
        "watch.Watcher([], lambda: None); history.History(lambda: None);"
        "sys.exit('watchdog' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
