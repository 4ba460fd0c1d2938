"""What a shell command printed, taken out of the text in which the tool told its model about it.

That text is a list of labelled lines around the output: `Command`, `Directory` (to 0.25), `Output` or `Stdout` and
`Stderr`, then `Error`, `Exit Code`, `Signal`, `Background PIDs`, `Process Group PGID`. Since 0.30 labels without a
value are left out, so a missing exit code of a finished command is 0.
"""

import re

from acp_history_bridge.turns import ShellResult, ToolStatus

__all__ = ["shell_result", "unwrap"]

_UNTRUSTED = re.compile(r"\s*<untrusted_context>\n?(.*?)\n?</untrusted_context>\s*", re.DOTALL)
_BEGIN = re.compile(r"\A(?:Command: .*?\nDirectory: [^\n]*\n)?(?:Output|Stdout): ", re.DOTALL)
_LABEL = re.compile(r"(Error|Exit Code|Signal|Background PIDs|Process Group PGID): (.*)")
_STDERR = "\nStderr: "
_NOTHING = frozenset({"", "(empty)", "(none)"})


def unwrap(text: str) -> str:
    """Remove the marks by which the tool tells its model not to trust what a tool returned."""
    match = _UNTRUSTED.fullmatch(text)
    return match[1] if match else text


def shell_result(told: str, shown: str, status: ToolStatus, full: str = "") -> ShellResult:
    """Read the result of a shell call.

    Args:
        told: What the model was told.
        shown: What the interface showed.
        status: How the call ended.
        full: The whole output, where the model was told only parts of it.
    """
    labels: dict[str, str] = {}
    body = told.rstrip().removesuffix("</untrusted_context>").rstrip()  # a cut text keeps only the closing mark
    while match := _LABEL.fullmatch(body[body.rfind("\n") + 1 :]):
        labels[match[1]] = match[2].strip()
        body = body[: max(body.rfind("\n"), 0)]
    begin = _BEGIN.match(body + " ")
    if begin is None and not labels:
        return ShellResult(full or max(shown, told, key=len))
    output = full or _printed(body[begin.end() :] if begin else body)
    if (error := labels.get("Error", "")) not in _NOTHING:
        output = f"{output}\n{error}" if output else error
    code = labels.get("Exit Code", "")
    finished = status == "completed" and labels.get("Signal", "") in _NOTHING
    return ShellResult(output, int(code) if code.isdecimal() else 0 if finished and not code else None)


def _printed(body: str) -> str:
    out, found, error = body.rpartition(_STDERR)
    pieces = (out, error) if found else (body,)
    return "\n".join(piece for piece in pieces if piece.strip() not in _NOTHING)
