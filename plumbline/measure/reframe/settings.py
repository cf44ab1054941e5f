"""Site folders and stack manifests as a ReFrame configuration."""

from __future__ import annotations

import os
import re
from typing import Any

from plumbline import mpi, schedulers, site
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition, Site
from plumbline.site.nodes import choice
from plumbline.stacks import manifest as manifests
from plumbline.stacks.manifest import Manifest

#: the feature of every environment made from a stack manifest
FEATURE = "plumb-stack"
#: variable for ReFrame on this host: stacks that every partition offers, too, separated by commas. Those of commits of
#: an MPI library are in no list of a site
ALSO = "PLUMB_ALSO_STACKS"
#: the environment where there is none: tests end as skipped there, with the reason
NOTHING = "no-stack"
UNCONFIGURED = f"no site is configured for this host: run '{paths.setup()}'" + (
    "" if paths.is_installed() else ", then '. ./activate'"
)


def configuration() -> dict[str, Any]:
    """The dictionary that ReFrame wants as ``site_configuration``.

    Raises :class:`PlumbError` where a stack of this host's own site is not installed.
    """
    stacks = {manifest.name: manifest for manifest in manifests.load_all()}
    sites = site.load_all()
    for site_facts in sites:
        if site.is_here(site_facts):
            _require_stacks(site_facts, stacks)
    offered = {name for site_facts in sites for part in site_facts.partitions for name in part.stacks}
    environments = [_environment(manifest) for manifest in stacks.values()]
    environments += [_elsewhere(name) for name in sorted(offered - stacks.keys())]
    return {
        "systems": [*(_system(site_facts) for site_facts in sites), _unconfigured()],
        "environments": [*environments, {"name": NOTHING}],
        "general": [
            {
                "check_search_path": [str(paths.suite() / "reframe-tests")],
                "remote_detect": False,
                "report_file": str(paths.reframe() / "reports/run-report-{sessionid}.json"),
                "topology_prefix": str(paths.reframe() / "topology"),
            }
        ],
        "storage": [{"sqlite_db_file": str(paths.reframe() / "reports/results.db")}],
        "logging": [_logging()],
    }


def _require_stacks(site_facts: Site, stacks: dict[str, Manifest]) -> None:
    """The stacks of this host's own site must be installed; an unknown name is a typo."""
    for part in site_facts.partitions:
        missing = [name for name in part.stacks if name not in stacks]
        if missing:
            raise PlumbError(
                f"site {site_facts.name}, partition {part.name}: stack {missing[0]} is not installed",
                str(paths.sites() / site_facts.name / "site.yaml"),
                f"plumb stack install {missing[0]}, or take it out of the list",
            )


def _system(site_facts: Site) -> dict[str, Any]:
    return {
        "name": site_facts.name,
        "descr": site_facts.description,
        "hostnames": site_facts.hostnames,
        "modules_system": site_facts.modules_system,
        "partitions": [_partition(site_facts, part) for part in site_facts.partitions],
    }


def _partition(site_facts: Site, part: Partition) -> dict[str, Any]:
    scheduler = schedulers.named(part.scheduler)
    return {
        **scheduler.reframe_partition(part.access, part.hosts, choice.pinned(part.name)),
        "name": part.name,
        "descr": part.description or part.name,
        "scheduler": scheduler.reframe_backend(),
        "launcher": "local",  # plumb launch starts the ranks itself
        "environs": [environment_name(stack) for stack in [*part.stacks, *_also()]] or [NOTHING],
        "max_jobs": scheduler.reframe_jobs,
        "prepare_cmds": [*scheduler.script_begins, *part.prepare],
        "extras": {
            "archived": site_facts.archived,
            "scheduler": scheduler.name,
            "max_job_s": part.max_job_s or None,
            "nodes": part.nodes_offered,
            "max_pending_s": part.max_pending_s,
            "topology": str(paths.sites() / site_facts.name / part.topology),
        },
    }


def _also() -> list[str]:
    return [stack for stack in os.environ.get(ALSO, "").split(",") if stack]


def environment_name(stack: str) -> str:
    """ReFrame's name for a stack: its environments are named by letters, digits, ``_`` and ``-``."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", stack)


def _environment(manifest: Manifest) -> dict[str, Any]:
    return {
        "name": environment_name(manifest.name),
        "modules": manifest.modules,
        "features": [FEATURE],
        "extras": {
            "stack": manifest.name,
            "benchmarks": sorted(manifest.benchmarks),
            "accelerator": manifest.accelerator,
            "family": manifest.mpi.family,
        },
    }


def _elsewhere(name: str) -> dict[str, Any]:
    """A stack of another site that is not installed here: job scripts can be made for it, nothing can run.

    One that is called like a family of MPI libraries is taken for one of it.
    """
    family = name if name in mpi.TABLE else None
    extras = {"stack": name, "benchmarks": None, "accelerator": None, "family": family}
    return {"name": environment_name(name), "features": [FEATURE], "extras": extras}


def _unconfigured() -> dict[str, Any]:
    """Hosts that no site claims: last, so that it matches only the hosts that no site did."""
    partition = {"name": "none", "scheduler": "local", "launcher": "local", "environs": [NOTHING], "max_jobs": 1}
    return {"name": "unconfigured", "descr": "no site claims this host", "hostnames": [".*"], "partitions": [partition]}


def _logging() -> dict[str, Any]:
    folder = paths.reframe()
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "handlers": [
            {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"},
            {
                "type": "file",
                "name": str(folder / "reframe.log"),
                "level": "debug2",
                "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
                "append": False,
            },
        ],
        "handlers_perflog": [],
    }
