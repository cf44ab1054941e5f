"""The two ends of a search: records, or sides as a gate has them, and every mixture of their stacks and their code."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from msgspec import structs

from plumbline import site
from plumbline.base import git, paths
from plumbline.base.errors import PlumbError
from plumbline.extras.search.why import model
from plumbline.extras.search.why.model import BASES, Ends, Factor
from plumbline.gate import confirm, setup, sides
from plumbline.gate.sides import KERNELS, Changes, Parts, Side
from plumbline.judge import decide
from plumbline.judge.pairs import pairs_of_records, read_couples
from plumbline.launch.environment import settings_variables
from plumbline.launch.prepare import APPLICATION, OWN, TRUST, settings_of, variant_again
from plumbline.measure.application import model as applications
from plumbline.measure.application.model import Variables
from plumbline.measure.session import Say, passing_folder
from plumbline.mpi import loading
from plumbline.records import query, store
from plumbline.records.model import Record
from plumbline.records.variant import Variant
from plumbline.stacks import manifest as manifests
from plumbline.statistics.paired import PairedRule

COMMAND = "plumb why"
#: sessions of gates that are looked at for the newest FAIL, at most
MOST_GATES = 100
_ID = re.compile(r"[0-9a-f]{4,12}|last")
#: digits from which on git shortens commits
_COMMIT_DIGITS = 7
#: a variant with other parts; None where they cannot be had together
Make: TypeAlias = Callable[[Variant, Parts], Variant | None]


def records_of(first: str, second: str, application: Path | None) -> tuple[Record, Record] | None:
    """The records whose ids begin so; None where both names are those of sides.

    Commits are those of the repository of ``application``, a plumb.yaml, or without it of this suite. Raises
    :class:`PlumbError` where both could be records and commits, and for ids that no record has.
    """
    names = (first, second)
    if not all(_ID.fullmatch(name) and name not in manifests.names() for name in names):
        return None
    if not all(_is_commit(name, application) for name in names):
        return query.find(first), query.find(second)
    if all(query.named(name)[0] for name in names):
        raise PlumbError(
            f"'{first}' and '{second}' are records and commits",
            COMMAND,
            f"write commit:{first} commit:{second}, or more digits of the ids",
        )
    return None


def _is_commit(name: str, application: Path | None) -> bool:
    with contextlib.suppress(PlumbError):  # no repository, or one that git refuses
        return len(name) >= _COMMIT_DIGITS and bool(
            git.commit(name, applications.code_folder(application) if application else None)
        )
    return False


def newest_fail(name: str | None) -> tuple[Record, Record, str]:
    """Baseline, candidate and figure of the newest FAIL of a live gate of site ``name``; raises where there is none."""
    here = name or site.here()
    gates = filter(None, map(_couples, sorted((paths.results() / here).rglob("*.jsonl"), reverse=True)))
    for couples in itertools.islice(gates, MOST_GATES):
        for baseline, candidate in couples:
            verdicts = decide.decide(pairs_of_records(baseline, candidate), PairedRule())
            if failed := [verdict for verdict in verdicts if verdict.state == "FAIL" and verdict.ratio]:
                worst = max(failed, key=lambda verdict: max(verdict.ratio or 1, 1 / (verdict.ratio or 1)))
                return baseline, candidate, worst.subject.rpartition(": ")[2]
    raise PlumbError(
        "no gate ended with FAIL here",
        f"the results of {here}",
        "name two records, or two sides: plumb why stack:A stack:B --test NAME",
    )


def _couples(file: Path) -> list[tuple[Record, Record]]:
    """The couples of a live gate's session; none of another session, of which the first record alone is read."""
    first = next(store.read(file), None)
    if not isinstance(first, Record) or first.side is None:
        return []
    try:
        couples = read_couples(file)
    except PlumbError:  # damaged
        return []
    return [both for both in couples if all(record.side for record in both)]


def of_records(
    first: Record, second: Record, roots: bool, say: Say, application: Path | None = None, trusted: bool = False
) -> Ends:
    """The ends that two records are; ``roots``: settings of the host are factors. Raises :class:`PlumbError`.

    ``application`` is the plumb.yaml of what they measured, if they are of an application; unless they are ``trusted``,
    they do not say what code is loaded. What cannot be set is in
    :attr:`Ends.fixed`.
    """
    both = (first, second)
    _refuse(both)
    ran = [_ran(record) for record in both]
    differ: Collection[str] = ()
    if ran[0].stack == ran[1].stack:  # else they follow from the stack
        every = {**first.environment, **second.environment}
        differ = {name for name in every if first.environment.get(name) != second.environment.get(name)}
    variants = [_repeated(record, parts, differ, trusted) for record, parts in zip(both, ran, strict=True)]
    settable = model.of_host(first.host, second.host) if roots else []
    settable_keys = {f"host.{factor.name}" for factor in settable}
    fixed = [difference for difference in model.fixed(first, second) if difference.key not in settable_keys]
    labels = tuple(f"record {record.id} of {record.time[:16]}" for record in both)
    ids = tuple(record.id for record in both)
    return _between(
        (labels[0], labels[1]), variants, ran, say, functools.partial(_again, application), settable, fixed, ids
    )


