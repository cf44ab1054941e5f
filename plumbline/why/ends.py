"""The two ends of a search: records, or sides as a gate has them, and every mixture of their stacks and their code."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from plumbline import site
from plumbline.application import model as applications
from plumbline.application import source
from plumbline.base import git
from plumbline.base.errors import PlumbError
from plumbline.gate import confirm, setup, sides
from plumbline.gate.sides import KERNELS, Changes, Side
from plumbline.judge import decide, from_records
from plumbline.launch import settings
from plumbline.launch.prepare import APPLICATION, OWN
from plumbline.measure.session import Say, passing_folder
from plumbline.records import query, sources
from plumbline.records.model import Record
from plumbline.records.variant import Variant
from plumbline.stacks import manifest as manifests
from plumbline.statistics.paired import Rule
from plumbline.why import factors
from plumbline.why.model import BASES, Ends, Factor

COMMAND = "plumb why"
#: sessions of gates that are looked at for the newest FAIL, at most
MOST_GATES = 100
_ID = re.compile(r"[0-9a-f]{4,12}|last")


@dataclass(frozen=True)
class _Ran:
    """What an end runs: a stack, and of the suite's kernels or of an application a state of the code."""

    stack: str
    code: str | None
    side: Side

    @property
    def parts(self) -> tuple[str, str | None]:
        return self.stack, self.code


def are_records(names: Sequence[str]) -> bool:
    """Whether ``names`` could be ids of records, and no stacks."""
    return all(_ID.fullmatch(name) and name not in manifests.names() for name in names)


def newest_fail(name: str | None) -> tuple[Record, Record, str]:
    """Baseline, candidate and figure of the newest FAIL of a live gate of site ``name``; raises where there is none."""
    here = name or site.here()
    for file in sorted(sources.find(here).sessions, reverse=True)[:MOST_GATES]:
        for baseline, candidate in _couples(file):
            found = decide.decide(from_records.pairs_of(baseline, candidate), Rule())
            failed = [one for one in found if one.state == "FAIL" and one.ratio]
            if failed:
                worst = max(failed, key=lambda one: max(one.ratio or 1, 1 / (one.ratio or 1)))
                return baseline, candidate, worst.subject.rpartition(": ")[2]
    cure = "name two records, or two sides: plumb why stack:A stack:B --test NAME"
    raise PlumbError("no gate ended with FAIL here", f"the results of {here}", cure)


def _couples(file: Path) -> list[tuple[Record, Record]]:
    try:
        found = from_records.couples(file)
    except PlumbError:  # no session of a gate
        return []
    return [both for both in found if all(record.side for record in both)]


def of_records(first: Record, second: Record, roots: bool, say: Say) -> Ends:
    """The ends that two records are; ``roots``: settings of the host are factors. Raises :class:`PlumbError`.

    What cannot be set is in :attr:`Ends.fixed`.
    """
    both = (first, second)
    _refuse(both)
    ran = [_ran(record) for record in both]
    differ: Collection[str] = ()
    if ran[0].stack == ran[1].stack:  # else they follow from the stack
        every = {**first.environment, **second.environment}
        differ = {name for name in every if first.environment.get(name) != second.environment.get(name)}
    variants = [_asked(record, one, differ) for record, one in zip(both, ran, strict=True)]
    settable = factors.of_host(first.host, second.host) if roots else []
    taken = {f"host.{one.name}" for one in settable}
    fixed = [one for one in factors.fixed(first, second) if one.key not in taken]
    labels = tuple(f"record {record.id} of {record.time[:16]}" for record in both)
    return _between((labels[0], labels[1]), variants, ran, say, settable, fixed, tuple(record.id for record in both))


def _refuse(both: tuple[Record, Record]) -> None:
    for record in both:
        if record.is_imported or record.is_profiled:
            kind = "imported" if record.is_imported else "a profile"
            raise PlumbError(f"record {record.id} is {kind}: it cannot be measured again", COMMAND, "name another")
    here, (first, second) = site.here(), both
    if {first.site, second.site} != {here}:
        what = f"the records are of {first.site} and {second.site}, this host belongs to {here}"
        raise PlumbError(what, COMMAND, "measure where the records were made")
    if first.id == second.id:
        raise PlumbError("both are the same record", COMMAND, "name two")
    if factors.key_of(first.variant) != factors.key_of(second.variant):
        what = f"'{first.variant.name}' and '{second.variant.name}' do not measure the same"
        cure = "name records of one test, partition and number of nodes, whose figures have the same meaning"
        raise PlumbError(what, COMMAND, cure)


