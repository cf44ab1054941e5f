"""``plumb site``, ``nodes``, ``doctor``, ``setup`` and ``topology``: machines, their nodes, and this host."""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from plumbline import schedulers, site, stacks
from plumbline.base import files, group, paths, terminal, units
from plumbline.base.errors import PlumbError, assignments
from plumbline.base.extensions import Extension
from plumbline.base.table import table
from plumbline.commands import options
from plumbline.commands.options import Actions, Command, command, exclusive, flag, goes_without, only_with, option
from plumbline.host import binder, devices, provenance
from plumbline.host import ceilings as host_ceilings
from plumbline.host.binder import resolve
from plumbline.host.draw import draw
from plumbline.judge.references import References
from plumbline.measure import ceilings
from plumbline.records.model import document
from plumbline.schedulers import Node, names
from plumbline.site import write
from plumbline.site.nodes import collection, compare, findings
from plumbline.site.nodes.findings import ORDER, NodeFinding
from plumbline.stacks import manifest

#: seconds of set-up on two cores: what is downloaded is in pip's cache
SETUP_S = {"stack": 25.0, "ceilings": 66.0}


@command(
    option("--site", "name of the site and of its folder below site-configs/ (default: local)", default="local"),
    option("--partition", "partition of this host (default: default)", default="default"),
    options.scheduler(),
    option("--description", "description of the site, in one line", default="", metavar="TEXT"),
    options.repeated("--access", "scheduler option of every job; repeatable"),
    option("--nodes", "maximum number of nodes per test"),
    option(
        "--launcher", "launcher of ranks in a job (default: mpirun)", choices=("mpirun", *schedulers.RANK_LAUNCHERS)
    ),
    *(
        options.repeated(f"--{name}-mpi", f"{name} --mpi=TYPE for an MPI family", metavar="FAMILY=TYPE")
        for name in schedulers.RANK_LAUNCHERS
    ),
    options.repeated("--env", "environment variable of every launch; repeatable"),
    options.repeated("--hosts", "names of the nodes, for a scheduler without a node list"),
    option("--max-pending", "maximum pending time of a job in seconds", type=int, metavar="S"),
    option("--max-job", "maximum run time of a job in seconds (default: the scheduler's limit)", type=int, metavar="S"),
    option("--offer", "stacks of the partition (default: all installed ones)", metavar="A,B"),
    option("--offer-also", "add these stacks to an existing partition", metavar="A,B"),
    option("--facts", "read topology and facts of the nodes from this folder (plumb nodes facts)"),
    options.repeated("--hostname", "login hosts of the site; repeatable (default: this host)"),
    flag("--recapture", "capture the topology again"),
    flag("--dry-run", "show the changes and write nothing"),
    help="write the site folder of this host, or complete an existing one",
)
def _site_init(args: argparse.Namespace) -> int:
    for name, value in (("--site", args.site), ("--partition", args.partition)):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", value):
            raise PlumbError(
                f"'{value}' cannot be a name", f"plumb site init {name}", "use letters, digits, '_' and '-'"
            )
    scheduler = schedulers.named(args.scheduler)
    request = write.SiteRequest(
        name=args.site,
        partition=args.partition,
        scheduler=args.scheduler,
        description=args.description,
        stacks=_stack_names(args.offer) if args.offer else manifest.names(),
        add_stacks=_stack_names(args.offer_also),
        access=args.access,
        nodes=args.nodes,
        keys={
            "launcher": args.launcher,
            **{
                f"{name}_mpi": assignments(
                    getattr(args, f"{name}_mpi"), f"--{name}-mpi", f"write --{name}-mpi FAMILY=TYPE", "FAMILY=TYPE"
                )
                for name in schedulers.RANK_LAUNCHERS
            },
            "environment": assignments(args.env, "--env", "write --env NAME=VALUE"),
            "hosts": _expanded(args.hosts, "--hosts") or None,
            "max_pending_s": args.max_pending,
            "max_job_s": args.max_job or scheduler.longest_job(scheduler.queue(None, args.access)),
        },
        hostnames=args.hostname,
        captured=compare.captured(args.facts) if args.facts else None,
        recapture=args.recapture,
    )
    changes = write.init(request, dry_run=args.dry_run)
    shown = list(filter(None, changes))
    print("".join(f"{diff}\n" for diff in shown), end="")
    would = "would change" if args.dry_run else "written"
    done = f"{units.counted(len(changes), 'file')} {would}" if changes else "unchanged"
    empty = f", {len(changes) - len(shown)} of them without references yet" if len(shown) < len(changes) else ""
    print(f"site {args.site}: {done}{empty}")
    if site.folder(args.site).joinpath(site.FILE).exists():
        for name in sorted(set(request.stacks) - set(site.partition(site.load(args.site), args.partition).stacks)):
            message = f"stack {name} is installed, but partition {args.partition} does not offer it"
            print(f"site {args.site}: {message} (--offer-also {name})")
    return 0