def _refuse(both: tuple[Record, Record]) -> None:
    for record in both:
        if record.is_imported or record.is_profiled:
            kind = "imported" if record.is_imported else "a profile"
            raise PlumbError(f"record {record.id} is {kind}: it cannot be measured again", COMMAND, "name another")
    here, (first, second) = site.here(), both
    if {first.site, second.site} != {here}:
        raise PlumbError(
            f"the records are of {first.site} and {second.site}, this host belongs to {here}",
            COMMAND,
            "measure where the records were made",
        )
    if first.id == second.id:
        raise PlumbError("both are the same record", COMMAND, "name two")
    if model.key_of(first.variant) != model.key_of(second.variant):
        raise PlumbError(
            f"'{first.variant.name}' and '{second.variant.name}' do not measure the same",
            COMMAND,
            "name records of one test, partition and number of nodes, whose figures have the same meaning",
        )


def _is_own(variant: Variant) -> bool:
    return variant.benchmark in (OWN, APPLICATION)


def _ran(record: Record) -> Parts:
    """The parts here that stand for those of ``record``. Raises :class:`PlumbError` where they are gone."""
    state = record.variant.application
    is_own = _is_own(record.variant)
    if name := confirm.installed(record, kernels=not is_own):
        if is_own:
            return Parts(name, state.commit or state.digest, state.variables) if state else Parts(name)
        base, _, digits = name.partition("@")
        return Parts(base, git.commit(digits) if digits else None)
    base_name = confirm.installed(record, kernels=False)
    commit = record.suite.commit
    if record.benchmark.suite == KERNELS and base_name and commit and not record.suite.dirty and git.commit(commit):
        return Parts(base_name, commit)
    raise PlumbError(
        f"the programs of record {record.id} are not installed any more: stack {record.stack.name}",
        COMMAND,
        "install that state of it, or name two sides that are: plumb why stack:A stack:B --test NAME",
    )


def _repeated(record: Record, ran: Parts, names: Collection[str], trusted: bool) -> Variant:
    """The variant of ``record`` on the stack that is there, with those variables of its launches that are ``names``."""
    stack = manifests.load(ran.stack)
    requested = {**stack.settings, **record.variant.settings}
    stack_variables = {*stack.environment, *settings_variables(stack.family, requested)}
    variables = {
        name: value
        for name, value in record.environment.items()
        if name in names and name not in stack_variables and not name.startswith(model.OWN)
    }
    variant = variant_again(record, trusted)
    if not trusted:
        loading.refuse(variables, f"record {record.id}", TRUST)
    side = Side("end", ran.stack, None if _is_own(record.variant) else ran.code)
    return structs.replace(variant, environment={**variables, **variant.environment}, stack=side.measured)


def of_sides(request: setup.GateRequest, say: Say) -> Ends:
    """The ends that two sides of a gate are. Raises :class:`PlumbError` unless they have one test in common."""
    both = request.both
    differing = both[0].changes.params | both[1].changes.params
    with passing_folder("why") as folder:
        offered = setup.offers(both, request, folder, say)
        couples, _ = setup.couple(offered[0], offered[1], request.common)
        if len(couples) > 1:
            names = ", ".join(couple[0].name for couple in couples[:4])
            raise PlumbError(
                f"{len(couples)} tests: {names}{', …' if len(couples) > 4 else ''}",
                COMMAND,
                "choose one: --test with more of its name, parameters included",
            )
        first, second = couples[0]

        def make(first: Variant, parts: Parts) -> Variant | None:
            side = next(side for side in both if side.parts.code == parts.code)
            mixed = replace(
                side,
                stack=parts.stack,
                code=side.code and replace(side.code, variables=parts.build),
                changes=Changes(program=side.changes.program),
                spelling=f"{side.spelling} on {parts.stack}",
            )
            return setup.offers([mixed], request, folder, say)[0].changed(differing).get(first.name)

        return _between((both[0].spelling, both[1].spelling), [first, second], [side.parts for side in both], say, make)


