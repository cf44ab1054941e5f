"""Options that several commands have: each is spelled, described and read here, and means the same everywhere."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline import schedulers
from plumbline import site as sites
from plumbline.base import files, paths, terminal
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition

if TYPE_CHECKING:
    from plumbline.measure.session import Kind
    from plumbline.records import query
    from plumbline.records.model import Row
    from plumbline.records.store import Damage

_TIME = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d+)?)?)?Z?)?)?)?")
#: options that choose records, and the records that each keeps
RECORDS = {
    "site": "only records of this site",
    "partition": "only records of this partition",
    "test": "only tests whose name begins with what this regular expression matches",
    "stack": "only records of this stack",
    "campaign": "only campaigns whose id begins so",
    "since": "only records from this time on, in UTC, such as 2026-11 or 2026-11-21T10:30",
    "until": "only records before this time",
}


def _of_site(text: str) -> str:
    name, colon, partition = text.partition(":")
    if colon:
        raise argparse.ArgumentTypeError(f"'{text}' is two names: --site {name} --partition {partition}")
    return text


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from None
    return text


def _time(text: str) -> str:
    if not _TIME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a time: such as 2026-11, 2026-11-21 or 2026-11-21T10:30")
    return text


def _positive(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (number := float(text)) < math.inf:
            return number
    raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")


def _count(text: str) -> int:
    with contextlib.suppress(ValueError):
        if (number := int(text)) > 0:
            return number
    raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")


#: option -> the word for its value, and the type that reads it
VALUES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--access": ("OPTION", str),
    "--application": ("FILE", Path),
    "--campaign": ("ID", str),
    "--cause-minutes": ("M", _positive),
    "--facts": ("FOLDER", Path),
    "--figure": ("NAME", str),
    "--group": ("N", _count),
    "--hosts": ("A,B", str),
    "--memory": ("POLICY", str),
    "--minutes": ("M", _positive),
    "--must-detect": ("X", float),
    "--node": ("NODE", str),
    "--node-hours": ("H", _positive),
    "--nodes": ("N", _count),
    "--output": ("FILE", files.Output),
    "--partition": ("NAME", str),
    "--placement": ("NAME", str),
    "--racks": ("REGEX", _pattern),
    "--ranks": ("N", _count),
    "--resume": ("FOLDER", Path),
    "--seconds": ("S", _positive),
    "--seed": ("N", int),
    "--since": ("TIME", _time),
    "--site": ("SITE", _of_site),
    "--stack": ("NAME", str),
    "--test": ("PATTERN", _pattern),
    "--threads": ("N", _count),
    "--time-limit": ("S", _positive),
    "--tolerance": ("X", float),
    "--until": ("TIME", _time),
    "--within": ("DAYS", _positive),
    "--work": ("FOLDER", Path),
}

#: help text of --cause-minutes
CAUSE = "look for the cause for at most M minutes, by plumb why or plumb bisect"


def add(parser: argparse._ActionsContainer, option: str, text: str, **more: Any) -> None:
    """An option of :data:`VALUES` with the help ``text``."""
    metavar, read = VALUES[option]
    parser.add_argument(option, type=read, metavar=metavar, help=text, **more)


def add_folders(parser: argparse.ArgumentParser) -> None:
    """The folders that every command uses."""
    group = parser.add_argument_group("folders")
    for name, content in paths.FOLDERS.items():
        text = f"folder of the {content} (default: PLUMB_{name.upper()}, or that of the checkout or PLUMB_HOME)"
        group.add_argument(f"--{name}", type=Path, metavar="FOLDER", dest=f"{name}_folder", help=text)


def add_records(parser: argparse.ArgumentParser, *names: str, **texts: str) -> None:
    """The options that choose records: all, or those with these ``names``; ``texts`` replace their help texts."""
    group = parser.add_argument_group("which records")
    for name in names or RECORDS:
        add(group, f"--{name}", texts.get(name, RECORDS[name]))


def add_better(parser: argparse.ArgumentParser, of: str) -> None:
    """The direction of values in a file."""
    parser.add_argument("--better", choices=("lower", "higher"), help=f"which values are better (with {of})")


def add_placement(parser: argparse.ArgumentParser, text: str) -> None:
    """A placement (docs/placements.md) and the numbers that it leaves open."""
    add(parser, "--placement", text)
    add(parser, "--ranks", "on each node (default: as many as the placement has room for)")
    add(parser, "--threads", "of a rank (default: what fills its object)")
    add(parser, "--memory", "local, interleave, node:N, remote or firsttouch (default: the placement's)")


def add_scheduler(parser: argparse.ArgumentParser, default: str | None = "local") -> None:
    """The scheduler option; None stands for the scheduler of the site."""
    text = f"default: {default or 'that of the site that claims this host, else local'}"
    parser.add_argument("--scheduler", default=default, choices=schedulers.TABLE, help=text)


def add_profile(parser: argparse.ArgumentParser, text: str) -> None:
    """The profile of a campaign."""
    parser.add_argument("--profile", choices=("quick", "full"), default="quick", help=text)


def add_trust(parser: argparse.ArgumentParser) -> None:
    """``--trust``, of commands that run the program of a record again."""
    text = "run what records name: programs that were not built here, and what variables load"
    parser.add_argument("--trust", action="store_true", help=text)


def add_json(parser: argparse.ArgumentParser, text: str = "print JSON: a line for each row") -> None:
    """``--json``, the flag."""
    parser.add_argument("--json", action="store_true", help=text)


def add_output(parser: argparse.ArgumentParser, text: str, *endings: str) -> None:
    """``--output``, repeated: the ending of a file says its form. ``plumb`` checks them before the command begins."""
    add(parser, "--output", f"{text}: {', '.join(endings)}; repeated", action="append", default=[])
    parser.set_defaults(endings=endings)


def check_endings(args: argparse.Namespace) -> None:
    """Raise :class:`PlumbError` for a file whose ending says no form of the command."""
    for file in args.output if "endings" in args else ():
        if file.suffix not in args.endings:
            known = ", ".join(args.endings)
            raise PlumbError("the ending of the file says no known form", str(file), f"known endings: {known}")


def write(subject: str, targets: Sequence[Path], forms: Mapping[str, Callable[[], str]]) -> None:
    """Write ``subject`` to every file in the form of its ending."""
    for file in targets:
        files.write(subject, file, forms[file.suffix]())


def print_lines(items: Iterable[Any]) -> None:
    """Print a line of JSON for each of ``items``."""
    for item in items:
        print(json.dumps(item))


def progress(as_json: bool) -> contextlib.AbstractContextManager[Any]:
    """A context in which standard output goes to standard error if it is for JSON."""
    return contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()


def in_job(
    args: argparse.Namespace, passed: Sequence[str], kind: Kind[Any], folder: Path, part: Partition, nodes: int
) -> int:
    """Go on with a measuring session in a job, which gets the options ``passed``; with ``--json`` print its results.

    Returns the exit status of the job's command.
    """
    from plumbline.measure import jobs  # not above: most commands measure nothing

    words, output = jobs.options(args, *passed), folder.resolve() / "found.json"
    output.unlink(missing_ok=True)
    with progress(args.json):
        words += ["--output", str(output)] if args.json else []
        status = kind.in_job(folder, part, nodes, words, terminal.say)
    if output.exists():
        print(output.read_text(encoding="utf-8"), end="")
    return status


def supplied(args: argparse.Namespace, *names: str) -> list[str]:
    """The options on the command line among ``names`` (default: those that choose records), as they are spelled."""
    return [f"--{name.replace('_', '-')}" for name in names or RECORDS if getattr(args, name, None)]


def selection(args: argparse.Namespace, **more: Any) -> query.Selection:
    """The records that the options choose."""
    from plumbline.records import query  # here and below: plumb launch does not need it

    return query.Selection(**{name: getattr(args, name) for name in RECORDS if name in args}, **more)


def rows(args: argparse.Namespace, **more: Any) -> tuple[list[Row], list[Damage]]:
    """The chosen records, and the damaged ones.

    Raises :class:`PlumbError` for a site without records, and for a test, stack, partition or campaign that none has.
    """
    from plumbline.records import query, sources

    where = selection(args, **more)
    chosen, damages = query.records(where)
    if where.site:
        sources.require_site(where.site)
    if not chosen:
        query.require(where)
    return chosen, damages


def report_damage(damages: Sequence[Any], kind: str = "record") -> bool:
    """Print a line per damage; whether there is any."""
    for damage in damages:
        print(f"plumb: damaged {kind}: {damage}", file=sys.stderr)
    return bool(damages)


def sites_of(args: argparse.Namespace) -> list[str]:
    """The sites that are named, or all; raises :class:`PlumbError` where there is none."""
    names = args.sites or sites.names()
    if not names:
        raise PlumbError("no site is configured", str(paths.sites()), "plumb site init makes one for this host")
    return list(names)


def system(args: argparse.Namespace) -> str | None:
    """Site and partition as ReFrame takes them; None for the site that claims this host."""
    return f"{args.site or sites.here()}:{args.partition}" if args.partition else args.site


def names_of(text: str | None) -> list[str]:
    """The words of ``A,B``."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]