def _stack_names(specs: str | None) -> list[str]:
    """Installed names of stacks written as ``openmpi,spack:mpich``."""
    return [stacks.label(*stacks.split(spec)) for spec in options.names_of(specs)]


@command(
    options.as_json("print JSON, one line per partition"),
    flag("--all", "list the machines of the past (archived) too"),
    help="list the configured sites and their partitions",
)
def _site_list(args: argparse.Namespace) -> int:
    known = sorted(site.load_all(), key=lambda known: not site.is_here(known))
    listed = [item for item in known if args.all or args.json or not item.archived]
    parts = [(item.name, part) for item in listed for part in item.partitions]
    if args.json:
        options.print_lines({"site": name, **document(part)} for name, part in parts)
        return 0
    if not listed:
        print(f"no site in {paths.sites()}: plumb site init makes one for this host")
    for name, part in parts:
        print("  ".join([f"{name}:{part.name}", part.scheduler, ", ".join(part.stacks) or "no stacks", *part.access]))
    if len(listed) < len(known):
        print(f"{len(known) - len(listed)} archived sites: plumb site list --all")
    return 0


@command(
    option("sites", "sites to check (default: all)", nargs="*", metavar="SITE"),
    help="verify site.yaml, topologies and references",
)
def _site_check(args: argparse.Namespace) -> int:
    for name in options.sites_of(args):
        document = site.load(name)
        count = len(References.load(name).entries)
        measured = len(host_ceilings.read(name))
        parts, references = units.counted(len(document.partitions), "partition"), units.counted(count, "reference")
        print(f"{name}: {parts}, {measured} with ceilings, {references}")
    return 0


@command(
    option("--site", "site (default: the site of this host)"),
    option("--partition", "partition (default: all partitions of the site)"),
    option("--stack", "stack of the kernels (default: the first of the partition)"),
    flag("--if-needed", "measure only if ceilings are missing or belong to another machine"),
    help="measure the ceilings of a partition and write ceilings.yaml",
)
def _site_measure(args: argparse.Namespace) -> int:
    name = args.site or site.here()
    document = site.load(name)
    if document.archived:
        raise PlumbError(f"site {name} is archived", "plumb site measure", "its machines are not measured any more")
    parts = [site.partition(document, args.partition)] if args.partition else document.partitions
    return ceilings.measure_all(name, parts, args.stack, terminal.say, if_needed=args.if_needed)


run_site = Actions({"init": _site_init, "list": _site_list, "check": _site_check, "measure": _site_measure})


#: arguments of what asks the scheduler for its nodes
OF_SCHEDULER = (
    options.scheduler(None),
    option("--partition", "partition or queue of the scheduler, unless an --access option names it"),
    options.repeated("--access", "scheduler option; repeatable"),
    options.repeated("--hosts", f"hosts of scheduler {schedulers.REMOTE.name}"),
)
#: arguments of what changes nodes
OF_NODES = (
    options.scheduler(None),
    options.repeated("--node", "node, or nodes such as node[1-4]; repeatable", required=True),
)


def _take_from_site(args: argparse.Namespace) -> None:
    """Ask the scheduler that the partitions of this host's site have, as their access options say, where there is one.

    ``--partition`` is the name of one of them, or of the scheduler's own.
    """
    if args.scheduler is not None:
        return
    claimed = site.claiming(site.load_all())
    parts = claimed.partitions if claimed else []
    wanted = [part for part in parts if getattr(args, "partition", None) == part.name] or parts
    used = {part.scheduler for part in wanted}
    args.scheduler = used.pop() if len(used) == 1 else "local"
    if len(wanted) == 1 and args.action in ("facts", "states") and args.partition in (None, wanted[0].name):
        args.partition = None if wanted[0].access else args.partition
        args.access = args.access or wanted[0].access
        args.hosts = args.hosts or wanted[0].hosts