def _ran(record: Record) -> _Ran:
    """What can be started here in place of what ``record`` ran. Raises :class:`PlumbError` for what is gone."""
    state = record.variant.application
    is_own = record.variant.benchmark in (OWN, APPLICATION)
    name = confirm.installed(record, kernels=not is_own)
    if name and is_own:
        return _Ran(name, (state.commit or state.digest) if state else None, Side("end", name))
    if name:
        base, _, digits = name.partition("@")
        commit = git.commit(digits) if digits else None
        return _Ran(base, commit, Side("end", base, commit))
    base_name = confirm.installed(record, kernels=False)
    commit = record.suite.commit
    if record.benchmark.suite == KERNELS and base_name and commit and not record.suite.dirty and git.commit(commit):
        return _Ran(base_name, commit, Side("end", base_name, commit))
    what = f"the programs of record {record.id} are not installed any more: stack {record.stack.name}"
    cure = "install that state of it, or name two sides that are: plumb why stack:A stack:B --test NAME"
    raise PlumbError(what, COMMAND, cure)


def _asked(record: Record, ran: _Ran, names: Collection[str]) -> Variant:
    """The variant of ``record`` on the stack that is there, with those variables of its launches that are ``names``."""
    stack = manifests.load(ran.stack)
    asked = {**stack.settings, **record.variant.settings}
    own = {*stack.environment, *settings.variables(stack.family, asked)}
    variables = {
        name: value
        for name, value in record.environment.items()
        if name in names and name not in own and not name.startswith(factors.OWN)
    }
    environment = {**variables, **record.variant.environment}
    return structs.replace(record.variant, stack=ran.side.measured, environment=environment)


def of_sides(request: setup.Request, say: Say) -> Ends:
    """The ends that two sides of a gate are. Raises :class:`PlumbError` unless they have one test in common."""
    both = request.both
    differing = both[0].changes.params | both[1].changes.params
    with passing_folder("why") as folder:
        offered = setup.offers(both, request, folder, say)
        couples, _ = setup.couple(offered[0], offered[1], request.common)
        if len(couples) > 1:
            names = ", ".join(couple[0].name for couple in couples[:4])
            what = f"{len(couples)} tests: {names}{', …' if len(couples) > 4 else ''}"
            raise PlumbError(what, COMMAND, "choose one: --test with more of its name, parameters included")
        first, second = couples[0]
        ran = [_Ran(side.stack, _code(side), side) for side in both]
        mixed = {}
        for one, other in itertools.permutations(ran, 2):
            if one.stack != other.stack and one.code != other.code:
                made = setup.offers([_crossed(one, other)], request, folder, say)[0].changed(differing)
                mixed[one.stack, other.code] = made.get(first.name)
    return _between((both[0].given, both[1].given), [first, second], ran, say, [], [], (), mixed)


def _code(side: Side) -> str | None:
    program = str(side.changes.program) if side.changes.program else None
    return program or (side.code.identity if side.code else side.commit)


def _crossed(one: _Ran, other: _Ran) -> Side:
    """The stack of one end with the code of the other."""
    return replace(
        other.side,
        stack=one.stack,
        changes=Changes(program=other.side.changes.program),
        given=f"{other.side.given} on {one.stack}",
    )


def _between(
    labels: tuple[str, str],
    variants: Sequence[Variant],
    ran: Sequence[_Ran],
    say: Say,
    settable: Sequence[Factor],
    fixed: Sequence[factors.Fixed],
    ids: tuple[str, ...],
    mixed: dict[tuple[str, str | None], Variant | None] | None = None,
) -> Ends:
    """The ends, their factors and the mixtures of what they run."""
    variants, stacks = _without_tuning(variants, [one.stack for one in ran])
    ran = [replace(one, stack=name) for one, name in zip(ran, stacks, strict=True)]
    first, second = variants
    differ = [one != two for one, two in zip(ran[0].parts, ran[1].parts, strict=True)]
    between: dict[str, Variant] = {"": first}
    runs: list[Factor] = []
    if all(differ):
        between, runs = _both_differ(first, second, ran, mixed, say)
    elif any(differ):
        kind = BASES[differ.index(True)]
        between = {"0": first, "1": second}
        runs = [Factor(kind, "", *(_short(one.parts[differ.index(True)]) for one in ran))]
    both = [manifests.load(name) for name in stacks]
    libraries = factors.of_libraries(*both) if differ[0] else []
    packages = factors.packages(*both) if differ[0] else []
    found = [*runs, *libraries, *factors.of_variants(first, second), *settable]
    if not found:
        raise PlumbError("the ends do not differ in anything that can be set here", COMMAND, _differences(fixed))
    return Ends(labels, first, second, found, between, [*packages, *fixed], ids)


