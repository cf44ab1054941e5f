"""``plumb bisect``: which commit makes a figure slower."""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path

from msgspec import structs

from plumbline.base import git, paths
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition
from plumbline.base.terminal import say
from plumbline.commands import options
from plumbline.commands.options import command, flag, goes_without, needs, option
from plumbline.extras.search.bisect.bench import BISECTION, BisectionBench, BisectionRequest, BisectionState, TimeUp
from plumbline.extras.search.bisect.commits import require_range
from plumbline.extras.search.bisect.model import MUST_DETECT, TOLERANCE, BisectionFindings
from plumbline.extras.search.bisect.report import Report, page, plan
from plumbline.launch.signals import Interrupted
from plumbline.measure import jobs, session
from plumbline.measure.application import model
from plumbline.measure.reframe.campaign import first_stack
from plumbline.records import store
from plumbline.show.pages.page import render
from plumbline.stacks import source
from plumbline.statistics.paired import PairedRule

#: options of a new bisection, as argparse calls them; --resume takes the others
BEGINNING = "good bad application stack test figure site partition tolerance must_detect first_parent seed work dry_run"


@command(
    option("good", "a commit before the figure became slower", nargs="?", metavar="GOOD"),
    option("bad", "a later commit, at which it is slower", nargs="?", metavar="BAD"),
    option(
        "--application",
        "plumb.yaml in the repository to bisect (default: the one here; without one, this suite is bisected)",
    ),
    option(
        "--stack",
        "stack for building the commits (default: the first of the site); source:NAME: bisect the library itself",
    ),
    option("--test", "tests whose names match this regular expression from the start; the slowest series is followed"),
    option("--figure", "follow only this figure"),
    option("--site", "site (default: the site of this host)"),
    option("--partition", "partition (default: all partitions of the site with the tests)"),
    option("--tolerance", f"tolerated slowdown (default: {TOLERANCE:g}, {TOLERANCE:.1%})".replace("%", " %%")),
    option(
        "--must-detect",
        f"smallest slowdown that must be detected (default: {MUST_DETECT:g}, {MUST_DETECT:.0%})".replace("%", " %%"),
    ),
    flag("--first-parent", "follow only the first parent of merges, so that the answer may be a merge"),
    option("--minutes", "start no pair of launches after M minutes; --resume continues"),
    option("--seed", "seed of the pair order (default: random, recorded)"),
    option("--work", "folder of a new bisection (default: build/bisect/SESSION)"),
    option("--resume", "continue the bisection of this folder"),
    flag("--dry-run", "print the numbers of commits, gates and launches without measuring"),
    options.as_json("print the results as JSON, progress on standard error"),
    options.output("write the results to a file", ".json", ".md", ".html"),
    description="Compare BAD with GOOD and find the commit between them that makes a figure slower: git bisect "
    "chooses the "
    "commits, a gate judges each.",
    rules=[
        goes_without(
            BEGINNING,
            "resume",
            "--resume continues a bisection that was started",
            "leave out all but --minutes, --json and --output",
        ),
        needs("good bad", "two commits are needed", "plumb bisect GOOD BAD, or --resume DIR", unless="resume"),
    ],
)
def run_bisect(args: argparse.Namespace) -> int:
    """Search; returns 0 if every change is found, 1 if BAD is not slower, 2 if something is open, 3 for an error."""
    if args.dry_run:
        request = _request(args)
        with session.passing_folder("bisect") as folder:
            commits = request.commits(folder / "commits.git")
            require_range(commits, request.good, request.bad, request.named)
            print(plan(len(commits.between(request.good, request.bad))))
        return 0
    return options.in_session(args, BISECTION, _begun, _place, _measured, ("minutes", "output"))


def _place(folder: Path) -> tuple[Partition, int]:
    BISECTION.peek(folder)  # the lock would make a folder that is not there
    with BISECTION.locked(folder):
        bench = BisectionBench(folder, BISECTION.peek(folder), say)
        return bench.partition(), bench.nodes()


def _measured(args: argparse.Namespace, folder: Path) -> tuple[int, str]:
    """Measure, print the results and write them to files, also where the time ends before the search."""
    progress, why = BisectionFindings(), None
    with BISECTION.locked(folder):
        bench = BisectionBench(folder, BISECTION.load(folder), say, args.minutes)
        say(f"folder {folder}: plumb bisect --resume {folder} continues after an interruption")
        try:
            bench.search(progress)
        except TimeUp:
            why = "time is up"
        except (Interrupted, KeyboardInterrupt):
            say(f"interrupted: plumb bisect --resume {folder} goes on")
            raise
        report = Report(folder, bench.state, progress, bench.request.commits(folder / "commits.git"), why)
        say(f"\n{report.text()}")
        forms = {".json": report.document, ".md": report.markdown, ".html": lambda: render(page(report))}
        options.write("what the bisection found", args.output, forms)
    return report.status, report.document()


def _begun(args: argparse.Namespace) -> Path:
    """The folder of the bisection, which is begun unless it is resumed."""
    if args.resume:
        return Path(args.resume.resolve())
    request = _request(args)
    with session.passing_folder("bisect") as place:
        require_range(request.commits(place / "commits.git"), request.good, request.bad, request.named)
    folder = (args.work or paths.build() / "bisect" / store.new_session()).resolve()
    bisection = BisectionState(request)
    with BISECTION.new(folder):
        BISECTION.save(folder, bisection)
        if jobs.needed(BisectionBench(folder, bisection, say).partition()):
            under = session.before_a_job(request.circumstances)
            bisection.request = structs.replace(request, circumstances=under)
            BISECTION.save(folder, bisection)
    return Path(folder)


def _request(args: argparse.Namespace) -> BisectionRequest:
    rule = PairedRule(
        TOLERANCE if args.tolerance is None else args.tolerance,
        MUST_DETECT if args.must_detect is None else args.must_detect,
    )
    application_file = model.named_or_here(args.application)
    stack = args.stack or first_stack(application_file, say)
    repository = application_file.parent if application_file else None
    library = source.library(stack)
    if library:
        repository = source.repository(library)
    good, bad = (_commit(name, repository) for name in (args.good, args.bad))
    return BisectionRequest(
        good=good,
        bad=bad,
        named=(args.good, args.bad),
        stack=stack,
        tolerance=rule.tolerance,
        must_detect=rule.must_detect,
        seed=secrets.randbits(32) if args.seed is None else args.seed,
        circumstances=session.circumstances([] if library else [stack]),
        application=str(application_file) if application_file else None,
        test=args.test,
        figure=args.figure,
        system=options.system(args),
        first_parent=args.first_parent,
    )


def _commit(name: str, repository: Path | None) -> str:
    """The commit that ``name`` stands for; ``repository`` None: of this suite."""
    commit = git.commit(name, repository)
    if commit is None and repository is None and not git.is_checkout():
        cure = "run it in a repository with a plumb.yaml, or in a checkout"
        raise PlumbError(f"'{name}': commits of the suite need a checkout of it", "plumb bisect", cure)
    if commit is None:
        raise PlumbError(f"'{name}' is not a commit", str(repository or paths.root()), "git log has them")
    return commit
