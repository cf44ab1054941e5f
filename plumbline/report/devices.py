"""GPUs, network cards and NVMe drives of the nodes, and the ways between them, for a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from plumbline.host.devices import Devices, facts, meanings, of_host
from plumbline.records.model import Record


def devices(records: Sequence[Record]) -> list[dict[str, Any]]:
    """An element for each distinct set of devices in ``records``; its ``hosts`` are the nodes that have this set.

    ``rows`` are texts: label, address, vendor and device, names, what it is near to, its link. ``ways`` has a row of
    words for each device, ``words`` what those words mean.
    """
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        for host in record.hosts or [record.host]:
            known = of_host(host)
            if known is None:
                continue
            drawn = _drawn(known, host.get("pci_links", {}))
            item = found.setdefault(json.dumps(drawn, sort_keys=True), {"hosts": [], **drawn})
            item["hosts"] = sorted({*item["hosts"], str(host["hostname"])})
    return sorted(found.values(), key=lambda item: item["hosts"])


def _drawn(known: Devices, links: dict[str, str]) -> dict[str, Any]:
    return {
        "rows": [facts(device, links.get(device.address)) for device in known.devices],
        "ways": known.ways,
        "words": meanings(known),
    }