@command(
    *OF_SCHEDULER,
    option("folder", "output folder, shared by the nodes", type=files.OutputFolder, metavar="FOLDER"),
    option("--site", "add your own options (config.yaml) for jobs of this site, which need not be there yet"),
    exclusive(
        option("--nodes", "any N nodes (default: all usable nodes)"),
        options.repeated("--node", "node, or nodes such as node[1-4]; repeatable"),
    ),
    option("--python", "Python 3.6 or newer on the nodes (default: python3)", default="python3", metavar="PROGRAM"),
    option("--time-limit", "give up after S seconds (default: 900)", default=900),
    help="collect the facts of nodes in one job: FOLDER/HOST.json and HOST.xml",
)
def _node_facts(args: argparse.Namespace) -> int:
    _take_from_site(args)
    queue = _queue(args)
    if args.python.startswith("-"):
        raise PlumbError(f"{args.python!r} is not a program", "--python", "give the name or path of Python")
    chosen = _expanded(args.node, "--node")
    passed: list[Node] = []
    scheduler = schedulers.named(args.scheduler)
    if not scheduler.has_jobs and not scheduler.is_one_host:
        chosen = chosen or _expanded(args.hosts, "--hosts")[: args.nodes]
        if not chosen:
            raise PlumbError(f"scheduler {scheduler.name} needs hosts", "plumb nodes facts", "give --hosts A,B")
    elif not chosen and args.nodes is None and scheduler.has_jobs:
        nodes = schedulers.nodes(scheduler, queue, access=_access(args))
        passed = [node for node in nodes if not node.usable]
        chosen = [node.name for node in nodes if node.usable]
        if not chosen:
            raise PlumbError("no node can be used", f"partition {queue or 'default'}", "see plumb nodes states")
    request = collection.FactsRequest(
        scheduler=args.scheduler, output=args.folder.resolve(), queue=queue, access=_access(args), nodes=chosen,
        count=args.nodes or 1, python=args.python, limit=args.time_limit,
    )  # fmt: skip
    done = collection.collect(request)
    try:
        facts = collection.folder(request.output)
    except PlumbError as error:
        if done.status != 0:
            raise PlumbError(f"the job failed: {done.last()}", error.where, "run plumb nodes states") from None
        raise PlumbError(error.message, error.where, "name a folder that this host and the nodes share") from None
    for node in passed:
        print(f"{node.name}: not asked: {node.state}{f' ({node.reason})' if node.reason else ''}")
    absent = [item for item in compare.compare(facts).differences if not item.quantity]
    for item in absent:
        print(item.line())
    if done.status != 0:
        print(f"{args.scheduler}: {done.last()}")
    print(f"{len(facts.nodes)} of {request.size()} nodes answered: {names.fold(facts.nodes)} in {args.folder}")
    return 1 if absent or done.status != 0 else 0


@command(
    *OF_SCHEDULER,
    options.as_json("print the nodes as JSON"),
    help="list the nodes of a partition with their states and reasons",
)
def _node_states(args: argparse.Namespace) -> int:
    _take_from_site(args)
    hosts = _expanded(args.hosts, "--hosts")
    nodes = schedulers.nodes(schedulers.named(args.scheduler), _queue(args), hosts, _access(args))
    if args.json:
        print(json.dumps([asdict(node) for node in nodes], indent=1))
        return 0
    rows = [
        (node.name, node.state, "yes" if node.usable else "no", node.reason)
        for node in sorted(nodes, key=lambda node: node.usable)
    ]
    print(table(("node", "state", "usable", "reason"), rows))
    print(f"\n{sum(node.usable for node in nodes)} of {len(nodes)} nodes can be used")
    return 0


