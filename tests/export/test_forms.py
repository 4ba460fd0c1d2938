"""The forms of an export: complete, well-formed, and harmless whatever a transcript holds."""

import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from itertools import repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_history_bridge.export.conversation import Conversation, numbered
from acp_history_bridge.export.diffs import diff_lines
from acp_history_bridge.export.encoding import dumps
from acp_history_bridge.export.html import html
from acp_history_bridge.export.markdown import markdown, markdown_messages
from acp_history_bridge.export.records import json_document, json_lines
from acp_history_bridge.turns import Diff, Image, SubagentRun, Text, ToolCall, Turn
from tests.builders.turns import call, every_kind, turn

Form = Callable[[Conversation], Iterator[str]]

FORMS: list[Form] = [markdown, html, json_document, json_lines]
_VOID = {"meta", "link", "img", "br", "hr"}
_ALLOWED = _VOID | set(
    re.findall(
        r"\w+",
        "html head title style body header main nav section details summary h1 h2 h3 h4 h5 h6 p div span pre code a b "
        "em strong s ol ul li table thead tbody tr td th blockquote",
    )
)


def _conversation(*turns: Turn) -> Conversation:
    return Conversation("tool:1", "A title", "The Tool", turns, "/w", None, "m", "b", "tool 1", {"id": "tool:1"})


def _page(*turns: Turn) -> str:
    return "".join(html(_conversation(*turns)))


class _Checker(HTMLParser):
    """Notes every element and attribute, and whether they are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.tags.add(tag)
        self.attributes |= {(name, value or "") for name, value in attrs}
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost element, which must be this one."""
        assert self.open.pop() == tag


def _checked(page: str) -> _Checker:
    checker = _Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return checker


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_left_out(form: Form) -> None:
    """Every kind of part is in every form."""
    text = "".join(form(_conversation(*every_kind())))
    words = set(re.findall(r"[a-z]+-(?:word|title)", dumps("".join(json_document(_conversation(*every_kind()))))))

    assert len(words) >= 16
    assert [word for word in sorted(words) if word not in text] == []


@pytest.mark.parametrize("form", FORMS)
def test_turns_are_read_as_they_are_written(form: Form) -> None:
    """A history without end gives its first lines at once: nothing collects it."""
    endless = Conversation("t:1", "T", "Tool", repeat(turn("user", "again")))

    assert [piece for piece, _ in zip(form(endless), range(50), strict=False)]


def test_json_holds_what_the_turns_hold() -> None:
    """Camel case, absent instead of null, sub-agents inside their call."""
    document: dict[str, Any] = json.loads("".join(json_document(_conversation(*every_kind()))))
    parts = [part for item in document["turns"] for part in item["parts"]]
    shell = next(part for part in parts if part.get("title") == "shell-title")
    task = next(part for part in parts if part.get("title") == "task-title")

    assert document["session"] == {"id": "tool:1"}
    assert shell["shell"] == {"output": "shell-word", "exitCode": 3, "cwd": "/w"}
    assert task["subagents"][0]["turns"][0]["parts"] == [{"type": "text", "text": "subagent-word"}]
    assert "null" not in "".join(json_document(_conversation(*every_kind())))


def test_json_lines_are_the_same_on_lines() -> None:
    """The session first, then a turn per line, each as in the document."""
    first, *lines = [json.loads(line) for line in "".join(json_lines(_conversation(*every_kind()))).splitlines()]
    document = json.loads("".join(json_document(_conversation(*every_kind()))))

    assert first == {"session": document["session"]}
    assert [line["turn"] for line in lines] == document["turns"]


def test_a_page_is_well_formed_and_asks_for_nothing() -> None:
    """Known elements only, closed in order; no script; images lie in the page; the policy forbids the rest."""
    checker = _checked(_page(*every_kind()))
    sources = [value for name, value in checker.attributes if name == "src"]

    assert checker.tags <= _ALLOWED
    assert sources
    assert all(value.startswith("data:image/png;base64,") for value in sources)
    assert ("http-equiv", "Content-Security-Policy") in checker.attributes
    assert any(name == "content" and "default-src 'none'" in value for name, value in checker.attributes)


