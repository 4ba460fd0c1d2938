"""The pictures of docs/clients.md, drawn by the client itself: `python -m tests.clients.pictures`.

Toad lists and replays the bundled sample.
"""

import json
import subprocess
import tempfile
from pathlib import Path

from acp_history_bridge.sample import lay_out
from tests.clients.toad import install_toad
from tests.clients.world import make_machine

__all__ = ["draw"]

_PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
_SESSION = "claude:6513270e-269e-4d37-b2a7-4de452e6b438"
_LAST = "test_empty_cart"
_LIST = ("slash", *"list", "space", "enter")
_ARGUMENTS = ("acp", "acp-history-bridge acp", "--project-dir", ".")


def draw(directory: Path) -> None:
    """Draw all of them into a directory."""
    directory.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ada-") as temporary:
        home, editor, environment = make_machine(Path(temporary))
        lay_out(home)
        scenario = {"load": _SESSION, "last": _LAST, "prompt": _LIST, "pictures": str(directory)}
        command = [*install_toad(Path(temporary)), json.dumps(scenario), *_ARGUMENTS]
        subprocess.run(command, cwd=editor, env=environment, check=True, timeout=200, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    draw(_PICTURES)