def _differences(fixed: Sequence[factors.Fixed]) -> str:
    told = ", ".join(f"{one.key} {one.before} → {one.after}" for one in fixed[:6])
    roots = "; with --root: " + ", ".join(one.key for one in fixed if one.why == "root only")
    return f"they differ in {told or 'nothing'}{roots if any(one.why == 'root only' for one in fixed) else ''}"


def _without_tuning(variants: Sequence[Variant], stacks: Sequence[str]) -> tuple[list[Variant], list[str]]:
    """A tuned stack as the stack that it was made from, with settings: each of these is a factor then."""
    made, found = [], []
    for variant, name in zip(variants, stacks, strict=True):
        stack = manifests.load(name)
        if stack.tuned and stack.made_of in manifests.names():
            tuned = {**stack.settings, **variant.settings}
            variant = structs.replace(variant, stack=variant.stack.replace(name, stack.made_of), settings=tuned)
            name = stack.made_of
        made.append(variant)
        found.append(name)
    return made, found


def _both_differ(
    first: Variant,
    second: Variant,
    ran: Sequence[_Ran],
    mixed: dict[tuple[str, str | None], Variant | None] | None,
    say: Say,
) -> tuple[dict[str, Variant], list[Factor]]:
    """Stack and code as two factors where each can be had with the other's, else as one."""
    found = [_mixture(first, ran[1], ran[0], mixed), _mixture(first, ran[0], ran[1], mixed)]
    if found[0] is None or found[1] is None:
        say("the code cannot be built with the other stack here: stack and code are one factor")
        told = [f"{one.stack}, {_short(one.code)}" for one in ran]
        return {"0": first, "1": second}, [Factor("stack", "and code", *told)]
    between = {"00": first, "10": found[0], "01": found[1], "11": second}
    return between, [Factor(kind, "", *(_short(one.parts[place]) for one in ran)) for place, kind in enumerate(BASES)]


def _mixture(
    first: Variant, stack: _Ran, code: _Ran, mixed: dict[tuple[str, str | None], Variant | None] | None
) -> Variant | None:
    """The variant on the stack of one end with the code of the other; None where that cannot be made."""
    if mixed is not None:
        return mixed.get((stack.stack, code.code))
    if first.application:
        return _built(first, stack.stack, code.code)
    side = Side("end", stack.stack, code.code)
    made = sides.install_side(side)
    return structs.replace(first, stack=side.measured) if first.benchmark in made.benchmarks else None


def _built(first: Variant, stack: str, commit: str | None) -> Variant | None:
    """The same test of the application in this folder, in a state of its code, built with another stack."""
    file = applications.named_or_here(None)
    if file is None or commit is None or git.commit(commit, file.parent) is None:
        return None
    side = Side("end", stack, code=source.of_commit(file, commit), given=commit[:12])
    request = setup.Request((side, side), test=re.escape(first.test), application=file)
    with passing_folder("why") as folder:
        offered = setup.offers([side], request, folder, lambda line: None)[0]
    return offered.variants.get(first.name)


def _short(text: str | None) -> str | None:
    return text[:12] if text and re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text) else text


def find(first: str, second: str) -> tuple[Record, Record]:
    """Two records by the beginnings of their ids."""
    return query.find(first), query.find(second)


def figure_of(first: Record, second: Record) -> str | None:
    """The figure in which two records differ most; None where they have no figure with values above 0 in common."""
    ratios = {
        one.name: abs(math.log(other.value / one.value))
        for one in first.figures
        if (other := second.figure(one.name)) and one.value > 0 and other.value > 0
    }
    wanted = {one.name for one in first.variant.figures if not one.optional}
    known = {name: value for name, value in ratios.items() if name in wanted}
    return max(known, key=lambda name: known[name], default=None)
