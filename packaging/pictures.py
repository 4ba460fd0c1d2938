"""Draws the pictures of README.md from the program itself: `python packaging/pictures.py`.

The terminal session is what the commands print on a real terminal, on the bundled sample. The page is its HTML export
in headless Chromium.
"""

import io
import os
import pty
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"

_COLUMNS = 100
_COMMANDS = (["index"], ["show", "last:gemini"], ["resume", "last", "--print"])
_PAGE_SIZE = "1200,900"


def main() -> int:
    """Draw them all."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ada-") as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm-256color", "COLUMNS": str(_COLUMNS)}
        _draw_terminal(PICTURES / "terminal.svg", environment | {"LANG": "C.UTF-8", "TZ": "UTC", "PAGER": ""})
        _draw_page(PICTURES / "page.png", Path(home), environment)
    return 0


def _bridge(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "acp_history_bridge", *arguments, "--demo"]


def _draw_terminal(target: Path, environment: dict[str, str]) -> None:
    console = Console(record=True, width=_COLUMNS, file=io.StringIO())
    for command in _COMMANDS:
        console.print(Text(f"$ bridge {' '.join(command)}", style="bold green"))
        console.print(Text.from_ansi(_on_terminal(_bridge(*command), environment)))
    target.write_text(console.export_svg(title="acp-history-bridge", unique_id="terminal"), encoding="utf-8")


def _on_terminal(command: list[str], environment: dict[str, str]) -> str:
    """What a command prints when it talks to a person."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # Linux says so when the other side is closed
        pass
    os.close(ours)
    process.wait()
    return shown.decode("utf-8").replace("\r\n", "\n").rstrip()


def _draw_page(target: Path, home: Path, environment: dict[str, str]) -> None:
    page = home / "page.html"
    subprocess.run([*_bridge("export", "last"), "-o", str(page)], env=environment, check=True)
    # Show one change opened, as a reader would.
    text = page.read_text(encoding="utf-8").replace(
        "<details>\n<summary><b>Edit", "<details open>\n<summary><b>Edit", 1
    )
    page.write_text(text, encoding="utf-8")
    chromium = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
    subprocess.run(
        [
            *(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *(f"--window-size={_PAGE_SIZE}", f"--screenshot={target}", page.as_uri()),
        ],
        env=environment,
        check=True,
        capture_output=True,
    )


if __name__ == "__main__":
    sys.exit(main())
