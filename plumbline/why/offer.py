"""The command that looks for the cause of a difference."""

from __future__ import annotations

import re
import shlex

from plumbline.records.model import Record
from plumbline.why import factors


def command(first: Record, second: Record) -> str | None:
    """``plumb why FIRST SECOND``, or ``plumb bisect`` where the commit alone differs.

    None where something else alone differs: that is the cause.
    """
    runs = [(one.stack.name.partition("@")[0], _code(one)) for one in (first, second)]
    differ = [one != other for one, other in zip(*runs, strict=True)]
    number = sum(differ) + len(factors.of_variants(first.variant, second.variant))
    if number > 1:
        return f"plumb why {first.id} {second.id}"
    if not differ[1] or not all(code for _, code in runs):
        return None
    commits = [code for _, code in runs]
    return shlex.join(["plumb", "bisect", *commits, "--test", f"{re.escape(first.variant.test)}(%|$)"])


def _code(record: Record) -> str:
    state = record.variant.application
    return (state.commit or "") if state else record.stack.name.partition("@")[2]
