"""The suite on the machines of the past, whose sites are archived: as ReFrame describes it, and by dry runs."""

import functools
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import forked_reframe

from plumbline.base import paths
from plumbline.measure.reframe import cases

SITES = paths.root() / "site-configs"
SEEDS = ("comet", "gpc", "ranger", "rrze-nehalem", "rrze-westmere", "rrze-woodcrest", "ulysses")


def topology(name: str, partition: str) -> Path:
    return SITES / name / "topology" / f"{partition}.xml"


def reframe(name: str, *options: str, prefix: Path) -> str:
    """Output of ReFrame with site ``name`` chosen and nothing installed; it must end well."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("RFM_", "PLUMB_"))}
    sites = prefix / "sites"
    for seed in SEEDS:
        shutil.copytree(SITES / seed, sites / seed)
    shutil.copy(SITES / "settings.py", sites)
    environment = {
        "PLUMB_SITES": str(sites),
        "PLUMB_STACKS": str(prefix / "stacks"),
        "RFM_CONFIG_FILES": str(sites / "settings.py"),
        "RFM_PREFIX": str(prefix),
    }
    words = [*sources(options), "--nocolor", "--system", name, *options]
    ended = forked_reframe.run(*words, environment={**clean, **environment}, folder=prefix)
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def sources(options: tuple[str, ...]) -> list[str]:
    """``-c`` for the files with the tests that ``-n`` names, or for all: each file takes ReFrame time to load."""
    wanted = options[options.index("-n") + 1] if "-n" in options else None
    return cases.words(cases.files(wanted))


@functools.cache
def variants(name: str, *tests: str) -> list[dict[str, Any]]:
    """The variants of ``tests``, by default of the whole suite, on site ``name``, as ReFrame describes them, once."""
    chosen = ("-n", "|".join(tests)) if tests else ()
    with tempfile.TemporaryDirectory() as folder:
        return list(json.loads(reframe(name, "--describe", *chosen, prefix=Path(folder))))


def dry_run(name: str, selection: str, stack: str, prefix: Path) -> list[Path]:
    """The stage folders of a dry run."""
    options = ("--dry-run", "-n", selection, "-p", f"^{stack}$", "--keep-stage-files")
    assert "[  PASSED  ]" in reframe(name, *options, prefix=prefix)
    return sorted(file.parent for file in (prefix / "stage" / name).glob("*/*/*/rfm_job.sh"))
