"""Inputs that nobody meant: sound ones, spoiled by draws from a fixed seed.

``PLUMB_ATTACKS`` is how many inputs each attack tries, ``PLUMB_ATTACKS_SEED`` another seed.
"""

import copy
import os
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from plumbline.base.errors import PlumbError

COUNT = int(os.environ.get("PLUMB_ATTACKS", "25"))
SEED = int(os.environ.get("PLUMB_ATTACKS_SEED", "12"))
#: what a damaged or hostile text holds
TOKENS = (
    *(
        b"[" * 5000,
        b'{"a":' * 3000,
        b"((((",
        b"&a [*a]",
        b"!!int ''",
        b"!!python/object:x",
        b"2001-99-99",
        b"<!DOCTYPE a>",
    ),
    *(b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x1b[2J", b"\r", b"\n", b"\n\n", b"\t", "≤٣²".encode()),
    *(b"NaN", b"-Infinity", b"1e999", b"-1", b"1" * 5000, b"1.0", b"true", b"null", b"../../etc/passwd"),
    *(b'""', b'"', b"'", b",", b":", b"#", b"%s", b"{}"),
)
#: values in place of another one of a document
VALUES = (
    *(None, True, False, 0, -1, 1.0, 0.5, 10**30, -(10**30), 1e308, float("nan"), float("inf"), -float("inf")),
    *("", " ", "\n", "a\nb", "\0", "\ud800", "\x1b[31m", "../..", "/", "[", "((", "x" * 5000, "≤"),
    *([], {}, [[]], [None], {"": None}, {"a": {"b": []}}, [1, "a"]),
)


def draw(name: str) -> random.Random:
    """The draws of the attack ``name``: the same in every run."""
    return random.Random(f"{SEED} {name}")  # noqa: S311 - an experiment, not a secret


def spoiled_texts(name: str, sound: Sequence[bytes]) -> Iterator[bytes]:
    """:data:`COUNT` texts, each one of ``sound`` with some faults."""
    chance = draw(name)
    for _ in range(COUNT):
        text = bytearray(chance.choice(sound))
        for _ in range(chance.choice((1, 1, 2, 5))):
            _spoil(text, chance, sound)
        yield bytes(text)


def _spoil(text: bytearray, chance: random.Random, sound: Sequence[bytes]) -> None:
    start = chance.randrange(len(text) + 1)
    end = min(len(text), start + chance.choice((0, 1, 2, 8, 80, 1000)))
    kind = chance.randrange(7)
    if kind == 0:
        text[start:end] = b""
    elif kind == 1:
        text[start:] = b""
    elif kind == 2:
        text[start:end] = chance.choice(TOKENS)
    elif kind == 3:
        text[start:start] = text[start:end] * chance.choice((1, 2, 50))
    elif kind == 4 and text:
        text[min(start, len(text) - 1)] ^= 1 << chance.randrange(8)
    elif kind == 5:
        lines = bytes(text).split(b"\n")
        chance.shuffle(lines)
        text[:] = b"\n".join(lines)
    else:
        other = chance.choice(sound)
        text[start:end] = other[start : start + 200]


def spoiled_documents(name: str, sound: Sequence[Any]) -> Iterator[Any]:
    """:data:`COUNT` documents, each one of ``sound`` with some members removed, added, or of another value."""
    chance = draw(name)
    for _ in range(COUNT):
        holder = [copy.deepcopy(chance.choice(sound))]
        for _ in range(chance.choice((1, 1, 2, 4))):
            _spoil_member(holder, chance)
        yield holder[0]


def _spoil_member(holder: list[Any], chance: random.Random) -> None:
    places: list[tuple[Any, Any]] = []
    queue: list[Any] = [holder]
    while queue:
        value = queue.pop()
        keys = list(value) if isinstance(value, dict) else range(len(value))
        places += [(value, key) for key in keys]
        queue += [value[key] for key in keys if isinstance(value[key], dict | list)]
    parent, key = chance.choice(places)
    kind = chance.randrange(4)
    if kind == 0 and parent is not holder:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[chance.choice(("", "x", "schema", "name\n", "\0"))] = copy.deepcopy(chance.choice(VALUES))
    elif kind == 2 and isinstance(parent, list) and parent is not holder:
        parent.append(copy.deepcopy(parent[key]))
    else:
        parent[key] = copy.deepcopy(chance.choice(VALUES))


def attack(read: Callable[[Any], object], inputs: Iterator[Any]) -> None:
    """Give ``read`` each input; all that it may raise is :class:`PlumbError`."""
    for number, item in enumerate(inputs):
        try:
            read(item)
        except PlumbError:
            continue
        except Exception as error:
            pytest.fail(f"input {number}: {type(error).__name__}: {error}: {shown(item)}")


def shown(item: Any) -> str:
    """An input for the message of a test that it fails."""
    text = repr(item)
    return text if len(text) < 4000 else f"{text[:3000]} … {text[-900:]}"