@command(
    option("folder", "folder of the facts (plumb nodes facts)", type=Path, metavar="FOLDER"),
    options.as_json("print all differences as JSON"),
    option("--scheduler", "compare with what this scheduler believes of the nodes", choices=schedulers.TABLE),
    help="find nodes that differ from the largest group of equal nodes, or from what their scheduler believes",
)
def _compare_nodes(args: argparse.Namespace) -> int:
    facts = collection.folder(args.folder)
    if args.scheduler:
        return _compare_with_scheduler(args, facts)
    result = compare.compare(facts)
    if args.json:
        print(json.dumps(result.document(), indent=1))
        return 1 if result.differences else 0
    rows = [(item.where(), item.quantity, item.here, item.usual, str(item.others or "")) for item in result.differences]
    if rows:
        print(table(("nodes", "differ in", "here", "usual", "nodes so"), rows, right=("nodes so",)) + "\n")
    print(f"largest group: {compare.summary(facts, result)}")
    print(f"clocks: the time stamps of the job's starts lie within {result.spread:.2f} s")
    differing = result.differing()
    if not differing:
        print(f"{result.answered} of {result.requested} nodes answered; they are equal")
        return 0
    if len(result.groups) > 1 and len(result.groups[0]) == len(result.groups[1]):
        print("two groups are equally large: neither is the usual one")
    number = len([name for name in differing if name != "?"]) + facts.unnamed()
    lines = "; ".join(item.line() for item in result.differences[:3])
    more = len(result.differences) - 3
    lines += f"; and {more} more" if more > 0 else ""
    print(f"{number} of {result.requested} nodes {'differs' if number == 1 else 'differ'}: {lines}")
    return 1


def _compare_with_scheduler(args: argparse.Namespace, facts: collection.Facts) -> int:
    differences, corrections = compare.against(facts, args.scheduler)
    if args.json:
        print(json.dumps({"differences": [item.line() for item in differences], "corrections": corrections}, indent=1))
        return 1 if differences else 0
    if rows := [(item.where(), item.quantity, item.usual, item.here) for item in differences]:
        print(table(("nodes", "quantity", args.scheduler, "node"), rows) + "\n")
    print("".join(f"next: {line}\n" for line in corrections), end="")
    apart = len({name for item in differences for name in item.nodes})
    print(f"{apart} of {units.counted(len(facts.nodes), 'node')} not as {args.scheduler} believes")
    return 1 if differences else 0


def _change_nodes(args: argparse.Namespace) -> int:
    _take_from_site(args)
    scheduler = schedulers.named(args.scheduler)
    for node in _expanded(args.node, "--node"):
        message = scheduler.resume(node) if args.action == "resume" else scheduler.drain(node, args.reason)
        print(message or f"{node} is left as it is")
    return 0


def _queue(args: argparse.Namespace) -> str | None:
    if args.partition is not None:
        names.host(args.partition, "--partition", "partition")
    return schedulers.named(args.scheduler).queue(args.partition, args.access)


def _access(args: argparse.Namespace) -> list[str]:
    """The options of jobs: those of ``--access`` or of the site, and those for all jobs."""
    added = site.personal(getattr(args, "site", None) or "", args.partition, schedulers.named(args.scheduler).name)
    return list(dict.fromkeys([*args.access, *added]))


def _expanded(texts: Iterable[str], option: str) -> list[str]:
    """The names of ``texts`` such as ``node[1-4]``, the values of a repeated ``option``."""
    return [name for text in texts for name in names.expand(text, option)]


run_nodes = Actions(
    {
        "facts": _node_facts,
        "states": _node_states,
        "compare": _compare_nodes,
        "drain": Command(
            _change_nodes,
            (*OF_NODES, option("--reason", "reason, shown by the scheduler", required=True, metavar="TEXT")),
            help="drain nodes: keep new jobs away; nodes that are out of service already stay unchanged",
        ),
        "resume": Command(
            _change_nodes, OF_NODES, help="resume nodes that plumb nodes drain or a health check has drained"
        ),
    }
)


#: findings about the MPI libraries of the installed stacks
LIBRARIES: Extension[[], list[NodeFinding]] = Extension("doctor.libraries")
#: how a finding is shown
MARKS = {True: "!!", None: "??", False: "ok"}


@command(
    flag("--mpi", "also run and check the MPI libraries of the installed stacks"),
    option("--facts", "read the facts of all nodes from this folder (plumb nodes facts)"),
    options.as_json("print JSON, one line per finding"),
)
def run_doctor(args: argparse.Namespace) -> int:
    """Print the findings on this host, or on all nodes; 1 if anything is wrong, else 0."""
    if args.facts is not None:
        return _examine_nodes(args.facts, args.json)
    libraries = [finding for findings_of_one in LIBRARIES() for finding in findings_of_one] if args.mpi else []
    host_findings = findings.examine(provenance.collect()) + findings.examine_links(devices.pci_links().values())
    host_findings = findings.by_badness([*host_findings, *findings.own_checkout(), *libraries])
    if args.json:
        options.print_lines(map(asdict, host_findings))
    else:
        print(report(host_findings))
    return 1 if any(finding.bad for finding in host_findings) else 0


