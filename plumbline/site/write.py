"""Writing a site folder. Keys that are there are kept as a person wrote them; only missing ones are added."""

from __future__ import annotations

import difflib
import io
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from plumbline.base import files, paths, schemas
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Site
from plumbline.host import collector
from plumbline.site import FILE, check, families, folder
from plumbline.site.nodes.compare import Captured

HEADER = """\
# A site: its partitions, the stacks they offer, and the hardware facts that physical limits are made of.
# `plumb site init` wrote this once; edit it freely. A second run adds what is missing and keeps every key that is here.
# A fact that is not known is left out, never guessed. Keys: plumbline/base/schemas/site.json
"""
FACTS_HINT = """\
    # Limits come from `facts`, and without a fact there is no limit. Declare what the data sheet says, for example:
    #   memory_channels_per_package: 8    memory_mts: 3200    memory_bytes_per_transfer: 8
    #   core_ghz: 3.5    fma_units: 2    simd_bits: 512    cache_bytes_per_cycle: 192    link_gbit: 100
"""
REFERENCES = """\
# What {test} is expected to reach here. Empty: records of {test} are shown as `unreferenced`.
# An entry comes from a calibration, which notes the records it was made from.
schema: 1
test: "{test}"
references: []
"""


@dataclass
class SiteRequest:
    """The options of ``plumb site init``."""

    name: str
    partition: str = "default"
    scheduler: str = "local"
    description: str = ""
    stacks: list[str] = field(default_factory=list)
    #: stacks that a partition gets even if it is there already and lacks them
    add_stacks: list[str] = field(default_factory=list)
    access: list[str] = field(default_factory=list)
    nodes: int | None = None
    #: further keys of the partition, by their names in plumbline/base/schemas/site.json
    keys: dict[str, Any] = field(default_factory=dict)
    #: regular expressions of the login hosts; none: this host
    hostnames: list[str] = field(default_factory=list)
    #: the facts that were read on the partition's nodes; None: they are like this host
    captured: Captured | None = None
    recapture: bool = False


def init(request: SiteRequest, dry_run: bool = False) -> list[str]:
    """Make or complete a site folder, unless ``dry_run``.

    Returns the difference of each file that was made or changed; an empty one for an empty reference file.
    """
    place = folder(request.name)
    texts = {place / FILE: site_text(place / FILE, request)}
    parts = schemas.parse_yaml(texts[place / FILE])["partitions"]
    topology = place / next(str(part["topology"]) for part in parts if part["name"] == request.partition)
    if request.recapture or not topology.exists():
        texts[topology] = _topology(request, dry_run)
    for test in families():
        file = place / "references" / f"{test}.yaml"
        if not file.exists():
            texts[file] = REFERENCES.format(test=test)
    changes = []
    for file, text in texts.items():
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        if before != text:
            changes.append("" if file.parent.name == "references" else _diff(before, text, file))
            if not dry_run:
                files.write(f"site '{request.name}'", file, text)
    return changes


def _topology(request: SiteRequest, dry_run: bool) -> str:
    if request.captured:
        return request.captured.topology
    if dry_run:
        return "captured when it is written\n"
    xml, reason = collector.topology(str(paths.binder()) if paths.binder().exists() else None)
    if xml is None:
        cure = f"build the tools first: {paths.setup()}"
        raise PlumbError(f"cannot capture the topology: {reason}", "plumb site init", cure)
    return xml


def site_text(file: Path, request: SiteRequest) -> str:
    """``site.yaml`` as it should be, with a person's keys, order and comments as they are."""
    if not file.exists():
        new = wanted(request)
        result = HEADER + _dump(new) + ("" if "memory_mts" in new["partitions"][0].get("facts", {}) else FACTS_HINT)
    else:
        before = file.read_text(encoding="utf-8")
        plain = schemas.read_yaml(file, f"site '{request.name}'", "fix the file")
        if wrong := [fault for fault in schemas.faults(plain, Site) if "missing required field" not in fault]:
            raise PlumbError(f"not a valid site: {wrong[0]}", str(file), "correct or remove it")
        try:
            document = yaml_editor().load(before)
        except YAMLError as error:
            raise PlumbError(f"site '{request.name}' is not YAML: {error}", str(file), "fix the file") from None
        merge(document, wanted(request))
        offer(document, request)
        result = _dump(document)
        if schemas.parse_yaml(result) == plain:
            result = before
    check(schemas.parse_yaml(result), str(file))
    return result


def wanted(request: SiteRequest) -> dict[str, Any]:
    """The site as it would be written from nothing."""
    captured = request.captured
    nodes = request.nodes or (captured.nodes if captured else None)
    facts = captured.limits if captured else collector.Node(collector.Reader()).limits()
    part = {
        "name": request.partition,
        "scheduler": request.scheduler,
        **({"access": list(request.access)} if request.access else {}),
        **({"description": captured.summary, "nodes": nodes} if captured else {"nodes": nodes} if nodes else {}),
        **{key: value for key, value in request.keys.items() if value},
        "topology": f"topology/{request.partition}.xml",
        "stacks": list(dict.fromkeys([*request.stacks, *request.add_stacks])),
        **({"facts": facts} if facts else {}),
    }
    return {
        "schema": 1,
        "name": request.name,
        "description": request.description or f"captured by plumb site init on {socket.gethostname()}",
        "hostnames": list(request.hostnames) or [hostname_pattern()],
        "partitions": [part],
    }


def hostname_pattern() -> str:
    """A regular expression that matches exactly this host's name."""
    return f"^{re.escape(socket.gethostname())}$"


def merge(present: Any, new: dict[str, Any]) -> None:
    """Add to ``present`` what only ``new`` has, also inside of partitions and facts.

    Partitions are matched by name. Lists that a person may have shortened (stacks, host names) are left as they are.
    """
    present.update({key: value for key, value in new.items() if key not in present})
    if "facts" in new:
        merge(present["facts"], new["facts"])
    by_name = {part["name"]: part for part in present.get("partitions", []) if "name" in part}
    for part in new.get("partitions", []):
        if part["name"] in by_name:
            merge(by_name[part["name"]], part)
        else:
            present["partitions"].append(part)


def offer(present: Any, request: SiteRequest) -> list[str]:
    """Add the stacks ``add_stacks`` to the partition; returns those that it lacked."""
    part = next(part for part in present["partitions"] if part["name"] == request.partition)
    missing = [name for name in request.add_stacks if name not in part["stacks"]]
    part["stacks"] += missing
    return missing


def offer_stacks(request: SiteRequest) -> bool:
    """Add the stacks ``add_stacks`` to the partition of a site that is there; returns whether it lacked any."""
    file = folder(request.name) / FILE
    document = yaml_editor().load(file.read_text(encoding="utf-8"))
    if not offer(document, request):
        return False
    text = _dump(document)
    check(schemas.parse_yaml(text), str(file))
    files.write(f"site '{request.name}'", file, text)
    return True


def yaml_editor() -> YAML:
    """Reads and writes YAML whose quotes, order and comments stay as a person wrote them."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _dump(document: Any) -> str:
    stream = io.StringIO()
    yaml_editor().dump(document, stream)
    return stream.getvalue()


def _diff(before: str, after: str, file: Path) -> str:
    """A unified difference; for a long new file only its number of lines."""
    lines = after.splitlines()
    if not before and len(lines) > 40:
        return f"+++ {file}\n+ {len(lines)} lines"
    old = str(file) if before else "/dev/null"
    return "\n".join(difflib.unified_diff(before.splitlines(), lines, old, str(file), lineterm="", n=1))
