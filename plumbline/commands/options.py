"""Options that several commands have: each is spelled, described and read here, and means the same everywhere."""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plumbline import schedulers
from plumbline import site as sites
from plumbline.base import files, paths, terminal
from plumbline.base.errors import PlumbError, pattern_fault
from plumbline.base.schemas.site import Partition
from plumbline.records import outcome

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
    "test": "only tests whose names match this regular expression from the start",
    "stack": "only records of this stack",
    "campaign": "only the campaign with this id or id prefix",
    "since": "only records from this time on, in UTC, such as 2026-11 or 2026-11-21T10:30",
    "until": "only records before this time",
}


def _of_site(text: str) -> str:
    name, colon, partition = text.partition(":")
    if colon:
        raise argparse.ArgumentTypeError(f"'{text}' is two names: --site {name} --partition {partition}")
    return text


def _pattern(text: str) -> str:
    if fault := pattern_fault(text):
        raise argparse.ArgumentTypeError(fault)
    return text


def _time(text: str) -> str:
    if not _TIME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a time: such as 2026-11, 2026-11-21 or 2026-11-21T10:30")
    return text


def _number(
    read: Callable[[str], Any], is_good: Callable[[Any], bool], nature: str = "is not a number above 0"
) -> Callable[[str], Any]:
    def number(text: str) -> Any:
        with contextlib.suppress(ValueError):
            if is_good(value := read(text)):
                return value
        raise argparse.ArgumentTypeError(f"'{text}' {nature}")

    return number


_positive = _number(float, lambda value: 0 < value < math.inf)
_count = _number(int, lambda value: value > 0, "is not a whole number above 0")
#: 0.5 and more without % was meant in percent
_fraction = _number(
    lambda text: float(text[:-1]) / 100 if text.endswith("%") else float(text) if float(text) < 0.5 else math.nan,
    lambda value: 0 <= value < math.inf,
    "is neither in percent nor a fraction from 0 to 0.5: write 2% or 0.02",
)

#: option -> the word for its value, and the type that reads it
VALUES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--access": ("OPTION", str),
    "--application": ("FILE", Path),
    "--campaign": ("ID", str),
    "--cause-minutes": ("M", _positive),
    "--env": ("NAME=VALUE", str),
    "--facts": ("FOLDER", Path),
    "--figure": ("FIGURE", str),
    "--group": ("N", _count),
    "--hostname": ("REGEX", _pattern),
    "--hosts": ("A,B", str),
    "--memory": ("POLICY", str),
    "--minutes": ("M", _positive),
    "--must-detect": ("X", _fraction),
    "--node": ("NODE", str),
    "--node-hours": ("H", _positive),
    "--nodes": ("N", _number(int, lambda value: 0 < value <= 1_000_000, "is not a whole number from 1 to 1000000")),
    "--output": ("FILE", files.Output),
    "--partition": ("NAME", str),
    "--placement": ("NAME", str),
    "--racks": ("REGEX", _pattern),
    "--ranks": ("N", _count),
    "--resume": ("FOLDER", Path),
    "--rounds": ("N", _count),
    "--seconds": ("S", _positive),
    "--seed": ("N", int),
    "--since": ("TIME", _time),
    "--site": ("SITE", _of_site),
    "--stack": ("NAME", str),
    "--test": ("PATTERN", _pattern),
    "--threads": ("N", _count),
    "--time-limit": ("S", _positive),
    "--tolerance": ("X", _fraction),
    "--until": ("TIME", _time),
    "--within": ("DAYS", _positive),
    "--work": ("FOLDER", Path),
}

#: above so many arguments the help has titles, and the options below each; the others are the command's
MANY = 13
TITLES = {
    "programs and place": "application stack test site partition",
    "verdict": "rules tolerance must-detect gain common disturbed-by-itself",
    "measuring": "order measure-equal minutes rounds seconds time-limit first-fail cause-minutes seed trust",
    "session": "work resume dry-run",
    "output": "json output for-git-bisect",
}

#: help text of --cause-minutes
CAUSE = "search for the cause for at most M minutes, with plumb why or plumb bisect"