def test_prompts_lead_to_their_messages() -> None:
    """The list of prompts has a link for each prompt, and each leads to an anchor."""
    page = _page(
        turn("user", "First", identity="1"), turn("agent", "x", identity="2"), turn("user", "Two", identity="3")
    )

    assert re.findall(r'<li><a href="#(m\d+)">(.+?)</a>', page) == [("m1", "First"), ("m3", "Two")]
    assert {"m1", "m3"} <= set(re.findall(r'id="(m\d+)"', page))


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![x](http://evil/x.png)",
    "![x](data:image/svg+xml;base64,AAAA)",
    "[x](javascript:alert(1))",
    "[x](data:text/html,x)",
    "[x](file:///etc/passwd)",
    "</pre></details></section></main><iframe src=http://evil>",
    "```\n</code></pre><script>\n```",
    '"><svg onload=alert(1)>',
    "<style>@import url(http://evil)</style>",
    "&lt;script&gt; \x00\x1b[2J\ud800",
]


@pytest.mark.fault("S3")
@pytest.mark.parametrize("evil", HOSTILE)
def test_hostile_text_stays_text_in_every_place_of_a_page(evil: str) -> None:
    """Wherever it stands, it makes no element and no address that a page should not have."""
    tool = ToolCall(evil, evil, evil, "other", "failed", {evil: evil}, evil, (Text(evil), Diff(evil, evil, evil)))
    page = "".join(
        html(
            Conversation(
                evil, evil, evil, [turn("user", evil, Image(evil, evil, evil), tool)], evil, None, evil, evil, evil
            )
        )
    )
    checker = _checked(page)

    assert checker.tags <= _ALLOWED
    assert not [name for name, _ in checker.attributes if name.startswith("on")]
    assert not [value for name, value in checker.attributes if name == "src"]
    links = {value for name, value in checker.attributes if name == "href"} - {"data:,", "#m1"}
    assert all(link.startswith("http://evil") for link in links)
    assert "\x00" not in page


@given(st.text())
@pytest.mark.fault("S3")
def test_no_text_breaks_a_page(text: str) -> None:
    """Any text at all leaves the page well-formed."""
    assert _checked(_page(turn("user", text), turn("agent", call(text)))).tags <= _ALLOWED


@given(st.text(alphabet="`\n a"))
def test_no_text_breaks_out_of_a_fence(text: str) -> None:
    """A fence is longer than every run of backticks in it."""
    written = "".join(markdown(_conversation(turn("agent", ToolCall("1", "n", "t", "read", "completed", None, text)))))
    fence = re.search(r"\n(`{3,})\n", written)

    assert fence is not None
    assert written.rstrip().endswith(fence[1])
    assert fence[1] not in text


def test_a_brief_form_keeps_a_line_of_each_call() -> None:
    """What a pipe of `bridge show` gets: all that was said, and titles of calls."""
    text = "".join(markdown_messages(numbered(every_kind()), brief=True))

    assert "shell-title" in text
    assert "shell-word" not in text


def test_a_sub_agent_that_starts_itself_comes_to_an_end() -> None:
    """A circle in a store costs a few levels, no recursion."""

    def again() -> Iterator[Turn]:
        yield turn("agent", call(runs=(SubagentRun("r", "circle", again),)))

    for form in FORMS:
        text = "".join(form(_conversation(*again())))
        assert 2 < text.count("circle") < 20


@pytest.mark.parametrize(
    ("diff", "lines"),
    [
        (Diff("p", "a\nx\nc", "a\nb\nc"), ["@@ -1,3 +1,3 @@", " a", "-b", "+x", " c"]),
        (Diff("p", "a\nb"), ["+a", "+b"]),
        (Diff("p", "a\nb\n"), ["+a", "+b"]),
        (Diff("p", "a", "a\n"), ["@@ -1,2 +1 @@", " a", "-"]),
        (Diff("p", "same", "same"), []),
    ],
)
def test_a_diff_is_unified(diff: Diff, lines: list[str]) -> None:
    """Hunks without names; a new file is all added."""
    assert list(diff_lines(diff)) == lines


def test_a_huge_diff_is_not_compared() -> None:
    """Both texts are shown whole, in linear time."""
    old = "\n".join("ab"[number % 2] for number in range(50_000))

    lines = list(diff_lines(Diff("p", old + "\nend", old)))

    assert (lines[0], lines[-1], len(lines)) == ("-a", "+end", 100_001)


def test_whatever_a_transcript_holds_becomes_valid_json() -> None:
    """Lone surrogates, numbers beyond 64 bits, infinity and towers of brackets."""
    tower: object = 1
    for _ in range(900):
        tower = [tower]

    for value in ["\ud800", 2**80, {"a": [float("inf"), "\ud83d\ude00"]}, tower, {"\udfff": (1, None)}]:
        json.loads(dumps(value).encode("utf-8"))
    assert json.loads(dumps(2**80)) == 2**80
