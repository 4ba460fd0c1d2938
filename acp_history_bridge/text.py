"""Text from transcripts is hostile: what may go on the wire, into a title, onto a terminal.

On the wire text stays as it is, but for lone surrogates, which strict JSON parsers refuse. Titles are one line.
On a terminal nothing that could move the cursor, change colours or reorder text survives.
"""

import re

__all__ = ["TITLE_LIMIT", "joins", "one_line", "replace_surrogates", "shorten", "terminal_safe"]

TITLE_LIMIT = 200

# C0 and C1 controls, DEL, the line and paragraph separators.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Bidirectional embeddings, overrides and isolates, zero-width and word-joining signs, tag characters, byte order mark,
# interlinear annotation. Zero-width joiners stay: emoji and several scripts need them.
_INVISIBLE = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
# Only sequences that begin with ESC and are complete: U+009B or U+009D also come from text decoded wrongly (a closing
# quotation mark), and an unfinished string must not take the rest of a message with it. Those lose their introducer.
_ESCAPE_SEQUENCE = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # CSI
    "|\x1b[\\]PX^_][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\\\)"  # OSC, DCS, SOS, PM, APC
    "|\x1b[ -/]*[0-~]?"  # two-character sequences, or an escape at the end
)
_BLANKS = re.compile(r"\s+")


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD; two that make a pair (joined from two pieces) become their character."""
    if text.isascii():  # a flag of the string object
        return text
    try:
        text.encode()  # five times as fast as searching
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def shorten(text: str, limit: int) -> str:
    """Cut to at most `limit` characters, the last one an ellipsis, not within a combining sequence."""
    if len(text) <= limit:
        return text
    end = limit - 1
    while end > 0 and (joins(text[end]) or text[end - 1] == "\u200d"):
        end -= 1
    return text[:end].rstrip() + "…"


def joins(character: str) -> bool:
    """Whether a character belongs to the one before it, so that a text must not be cut between the two."""
    import unicodedata

    return character == "\u200d" or unicodedata.combining(character) != 0 or "\ufe00" <= character <= "\ufe0f"


def one_line(text: str, limit: int = TITLE_LIMIT) -> str:
    """Make a title: one trimmed line of at most `limit` characters, without controls; may come out empty."""
    head = text.lstrip()[: limit * 16]
    if head.isascii() and head.isprintable():  # most titles
        return shorten(" ".join(head.split()), limit)
    plain = _INVISIBLE.sub("", _ESCAPE_SEQUENCE.sub("", replace_surrogates(head)).replace("\x00", "\ufffd"))
    return shorten(_BLANKS.sub(" ", _CONTROL.sub(" ", plain)).strip(), limit)


def terminal_safe(text: str) -> str:
    """Strip everything that could act on a terminal; newlines and tabs stay."""
    plain = _INVISIBLE.sub("", _ESCAPE_SEQUENCE.sub("", replace_surrogates(text)))
    return "".join(piece if piece in "\n\t" else _CONTROL.sub("\ufffd", piece) for piece in re.split("([\n\t])", plain))