class Argument(NamedTuple):
    """An argument of a command: its name, and what argparse takes; an output file has one of ``endings``."""

    name: str
    settings: Mapping[str, Any]
    endings: tuple[str, ...] = ()


class Group(NamedTuple):
    """Arguments below a title of their own, or without one such as exclude one another."""

    arguments: Sequence[Argument]
    title: str = ""


class Rule(NamedTuple):
    """A combination of arguments that a command refuses: where any of ``having`` is there (empty: always).

    With ``others`` it refuses any of these beside them; otherwise it demands all of ``needed``, or any of ``unless``.
    All are names of argparse. ``{}`` in the message stands for the first of ``having`` that is there.
    """

    having: Sequence[str]
    message: str
    cure: str
    where: str | None = None
    others: Sequence[str] = ()
    needed: Sequence[str] = ()
    unless: Sequence[str] = ()


def goes_without(having: str, others: str, message: str, cure: str, where: str | None = None) -> Rule:
    """None of ``having`` goes with any of ``others``. ``where`` is the command by default, here and below."""
    return Rule(having.split(), message, cure, where, others=others.split())


def only_with(having: str, others: str, message: str, cure: str, where: str | None = None) -> Rule:
    """Each of ``having`` goes only with one of ``others``."""
    return Rule(having.split(), message, cure, where, unless=others.split())


#: rules of commands that read a figure of any command's output
OF_FIGURE = (
    only_with("unit", "figure", "--unit goes with --figure", "leave it out"),
    only_with("better", "figure", "--better goes with --figure", "leave it out"),
)


def needs(needed: str, message: str, cure: str, having: str = "", unless: str = "", where: str | None = None) -> Rule:
    """All of ``needed`` are there, where any of ``having`` is and none of ``unless``."""
    return Rule(having.split(), message, cure, where, needed=needed.split(), unless=unless.split())


def one_of(*ways: str, none: str, several: str, cure: str) -> list[Rule]:
    """Exactly one of the ``ways`` to use a command, each the arguments of it."""
    others = ((way, " ".join(ways[place:])) for place, way in enumerate(ways[:-1], start=1))
    return [
        Rule((), none, cure, unless=" ".join(ways).split()),
        *(goes_without(*both, several, cure) for both in others),
    ]


@dataclass
class Command:
    """A command of ``plumb``, or an action of one: its function, arguments, and the rules for their combinations.

    ``help`` is the line of an action; ``added`` gives the arguments that extras add.
    """

    run: Callable[[argparse.Namespace], int]
    arguments: Sequence[Argument | Group] = ()
    rules: Sequence[Rule] = ()
    help: str = ""
    description: str = ""
    usage: str | None = None
    added: Callable[[], Iterable[Sequence[Argument | Group]]] | None = None

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments to a parser, whose namespace gets ``run``."""
        parser.description = self.description or parser.description
        parser.usage = self.usage
        added = itertools.chain.from_iterable(self.added() if self.added else ())
        _add(parser, _titled([*self.arguments, *added]))
        parser.set_defaults(run=functools.partial(self._run, parser))

    def _run(self, parser: argparse.ArgumentParser, args: argparse.Namespace) -> int:
        check(self.rules, parser, args)
        return self.run(args)


def command(*arguments: Argument | Group, **more: Any) -> Callable[[Callable[[argparse.Namespace], int]], Command]:
    """Declare the decorated function as a :class:`Command` with these arguments."""
    return lambda run: Command(run, arguments, **more)


@dataclass
class Actions:
    """A command that is one of some actions, those that extras add last."""

    actions: Mapping[str, Command]
    added: Callable[[], Iterable[Mapping[str, Command]]] | None = None

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add a parser for each action."""
        subparsers = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        for actions in (self.actions, *(self.added() if self.added else ())):
            for name, action in actions.items():
                action.add_to(subparsers.add_parser(name, help=action.help, allow_abbrev=False))


