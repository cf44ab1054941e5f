"""Variants of a test that are one job on a machine are measured once."""

from __future__ import annotations

from typing import Any

import msgspec

from plumbline.records.model import Variant, document
from plumbline.topology.plan import Plan

#: parameters that only say where ranks, threads and pages are: the plan has their effect
WHERE = ("placement", "memory", "threads")
#: members in which two variants with the same job may differ
NAMES = ("name", "ranks_per_node", "params", *WHERE)

#: the parameters of the variant of each job that came first in this run of ReFrame
_first: dict[bytes, dict[str, Any]] = {}


def equal_to(variant: Variant, plan: Plan) -> str:
    """The parameters in which an earlier variant with the same job differs, ``NAME=VALUE …``; empty if there is none.

    ``plan``: the variant's, on the machine that it would run on. The first variant of a job is remembered.
    """
    first = _first.setdefault(_job(variant, plan), variant.params)
    return " ".join(f"{name}={value}" for name, value in first.items() if variant.params[name] != value)


def _job(variant: Variant, plan: Plan) -> bytes:
    asked = {key: value for key, value in document(variant).items() if key not in NAMES}
    others = {key: value for key, value in variant.params.items() if key not in WHERE}
    where = [plan.bound, plan.threads, plan.ranks, plan.map if variant.nodes > 1 else None]
    return msgspec.json.encode([asked, others, where], order="sorted")
