"""Labs: what each selects has job scripts, as a dry run on an archived site writes them."""

import functools
import json
import re
import shlex
from typing import Any

import pytest
from archived_sites import dry_run, topology, variants

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.extras.labs import model
from plumbline.host.binder import resolve

#: no variant of these fits on a machine without GPUs; tests/golden/test_devices.py has what they ask of OSU
NEED_GPUS = ["osu_device", "osu_device_nodes"]
LABS = model.every()


@functools.cache
def patterns() -> set[str]:
    """Selections of tests: of all labs, and of the commands of the page."""
    page = (paths.root() / "docs" / "labs.md").read_text(encoding="utf-8").replace(r"\|", "|")
    also = [shlex.split(code)[2] for code in re.findall(r"`(reframe -n .+?)`", page)]
    return {one for lab in LABS.values() for one in lab.tests} | {one for words in also for one in words.split("|")}


def words_of(check: dict[str, Any]) -> str:
    """A variant's name as ReFrame's ``-n`` sees it."""
    return str(check["name"]).replace(" ", "")


def has_room(check: dict[str, Any]) -> bool:
    """Whether a node of gpc holds the variant. What a class sets (two threads of a pair) ReFrame does not describe."""
    counts = [check["threads"]] if "threads" in check else [None, 2]
    where = check.get("placement", "node"), check.get("memory"), check["ranks_per_node"] or None
    return any(holds(*where, threads) for threads in counts)


@functools.cache
def holds(placement: str, memory: str | None, ranks: int | None, threads: int | None) -> bool:
    """Whether a node of gpc has room for a placement."""
    try:
        resolve(placement, threads=threads, memory=memory, ranks=ranks, topology=topology("gpc", "default"))
    except PlumbError:
        return False
    return True


@pytest.fixture(scope="module")
def fitting() -> list[dict[str, Any]]:
    """The variants of all tests that launch something and for which gpc has room: 4 nodes of 2 x 4."""
    return [check for check in variants("gpc") if "ranks_per_node" in check and has_room(check)]


@pytest.fixture(scope="module")
def prepared(fitting: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What ``plumb launch`` is given on gpc, as a dry run writes it.

    Of each selection and of each class of kernels a variant for which there is room.
    """
    names: set[str] = set()
    for group in (*selected(fitting).values(), *kernels(fitting).values()):
        names |= set() if names & set(group) else set(group[:1])
    chosen = "|".join(f"^{re.escape(name)}$" for name in names)
    stages = dry_run("gpc", chosen, "openmpi", tmp_path_factory.mktemp("prepared"))
    return [json.loads((stage / "variant.json").read_text(encoding="utf-8")) for stage in stages]


def selected(fitting: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Selection -> the names of its variants."""
    names = list(map(words_of, fitting))
    return {one: [name for name in names if re.search(one, name)] for one in patterns()}


def kernels(fitting: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Class of a kernel -> the names of its variants."""
    found: dict[str, list[str]] = {}
    for check in fitting:
        if check.get("parser") == "kernel" and check["kernel"] != "gpu_memory":
            found.setdefault(check["@class"], []).append(words_of(check))
    return found


def test_each_selection_makes_job_scripts(prepared):
    made = list(map(words_of, prepared))
    nothing = [one for one in sorted(patterns()) if not any(re.search(one, name) for name in made)]
    assert [one.partition("%")[0] for one in nothing] == NEED_GPUS


def test_every_kernel_is_asked_for_json(fitting, prepared):
    """Nothing else can be read."""
    found = [variant for variant in prepared if variant["parser"] == "kernel"]
    assert {variant["test"] for variant in found} == set(kernels(fitting))
    assert [variant["name"] for variant in found if "--json" not in variant["arguments"]] == []
