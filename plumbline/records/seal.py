"""The seal of a record: the SHA-256 of its line up to the seal, by which every later change of the line shows.

It is the last member of the line: ``{…,"seal":"64 digits"}``. Records of earlier versions have none. A seal is not a
signature: whoever changes a record on purpose can write a new seal, or remove it.
"""

from __future__ import annotations

import hashlib

MEMBER = "seal"
_MARK = f',"{MEMBER}":"'.encode()
_END = b'"}'
#: bytes that a seal takes at the end of a line
_LENGTH = len(_MARK) + 64 + len(_END)


def seal(line: str) -> str:
    """``line``, a JSON object with at least one member, with its seal.

    >>> seal('{"a":1}')
    '{"a":1,"seal":"8b0f0d75aabe01bbfba9341752c2cf7626f154e676aa791427b31aebfabc2592"}'
    """
    body = line.removesuffix("}")
    return f"{body}{_MARK.decode()}{hashlib.sha256(body.encode()).hexdigest()}{_END.decode()}"


def is_sealed(line: bytes) -> bool:
    """Whether ``line`` ends with a seal. Raises ValueError if it is not that of the line."""
    line = line.rstrip()
    start = len(line) - _LENGTH
    if start < 0 or not line.startswith(_MARK, start) or not line.endswith(_END):
        return False
    digest = hashlib.sha256(memoryview(line)[:start]).hexdigest()
    if line[start + len(_MARK) : -len(_END)] != digest.encode():
        raise ValueError("changed since it was measured: its seal is not that of its text")
    return True
