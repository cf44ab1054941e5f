"""``plumb lint``: is every reference of every site one that a record can be held against?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from plumbline import limits, paths, site, units
from plumbline.errors import PlumbError
from plumbline.references import match
from plumbline.topology import machine

#: which way figures of a unit get better; a percentage (overlap of communication and computation) is higher
BETTER = {units.US: "lower", units.MB_S: "higher", units.MSG_S: "higher", units.PERCENT: "higher"}
#: bounds wider than this forgive everything
WIDEST = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb lint``."""
    parser.add_argument("sites", nargs="*", metavar="SITE", help="default: all")


def run(args: argparse.Namespace) -> int:
    """Print a line per fault; 1 if there is one."""
    names = args.sites or site.names()
    if not names:
        raise PlumbError("no site is configured", str(paths.sites()), "plumb site init makes one for this host")
    tests = expected_tests()
    found = [fault for name in names for fault in faults(name, tests)]
    for fault in found:
        print(f"FAULT {fault}")
    count = sum(len(document["references"]) for name in names for document in _readable(name))
    print(f"{len(names)} sites, {count} references, {len(found)} faults")
    return 1 if found else 0


def expected_tests() -> set[str]:
    """The names of the tests that exist."""
    file = paths.root() / "reframe-tests" / "expected.txt"
    try:
        return set(file.read_text(encoding="utf-8").split())
    except OSError as error:
        raise PlumbError(f"cannot read the list of tests: {error.strerror}", str(file), "restore the file") from None


def faults(site_name: str, tests: set[str]) -> list[str]:
    """Everything that is wrong with the references of a site, one line each, with the file."""
    try:
        description = site.load(site_name)
    except PlumbError as error:
        return [str(error)]
    found: list[str] = []
    seen: dict[str, list[tuple[dict[str, Any], str]]] = {}
    families: dict[str, Path] = {}
    for file in match.files(site_name):
        try:
            document = match.read(file)
        except PlumbError as error:
            found.append(str(error))
            continue
        other = families.setdefault(document["test"], file)
        if other != file:
            found.append(f"{file}: {other.name} is for test '{document['test']}' too: keep them in one file")
        for number, entry in enumerate(document["references"], start=1):
            where = f"{file}: reference {number} ({match.describe(entry)})"
            found += [f"{where}: {fault}" for fault in entry_faults(entry, document["test"], description, tests)]
            alike = seen.setdefault(match.key(entry), [])
            twins = [twin for other, twin in alike if match.overlap(other, entry)]
            found += [f"{where}: {twin} matches the same records: remove one" for twin in twins]
            alike.append((entry, where))
    return found


def entry_faults(entry: dict[str, Any], family: str, description: dict[str, Any], tests: set[str]) -> list[str]:
    """What is wrong with one entry that obeys the schema."""
    found = []
    if entry["test"] not in tests:
        found.append(f"no test is called '{entry['test']}'")
    if match.family(entry["test"]) != family:
        found.append(f"the file is for the tests of '{family}'")
    if BETTER.get(entry["unit"]) is None:
        found.append(f"unit '{entry['unit']}' is none of {', '.join(units.UNITS)}")
    elif BETTER[entry["unit"]] != entry["better"]:
        found.append(f"figures in {entry['unit']} are better when {BETTER[entry['unit']]}")
    if metric(entry) in (*limits.STREAM_METRICS, "bandwidth") and entry["unit"] != units.MB_S:
        found.append(f"{entry['figure']} is measured in {units.MB_S}, not in {entry['unit']}")
    found += _bound_faults(entry)
    part = next((part for part in description["partitions"] if part["name"] == entry["partition"]), None)
    if part is None:
        found.append(f"the site has no partition '{entry['partition']}'")
    else:
        found += _limit_faults(entry, site.folder(description["name"]), part)
    return found


def metric(entry: dict[str, Any]) -> str:
    """The metric that an entry's figure is of, by the figure's name: STREAM's kernels and bandwidths have limits."""
    name = entry["figure"]
    if entry["test"].startswith("stream") and name in limits.STREAM_METRICS:
        return str(name)
    return "bandwidth" if name.startswith("bandwidth") else str(name)


def _bound_faults(entry: dict[str, Any]) -> list[str]:
    found = []
    worse, side = (entry["lower"], "lower") if entry["better"] == "higher" else (entry["upper"], "upper")
    if worse is None:
        found.append(f"no bound on the worse side ({side}): nothing could ever be below it")
    for name in ("lower", "upper"):
        if entry[name] is not None and abs(entry[name]) > WIDEST:
            found.append(f"{name} {entry[name]:g} is relative: 0.05 is 5 %")
    if worse == 0:
        found.append(f"{side} 0 calls every second record worse")
    return found


def _limit_faults(entry: dict[str, Any], folder: Path, part: dict[str, Any]) -> list[str]:
    nodes = entry.get("placement", {}).get("nodes", part.get("nodes", 1))
    limit = limits.of(metric(entry), part.get("facts", {}), _packages(folder / part["topology"], part), nodes, 2)
    if limit is None or limit["unit"] != entry["unit"] or entry["value"] <= limit["value"] * limits.TOLERANCE:
        return []
    what = f"{entry['value']:g} {entry['unit']} is above the physical limit {limit['value']:g} {limit['unit']}"
    return [f"{what} ({limit['method']})"]


def _packages(topology: Path, part: dict[str, Any]) -> float | None:
    """All packages of the partition's node: what bounds every placement on it. None where no fact would use it."""
    if "memory_channels_per_package" not in part.get("facts", {}):
        return None
    return float(len(machine.load(topology).packages))


def _readable(site_name: str) -> list[dict[str, Any]]:
    """The files that :func:`faults` could read."""
    found = []
    for file in match.files(site_name):
        try:
            found.append(match.read(file))
        except PlumbError:
            continue
    return found
