"""A variant resolved on this machine: its plan, environment and command, and the record that its launches go into.

Records that anybody may have written, to be run again, give data, but may not choose the code that runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from plumbline import mpi, schedulers, site
from plumbline.base import files, git, paths, surroundings
from plumbline.base.errors import PlumbError, pick
from plumbline.base.schemas.site import Facts
from plumbline.host import binder, machine, provenance
from plumbline.host.ceilings import Measured, ceilings_of, words
from plumbline.launch import environment, hosts
from plumbline.launch.program_files import BuiltFiles, Files
from plumbline.launch.witness.compare import Binds
from plumbline.mpi import loading
from plumbline.records import store
from plumbline.records.model import Benchmark, Placement, Record, Stack, Suite
from plumbline.records.variant import PORT, PROGRAM, Variant, checked
from plumbline.stacks import engines, instructions, tuned
from plumbline.stacks import manifest as manifests

#: the benchmark of a variant that is a person's own program: ``context`` has its file and its command
OWN = "own"
#: that of a program of an application: ``context`` has these too, its inputs, and how its figures are found
APPLICATION = "application"
#: suites whose programs are MPI programs
MPI_SUITES = ("imb", "osu", "kernels", APPLICATION)
#: the cure for a record that may not choose the code
TRUST = "if you know who wrote it, add --trust"
#: an option, or a word that is neither a path nor anything to a shell
_PLAIN = re.compile(r"[\w.,:=+-]+")


@dataclass
class Prepared:
    """One variant, ready to be launched here.

    ``facts`` and ``ceilings`` are those of the partition; ``ceilings`` is None where such a machine was not measured.
    ``ranks`` is how its ranks are started; ``files`` are those that each launch runs. ``settings`` are those that the
    MPI library is asked for. ``part`` is that of the machine which a launch has.
    """

    record: Record
    manifest: manifests.Manifest
    facts: Facts
    ceilings: Measured | None
    host: machine.Machine
    ranks: hosts.Ranks
    files: Files
    settings: dict[str, str]
    part: hosts.Part | None = None

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
    def plan(self) -> binder.Plan:
        """Where its ranks and threads go on a node."""
        return self.record.plan


class _Plan:
    """The benchmark of a ``variant``, and where its ranks go: partition, plan of a node, hosts if they are ``named``.

    ``files`` are those that each launch runs, as they were before they were compared with the manifest.
    """

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.manifest = manifests.load(variant.stack)
        self.entry = entry_of(variant, self.manifest)
        instructions.refuse(self.entry.facts, variant.benchmark, self.manifest.made_of)
        if self.manifest.container:
            self.manifest.container.check(variant.nodes)
        ours = [
            *(paths.binder(), paths.library("witness"), *([paths.library("profile")] if variant.profiled else [])),
            *(file for path in variant.context.get("inputs", {}).values() for file in files.below(Path(path))),
            *([Path(variant.context["stdin"])] if variant.context.get("stdin") else []),
        ]
        self.files = Files(ours, manifests.recorded(self.manifest, self.entry))
        if (mark := variant.context.get("built")) and (built := BuiltFiles.load(Path(mark))) is None:
            raise PlumbError("the build is not there any more", mark, "plumb run builds it again")
        self.files.built = built if mark else None
        manifests.check(self.manifest)
        self.node = binder.resolve(
            variant.placement, threads=variant.threads, memory=variant.memory, ranks=variant.ranks_per_node
        )
        self.partition = site.partition(site.load(variant.site), variant.partition)
        self.named = hosts.chosen(self.partition, variant.nodes)


class _Environment:
    """The variables of a launch: those that it inherits, its stack's, and ``stated``: site, test and settings.

    ``all`` are without the launcher's own; ``exported`` those that ranks on other nodes must get.
    """

    def __init__(self, plan: _Plan) -> None:
        self.settings = settings_of(plan.variant, plan.manifest)
        by_settings = environment.settings_variables(plan.manifest.family, self.settings)
        user = surroundings.of_user()
        self.inherited = environment.inherit(user)
        self.stack = manifests.environment(plan.manifest, user)  # what it refers to by name is declared
        self.stated = {**by_settings, **plan.partition.environment, **plan.variant.environment}
        self.all = {**self.inherited.kept, **self.stack, **self.stated}
        self.exported = tuple({"HOME": "", **environment.LOGS, **self.stack, **self.stated})


def prepare(variant: Variant, session: str) -> Prepared:
    """Resolve ``variant`` for ``session``.

    Raises :class:`PlumbError` when it is not valid or cannot run here.
    """
    plan = _Plan(checked(msgspec.to_builtins(variant), "variant description"))
    around = _Environment(plan)
    host = machine.load()
    command, changes, ranks = _command(plan, around, host)
    return Prepared(
        _new_record(plan, session, around, command, changes),
        plan.manifest,
        plan.partition.facts,
        ceilings_of(variant.site, variant.partition, words(host)),
        host,
        ranks,
        plan.files,
        around.settings,
    )


def _command(plan: _Plan, around: _Environment, host: machine.Machine) -> tuple[list[str], dict[str, str], hosts.Ranks]:
    """How the ranks are started: the command, and the variables of the launch that are not as inherited."""
    variant, manifest, node = plan.variant, plan.manifest, plan.node
    launcher = manifest.launcher_on(plan.partition, around.all)
    by_ssh = plan.named if plan.named or launcher.reaches(os.environ) else hosts.of_job(variant.nodes, os.environ)
    layout = mpi.Layout(
        nodes=variant.nodes,
        ranks_per_node=len(node.ranks),
        hosts=by_ssh or hosts.share(variant.nodes, os.environ),
        round_robin=node.map == "cyclic",
        ssh=bool(by_ssh),
        crowded=len(node.ranks) > len(host.cores),
        by_port=manifest.container is not None and not manifest.container.inherits,
    )
    # whoever runs a program without MPI has no launcher that binds it
    alone = variant.benchmark == APPLICATION and not variant.context.get("mpi")
    bound = bool(node.bound) or alone
    start = launcher.command(layout, bound=bound, exported=around.exported, environment=around.all)
    if alone and layout.ranks == 1:
        of_launchers = (name for row in mpi.RANK_VARIABLES for name in row if name)
        start = mpi.Command((), {}, tuple(of_launchers))
    # who binds itself starts as the control does, with the launcher's binding off too
    placement, pages = ("none", "firsttouch") if _binds(variant) == "itself" else (variant.placement, node.memory)
    needs = str(plan.entry.facts.get("instructions", ""))
    program = [
        *(engines.binder() if manifest.container else [str(paths.binder())]),
        *("--placement", placement, "--threads", str(node.threads), "--memory", pages),
        *("--witness", "witness", "--output", "output"),
        *(["--input", variant.context["stdin"]] if variant.context.get("stdin") else []),
        *(["--profile", "profile"] if variant.profiled else []),
        *(["--needs", needs.replace(" ", ",")] if needs and variant.nodes > 1 else []),  # this node is known
        *("--", *plan.entry.command, *variant.arguments),
    ]
    changes = {**around.stack, **start.environment, **around.stated}
    kept = {name: value for name, value in around.inherited.kept.items() if name not in start.removed}
    ranks = hosts.Ranks(launcher, layout, around.exported, {**kept, **changes})
    return manifest.command(start.arguments, program, len(node.ranks)), changes, ranks


def _binds(variant: Variant) -> Binds:
    return msgspec.convert(variant.context.get("binds", "threads"), Binds)


def entry_of(variant: Variant, manifest: manifests.Manifest) -> manifests.Benchmark:
    """The benchmark of ``variant``: of the stack's manifest, or a person's own program that is profiled."""
    if variant.benchmark in (OWN, APPLICATION):
        if manifest.container:
            fault = f"stack {variant.stack} runs the programs of its image only"
            raise PlumbError(fault, variant.benchmark, "build the program with a stack of this host")
        suite = APPLICATION if variant.context.get("mpi") else OWN
        state = variant.application
        version = (state.commit or state.digest)[:12] if state else ""
        program, command = Path(variant.context["program"]), list(variant.context["command"])
        if not program.is_file():
            cure = f"plumb run --commit {state.commit} builds it again" if state and state.commit else "build it again"
            raise PlumbError("the program is not there any more", str(program), cure)
        return manifests.benchmark(suite, version, program, "not by Plumbline", command)
    message = f"stack {variant.stack} has no benchmark '{variant.benchmark}'"
    entry = pick(manifest.benchmarks, variant.benchmark, message, "its manifest")
    if PROGRAM in variant.params and not entry.version.startswith(PORT):
        message = f"stack {variant.stack} has OSU's own {variant.benchmark} in place of mpi4py's port"
        raise PlumbError(message, variant.name, "measure it anew: they are different programs")
    return entry


def settings_of(variant: Variant, manifest: manifests.Manifest) -> dict[str, str]:
    """The settings that the MPI library is asked for: those of the stack and of ``variant``; none without MPI.

    Raises :class:`PlumbError` for settings of a variant whose program has no MPI library.
    """
    if entry_of(variant, manifest).suite in MPI_SUITES:
        return {**manifest.settings, **variant.settings}
    if variant.settings:
        message = f"a program without MPI takes no setting of an MPI library: {', '.join(variant.settings)}"
        raise PlumbError(message, variant.name, "leave the setting out, or choose MPI programs by --test")
    return {}


def _new_record(plan: _Plan, session: str, around: _Environment, command: list[str], changes: dict[str, str]) -> Record:
    variant, manifest, node = plan.variant, plan.manifest, plan.node
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
        benchmark=msgspec.convert(plan.entry, Benchmark, from_attributes=True),
        placement=Placement(
            name=variant.placement,
            memory=node.memory,
            threads=node.threads,
            ranks_per_node=len(node.ranks),
            nodes=variant.nodes,
        ),
        plan=node,
        launches=[],
        verified=False,
        reasons=["no launch finished"],
        figures=[],
        verdict="invalid",
        host=provenance.measured(),
        command=command,
        environment={**around.inherited.stated, **changes},
        removed_variables=around.inherited.removed(changes),
    )


def refuse_build(record: Record, cure: str = TRUST) -> None:
    """Raise :class:`PlumbError` for variables that ``record`` has for a build and that could be more than options.

    They may be options, or one word: no path and no command.
    """
    state = record.variant.application
    for name, value in state.variables if state else ():
        words = value.split()
        is_plain = all(map(_PLAIN.fullmatch, words)) and (len(words) <= 1 or all(word[0] == "-" for word in words))
        if loading.loads(name) or not is_plain:
            raise PlumbError(f"a file may not say what is run: build:{name}={value}", f"record {record.id}", cure)


def variant_again(record: Record, trusted: bool = False, cure: str = TRUST) -> Variant:
    """The variant of ``record``, to be launched again.

    Raises :class:`PlumbError`, unless it is ``trusted``, where it names a program that is none of our builds, or
    variables and settings by which code is loaded, and as :func:`refuse_build`.
    """
    variant, where = record.variant, f"record {record.id}"
    if trusted:
        return variant
    refuse_build(record, cure)
    for values in (variant.environment, variant.settings):
        loading.refuse(values, where, cure)
    if variant.benchmark in (OWN, APPLICATION):
        program, command = (variant.context.get(name) for name in ("program", "command"))
        builds = paths.build().resolve() / "applications"
        real = Path(str(program))
        copies = [(name, file) for name, file in variant.context.get("copy", {}).items() if real.is_relative_to(file)]
        copied = [[f"./{Path(name, real.relative_to(file))}"] for name, file in copies if ".." not in real.parts]
        if command not in ([program], *copied) or not real.resolve().is_relative_to(builds):
            raise PlumbError(f"it runs a program that was not built here: {program}", where, cure)
    return variant
