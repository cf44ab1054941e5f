"""A small document of each launch of a job: its ranks by equal behaviour, and what is wrong by the core's rules."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Struct

from plumbline import mpi
from plumbline.base import group
from plumbline.base.terminal import CONTROLS, on_a_line
from plumbline.base.units import counted, cpu_list, cpu_ranges
from plumbline.host.machine import Core, Machine, NumaNode, Package, cpus_of
from plumbline.launch.observed import TICK, UNBOUND, WORKED, Finding, worked
from plumbline.launch.witness import processes
from plumbline.launch.witness.model import RankWitness, Witness
from plumbline.proof import judged
from plumbline.proof.judged import Place
from plumbline.schedulers import names

#: most bytes of a document, and most characters of a text, groups and modules in it
MOST, CHARACTERS, GROUPS, MODULES = 64 << 10, 300, 1000, 100
#: jobs of the same name before this one, from which their CPUs are known, and the part of them that is fewer
BEFORE, FEWER = 3, 0.5
#: the kind of advice that needs a history
FEWER_CPUS = "fewer CPUs than before"
#: a module by name and version, not by its file
_MODULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+/-]{0,99}")
#: texts for people, and names: a job's may hold anything else
Text: TypeAlias = Annotated[str, Meta(max_length=CHARACTERS, pattern=f"^(?!.*{CONTROLS})")]
#: a line of a node's description: CPU, NUMA node or GPU, the kind of its list, and the list
_LISTED = re.compile(
    r"^(?:cpu/cpu|node/node|/sys/bus/pci/drivers/nvidia/)([\d:.a-fA-F]+)/(?:topology/)?(\w{1,20}list):([\d,-]+)$",
    re.MULTILINE,
)
#: of a port that can be used there are two: InfiniBand's, not Omni-Path's
_PORT = re.compile(
    r"^/sys/class/infiniband/((?!hfi)\w+/ports/\d+)/(?:state:4: ACTIVE|link_layer:InfiniBand)$", re.MULTILINE
)
Number: TypeAlias = Annotated[float, Meta(ge=0, le=1e15)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 40)]


class Advice(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Advice on a launch: its ``kind``, the ``reason`` with its evidence, on one of ``hosts``, and the ``cure``."""

    kind: Text
    reason: Text
    cure: Text
    hosts: Count = 1


