"""``plumb profile``: where the time of a test, or of a person's own program, goes: in MPI, and beyond it."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from plumbline import site
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.commands.options import command, flag, goes_without, only_with, option
from plumbline.extras.profiles import maps, text
from plumbline.gate.variants import of_names
from plumbline.launch import profile_files
from plumbline.launch.prepare import OWN, variant_again
from plumbline.launch.profiles import Profile, RankMap
from plumbline.measure import driver, jobs
from plumbline.measure.application import model
from plumbline.measure.reframe.campaign import first_stack
from plumbline.measure.session import passing_folder
from plumbline.records import query
from plumbline.records.model import Record
from plumbline.records.variant import Variant
from plumbline.stacks import manifest


@command(
    option(
        "words",
        "programs of plumb.yaml, if there is one; otherwise regular expressions for the beginnings of test names; "
        "or a program with arguments",
        nargs="*",
        metavar="PROGRAM | PATTERN | -- PROGRAM ARG",
    ),
    option("--stack", "installed stack of launcher and MPI library (default with plumb.yaml: the first)"),
    option("--application", "plumb.yaml of the programs to profile (default: the one here or in a folder above)"),
    *options.placement("placement of a program's ranks (docs/placements.md)"),
    option("--partition", "partition (default: the first of the site)"),
    option("--time-limit", "time limit of a program in seconds (default: 600)", default=600.0),
    flag("--wait", "separate waiting time from transfer time, by a barrier before each collective"),
    option("--show", "show the profile of this record without running anything", metavar="ID"),
    option(
        "--compare",
        "profile the programs of two records, such as those of a gate, and show the differences",
        nargs=2,
        metavar="ID",
    ),
    options.TRUST,
    option("--against", "compare with the profile of this record", metavar="ID"),
    option(
        "--on",
        "predict the traffic of each placement on this machine (hwloc XML file or synthetic description)",
        metavar="MACHINE",
    ),
    option("--nodes", "nodes of a program, or of the machine of --on (default: 1)"),
    option("--export", "export the profile for Hatchet or Thicket", choices=["caliper"]),
    options.as_json("print the profile as JSON"),
    usage="plumb profile PROGRAM [--stack NAME] [--json]\n"
    "       plumb profile PATTERN --stack NAME [--json]\n"
    "       plumb profile --show ID [--against ID | --on MACHINE [--nodes N] | --export FORMAT] [--json]\n"
    "       plumb profile --compare ID ID\n"
    "       plumb profile --stack NAME --placement NAME [--nodes N] [--ranks N] [--threads N] [--memory POLICY] "
    "-- PROGRAM ARG…",
    rules=[
        goes_without(
            "json", "against compare export", "--json is of one profile", "leave out --against, --compare and --export"
        ),
        only_with(
            "on export", "show compare", "--on and --export need an existing profile", "name its record by --show"
        ),
        only_with(
            "nodes ranks threads memory",
            "placement show compare",
            "{} is of a program",
            "name its --placement too, or leave it out",
        ),
    ],
)
def run_profile(args: argparse.Namespace) -> int:
    """Profile a program or tests, print it; returns 0 if every launch is verified and every rank left a profile."""
    if args.compare:
        return _compare(args.compare, args.trust)
    old = profile_files.of_record(query.find(args.against)) if args.against else None
    if args.show:
        _show_stored(args, query.find(args.show), old)
        return 0
    application_file = None if args.placement else model.named_or_here(args.application)
    if application_file and args.words and not args.stack:
        args.stack = first_stack(application_file, _tell)
    if not args.words or not args.stack:
        cure = "plumb profile PATTERN --stack NAME, or --stack NAME --placement NAME -- PROGRAM"
        raise PlumbError("nothing to run, or no stack to run it on", "plumb profile", cure)
    known, partition = site.chosen(None, args.partition)
    jobs.refuse(partition, "plumb profile")
    good = True
    with passing_folder("profile") as folder:
        wanted = (
            _program(args, known.name, partition.name) if args.placement else _tests(args, application_file, folder)
        )
        more = {"PLUMB_PROFILE_WAIT": "1"} if args.wait else {}
        for variant in wanted:
            (record,) = measure([replace(variant, environment={**variant.environment, **more})], folder)
            profile = profile_files.of_record(record)
            _print(record, profile, old, args.json)
            good = _whole(record, profile) and good
            _tell(f"profile: {profile_files.file_of(record.site, record.id)}")
    return 0 if good else 1


def _compare(idents: Sequence[str], trusted: bool) -> int:
    """Profile the variants of two records, in one session, and say what differs; 0 if both profiles are whole."""
    variants = [again(old, trusted) for old in map(query.find, idents)]
    with passing_folder("profile") as folder:
        records = measure(variants, folder)
    stored_profiles = [profile_files.of_record(record) for record in records]
    good = [_whole(record, profile) for record, profile in zip(records, stored_profiles, strict=True)]
    print(text.difference(*stored_profiles))
    return 0 if all(good) else 1


def _show_stored(args: argparse.Namespace, record: Record, old: Profile | None) -> None:
    """Print the stored profile of ``record`` as ``args`` ask for it."""
    profile = profile_files.of_record(record)
    if args.export:
        if not profile.ranks:
            raise PlumbError("no rank left a profile", f"record {profile.record}", "see plumb profile --show")
        print(text.caliper(profile))
    elif args.on:
        rank_maps = maps.elsewhere(profile, args.on, args.nodes or 1, args.threads or 1)
        if args.json:
            _print_json(profile, rank_maps)
        else:
            print(text.map_table(rank_maps))
    else:
        _print(record, profile, old, args.json)


def _print(record: Record, profile: Profile, old: Profile | None, as_json: bool) -> None:
    if as_json:
        _print_json(profile, maps.here(profile))
    else:
        print(text.difference(old, profile) if old else text.text(profile, record.launches[-1].ranks))


def _print_json(profile: Profile, rank_maps: list[RankMap]) -> None:
    print(msgspec.json.format(msgspec.json.encode(maps.printed(profile, rank_maps)), indent=1).decode())


def _whole(record: Record, profile: Profile) -> bool:
    """Whether the launch is verified and every rank that called MPI left a profile; says why it is not."""
    for reason in record.reasons:
        print(f"plumb: not verified: {reason}", file=sys.stderr)
    uses_mpi = any(rank.mpi for launch in record.launches for rank in launch.ranks)
    return record.verified and (not uses_mpi or (bool(profile.ranks) and not profile.missing))


def _tests(args: argparse.Namespace, application_file: Path | None, folder: Path) -> list[Variant]:
    """The variants that ReFrame selects for the stack, of the programs of ``application_file``, or of the suite."""
    manifest.load(args.stack)  # ReFrame only says that it selects nothing for an unknown stack
    system = f"{site.here()}:{args.partition}" if args.partition else None
    return list(of_names(application_file, args.words, args.stack, system, folder, _tell).values())


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _program(args: argparse.Namespace, site_name: str, partition: str) -> list[Variant]:
    """A person's own program, which runs in the present folder."""
    name, *arguments = args.words
    if (file := shutil.which(name)) is None:
        raise PlumbError(f"there is no such program: {name}", "plumb profile", "give its path after --")
    absolute = str(Path(file).absolute())
    return [Variant.create(
        test="profile", name=f"profile {Path(name).name}", benchmark=OWN, arguments=arguments, figures=[],
        parser="none", context={"program": absolute, "command": ["env", "-C", str(Path.cwd()), absolute]},
        site=site_name, partition=partition, stack=args.stack, placement=args.placement, memory=args.memory,
        threads=args.threads, ranks_per_node=args.ranks, nodes=args.nodes or 1, time_limit_s=args.time_limit,
    )]  # fmt: skip


def measure(variants: Sequence[Variant], folder: Path) -> list[Record]:
    """The records of one launch of each of ``variants`` under the profile."""
    return driver.run([replace(variant, profiled=True, launches=1) for variant in variants], folder, say=_tell)[1]


def again(record: Record, trusted: bool = False) -> Variant:
    """The variant of a record, which may be ``trusted``; raises :class:`PlumbError` where that cannot be run here."""
    if record.is_imported:
        raise PlumbError("an imported record", record.id, "profile it with the program that measured it")
    variant = variant_again(record, trusted)
    jobs.refuse(site.partition(site.load(variant.site), variant.partition), "plumb profile")
    return variant
