"""A variant resolved on this machine: its stack, plan and command, and the record that its launches go into."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from plumbline import mpi, schedulers, site
from plumbline.base import files, git, paths, surroundings
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Facts
from plumbline.host import provenance
from plumbline.host.limits.ceilings import Measured, words
from plumbline.host.topology import machine, plan
from plumbline.launch import environment, hosts, plausible, settings
from plumbline.launch.program_files import Files
from plumbline.launch.witness.compare import Binds
from plumbline.records import store
from plumbline.records.model import Benchmark, Placement, Record, Stack, Suite
from plumbline.records.variant import Variant, checked
from plumbline.stacks import engines, instructions, tuned
from plumbline.stacks import manifest as manifests

#: the benchmark of a variant that is a person's own program: ``context`` has its file and its command
OWN = "own"
#: that of a program of an application: ``context`` has these too, its inputs, and how its figures are found
APPLICATION = "application"


@dataclass
class Prepared:
    """One variant, ready to be launched here.

    ``facts`` and ``ceilings`` are those of the partition; ``ceilings`` is None where such a machine was not measured.
    ``ranks`` is how its ranks are started; ``files`` are those that each launch runs. ``settings`` are those that the
    MPI library is asked for.
    """

    record: Record
    manifest: manifests.Manifest
    facts: Facts
    ceilings: Measured | None
    host: machine.Machine
    ranks: hosts.Ranks
    files: Files
    settings: dict[str, str]

    @cached_property
    def remarks(self) -> list[str]:
        """Remarks of the record on a tuned stack, and on a program that binds itself."""
        self_bound = [f"the program bound its threads itself, as {self.variant.placement} has them"]
        return [*tuned.remarks(self.manifest), *(self_bound if self.binds == "itself" else [])]

    @property
    def binds(self) -> Binds:
        """Whether ranks or threads are bound, and by whom."""
        return _binds(self.variant)

    @property
    def variant(self) -> Variant:
        """The variant that is launched."""
        return self.record.variant

    @property
    def plan(self) -> plan.Plan:
        """Where its ranks and threads go on a node."""
        return self.record.plan


def prepare(variant: Variant, session: str) -> Prepared:
    """Resolve ``variant`` for ``session``.

    Raises :class:`PlumbError` when it is not valid or cannot run here.
    """
    variant = checked(msgspec.to_builtins(variant), "variant description")
    manifest = manifests.load(variant.stack)
    entry = entry_of(variant, manifest)
    instructions.refuse(entry.facts, variant.benchmark, manifest.made_of)
    if manifest.container:
        manifest.container.check(variant.nodes)
    libraries = [paths.witness_library(), *([paths.profile_library()] if variant.profiled else [])]
    inputs = [file for path in variant.context.get("inputs", {}).values() for file in files.below(Path(path))]
    stdin = [variant.context["stdin"]] if variant.context.get("stdin") else []
    unchanged = Files.of([paths.binder(), *libraries, *inputs, *map(Path, stdin)], manifests.recorded(manifest, entry))
    manifests.check(manifest)
    resolved = plan.resolve(
        variant.placement, threads=variant.threads, memory=variant.memory, ranks=variant.ranks_per_node
    )
    partition = site.partition(site.load(variant.site), variant.partition)
    named = hosts.chosen(partition, variant.nodes)
    requested = settings_of(variant, manifest)
    variables = {**settings.variables(manifest.family, requested), **partition.environment, **variant.environment}
    user = surroundings.of_user()
    inherited = environment.inherit(user)
    stack = manifests.environment(manifest, user)  # what it refers to by name is declared
    around = {**inherited.kept, **stack, **variables}
    launcher = manifest.launcher_on(partition, around)
    by_ssh = named if named or launcher.reaches(os.environ) else hosts.of_job(variant.nodes, os.environ)
    host = machine.load()
    layout = mpi.Layout(
        nodes=variant.nodes,
        ranks_per_node=len(resolved.ranks),
        hosts=by_ssh or hosts.share(variant.nodes, os.environ),
        round_robin=resolved.map == "cyclic",
        ssh=bool(by_ssh),
        crowded=len(resolved.ranks) > len(host.cores),
        by_port=manifest.container is not None and not manifest.container.inherits,
    )
    exported = tuple({"HOME": "", **environment.LOGS, **stack, **variables})
    start = launcher.command(layout, bound=bool(resolved.bound), exported=exported, environment=around)
    itself = _binds(variant) == "itself"  # the control, with the launcher's binding off too
    placement, pages = ("none", "firsttouch") if itself else (variant.placement, resolved.memory)
    binder = [
        *(engines.binder() if manifest.container else [str(paths.binder())]),
        "--placement",
        placement,
        "--threads",
        str(resolved.threads),
    ]
    binder += ["--memory", pages, "--witness", "witness", "--output", "output"]
    binder += ["--input", *stdin] if stdin else []
    binder += ["--profile", "profile", "--"] if variant.profiled else ["--"]
    changes = {**stack, **start.environment, **variables}
    record = _new_record(variant, session, manifest, entry, resolved, layout)
    program = [*binder, *entry.command, *variant.arguments]
    record.command = manifest.command(start.arguments, program, len(resolved.ranks))
    record.environment = {**inherited.stated, **changes}
    record.removed_variables = inherited.removed(changes)
    kept = {name: value for name, value in inherited.kept.items() if name not in start.removed}
    return Prepared(
        record,
        manifest,
        partition.facts,
        site.ceilings_of(variant.site, variant.partition, words(host)),
        host,
        hosts.Ranks(launcher, layout, exported, {**kept, **changes}),
        unchanged,
        requested,
    )


def _binds(variant: Variant) -> Binds:
    return msgspec.convert(variant.context.get("binds", "threads"), Binds)


def entry_of(variant: Variant, manifest: manifests.Manifest) -> manifests.Benchmark:
    """The benchmark of ``variant``: of the stack's manifest, or a person's own program that is profiled."""
    if variant.benchmark in (OWN, APPLICATION):
        if manifest.container:
            message = f"stack {variant.stack} runs the programs of its image only"
            raise PlumbError(message, variant.benchmark, "build the program with a stack of this host")
        suite = plausible.APPLICATION if variant.context.get("mpi") else OWN
        state = variant.application
        version = (state.commit or state.digest)[:12] if state else ""
        program, command = Path(variant.context["program"]), list(variant.context["command"])
        if not program.is_file():
            cure = f"plumb run --commit {state.commit} builds it again" if state and state.commit else "build it again"
            raise PlumbError("the program is not there any more", str(program), cure)
        return manifests.benchmark(suite, version, program, "not by Plumbline", command)
    if variant.benchmark not in manifest.benchmarks:
        offered = ", ".join(sorted(manifest.benchmarks))
        message = f"stack {variant.stack} has no benchmark '{variant.benchmark}'"
        raise PlumbError(message, "its manifest", f"it has {offered}")
    return manifest.benchmarks[variant.benchmark]


def settings_of(variant: Variant, manifest: manifests.Manifest) -> dict[str, str]:
    """The settings that the MPI library is asked for: those of the stack and of ``variant``; none without MPI.

    Raises :class:`PlumbError` for settings of a variant whose program has no MPI library.
    """
    if entry_of(variant, manifest).suite in plausible.MPI_SUITES:
        return {**manifest.settings, **variant.settings}
    if variant.settings:
        message = f"a program without MPI takes no setting of an MPI library: {', '.join(variant.settings)}"
        raise PlumbError(message, variant.name, "leave the setting out, or choose MPI programs by --test")
    return {}


def _new_record(
    variant: Variant,
    session: str,
    manifest: manifests.Manifest,
    entry: manifests.Benchmark,
    resolved: plan.Plan,
    layout: mpi.Layout,
) -> Record:
    name = json.dumps([session, variant.stack, variant.name, secrets.token_hex(4)])
    return Record(
        schema=1,
        id=hashlib.sha256(name.encode()).hexdigest()[:12],
        session=session,
        campaign=None,
        time=store.now(),
        state="running",
        site=variant.site,
        partition=variant.partition,
        nodes=[schedulers.host_name()],
        suite=msgspec.convert(git.suite_state(), Suite),
        stack=msgspec.convert({**manifests.document(manifest), "sha256": manifests.digest(manifest)}, Stack),
        variant=variant,
        benchmark=msgspec.convert(entry, Benchmark, from_attributes=True),
        placement=Placement(
            name=variant.placement,
            memory=resolved.memory,
            threads=resolved.threads,
            ranks_per_node=layout.ranks_per_node,
            nodes=layout.nodes,
        ),
        plan=resolved,
        launches=[],
        verified=False,
        reasons=["no launch finished"],
        figures=[],
        verdict="invalid",
        host=provenance.measured(),
        command=[],
    )
