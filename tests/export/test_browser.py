"""The HTML form in a real browser: nothing is asked for, nothing is refused, and every word is there."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from acp_history_bridge.export.conversation import Conversation
from acp_history_bridge.export.html import html
from acp_history_bridge.turns import Text, ToolCall
from tests.builders.turns import every_kind, turn

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.process_slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    pytest.mark.timeout(180),
]

_HOSTILE = '<script>document.title="owned"</script><img src="http://127.0.0.1:9/x"> ![x](http://127.0.0.1:9/y)'
# Chromium's own chatter on a machine without a desktop is not about the page.
_ABOUT_THE_PAGE = re.compile(r":CONSOLE|Refused|Content Security Policy")


def _opened(page: Path, directory: Path) -> tuple[str, list[str], set[str]]:
    """The document as the browser has it, what it complained about, and the addresses it asked for."""
    log = directory / "net.json"
    assert CHROMIUM is not None
    result = subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"),
            *(
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-extensions",
            ),
            *(f"--user-data-dir={directory / 'profile'}", f"--log-net-log={log}", page.as_uri()),
        ],
        capture_output=True,
        check=True,
        timeout=170,
        encoding="utf-8",
    )
    complaints = [line for line in result.stderr.splitlines() if _ABOUT_THE_PAGE.search(line)]
    asked = set(re.findall(r"http://127\.0\.0\.1[^\"]*", json.dumps(json.loads(log.read_text(encoding="utf-8")))))
    return result.stdout, complaints, asked


@pytest.mark.fault("S3")
def test_a_page_opens_without_an_error_or_a_request_and_shows_everything(tmp_path: Path) -> None:
    """Also when the conversation holds scripts and pictures from elsewhere."""
    call = ToolCall("h", "h", _HOSTILE, "other", "completed", {_HOSTILE: 1}, None, (Text(_HOSTILE),))
    turns = [*every_kind(), turn("user", _HOSTILE, call, identity="6")]
    page = tmp_path / "page.html"
    page.write_text("".join(html(Conversation("t:1", "A title", "Tool", turns))), encoding="utf-8")

    document, complaints, asked = _opened(page, tmp_path)
    words = ("prompt", "thought", "answer", "new", "old", "shell", "input", "output", "subagent", "plan", "summary")

    assert (complaints, asked) == ([], set())
    assert [word for word in words if f"{word}-word" not in document] == []
    assert "<title>A title</title>" in document
    assert document.count("&lt;script&gt;") >= 4
