"""Redaction: strings shaped like credentials never enter the text index.

An index is a second copy of what was said, and people paste credentials into prompts. Each rule has an anchor, a
literal that must occur before its pattern is tried: looking for a literal is hundreds of times faster than matching,
and almost all text has none. Rules prefer the fixed prefixes that vendors give their keys; an assignment needs a value
that does not look like a word, so that prose about passwords stays searchable.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["RULES", "Rule", "redact"]

_MARK = "[redacted]"


@dataclass(frozen=True, slots=True)
class Rule:
    """One shape of credential.

    Attributes:
        name: What it is, for documentation and tests.
        anchors: The text must hold one of these (lower-cased text for `any_case` rules).
        pattern: What is replaced; a group named `secret` limits it to that part.
    """

    name: str
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]
    any_case: bool = False

    def applies(self, text: str, lowered: str) -> bool:
        """Whether the pattern is worth trying."""
        source = lowered if self.any_case else text
        return any(anchor in source for anchor in self.anchors)

    def redact(self, text: str) -> str:
        """Replace every match."""
        return self.pattern.sub(_replacement, text)


def _replacement(match: re.Match[str]) -> str:
    if "secret" not in match.re.groupindex:
        return _MARK
    start, end = (position - match.start() for position in match.span("secret"))
    return match[0][:start] + _MARK + match[0][end:]


def _rule(name: str, anchors: str, pattern: str, *, any_case: bool = False) -> Rule:
    return Rule(name, tuple(anchors.split()), re.compile(pattern, re.IGNORECASE if any_case else 0), any_case)


RULES: tuple[Rule, ...] = (
    _rule("aws-access-key", "AKIA ASIA", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    _rule("github-token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"\b(?:gh[pousr]_\w{30,255}|github_pat_\w{22,255})"),
    _rule("gitlab-token", "glpat-", r"\bglpat-[\w-]{20,}"),
    _rule("slack-token", "xoxb- xoxp- xoxs- xapp-", r"\b(?:xox[bps]|xapp)-[\w-]{10,}"),
    # A pattern that starts with a literal is found by a fast search; what stands before is looked at afterwards.
    _rule("sk-key", "sk-", r"sk-(?<!\wsk-)[\w-]{20,}"),
    _rule("stripe-key", "k_live_ k_test_", r"\b[sr]k_(?:live|test)_\w{16,}"),
    _rule("google-api-key", "AIza", r"\bAIza[\w-]{35}"),
    _rule("google-oauth", "ya29. GOCSPX-", r"\b(?:ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,})"),
    _rule("npm-token", "npm_", r"\bnpm_[A-Za-z0-9]{30,}"),
    _rule("pypi-token", "pypi-AgE", r"\bpypi-AgE[\w-]{50,}"),
    _rule("hugging-face-token", "hf_", r"\bhf_[A-Za-z0-9]{30,}"),
    _rule("sendgrid-key", "SG.", r"\bSG\.[\w-]{16,}\.[\w-]{16,}"),
    _rule("json-web-token", "eyJ", r"\beyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?"),
    _rule(
        "private-key",
        "PRIVATE",
        r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?:(?!-----END)[\s\S])*(?:-----END [A-Z ]*-----)?",
    ),
    _rule("url-password", "://", r"://[^\s/:@]{1,64}:(?P<secret>[^\s/@]{3,256})@"),
    _rule("bearer", "bearer", r"\bbearer\s+(?P<secret>[\w.~+/-]{16,}=*)", any_case=True),
    _rule(
        "account-key",
        "accountkey= sharedaccesskey=",
        r"\b\w*(?:account|access)key=(?P<secret>[\w+/]{20,}=*)",
        any_case=True,
    ),
)


# `password = hunter2x`, `"api_key": "…"`, `SECRET_TOKEN=…`: searched for from the sign, which is rarer in prose than
# the words before it. The value must hold a digit and be no call, placeholder or path of code. Each match takes the
# whole value, so that a run of signs costs linear time; what such a value assigns itself is looked for in it.
_VALUE = r"(?P<secret>[^\s\"'<>(){}\[\]$,;]{8,})"
_NAME = r"(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)[\w-]{0,24}"
_ASSIGNED = re.compile(r"[=:]>?\s{0,4}[\"']?" + _VALUE)
_NAME_OF_SECRET = re.compile(_NAME + r"[\"']?\s{0,4}$", re.IGNORECASE)
_ASSIGNED_WITHIN = re.compile(_NAME + "[=:]>?" + _VALUE, re.IGNORECASE)
_NAME_LENGTH = 64


def redact(text: str) -> str:
    """Replace everything that is shaped like a credential."""
    lowered = text.lower()
    for rule in RULES:
        if rule.applies(text, lowered):
            text = rule.redact(text)
    return "".join(_without_assigned(text))


def _without_assigned(text: str) -> Iterator[str]:
    done = 0
    while match := _ASSIGNED.search(text, done):
        yield text[done : match.start()]
        done = match.end()
        if _NAME_OF_SECRET.search(text[max(0, match.start() - _NAME_LENGTH) : match.start()]):
            yield _redact_with_digit(match)
        else:
            done -= text[done - 1] in "=:"  # `"x": "password: …"`: the value is a name, its sign the next one
            yield _ASSIGNED_WITHIN.sub(_redact_with_digit, text[match.start() : done])
    yield text[done:]


def _redact_with_digit(match: re.Match[str]) -> str:
    return _replacement(match) if any(character.isdigit() for character in match["secret"]) else match[0]
