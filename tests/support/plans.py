"""Plans as the JSON documents that they are printed as."""

from typing import Any

import msgspec

from plumbline.host import binder


def resolve(placement: str, **options: Any) -> dict[str, Any]:
    """As :func:`plumbline.host.binder.resolve`, but the document."""
    found: dict[str, Any] = msgspec.to_builtins(binder.resolve(placement, **options))
    return found


def typed(document: dict[str, Any]) -> binder.Plan:
    """The plan that a document is."""
    return msgspec.convert(document, binder.Plan)
