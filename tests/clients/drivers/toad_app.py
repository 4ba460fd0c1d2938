"""Runs Toad headless, exactly as its command line would start it, and prints one JSON object with what it showed.

`python3.14 toad_app.py SITE_DIRECTORY SCENARIO ARGUMENT…`, the arguments being those of the `toad` command. A scenario
with `pictures` draws the screens into that directory instead.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

SITE, SCENARIO, *ARGUMENTS = sys.argv[1:]
sys.path.insert(0, SITE)
SIZE = (110, 50)
_TIMEOUT = 20

Pilot = Any
Shown = list[tuple[str, str]]
Then = Callable[[Any, Pilot], Awaitable[None]] | None


def started(arguments: list[str]) -> Any:  # noqa: ANN401 - Toad is not installed where this is checked
    """The application that the command line makes, kept from taking the terminal."""
    apps: list[Any] = []

    def keep(app: Any) -> None:  # noqa: ANN401 - as above
        apps.append(app)

    def pass_by(_app: Any) -> None:  # noqa: ANN401 - as above
        pass

    toad_app = import_module("toad.app").ToadApp
    toad_app.run, toad_app.run_on_exit = keep, pass_by
    import_module("toad.cli").main(arguments, standalone_mode=False)
    return apps[0]


def shown(app: Any) -> Shown:  # noqa: ANN401 - as above
    """What stands in the conversation: kind of block and its whole text."""
    blocks: Shown = []
    for block in app.screen.query("UserInput, AgentThought, ToolCall, AgentResponse, Note"):
        kind = type(block).__name__
        if kind == "UserInput":
            blocks.append((kind, block.content))
        elif kind == "ToolCall":
            blocks.append((kind, block.tool_call["title"]))
        elif kind == "Note":
            blocks.append((kind, str(block.content)))
        else:
            blocks.append((kind, block.source))
    return blocks


def screen(app: Any) -> str:  # noqa: ANN401 - as above
    """The screen's text as a person sees it."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def until(pilot: Pilot, wanted: Callable[[], bool]) -> None:
    """Let the application work until something is so, or for too long."""
    deadline = time.monotonic() + _TIMEOUT
    while not wanted() and time.monotonic() < deadline:
        await pilot.pause(0.05)


async def browse(scenario: dict[str, Any], then: Callable[[Any], None] = lambda _app: None) -> dict[str, object]:
    """Start as the snippet says and ask for a list."""
    app = started(ARGUMENTS)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: bool(app.screen.query("Conversation")) and _conversation(app).agent_ready)
        await pilot.press(*scenario["prompt"], "enter")
        await until(pilot, lambda: any(kind == "AgentResponse" and text for kind, text in shown(app)))
        await pilot.pause(0.2)
        then(app)
        commands = [command.command for command in _conversation(app).agent_slash_commands]
        return {"blocks": shown(app), "commands": commands}


async def load(session_id: str, last: str, then: Then = None) -> dict[str, object]:
    """Resume a session of Toad's own list until its last text is there, and perhaps go on from there."""
    app = started(ARGUMENTS)
    db = import_module("toad.db").DB()
    await db.create()
    agent = app.agent_data
    meta = {"cwd": str(app.project_dir), "agent_data": agent}
    key = await db.session_new("Kept", agent["name"], agent["identity"], session_id, protocol="acp", meta=meta)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: bool(app.screen.query("Conversation")) and _conversation(app).agent_ready)
        first = app.screen
        app.launch_agent(agent["identity"], agent_session_id=session_id, session_pk=key)
        await until(pilot, lambda: app.screen is not first and any(last in text for _, text in shown(app)))
        await pilot.pause(0.3)
        if then is not None:
            await then(app, pilot)
        return {"blocks": shown(app), "screen": screen(app)}


def rename(scenario: dict[str, Any]) -> None:
    """Give the session another title, as its own tool does."""
    with Path(scenario["transcript"]).open("a", encoding="utf-8") as transcript:
        transcript.write(scenario["line"])


async def go_on(app: Any, pilot: Pilot, scenario: dict[str, Any]) -> None:  # noqa: ANN401 - as above
    """Rename the session, and send a prompt to it."""
    rename(scenario)
    before = len(shown(app))
    await pilot.press(*"Go", "space", *"on.", "enter")
    await until(pilot, lambda: len(shown(app)) > before + 1)
    await pilot.pause(2)  # a renamed session is announced within a second or so, and Toad shows nothing of it


def _conversation(app: Any) -> Any:  # noqa: ANN401 - as above
    return app.screen.query_one("Conversation")


def draw(app: Any, scenario: dict[str, Any], name: str) -> None:  # noqa: ANN401 - as above
    """Keep what is on the screen, without the fonts that Textual would have fetched from the network."""
    picture = re.sub(r"@font-face \{.*?\}\s*", "", app.export_screenshot(title=name), flags=re.DOTALL)
    (Path(scenario["pictures"]) / f"{name}.svg").write_text(picture, encoding="utf-8")


async def pictures(scenario: dict[str, Any]) -> None:
    """Draw a list and a replay."""

    async def after_loading(app: Any, pilot: Pilot) -> None:  # noqa: ANN401 - as above
        await pilot.pause(1)
        draw(app, scenario, "toad-replay")

    await browse(scenario, lambda app: draw(app, scenario, "toad-list"))
    await load(scenario["load"], scenario["last"], after_loading)


async def main() -> None:
    """Do all of it."""
    scenario = json.loads(SCENARIO)
    if "pictures" in scenario:
        await pictures(scenario)
        return
    seen = {
        "browsed": await browse(scenario),
        "loaded": await load(scenario["load"], scenario["last"], lambda app, pilot: go_on(app, pilot, scenario)),
        "unknown": await load(scenario["unknown"], scenario["unknown"]),
    }
    print(json.dumps(seen))  # noqa: T201 - this is what it is for


asyncio.run(main())
