"""Facts that the kernel tells anyone, for physical limits: clock, vector registers, network links."""

from __future__ import annotations

from plumbline.nodes.collector import core, links

__all__ = ["core", "links"]
