"""``plumb ci``: the pipelines that gate merge requests and measure every night."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from plumbline.base import files, git
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.commands.options import command, flag, option
from plumbline.extras.ci import pipelines
from plumbline.measure.application import model


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


@command(
    option("kind", "CI system", choices=tuple(pipelines.FILES)),
    option("--tags", "tags of the runner (GitHub: labels)", required=True, metavar="A,B"),
    option("--site", "site (default: the site of the runner)", default=""),
    option("--partition", "partition (default: all partitions of the site with the tests)", default=""),
    option("--stack", "stack of both sides of a gate", default=""),
    option("--test", "tests of the gate whose names match this regular expression from the start", default=""),
    option(
        "--baseline",
        "baseline of the gate: stack or commit (default: merge base of the change)",
        default="",
        metavar="SIDE",
    ),
    options.profile("profile of nightly campaigns (default: quick)"),
    option("--minutes", "time limit of the gate in minutes (default: 60)", default=60),
    option(
        "--cause-minutes",
        "search for the cause of a FAIL, and of a change confirmed at night, for M minutes (default: no search)",
        default=0,
    ),
    option("--cron", "GitHub: schedule of the nightly job (default: 17 2 * * *)", default="17 2 * * *", metavar="C"),
    option(
        "--inconclusive",
        "result of a job with status 2, INCONCLUSIVE (default: warn)",
        choices=("warn", "fail"),
        default="warn",
    ),
    flag("--comment", "post the table of the gate as a comment of the merge request"),
    option(
        "--comment-tags",
        "tags of the runner that posts the comment and runs no code of the merge request "
        "(default: GitHub's own, GitLab's without tags)",
        default="",
        metavar="A,B",
    ),
    flag("--pages", "publish all campaigns as pages after each nightly campaign"),
    option("--application", "plumb.yaml to use (default: the one here or in a folder above)"),
    option(
        "--install",
        "application: wheel of Plumbline, or its URL with SHA-256 (default: the source of this installation)",
        metavar="WHEEL",
    ),
    option(
        "--home",
        "application: folder of stacks and sites on the runner (default: in the user's data folder)",
        type=Path,
        metavar="FOLDER",
    ),
    option(
        "--checkout",
        "write the file below this checkout (default: print it)",
        type=files.OutputFolder,
        metavar="FOLDER",
    ),
    description="Write the pipelines that gate merge requests and measure every night, in a checkout of this "
    "suite or in a "
    "repository with a plumb.yaml. --results names the folder that keeps the nightly records.",
)
def run_ci(args: argparse.Namespace) -> int:
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
        install=pipelines.fixed(args.install) if application else "",
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