def _between(
    labels: tuple[str, str],
    variants: Sequence[Variant],
    ran: Sequence[Parts],
    say: Say,
    make: Make,
    settable: Sequence[Factor] = (),
    fixed: Sequence[model.Fixed] = (),
    ids: tuple[str, ...] = (),
) -> Ends:
    """The ends, their factors and the mixtures of what they run."""
    variants, ran = _without_tuning(variants, ran)
    first, second = variants
    between, runs = _mixtures(first, second, ran, make, say)
    differ = ran[0].stack != ran[1].stack
    both = [manifests.load(parts.stack) for parts in ran]
    libraries = model.of_libraries(*both) if differ else []
    packages = model.packages(both[0], both[1], libraries) if differ else []
    varied = [*runs, *libraries, *model.of_variants(first, second), *settable]
    if not varied:
        shown = ", ".join(f"{difference.key} {difference.before} → {difference.after}" for difference in fixed[:6])
        roots = ", ".join(difference.key for difference in fixed if difference.why == "root only")
        raise PlumbError(
            "the ends do not differ in anything that can be set here",
            COMMAND,
            f"they differ in {shown or 'nothing'}{f'; with --root: {roots}' if roots else ''}",
        )
    return Ends(labels, first, second, varied, between, [*packages, *fixed], ids)


def _without_tuning(variants: Sequence[Variant], ran: Sequence[Parts]) -> tuple[list[Variant], list[Parts]]:
    """A tuned stack as the stack that it was made from, with settings: each of these is a factor then."""
    untuned, bases = [], []
    for variant, parts in zip(variants, ran, strict=True):
        if (stack := manifests.load(parts.stack)).tuned and stack.made_of in manifests.names():
            base = variant.stack.replace(parts.stack, stack.made_of)
            variant = structs.replace(variant, stack=base, settings=settings_of(variant, stack))
            parts = parts._replace(stack=stack.made_of)
        untuned.append(variant)
        bases.append(parts)
    return untuned, bases


def _mixtures(
    first: Variant, second: Variant, ran: Sequence[Parts], make: Make, say: Say
) -> tuple[dict[str, Variant], list[Factor]]:
    """Each mixture of the parts that differ, which are factors; they are one where a mixture cannot be made."""
    places = [place for place in range(len(BASES)) if ran[0][place] != ran[1][place]]
    names = [BASES[place] for place in places]
    shown = [[_short(parts[place]) for place in places] for parts in ran]
    between = {"0" * len(places): first, "1" * len(places): second} if places else {"": first}
    for digits in itertools.product((0, 1), repeat=len(places)):
        key = "".join(map(str, digits))
        choice = dict(zip(places, digits, strict=True))
        stack, code, build = (ran[choice.get(place, 0)] for place in range(len(BASES)))
        mixed = between.get(key) or make(first, Parts(stack.stack, code.code, build.build))
        if mixed is None:
            say(f"not every mixture can be built here: {' and '.join(names)} are one factor")
            before, after = (", ".join(value or "–" for value in values) for values in shown)
            return {"0": first, "1": second}, [Factor(names[0], f"and {' and '.join(names[1:])}", before, after)]
        between[key] = mixed
    return between, [Factor(name, "", *values) for name, *values in zip(names, *shown, strict=True)]


def _again(application: Path | None, first: Variant, parts: Parts) -> Variant | None:
    """The variant of a record with other ``parts``; None where that cannot be made."""
    if first.application:
        return _built(application, first, *parts)
    side = Side("end", parts.stack, parts.code)
    installed = sides.install_side(side)
    return structs.replace(first, stack=side.measured) if first.benchmark in installed.benchmarks else None


def _built(file: Path | None, first: Variant, stack: str, commit: str | None, build: Variables) -> Variant | None:
    """The same test of the application of ``file``, in a state of its code, built with a stack and variables."""
    if file is None or commit is None or git.commit(commit, applications.code_folder(file)) is None:
        return None
    side = Side("end", stack, code=applications.code_of_commit(file, commit, build), spelling=commit[:12])
    request = setup.GateRequest((side, side), test=re.escape(first.test), application=file)
    with passing_folder("why") as folder:
        offered = setup.offers([side], request, folder, lambda line: None)[0]
    return offered.variants.get(first.name)


def _short(part: str | Variables | None) -> str | None:
    """A part of what an end runs, for people."""
    if isinstance(part, tuple):
        return ", ".join(f"{name}={value}" for name, value in part) or None
    return part[:12] if part and re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", part) else part


def figure_of(first: Record, second: Record) -> str | None:
    """The figure in which two records differ most; None where they have no figure with values above 0 in common."""
    ratios = {
        figure.name: abs(math.log(counterpart.value / figure.value))
        for figure in first.figures
        if (counterpart := second.figure(figure.name)) and figure.value > 0 and counterpart.value > 0
    }
    wanted = {figure.name for figure in first.variant.figures if not figure.optional}
    known = {name: value for name, value in ratios.items() if name in wanted}
    return max(known, key=lambda name: known[name], default=None)
