"""``plumb ci``: the pipelines that gate merge requests and measure every night."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from plumbline import files
from plumbline.ci import render
from plumbline.errors import PlumbError

#: where each host looks for its file, below the top of a checkout
FILES = {"gitlab": Path(".gitlab/plumbline.yml"), "github": Path(".github/workflows/plumbline.yml")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb ci``."""
    parser.add_argument("kind", choices=tuple(FILES), help="which pipeline")
    parser.add_argument("--tags", required=True, metavar="A,B", help="the runner's tags (GitHub: labels)")
    parser.add_argument("--site", default="", metavar="SITE[:PARTITION]", help="as reframe --system takes it")
    parser.add_argument("--stack", default="", metavar="NAME", help="stack that both sides of a gate run on")
    parser.add_argument("--tests", default="", metavar="REGEX", help="tests of the gate, as reframe -n takes them")
    parser.add_argument("--baseline", default="", metavar="SIDE", help="default: where the change left its branch")
    parser.add_argument("--results", default="", metavar="DIR", help="kept folder of the nightly records")
    parser.add_argument(
        "--profile", choices=("quick", "full"), default="quick", help="of nightly jobs (default: quick)"
    )
    parser.add_argument("--minutes", type=int, default=60, metavar="M", help="of the gate (default: 60)")
    parser.add_argument(
        "--cron", default="17 2 * * *", metavar="C", help="GitHub: when the nightly job runs (default 17 2 * * *)"
    )
    parser.add_argument(
        "--inconclusive", choices=("warn", "fail"), default="warn", help="what a job with status 2 is (default: warn)"
    )
    parser.add_argument("--comment", action="store_true", help="post the gate's table under the merge request")
    parser.add_argument("--pages", action="store_true", help="publish all campaigns after the nightly one")
    parser.add_argument(
        "--output", type=files.Output, metavar="DIR", help="write the file below this checkout (default: print)"
    )


def run(args: argparse.Namespace) -> int:
    """Print or write the pipeline; returns 0. Raises :class:`PlumbError` for a file that plumb ci did not write."""
    given = {value.name: getattr(args, value.name) for value in dataclasses.fields(render.Values)}
    tags = tuple(tag.strip() for tag in args.tags.split(",") if tag.strip())
    values = render.Values(**{**given, "tags": tags})
    text = render.gitlab(values) if args.kind == "gitlab" else render.github(values)
    if args.output is None:
        print(text, end="")
        return 0
    file = args.output / FILES[args.kind]
    if file.exists() and not file.read_bytes().startswith(render.MARK.encode()):
        raise PlumbError("a file that plumb ci did not write", str(file), "move it away, or name another --output")
    files.write("the pipeline", file, text)
    print(f"written: {file}")
    if args.kind == "gitlab":
        print(f"Add to .gitlab-ci.yml: include: [{{local: {FILES['gitlab']}}}]")
    return 0
