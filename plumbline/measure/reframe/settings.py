"""Site folders and stack manifests as a ReFrame configuration."""

from __future__ import annotations

import copy
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline import mpi, schedulers, site
from plumbline.base import paths
from plumbline.base.errors import PlumbError, pick, require, suggest
from plumbline.base.schemas.site import Partition, Site
from plumbline.records import outcome
from plumbline.site.nodes import choice
from plumbline.stacks import manifest as manifests
from plumbline.stacks.manifest import Manifest

#: the feature of every environment made from a stack manifest
FEATURE = "plumb_stack"
#: the member of the ``extras`` of a partition or environment that tests read: a centre may have its own beside
EXTRAS = "plumb"
#: variable for ReFrame on this host: stacks that every partition offers, too, separated by commas. Those of commits of
#: an MPI library are in no list of a site
ALSO = "PLUMB_ALSO_STACKS"


def file() -> Path:
    """ReFrame's configuration file: that of the site folders, if they have one, else the suite's."""
    local = paths.sites() / "settings.py"
    return local if local.exists() else paths.suite() / "site-configs" / "settings.py"


def configuration() -> dict[str, Any]:
    """The dictionary that ReFrame wants as ``site_configuration``.

    Raises :class:`PlumbError` where a stack of this host's own site is not installed.
    """
    stacks = {manifest.name: manifest for manifest in manifests.load_all()}
    sites = site.load_all()
    for site_facts in filter(site.is_here, sites):  # an unknown name is a typo
        for part in site_facts.partitions:
            if missing := [name for name in part.stacks if name not in stacks]:
                raise PlumbError(
                    f"site {site_facts.name}, partition {part.name}: stack {missing[0]} is not installed",
                    str(site.folder(site_facts.name) / site.FILE),
                    f"plumb stack install {missing[0]}, or take it out of the list",
                )
    offered = {name for site_facts in sites for part in site_facts.partitions for name in part.stacks}
    paths.reframe().mkdir(parents=True, exist_ok=True)
    _remove_early_log()
    return {
        "systems": [
            {
                "name": site_facts.name,
                "descr": site_facts.description,
                "hostnames": site_facts.hostnames,
                "modules_system": site_facts.modules_system,
                "partitions": [_partition(site_facts, part) for part in site_facts.partitions],
            }
            for site_facts in sites
        ],
        "environments": [*map(_environment, stacks.values()), *map(_elsewhere, sorted(offered - stacks.keys()))],
        "modes": [{"name": name, "options": [f"-t {name}", f"-S profile={name}"]} for name in outcome.PROFILES],
        "general": [
            {
                "check_search_path": [str(paths.suite() / "reframe-tests")],
                "remote_detect": False,
                "save_log_files": True,  # `--prefix` moves this copy
                "report_file": str(paths.reframe() / "reports/run-report-{sessionid}.json"),
                "topology_prefix": str(paths.reframe() / "topology"),
            }
        ],
        "storage": [{"sqlite_db_file": str(paths.reframe() / "reports/results.db")}],
        # of output and performance log ReFrame's defaults hold, or another configuration
        "logging": [
            {
                "handlers": [
                    {
                        "type": "file",
                        "name": str(paths.reframe() / "reframe.log"),
                        "level": "debug2",
                        "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
                        "append": False,
                    }
                ]
            }
        ],
    }


def _partition(site_facts: Site, part: Partition) -> dict[str, Any]:
    scheduler, also = schedulers.named(part.scheduler), os.environ.get(ALSO, "").split(",")
    return {
        **scheduler.reframe_partition(part.access, part.hosts, choice.pinned(part.name)),
        "name": part.name,
        "descr": part.description or part.name,
        "scheduler": scheduler.reframe_backend(),
        "launcher": "local",  # plumb launch starts the ranks itself
        "environs": [environment_name(stack) for stack in (*part.stacks, *filter(None, also))],
        "max_jobs": 8 if scheduler.has_jobs else 1,  # those on the same node would disturb one another
        "prepare_cmds": [*scheduler.script_begins, *part.prepare],
        "extras": {EXTRAS: _facts(site_facts, part)},
    }


def _facts(site_facts: Site, part: Partition) -> dict[str, Any]:
    """The facts of a partition that tests read."""
    scheduler = schedulers.named(part.scheduler)
    return {
        "site": site_facts.name,
        "partition": part.name,
        "archived": site_facts.archived,
        "scheduler": scheduler.name,
        "max_job_s": part.max_job_s or None,
        "nodes": part.nodes_offered,
        "max_pending_s": part.max_pending_s,
        "topology": str(paths.sites() / site_facts.name / part.topology),
        "prepare": [*scheduler.script_begins, *part.prepare],
    }


