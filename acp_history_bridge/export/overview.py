"""The index page of an export of many sessions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import quote

from acp_history_bridge.export.encoding import dumps
from acp_history_bridge.sessions import Session
from acp_history_bridge.timestamps import format_time

__all__ = ["OVERVIEWS", "Overview"]

Overview = Callable[[Sequence[tuple[str, Session]], Mapping[str, str]], Iterator[str]]

_HEADING = "Sessions"


def _markdown(written: Sequence[tuple[str, Session]], titles: Mapping[str, str]) -> Iterator[str]:
    yield f"# {_HEADING}\n\n"
    for file, session in written:
        title = (session.title or "Untitled").replace("[", "\\[").replace("]", "\\]")
        day = session.updated_at.strftime("%Y-%m-%d")
        yield f"- {day} {titles.get(session.tool, session.tool)}: [{title}]({quote(file)})\n"


def _html(written: Sequence[tuple[str, Session]], titles: Mapping[str, str]) -> Iterator[str]:
    from acp_history_bridge.export.html import page_end, page_start, safe

    yield page_start(_HEADING)
    yield f'<main>\n<h1>{_HEADING}</h1>\n<table class="list">\n'
    for file, session in written:
        day = session.updated_at.strftime("%Y-%m-%d")
        link = f'<a href="{safe(quote(file))}">{safe(session.title or "Untitled")}</a>'
        place = safe(session.cwd) if session.cwd_known else "?"
        yield f"<tr><td>{day}<td>{safe(titles.get(session.tool, session.tool))}<td>{link}<td>{place}</tr>\n"
    yield f"</table>\n</main>\n{page_end()}"


def _facts(file: str, session: Session) -> dict[str, object]:
    title = {} if session.title is None else {"title": session.title}
    return {"file": file, "id": session.id, "updatedAt": format_time(session.updated_at), **title}


def _json(written: Sequence[tuple[str, Session]], titles: Mapping[str, str]) -> Iterator[str]:
    del titles
    yield dumps({"sessions": [_facts(file, session) for file, session in written]}) + "\n"


def _json_lines(written: Sequence[tuple[str, Session]], titles: Mapping[str, str]) -> Iterator[str]:
    del titles
    for file, session in written:
        yield dumps(_facts(file, session)) + "\n"


OVERVIEWS: Mapping[str, Overview] = {"md": _markdown, "html": _html, "json": _json, "jsonl": _json_lines}
