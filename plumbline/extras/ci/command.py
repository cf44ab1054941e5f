"""``plumb ci``: the pipelines that gate merge requests and measure every night."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from plumbline.base import files, git
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.extras.ci import origin, pipelines
from plumbline.measure.application import model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb ci``."""
    parser.description = (
        "Writes the pipelines that gate merge requests and measure every night, in a checkout of this suite or in a "
        "repository with a plumb.yaml. --results names the folder that keeps the nightly records."
    )
    parser.add_argument("kind", choices=tuple(pipelines.FILES), help="which pipeline")
    parser.add_argument("--tags", required=True, metavar="A,B", help="the runner's tags (GitHub: labels)")
    options.add(parser, "--site", "where (default: the site that claims the runner)", default="")
    options.add(parser, "--partition", "default: the partitions of the site that have the tests", default="")
    options.add(parser, "--stack", "stack that both sides of a gate run on", default="")
    options.add(parser, "--test", "tests of the gate: a regular expression that their names begin with", default="")
    text = "stack or commit (default: where the change left its branch)"
    parser.add_argument("--baseline", default="", metavar="SIDE", help=text)
    options.add_profile(parser, "of nightly jobs (default: quick)")
    options.add(parser, "--minutes", "of the gate (default: 60)", default=60)
    text = "look for the cause of a FAIL, and of a change that the nightly job confirms, for M minutes (default: not)"
    options.add(parser, "--cause-minutes", text, default=0)
    text = "GitHub: when the nightly job runs (default: 17 2 * * *)"
    parser.add_argument("--cron", default="17 2 * * *", metavar="C", help=text)
    text = "what a job with status 2 is (default: warn)"
    parser.add_argument("--inconclusive", choices=("warn", "fail"), default="warn", help=text)
    parser.add_argument("--comment", action="store_true", help="post the gate's table under the merge request")
    text = (
        "of a runner that posts it and runs nothing of a merge request (default: GitHub's own, GitLab's without tags)"
    )
    parser.add_argument("--comment-tags", default="", metavar="A,B", help=text)
    parser.add_argument("--pages", action="store_true", help="publish all campaigns after the nightly one")
    options.add(parser, "--application", "default: the plumb.yaml here, or above")
    text = "of an application: a wheel, or an address with its SHA-256 (default: what this Plumbline came from)"
    parser.add_argument("--install", metavar="WHAT", help=text)
    text = "of an application: its stacks and sites on the runner (default: in the user's data folder)"
    parser.add_argument("--home", type=Path, metavar="FOLDER", help=text)
    text = "write the file below this checkout (default: print it)"
    parser.add_argument("--checkout", type=files.OutputFolder, metavar="FOLDER", help=text)


def _application(named: Path | None) -> str:
    """The plumb.yaml that is ``named``, or that of the present folder, below its repository's top; empty if none is."""
    file = model.named_or_here(named)
    if file is None:
        return ""
    model.load(file)
    top = git.top(file.parent)
    if top is None:
        raise PlumbError("this is not a git repository", str(file.parent), "git init")
    return str(file.relative_to(top))


def run(args: argparse.Namespace) -> int:
    """Print or write the pipeline; returns 0."""
    application = _application(args.application)
    if not application and (args.install or args.home):
        raise PlumbError("--install and --home are for a repository with a plumb.yaml", str(Path.cwd()), model.CURE)
    if application and args.profile != "quick":
        message = "--profile is for campaigns of the suite: of an application all programs are measured"
        raise PlumbError(message, "plumb ci", "leave it out")
    names = {field.name for field in dataclasses.fields(pipelines.Values)}
    fields = {
        name: getattr(args, name)
        for name in names - {"tags", "comment_tags", "results", "application", "install", "home"}
    }
    values = pipelines.Values(
        tags=tuple(options.names_of(args.tags)),
        comment_tags=tuple(options.names_of(args.comment_tags)),
        results=str(args.results_folder or ""),
        application=application,
        install=origin.fixed(args.install) if application else "",
        home=str(args.home or ""),
        **fields,
    )
    if args.checkout is None:
        print(pipelines.RENDER[args.kind](values), end="")
        return 0
    print(f"written: {pipelines.write(args.kind, values, args.checkout)}")
    if args.kind == "gitlab":
        print(f"Add to .gitlab-ci.yml: include: [{{local: {pipelines.FILES['gitlab']}}}]")
    return 0
