"""``plumb site``: write and check site folders, and measure their ceilings."""

from __future__ import annotations

import argparse
import re

from plumbline import schedulers, stacks
from plumbline.base import paths, terminal
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.judge.references import References
from plumbline.measure import ceilings
from plumbline.records.model import document
from plumbline.schedulers.names import expand
from plumbline.site import ceilings_file as site_ceilings
from plumbline.site import site, write
from plumbline.site.nodes import compare
from plumbline.stacks import manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb site``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    init = actions.add_parser("init", help="make a site folder for this host, or add what is missing to one")
    options.add(
        init, "--site", "its name, and that of its folder below site-configs/ (default: local)", default="local"
    )
    options.add(init, "--partition", "the partition that this host is of (default: default)", default="default")
    options.add_scheduler(init)
    init.add_argument("--description", default="", metavar="TEXT", help="one line for people")
    options.add(init, "--access", "scheduler option of every job, repeated", action="append", default=[])
    options.add(init, "--nodes", "how many nodes one test may use")
    text = "what starts ranks in a job (default: mpirun)"
    init.add_argument("--launcher", choices=("mpirun", *schedulers.RANK_LAUNCHERS), help=text)
    for name in schedulers.RANK_LAUNCHERS:
        text = f"{name} --mpi=TYPE for an MPI family"
        init.add_argument(f"--{name}-mpi", action="append", default=[], metavar="FAMILY=TYPE", help=text)
    text = "variable of every launch, repeated"
    init.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help=text)
    options.add(init, "--hosts", "the nodes by name, where no scheduler gives them", action="append", default=[])
    init.add_argument("--max-pending", type=int, metavar="S", help="longest wait of a job for its nodes, in seconds")
    init.add_argument("--max-job", type=int, metavar="S", help="longest job (default: as the scheduler says)")
    init.add_argument("--offer", metavar="A,B", help="the stacks of the partition (default: those that are installed)")
    init.add_argument("--offer-also", metavar="A,B", help="a partition that is there already gets these stacks too")
    options.add(init, "--facts", "topology and facts of the nodes, which plumb nodes facts put into this folder")
    text = "a login host, repeated (default: this host)"
    init.add_argument("--hostname", action="append", default=[], metavar="REGEX", help=text)
    init.add_argument("--recapture", action="store_true", help="capture the topology again")
    init.add_argument("--dry-run", action="store_true", help="show what would change and write nothing")
    listing = actions.add_parser("list", help="configured sites and their partitions")
    options.add_json(listing, "print JSON: a line for each partition")
    check = actions.add_parser("check", help="are site.yaml, topologies and references in order?")
    check.add_argument("sites", nargs="*", metavar="SITE", help="default: all")
    measuring = actions.add_parser("measure", help="measure the ceilings of a partition's machine: ceilings.yaml")
    options.add(measuring, "--site", "default: the one that claims this host")
    options.add(measuring, "--partition", "default: all partitions of the site")
    options.add(measuring, "--stack", "whose kernels (default: the first of the partition's)")
    measuring.add_argument("--add", action="store_true", help="keep what was measured before where it is better")
    text = "only if there are no ceilings, or those of another machine"
    measuring.add_argument("--if-needed", action="store_true", help=text)


def run(args: argparse.Namespace) -> int:
    """Run ``plumb site ACTION``; returns the exit status."""
    return {"init": _init, "list": _list, "check": _check, "measure": _measure}[args.action](args)


def _init(args: argparse.Namespace) -> int:
    for option, value in (("--site", args.site), ("--partition", args.partition)):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", value):
            raise PlumbError(
                f"'{value}' cannot be a name", f"plumb site init {option}", "use letters, digits, '_' and '-'"
            )
    for pattern in args.hostname:
        try:
            re.compile(pattern)
        except re.error as error:
            raise PlumbError(f"{pattern!r} is not a regular expression: {error}", "--hostname", "correct it") from None
    scheduler = schedulers.named(args.scheduler)
    request = write.SiteRequest(
        name=args.site,
        partition=args.partition,
        scheduler=args.scheduler,
        description=args.description,
        stacks=_names(args.offer) if args.offer else manifest.names(),
        add_stacks=_names(args.offer_also),
        access=args.access,
        nodes=args.nodes,
        keys={
            "launcher": args.launcher,
            **{
                f"{name}_mpi": _pairs(getattr(args, f"{name}_mpi"), f"--{name}-mpi", "FAMILY=TYPE")
                for name in schedulers.RANK_LAUNCHERS
            },
            "environment": _pairs(args.env, "--env", "NAME=VALUE"),
            "hosts": [name for text in args.hosts for name in expand(text, "--hosts")] or None,
            "max_pending_s": args.max_pending,
            "max_job_s": args.max_job or scheduler.longest_job(scheduler.queue(None, args.access)),
        },
        hostnames=args.hostname,
        captured=compare.captured(args.facts) if args.facts else None,
        recapture=args.recapture,
    )
    changes = write.init(request, dry_run=args.dry_run)
    for change in changes:
        print(change.diff)
    if not changes:
        print(f"site {args.site}: unchanged")
    elif args.dry_run:
        print(f"site {args.site}: {len(changes)} files would change")
    else:
        print(f"site {args.site}: {len(changes)} files written")
    if site.folder(args.site).joinpath(site.FILE).exists():
        part = site.partition(site.load(args.site), args.partition)
        for name in sorted(set(request.stacks) - set(part.stacks)):
            message = f"stack {name} is installed, but partition {args.partition} does not offer it"
            print(f"site {args.site}: {message} (--offer-also {name})")
    return 0


def _pairs(assignments: list[str], option: str, form: str) -> dict[str, str]:
    """A mapping of options like ``NAME=VALUE``."""
    for item in assignments:
        if item.find("=") < 1:
            raise PlumbError(f"'{item}' is not {form}", option, f"write {option} {form}")
    return dict(item.split("=", 1) for item in assignments)


def _names(specs: str | None) -> list[str]:
    """Installed names of stacks written as ``openmpi,spack:mpich``."""
    return [stacks.label(*stacks.split(spec)) for spec in options.names_of(specs)]


def _list(args: argparse.Namespace) -> int:
    names = site.names()
    parts = [(name, part) for name in names for part in site.load(name).partitions]
    if args.json:
        options.print_lines({"site": name, **document(part)} for name, part in parts)
        return 0
    if not names:
        print(f"no site in {paths.sites()}: plumb site init makes one for this host")
    for name, part in parts:
        print(f"{name}:{part.name}  {part.scheduler}  {', '.join(part.stacks) or 'no stacks'}")
    return 0


def _check(args: argparse.Namespace) -> int:
    for name in options.sites_of(args):
        document = site.load(name)
        count = len(References.load(name).entries)
        measured = len(site_ceilings.read(name))
        print(f"{name}: {len(document.partitions)} partitions, {measured} with ceilings, {count} references")
    return 0


def _measure(args: argparse.Namespace) -> int:
    name = args.site or site.here()
    document = site.load(name)
    if document.archived:
        raise PlumbError(f"site {name} is archived", "plumb site measure", "its machines are not measured any more")
    parts = [site.partition(document, args.partition)] if args.partition else document.partitions
    return ceilings.measure_all(name, parts, args.stack, terminal.say, add=args.add, if_needed=args.if_needed)