def _examine_nodes(folder: Path, as_json: bool) -> int:
    """Print the faults of all nodes whose facts are in ``folder``; 1 if anything is wrong on any, else 0."""
    facts = collection.folder(folder)
    by_node = {name: findings.examine_node(node) for name, node in facts.nodes.items()}
    absent = [item.line() for item in compare.compare(facts).differences if not item.quantity]
    with options.progress(as_json):
        print("".join(f"{line}\n" for line in absent), end="")
    if as_json:
        options.print_lines(
            {"node": name, **asdict(item)} for name, node_findings in by_node.items() for item in node_findings
        )
    else:
        print(nodes_report(by_node))
    return 1 if absent or any(item.bad for node_findings in by_node.values() for item in node_findings) else 0


def nodes_report(nodes: dict[str, list[NodeFinding]]) -> str:
    """A row per property and outcome with its nodes: faults first, rare outcomes before common ones."""
    cases = group(
        ((item.name, item.bad), (node, item)) for node, node_findings in nodes.items() for item in node_findings
    )
    rows = []
    for (name, bad), members in sorted(cases.items(), key=lambda case: (ORDER[case[0][1]], len(case[1]), case[0][0])):
        first = members[0][1]
        seen = sorted({item.seen for _, item in members})
        rows.append((
            MARKS[bad], name, "; ".join(seen[:3]) + ("; …" if len(seen) > 3 else ""), str(len(members)),
            names.fold(node for node, _ in members), f"{first.effect}; {first.cure}" if bad else "",
        ))  # fmt: skip
    wrong = {node for node, node_findings in nodes.items() if any(item.bad for item in node_findings)}
    last = f"{len(wrong)} of {len(nodes)} nodes have something to fix"
    return table(("", "property", "seen", "nodes", "which", "effect; cure"), rows, right=("nodes",)) + "\n\n" + last


def report(host_findings: list[NodeFinding]) -> str:
    """One screen: a row per finding, the count of faults last."""
    rows = [
        (MARKS[item.bad], item.name, item.seen, f"{item.effect}; {item.cure}" if item.bad else "")
        for item in host_findings
    ]
    wrong = sum(item.bad is True for item in host_findings)
    unknown = sum(item.bad is None for item in host_findings)
    last = f"{wrong} to fix, {unknown} not readable, {len(host_findings) - wrong - unknown} fine"
    return table(("", "property", "seen", "effect; cure"), rows) + "\n\n" + last


#: a program or a header that stacks and applications are built with -> its package, by family of distributions
NEEDED = {
    "gcc": {"debian": "gcc", "rhel": "gcc"},
    "stdio.h": {"debian": "libc6-dev", "rhel": "glibc-devel"},
    "make": {"debian": "make", "rhel": "make"},
    "cmake": {"debian": "cmake", "rhel": "cmake"},
    "git": {"debian": "git", "rhel": "git"},
    "pkg-config": {"debian": "pkg-config", "rhel": "pkgconf-pkg-config"},
    "hwloc.h": {"debian": "libhwloc-dev", "rhel": "hwloc-devel"},
    "numaif.h": {"debian": "libnuma-dev", "rhel": "numactl-devel"},
}
#: programs that plumb doctor and people use
WANTED = {
    "lstopo-no-graphics": {"debian": "hwloc-nox", "rhel": "hwloc"},
    "numactl": {"debian": "numactl", "rhel": "numactl"},
}
INSTALL = {"debian": "apt-get install", "rhel": "dnf install"}
#: the site of a host that has none, and its partition
SITE, PARTITION = "local", "default"