def _titled(arguments: Sequence[Argument | Group]) -> list[Argument | Group]:
    """Many ``arguments`` below their :data:`TITLES`, those without a title first."""
    chosen = {
        title: [item for item in arguments if isinstance(item, Argument) and item.name[2:] in names.split()]
        for title, names in TITLES.items()
        if len(arguments) > MANY
    }
    rest = [item for item in arguments if not any(item in items for items in chosen.values())]
    return [*rest, *(Group(items, title) for title, items in chosen.items() if items)]


def _add(parser: argparse._ActionsContainer, arguments: Iterable[Argument | Group]) -> None:
    for item in arguments:
        if isinstance(item, Argument):
            parser.add_argument(item.name, **item.settings)
            if item.endings:
                parser.set_defaults(endings=item.endings)
        else:
            below = parser.add_argument_group(item.title) if item.title else parser.add_mutually_exclusive_group()
            _add(below, item.arguments)


def check(rules: Iterable[Rule], parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Raise :class:`PlumbError` for the first rule that the arguments break."""
    present = {
        name
        for name, value in vars(args).items()
        if value not in (None, "", []) and value is not False and value != parser.get_default(name)
    }
    for rule in rules:
        broken = (
            present.intersection(rule.others)
            if rule.others
            else not present.intersection(rule.unless) and not (rule.needed and present.issuperset(rule.needed))
        )
        if broken and (not rule.having or present.intersection(rule.having)):
            first = next((f"--{name.replace('_', '-')}" for name in rule.having if name in present), "")
            where = parser.prog if rule.where is None else rule.where
            raise PlumbError(rule.message.format(first), where, rule.cure)


def option(name: str, text: str, **more: Any) -> Argument:
    """An argument with the help ``text``; one of :data:`VALUES` is read as it says."""
    metavar, read = VALUES.get(name, (None, None))
    return Argument(name, {"help": text, **({"type": read, "metavar": metavar} if read else {}), **more})


def repeated(name: str, text: str, **more: Any) -> Argument:
    """An option that may be there several times; its value is a list."""
    return option(name, text, **{"action": "append", "default": [], **more})


def flag(name: str, text: str, **more: Any) -> Argument:
    """An option without a value."""
    return Argument(name, {"help": text, "action": "store_true", **more})


def group(title: str, *arguments: Argument) -> Group:
    """Arguments below a title of their own."""
    return Group(arguments, title)


def exclusive(*arguments: Argument) -> Group:
    """Arguments that exclude one another."""
    return Group(arguments)


def add_folders(parser: argparse.ArgumentParser) -> None:
    """The folders that every command uses."""
    text = "folder of the {} (default: PLUMB_{}, or that of the checkout or PLUMB_HOME)"
    folders = (
        option(f"--{name}", text.format(kept, name.upper()), type=Path, metavar="FOLDER", dest=f"{name}_folder")
        for name, kept in paths.FOLDERS.items()
    )
    _add(parser, [group("folders", *folders)])


def add_jobs(parser: argparse.ArgumentParser, default: Any = argparse.SUPPRESS) -> None:
    """``--scheduler-option``, which is read anywhere before ``--``, as the folders are."""
    text = "option of the scheduler for all jobs, such as --scheduler-option=--account=lab; repeatable"
    _add(parser, [group("jobs", repeated("--scheduler-option", text, metavar="OPTION", default=default))])


def records(*names: str, **texts: str) -> Group:
    """The options that choose records: all, or those with these ``names``; ``texts`` replace their help texts."""
    chosen = (option(f"--{name}", texts.get(name, RECORDS[name])) for name in names or RECORDS)
    return group("selection of records", *chosen)


#: of commands that leave out the records of experiments
EXPERIMENTS = flag(
    "--experiments", "include the records of experiments: gate, bisect, why, tune, lab (default: excluded)"
)


def better(of: str) -> Argument:
    """The direction of values in a file."""
    return option("--better", f"direction of better values (with {of})", choices=("lower", "higher"))


def placement(text: str) -> tuple[Argument, ...]:
    """A placement (docs/placements.md) and the numbers that it leaves open."""
    return (
        option("--placement", text),
        option("--ranks", "ranks per node (default: as many as the placement has room for)"),
        option("--threads", "threads per rank (default: as many as fill its object, such as a NUMA node)"),
        option(
            "--memory",
            "memory policy: local, interleave, node:N, remote or firsttouch (default: that of the placement)",
        ),
    )


def scheduler(default: str | None = "local") -> Argument:
    """The scheduler option; None stands for the scheduler of the site."""
    text = f"scheduler of the nodes (default: {default or 'that of the site of this host, else local'})"
    return option("--scheduler", text, default=default, choices=schedulers.TABLE)


def profile(text: str, default: str | None = "quick") -> Argument:
    """The profile of a campaign."""
    return option("--profile", text, choices=outcome.PROFILES, default=default)


#: of commands that run the program of a record again
TRUST = flag(
    "--trust", "trust the records: run programs that were not built here, and load libraries that their variables name"
)


def order(text: str = "") -> Argument:
    """``--order``, of commands that measure by gates; ``text``: of which of their launches."""
    return option(
        "--order",
        f"{text}turns: one launch after the other (default); duet: both sides at once, each on half of the cores, then "
        "swapped; auto: by the first pairs (docs/duet.md)",
        choices=["turns", "duet", "auto"],
    )


def as_json(text: str = "print JSON, one line per row") -> Argument:
    """``--json``, the flag."""
    return flag("--json", text)


def output(text: str, *endings: str) -> Argument:
    """``--output``, repeated: the ending of a file says its form. ``plumb`` checks them before the command begins."""
    return repeated("--output", f"{text} ({', '.join(endings)}; repeatable)")._replace(endings=endings)


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


def in_session(
    args: argparse.Namespace,
    kind: Kind[Any],
    begun: Callable[[argparse.Namespace], Path],
    place: Callable[[Path], tuple[Partition, int]],
    measured: Callable[[argparse.Namespace, Path], tuple[int, str]],
    passed: Sequence[str],
) -> int:
    """Measure in the folder of a session, which is ``begun``, here or in a job; returns the exit status.

    ``place`` names the partition and number of nodes of a folder, ``measured`` gives status and document. A job gets
    the options ``passed``. With ``--json`` the document is printed, and the rest goes to standard error.
    """
    from plumbline.measure import jobs  # not above: most commands measure nothing

    with progress(args.json):
        folder = begun(args)
        part, nodes = place(folder)
        if not jobs.needed(part):
            status, document = measured(args, folder)
        else:
            words, file = jobs.options(args, *passed), folder.resolve() / "found.json"
            file.unlink(missing_ok=True)
            words += ["--output", str(file)] if args.json else []
            status = kind.in_job(folder, part, nodes, words, terminal.say)
            document = file.read_text(encoding="utf-8") if file.exists() else ""
    if args.json:
        print(document, end="")
    return status


def supplied(args: argparse.Namespace) -> list[str]:
    """The options on the command line that choose records."""
    return [f"--{name}" for name in RECORDS if getattr(args, name, None)]


def selection(args: argparse.Namespace, **more: Any) -> query.Selection:
    """The records that the options choose."""
    from plumbline.records import query  # here and below: plumb launch does not need it

    chosen = {name: getattr(args, name) for name in RECORDS if name in args}
    return query.Selection(**chosen, plain=not getattr(args, "experiments", True), **more)


def rows(args: argparse.Namespace, newest: int | None = None, **more: Any) -> tuple[list[Row], list[Damage]]:
    """The chosen records, or the ``newest`` so many of them, and the damaged ones.

    Raises :class:`PlumbError` for a site without records, for a test, stack, partition or campaign that none has, and
    where only experiments have records that are left out.
    """
    from plumbline.records import query, sources

    where = selection(args, **more)
    chosen, damages = query.records(where, newest)
    if where.site:
        sources.require_site(where.site)
    if not chosen:
        query.require(where)
        if where.plain and query.count(replace(where, plain=False)):
            raise PlumbError(
                "there are only records of experiments", str(paths.results()), "--experiments takes their records"
            )
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
