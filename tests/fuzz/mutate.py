"""Mutations that know a little of JSON: wrong types in odd places, and bytes that are hardly JSON any more."""

import json
import random
from collections.abc import Sequence
from typing import cast

__all__ = ["Mutator"]

_ODD: tuple[object, ...] = (
    *(None, True, False, 0, -1, 2**63, 2**64, -(2**70), 0.5, 1e308, -0.0, float("nan"), float("inf")),
    *("", " ", "\0", "\ud800", "\udfff", "a\nb", "../../etc/passwd", "/", "~", "x" * 3000, "\u202e", "1970-01-01"),
    *("2026-02-30T25:61:61Z", "9999-12-31T23:59:59+99:99", "true", "null", "{}", "-rf", "data:image/png;base64,%%%"),
    *map(
        json.loads,
        ("[]", "{}", "[[]]", "[null]", '{"":null}', '{"type":[]}', '[{"type":"text","text":null}]', '{"id":{}}'),
    ),
)
_BYTES = (
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\n",
    b"\r",
    b"}",
    b'"',
    b"\\",
    b"\\u",
    b"\\ud800",
    b"[" * 600,
    b"NaN",
    b",",
)


class Mutator:
    """Makes new records of recorded ones; the same seed makes the same ones."""

    def __init__(self, seeds: Sequence[bytes], seed: int) -> None:
        self.chance = random.Random(seed)
        self._seeds = seeds
        self._trees: dict[int, object] = {}

    def record(self) -> bytes:
        """One mutated line, without its newline; it can hold others."""
        data = json.dumps(self.tree()).encode("utf-8", "surrogatepass")
        if self.chance.random() < 0.3:
            data = self._broken(data)
        return data

    def tree(self) -> object:
        """One mutated JSON value."""
        tree = self._seed()
        for _ in range(self.chance.choice((1, 1, 2, 3, 8))):
            tree = self._mutated(tree, 0)
        return tree

    def _seed(self) -> object:
        number = self.chance.randrange(len(self._seeds))
        if number not in self._trees:
            self._trees[number] = json.loads(self._seeds[number])
        return self._trees[number]

    def _mutated(self, value: object, depth: int) -> object:
        """A copy along one path, at whose end something is different."""
        if depth > 60 or not value or self.chance.random() < 0.15:
            return self._replaced(value)
        if isinstance(value, list):
            copied = list(cast("list[object]", value))
            place = self.chance.randrange(len(copied))
            self._edit(copied, place, depth)
            return copied
        if not isinstance(value, dict):
            return self._replaced(value)
        mapped = dict(cast("dict[str, object]", value))
        key = self.chance.choice(list(mapped))
        match self.chance.randrange(8):
            case 0:
                del mapped[key]
            case 1:
                mapped[self.chance.choice(list(mapped))] = mapped[key]
            case 2:
                mapped[f"{key}{self.chance.choice(('', 'x', '_'))}"] = self._part()
            case _:
                mapped[key] = self._mutated(mapped[key], depth + 1)
        return mapped

    def _edit(self, copied: list[object], place: int, depth: int) -> None:
        match self.chance.randrange(6):
            case 0:
                del copied[place]
            case 1:
                copied.extend([copied[place]] * self.chance.choice((1, 2, 20)))
            case 2:
                self.chance.shuffle(copied)
            case _:
                copied[place] = self._mutated(copied[place], depth + 1)

    def _replaced(self, value: object) -> object:
        match self.chance.randrange(6):
            case 0:
                return [value]
            case 1:
                return {"type": value}
            case 2:
                return self._part()
            case 3:
                return str(value)[:2000]
            case _:
                return self.chance.choice(_ODD)

    def _part(self) -> object:
        """A piece of another record."""
        part = self._seed()
        while (inner := _inner(part)) and self.chance.random() < 0.7:
            part = self.chance.choice(inner)
        return part

    def _broken(self, data: bytes) -> bytes:
        place = self.chance.randrange(len(data) + 1)
        match self.chance.randrange(5):
            case 0:
                return data[:place]
            case 1:
                return data[place:]
            case 2:
                return data[:place] + self.chance.choice(_BYTES) + data[place:]
            case 3:
                return data[:place] + bytes([self.chance.randrange(256)]) + data[place + 1 :]
            case _:
                return data[:place] + data[self.chance.randrange(len(data) + 1) :]


def _inner(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(cast("dict[str, object]", value).values())
    return cast("list[object]", value) if isinstance(value, list) else []
