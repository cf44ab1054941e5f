"""Plans as the JSON documents that they are printed as."""

from __future__ import annotations

from typing import Any

import msgspec

from plumbline.host.topology import plan


def resolve(placement: str, **options: Any) -> dict[str, Any]:
    """As :func:`plumbline.host.topology.plan.resolve`, but the document."""
    found: dict[str, Any] = msgspec.to_builtins(plan.resolve(placement, **options))
    return found


def typed(document: dict[str, Any]) -> plan.Plan:
    """The plan that a document is."""
    return msgspec.convert(document, plan.Plan)