def environment_name(stack: str) -> str:
    """ReFrame's name for a stack: its environments are named by letters, digits, ``_`` and ``-``."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", stack)


def _environment(manifest: Manifest) -> dict[str, Any]:
    return {
        "name": environment_name(manifest.name),
        "modules": manifest.modules,
        "features": [FEATURE],
        "extras": {
            EXTRAS: {
                "stack": manifest.name,
                "benchmarks": {ident: entry.version for ident, entry in sorted(manifest.benchmarks.items())},
                "accelerator": manifest.accelerator,
                "family": manifest.mpi.family,
            }
        },
    }


def _elsewhere(name: str) -> dict[str, Any]:
    """A stack of another site that is not installed here: job scripts can be made for it, nothing can run.

    One that is called like a family of MPI libraries is taken for one of it.
    """
    extras = {"stack": name, "benchmarks": None, "accelerator": None, "family": name if name in mpi.TABLE else None}
    return {"name": environment_name(name), "features": [FEATURE], "extras": {EXTRAS: extras}}


def extend(
    site_configuration: Mapping[str, Any],
    system: str,
    environments: Mapping[str, str],
    site_name: str | None = None,
    partitions: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """:func:`plumbline.reframe.extend`, which documents it; raises :class:`PlumbError`."""
    from reframe.core.settings import site_configuration as builtin  # here: campaigns start ReFrame, and load none

    extended = copy.deepcopy(dict(site_configuration))
    systems = {item["name"]: item for item in extended.get("systems", [])}
    parts = pick(systems, system, f"no system '{system}'", "site_configuration")["partitions"]
    facts = site.load(site_name or system)
    if not isinstance(environments, Mapping) or not isinstance(partitions or {}, Mapping):
        raise PlumbError("environments and partitions are dictionaries", "reframe.extend", "{'YOURS': 'OURS'}")
    known = {part.name: part for part in facts.partitions}
    known |= {name: site.partition(facts, ours) for name, ours in (partitions or {}).items()}
    matched, theirs = [], [part["name"] for part in parts]
    if lost := sorted((partitions or {}).keys() - {*theirs}):
        raise PlumbError(f"system {system} has no partition '{lost[0]}'", "partitions", suggest(lost[0], theirs))
    for part in parts:
        if mine := known.get(part["name"]):
            part["extras"] = {**part.get("extras", {}), EXTRAS: _facts(facts, mine)}
            matched.append(part)
    if not matched:
        fault = f"site {facts.name} knows no partition of system {system}"
        cure = f"plumb site init --site {facts.name} --partition {theirs[0]}, or partitions={{'{theirs[0]}': 'OURS'}}"
        raise PlumbError(fault, str(site.folder(facts.name) / site.FILE), cure)
    defined = [*extended.setdefault("environments", [])]
    defined += [
        item for item in copy.deepcopy(builtin["environments"]) if item["name"] not in {e["name"] for e in defined}
    ]
    offered = {name for part in matched for name in part.get("environs", [])} & {item["name"] for item in defined}
    targets = [f"{system}:{part['name']}" for part in matched]
    for name, stack in environments.items():
        require(name, offered, f"system {system} has no environment '{name}'", "environments")
        ours = _environment(manifests.load(stack))
        for entry in [item for item in defined if item["name"] == name]:
            kept = entry.get("modules", [])
            more = {
                "features": [*entry.get("features", []), FEATURE],
                "extras": {**entry.get("extras", {}), **ours["extras"]},
                "modules": [*kept, *(module for module in ours["modules"] if module not in kept)],
            }
            scope = {target.partition(":")[0] for target in entry.get("target_systems", ["*"])}
            if system in scope:
                entry.update(more)
            elif "*" in scope:
                extended["environments"].append({**entry, **more, "target_systems": targets})
    return extended


def _remove_early_log() -> None:
    """ReFrame begins a log in TMPDIR before it reads this configuration, and leaves it there."""
    begun = sys.modules.get("reframe.core.logging")
    for file in map(Path, begun.log_files() if begun and begun._logger else ()):
        if file.name.startswith("rfm-"):
            file.unlink(missing_ok=True)