@command(
    options.repeated("--stack", "stack to install; repeatable (default: all of plumb stack names)"),
    flag("--no-ceilings", "skip measuring the ceilings (later: plumb site measure)"),
)
def run_setup(args: argparse.Namespace) -> int:
    """Do the steps in order and print a line for each; the exit status is returned."""
    wanted = [stacks.origin(spec) for spec in args.stack or stacks.provider(stacks.DEFAULT_PROVIDER).names()]
    stacks.check(wanted)
    print(f"tools: {len(binder.placements())} placements, {paths.binder()}", flush=True)
    if absent := missing(NEEDED):
        message = (
            f"missing: {', '.join(absent)}; without them no stack is built: plumb topology, doctor and records work"
        )
        raise PlumbError(message, platform.node(), packages(absent))
    print(f"compiler: {shutil.which('gcc')}, and all that is built with it", flush=True)
    if absent := missing(WANTED):
        print(f"wanted: {', '.join(absent)}; {packages(absent)}", flush=True)
    there, took = {known.name for known in manifest.load_all()}, list[tuple[str, float]]()
    lacking = [origin for origin in dict.fromkeys(wanted) if stacks.label(*origin) not in there]
    with terminal.bar():
        for origin in dict.fromkeys(wanted):
            if origin in lacking:
                waiting = {"stack": len(lacking) - len(took), "ceilings": int(not args.no_ceilings)}
                left = units.human_seconds(units.time_left(took, waiting, SETUP_S))
                print(f"{stacks.label(*origin)}: to be installed, about {left} left", flush=True)
            begun = time.monotonic()
            stacks.install(*origin)
            took += [("stack", time.monotonic() - begun)] if origin in lacking else []
    here = _claimed_site([stacks.label(kind, name) for kind, name in wanted])
    if not args.no_ceilings:
        try:
            ceilings.measure_all(here, site.load(here).partitions, None, terminal.say, if_needed=True)
        except PlumbError as error:  # a site without ceilings is a whole one
            print(f"ceilings: {error}; plumb site measure tries again")
    activate = "" if paths.is_installed() else ". ./activate, then "
    print(f"next: {activate}plumb campaign, or in a repository of your own plumb application init and plumb run")
    return 0


def missing(names: Iterable[str]) -> list[str]:
    """The programs and headers among ``names`` that this host lacks."""
    return [name for name in names if not (_has_header(name) if name.endswith(".h") else shutil.which(name))]


def _has_header(name: str) -> bool:
    command = ["gcc", "-fsyntax-only", "-x", "c", "-include", name, "/dev/null"]
    return bool(shutil.which("gcc")) and subprocess.run(command, capture_output=True, check=False).returncode == 0


def packages(absent: list[str]) -> str:
    """The command that installs the packages of ``absent`` here."""
    release = platform.freedesktop_os_release()
    words = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    family = next((name for name in INSTALL if name in words or (name == "rhel" and "fedora" in words)), None)
    if family is None:
        return "install them, or load modules that have them"
    return f"as root: {INSTALL[family]} {' '.join((NEEDED | WANTED)[name][family] for name in absent)}"


def _claimed_site(offered: list[str]) -> str:
    """The site that claims this host, made if there is none; where set-up made it, it offers these stacks too."""
    claiming = site.claiming(site.load_all())
    if claiming is None and SITE in site.names():
        raise PlumbError(
            f"site {SITE} is of another host than {platform.node()}",
            str(site.folder(SITE)),
            "add this host to its hostnames, or name another folder with --sites",
        )
    if claiming and (claiming.name, claiming.partitions[0].name) != (SITE, PARTITION):
        print(f"site {claiming.name}: claims this host, left as it is")
        return claiming.name
    changes = write.init(write.SiteRequest(SITE, PARTITION, stacks=manifest.names(), add_stacks=offered))
    done = f"{units.counted(len(changes), 'file')} written" if changes else "unchanged"
    print(f"site {SITE}: {done}, {site.folder(SITE)}", flush=True)
    return SITE


@command(
    option("file", "hwloc XML file or synthetic description (default: this host)", nargs="?"),
    *options.placement("draw the ranks of this placement, such as numa or ways:4"),
    option("--nodes", "list the ranks of each of N such nodes"),
    options.as_json("print the devices, their links and their paths as JSON"),
    flag("--caches", "show the caches of every level and the CPUs that share them"),
    option("--allowed", "use these CPUs only, such as 0-6,8", metavar="LIST"),
    rules=[
        goes_without(
            "json", "placement", "--json shows no placement", "plumb-bind --print writes a plan as JSON", where=""
        ),
        only_with(
            "threads memory ranks allowed nodes",
            "placement json",
            "--threads, --memory, --ranks, --allowed and --nodes describe a placement",
            "add --placement P",
            where="",
        ),
    ],
)
def run_topology(args: argparse.Namespace) -> int:
    """Print the drawing, or the devices as JSON; returns the exit status."""
    if args.json:
        print(json.dumps(devices.document(args.file), indent=1))
        return 0
    wanted = {name: getattr(args, name) for name in ("threads", "memory", "ranks", "allowed")}
    plan = resolve(args.placement, topology=args.file, **wanted) if args.placement else None
    print(draw(args.file, plan, caches=args.caches, nodes=args.nodes or 1), end="")
    return 0