class Group(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Ranks that are placed alike on their ``hosts``: lists, of which long ones are cut; ``count`` has all of them.

    ``cpus``: those of the working ``threads``. ``memory``: NUMA node -> its tenths of the large mappings.
    """

    ranks: Text
    count: Count
    hosts: Text
    program: Text
    cpus: Text
    threads: Count
    memory: Annotated[dict[Count, Count], Meta(max_length=1024)] = {}


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A launch of a job: that is all that is kept of it.

    ``array``: the job's number in an array. ``modules``: those that its ranks had loaded. ``began`` in seconds since
    1970. ``cpus`` are those of the job on the hosts of the launch, 0 where not known. ``groups`` are the largest that
    have room; ``left_out`` ranks are in none.
    """

    schema: Literal[1]
    job: Text
    name: Text = ""
    account: Text = ""
    partition: Text = ""
    array: Text = ""
    modules: Annotated[list[Text], Meta(max_length=MODULES)] = []
    began: Number
    wall_s: Number
    hosts: Count
    ranks: Count
    cpus: Count
    core_hours: Number
    verdict: Literal["right", "wrong", "not known"]
    advice: Annotated[list[Advice], Meta(max_length=16)] = []
    doubts: Annotated[list[Text], Meta(max_length=16)] = []
    groups: Annotated[list[Group], Meta(max_length=GROUPS)] = []
    left_out: Count = 0


class Node(NamedTuple):
    """A host of a job, as ``observe.sh`` described it: ``place`` is None where the CPUs of the job are not known.

    ``launcher``: the scheduler's own. ``names``: those of the job, its account and partition.
    """

    place: Place | None
    launcher: str
    names: dict[str, str]


def node(described: bytes) -> Node:
    """The host that ``observe.sh`` described; raises ValueError for another text."""
    text = described.decode(errors="replace")
    named = dict(re.findall(r"^(allowed|counts|cores|launcher|name|account|partition|array)=(.*)$", text, re.MULTILINE))
    listed = _LISTED.findall(text)
    lists = [each[-1] for each in listed] + [each for each in (named.get("allowed"),) if each]
    # a user wrote it: no list may take all of the memory
    if (
        any(map(re.compile(r"\d{6}").search, lists))
        or sum(len(part) for each in lists for part in cpu_ranges(each)) > 1 << 20
    ):
        raise ValueError("too many CPUs")
    siblings = {int(item): cpus for item, kind, cpus in listed if kind == "thread_siblings_list"}
    homes = {int(item): cpus_of(cpus) for item, kind, cpus in listed if kind == "cpulist"}
    gpus = {item: cpus_of(cpus) for item, kind, cpus in listed if kind == "local_cpulist"}
    numa = tuple(NumaNode(index, 1, tuple(sorted(cpus))) for index, cpus in sorted(homes.items()))
    cores = tuple(Core(tuple(sorted(cpus_of(cpus)))) for cpus in dict.fromkeys(siblings.values()))
    machine = Machine("", (Package(0, tuple(siblings)),), numa, (), cores, (), {})
    # the scheduler's counts, as 64(x2),32 or n1 64 n2 64; without control groups a process sees CPUs of other jobs too
    numbers = re.findall(r"(?:^|[ ,])(\d{1,9})(?=[ ,(]|$)", named.get("counts") or named.get("cores", ""))
    allowed = cpus_of(named["allowed"]) if named.get("allowed") else frozenset(siblings)
    # other schedulers count cores or hardware threads, as their site does
    cores_allowed = len(allowed) if named.get("counts") else len({siblings.get(cpu) for cpu in allowed})
    as_counted = {len(allowed), cores_allowed} & set(map(int, numbers)) if numbers else named.get("allowed")
    fabric = sorted({port.partition("/")[0] for port, count in Counter(_PORT.findall(text)).items() if count == 2})
    place = (
        Place(machine, allowed, siblings, gpus, fabric)
        if as_counted and siblings and allowed <= siblings.keys()
        else None
    )
    return Node(
        place,
        named.get("launcher", ""),
        {key: cut(named.get(key, "")) for key in ("name", "account", "partition", "array")},
    )


def cut(text: str) -> str:
    """``text`` as a document may hold it."""
    return textwrap.shorten(on_a_line(text, "?"), CHARACTERS, placeholder=" …")


def launches(documents: Sequence[Witness], ends: Mapping[str, float]) -> list[list[Witness]]:
    """The processes of each launch of a job: those that ran at the same time, with what started them."""
    known = {(each.host, each.pid): each for each in documents}
    parents = {(each.host, pid) for each in documents for pid in each.ancestors}
    least = WORKED * max(map(processes.cpu_s, documents), default=0)
    spans = [
        (end - each.usage.wall_s, end, each)
        for place, each in known.items()
        if place not in parents or processes.cpu_s(each) > least
        for end in [ends[f"{each.host}.{each.pid}"]]
    ]
    together: list[list[Witness]] = []
    until = -math.inf
    for begin, end, each in sorted(spans, key=lambda span: span[:2]):
        if begin + TICK >= until:
            together.append([])
        together[-1].append(each)
        until = max(until, end)
    for members in together:
        inside = {(each.host, each.pid) for each in members}
        above = dict.fromkeys((each.host, pid) for each in members for pid in each.ancestors)
        members += [known[place] for place in above if place in known and place not in inside]
    return together


def steps(
    job: str, documents: Sequence[Witness], ends: Mapping[str, float], nodes: Mapping[str, Node], damaged: Sequence[str]
) -> Iterator[Step]:
    """A document of each launch of a job in which ranks worked, in order; ``ends``: when ``HOST.PID`` ended, in s."""
    for members in launches(documents, ends):
        seen = judged.seen(members, ends)
        if not seen.launchers and len(seen.ranks) > 1:  # the scheduler's does no work, and leaves no witness
            seen = seen._replace(launchers=sorted({each.launcher for each in nodes.values()} & mpi.WORDS.keys()))
        if seen.ranks:
            yield _fitting(_step(job, seen, ends, nodes, damaged))


def _step(
    job: str, seen: judged.Seen, ends: Mapping[str, float], nodes: Mapping[str, Node], damaged: Sequence[str]
) -> Step:
    hosts = dict.fromkeys(rank.host for rank in seen.ranks)
    places = {host: place for host, each in nodes.items() if (place := each.place)}
    here = [place for host in hosts if (place := places.get(host))]
    # what nobody saw may have been on CPUs that seem to be free
    doubts = [
        *(reason for reason, _ in judged.unknown(seen.ranks, [], 0, seen.rest, sized=len(seen.ranks) > 1)),
        *damaged[:1],
    ]
    findings: list[Finding] = []
    if not places:
        doubts.append("it is not known which CPUs the job had")
    elif not doubts:
        findings, others = judged.unplanned(seen, places)
        # one thread alone, or threads that stay, are well without binding
        threads = [thread for rank in seen.ranks for thread in worked(rank)]
        moved = len(threads) > 1 and any(thread.migrations for thread in threads)
        findings = [each for each in findings if each.kind != UNBOUND or moved]
        doubts += [reason for reason, _ in others]
    described = next((each.names for each in nodes.values()), {})
    wall_s = max(rank.usage.wall_s for rank in seen.ranks)
    modules = {name for loaded in {rank.modules for rank in seen.ranks} for name in loaded.split(":")}
    return Step(
        schema=1,
        job=cut(job),
        name=described.get("name", ""),
        account=described.get("account", ""),
        partition=described.get("partition", ""),
        array=described.get("array", ""),
        modules=sorted(filter(_MODULE.fullmatch, modules))[:MODULES],
        began=max(0.0, max(ends[f"{rank.host}.{rank.pid}"] for rank in seen.ranks) - wall_s),
        wall_s=wall_s,
        hosts=len(hosts),
        ranks=len(seen.ranks),
        cpus=sum(len(place.allowed) for place in here) if len(here) == len(hosts) else 0,
        core_hours=sum(len({place.siblings[cpu] for cpu in place.allowed}) for place in here) * wall_s / 3600,
        verdict="wrong" if findings else "not known" if doubts else "right",
        advice=[
            Advice(kind=kind, reason=cut(first.reason), cure=cut(first.cure), hosts=len({each.host for each in every}))
            for kind, every in group((each.kind, each) for each in findings).items()
            for first in every[:1]
        ],
        doubts=[cut(doubt) for doubt in doubts[:3]],
        groups=_groups(seen.ranks),
    )


def _groups(ranks: Sequence[RankWitness]) -> list[Group]:
    alike = group((_behaviour(rank), rank) for rank in ranks)
    return [
        Group(
            ranks=cut(cpu_list(numbers) if (numbers := {rank.rank for rank in every} - {-1}) else ""),
            count=len(every),
            hosts=cut(names.fold(sorted({rank.host for rank in every}))),
            program=cut(program),
            cpus=cut(cpus),
            threads=threads,
            memory=dict(memory),
        )
        for (program, cpus, threads, memory), every in sorted(alike.items(), key=lambda item: -len(item[1]))
    ]


def _behaviour(rank: RankWitness) -> tuple[str, str, int, tuple[tuple[int, int], ...]]:
    threads = worked(rank)
    pages = Counter(rank.memory.nodes) + Counter(rank.memory.freed_nodes)
    tenths = {index: round(10 * count / pages.total()) for index, count in sorted(pages.items())}
    memory = tuple((index, part) for index, part in tenths.items() if part)
    return Path(rank.program).name, cpu_list({cpu for each in threads for cpu in each.affinity}), len(threads), memory


def _fitting(step: Step) -> Step:
    """``step`` with as many of its groups as there is room for."""
    while len(msgspec.json.encode(step)) > MOST or len(step.groups) > GROUPS:
        size = min(len(step.groups) * 3 // 4, GROUPS)
        less = sum(each.count for each in step.groups[size:])
        step = msgspec.structs.replace(step, groups=step.groups[:size], left_out=step.left_out + less)
    return step


def with_history(step: Step, before: Iterable[Step]) -> Step:
    """``step`` with the advice that launches ``before`` it give: those of its name, hosts and ranks, all alike."""
    same = [
        each
        for each in before
        if (each.name, each.hosts, each.ranks) == (step.name, step.hosts, step.ranks)
        and (each.job != step.job and each.began < step.began)
    ]
    jobs, had = {each.job for each in same}, {each.cpus for each in same}
    if not (step.name and step.cpus and len(jobs) >= BEFORE and len(had) == 1 and step.cpus < FEWER * min(had)):
        return step
    reason = f"{counted(step.ranks, 'rank')} had {step.cpus} CPUs, in {len(jobs)} jobs of this name before {min(had)}"
    advice = Advice(kind=FEWER_CPUS, reason=cut(reason), cure="ask the scheduler for as many as before")
    return msgspec.structs.replace(step, verdict="wrong", advice=[*step.advice, advice])
