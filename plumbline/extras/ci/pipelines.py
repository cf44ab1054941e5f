"""``plumb ci``: the pipelines that gate merge requests and measure every night.

The jobs are in templates, ``gitlab.yml`` and ``github.yml``; the choices of a site are data in their variables. The
templates are for a checkout of this suite; in the repository of an application each job installs Plumbline first, from
a file with its SHA-256, never from a name of a registry: ``plumbline`` is somebody else's in the Python registry, and
ours was not taken there.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import yaml

import plumbline
from plumbline.base import files, git, paths, schemas
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.commands.options import command, flag, option
from plumbline.measure.application import model

#: where each host looks for its file, below the top of a checkout
FILES = {"gitlab": Path(".gitlab/plumbline.yml"), "github": Path(".github/workflows/plumbline.yml")}
#: how templates begin a step of job.sh
JOB = "bash plumbline/extras/ci/job.sh "
#: where a job of an application's pipeline installs Plumbline
ENVIRONMENT = ".plumbline"
#: the first line of a rendered file: only files that begin so are replaced
MARK = "# Rendered by plumb ci"
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]{0,99}")
_CRON = re.compile(r"[0-9*,/-]+( [0-9A-Za-z*,/-]+){4}")
#: options whose values are those of :class:`Values`
_PLAIN = (
    *("site", "partition", "stack", "test", "baseline", "profile", "minutes", "cause_minutes", "cron", "inconclusive"),
    *("comment", "pages"),
)
#: the name of our wheels
DISTRIBUTION = "plumbline-hpc"
#: addresses whose content cannot become another one: with a SHA-256, or of a commit
_FIXED = re.compile(r"((https?|file)://\S+#(\S+&)?sha256=[0-9a-f]{64}|git\+https://\S+@[0-9a-f]{40}(#\S*)?)")
_WHERE = "plumb ci --install"
_CURE = "name a wheel (make wheel), or an address with #sha256=… at its end"


def write(kind: str, values: Values, checkout: Path) -> Path:
    """Write the pipeline of ``kind`` below ``checkout``; raises :class:`PlumbError` for a file that is not one."""
    file = checkout / FILES[kind]
    if file.exists() and not file.read_bytes().startswith(MARK.encode()):
        raise PlumbError("a file that plumb ci did not write", str(file), "move it away, or name another --checkout")
    files.write("the pipeline", file, RENDER[kind](values))
    return file


#: minutes after which the nightly job is ended: the next one begins then
NIGHT = 24 * 60


@dataclass(frozen=True)
class Values:
    """The values that differ from site to site; an empty value leaves the default of the command that gets it.

    Raises :class:`PlumbError` for a value that no pipeline can hold.

    ``tags`` are those of the runner, ``test`` is a regular expression that names of tests begin with, ``baseline``
    a stack or commit (default: where the change left its target branch), ``results`` a folder that outlives jobs,
    ``comment_tags`` those of the runner that posts the comment, which has run nothing of a merge request (default: one
    of the host), ``minutes`` how long the gate may start pairs, ``cause_minutes`` how long the cause of a FAIL or of a
    confirmed alarm is looked for (0: it is not), ``inconclusive`` is ``warn`` or ``fail``, ``pages`` has the nightly
    job publish all campaigns. For an application, ``application`` is its plumb.yaml below the top of the repository,
    ``install`` what pip installs to have Plumbline, and ``home`` the folder of its stacks and sites.
    """

    tags: tuple[str, ...]
    site: str = ""
    partition: str = ""
    stack: str = ""
    test: str = ""
    baseline: str = ""
    results: str = ""
    profile: str = "quick"
    minutes: float = 60
    cause_minutes: float = 0
    cron: str = "17 2 * * *"
    inconclusive: str = "warn"
    comment: bool = False
    comment_tags: tuple[str, ...] = ()
    pages: bool = False
    application: str = ""
    install: str = ""
    home: str = ""

    def __post_init__(self) -> None:
        if odd := [tag for tag in (*self.tags, *self.comment_tags) if not _TAG.fullmatch(tag)]:
            raise PlumbError(
                f"'{odd[0]}' cannot be a runner's tag", "plumb ci --tags", "letters, digits, '.', '_', '-'"
            )
        if not self.tags:
            raise PlumbError("no runner's tag", "plumb ci", "say --tags with those of a runner that may start jobs")
        for name in ("site", "partition", "stack", "test", "baseline", "results", "application", "install", "home"):
            value, where = getattr(self, name), f"plumb ci --{name}"
            if not value.isprintable():
                raise PlumbError(f"a character that cannot be printed in {value!r}", where, "leave it out")
            if "${{" in value:  # a pipeline would expand it before any shell sees it
                raise PlumbError("'${{' begins an expression of the pipeline", where, "leave it out")
        if self.partition and not self.site:
            raise PlumbError("a partition of no site", "plumb ci --partition", "say --site too")
        if not _CRON.fullmatch(self.cron):
            raise PlumbError(f"'{self.cron}' is not a schedule", "plumb ci --cron", "five fields, such as '17 2 * * *'")
        for name, minutes, least in (("minutes", self.minutes, 1), ("cause-minutes", self.cause_minutes, 0)):
            if not least <= minutes <= NIGHT:
                raise PlumbError(f"{minutes:g} minutes", f"plumb ci --{name}", f"from {least} to {NIGHT}")

    @property
    def longest(self) -> int:
        """Minutes after which the gate's job is ended: an hour for set-up, and what it may measure."""
        return math.ceil(self.minutes) + math.ceil(self.cause_minutes) + 60

    def variables(self) -> dict[str, str]:
        """The variables that job.sh reads."""
        variables = {
            "PLUMB_CI_SITE": self.site,
            "PLUMB_CI_PARTITION": self.partition,
            "PLUMB_CI_STACK": self.stack,
            "PLUMB_CI_TEST": self.test,
            "PLUMB_CI_BASELINE": self.baseline,
            "PLUMB_CI_RESULTS": self.results,
            "PLUMB_CI_PROFILE": self.profile,
            "PLUMB_CI_MINUTES": f"{self.minutes:g}",
            "PLUMB_CI_CAUSE_MINUTES": f"{self.cause_minutes:g}" if self.cause_minutes else "",
            "PLUMB_CI_INCONCLUSIVE": self.inconclusive,
            "PLUMB_CI_PAGES": "yes" if self.pages else "",
            "PLUMB_CI_APPLICATION": self.application,
            "PLUMB_CI_INSTALL": self.install,
            "PLUMB_HOME": self.home,
        }
        return {name: value for name, value in variables.items() if value}


def _commands(line: str, values: Values) -> list[str]:
    """The commands of the ``line`` of a template; for an application, job.sh is in a wheel, installed by each job."""
    if not values.application or not line.startswith(JOB):
        return [line]
    # -I: not what lies in the checkout
    module = f"{ENVIRONMENT}/bin/python -I -m"
    return [
        f"python3 -I -m venv --clear {ENVIRONMENT}",
        f"{module} pip install --quiet --no-input --disable-pip-version-check "
        f'-- "{DISTRIBUTION}[campaign] @ $PLUMB_CI_INSTALL"',
        f"{module} plumbline.extras.ci {line.removeprefix(JOB)}",
    ]


def gitlab(values: Values) -> str:
    """A file to include in ``.gitlab-ci.yml``: the gate on merge requests, the campaign on schedules."""
    jobs = schemas.parse_yaml(_beside("gitlab.yml"))
    tags, common = list(values.tags), jobs[".plumb"]
    # "expand: false": GitLab would replace $NAME inside the values
    variables: dict[str, Any] = {name: {"value": value, "expand": False} for name, value in values.variables().items()}
    variables["GIT_DEPTH"] = "0"  # the baseline's commit has to be there
    common |= {"tags": tags, "timeout": f"{values.longest} minutes", "variables": variables}
    if values.inconclusive != "warn":
        common["allow_failure"] = False
    for job in (job for job in jobs.values() if "script" in job):
        job["script"] = [command for line in job["script"] for command in _commands(line, values)]
    if values.comment_tags:
        jobs["plumb-comment"]["tags"] = list(values.comment_tags)
    jobs["plumb-comment"]["script"] = [f"python3 -I - <<'PLUMB'\n{_beside('comment.py')}PLUMB\n"]
    if not values.comment:
        del jobs["plumb-comment"]
    jobs["plumb-nightly"]["timeout"] = f"{NIGHT} minutes"
    jobs["pages"]["tags"] = tags
    if not values.pages:
        del jobs["pages"]
    return _text(jobs, "gitlab")


def github(values: Values) -> str:
    """A workflow: the gate on pull requests from this repository's branches, the campaign every night."""
    template = _beside("github.yml")
    document = schemas.parse_yaml(template)
    jobs = document["jobs"]
    document["on"]["schedule"][0]["cron"] = values.cron
    for name, longest in (("gate", values.longest), ("nightly", NIGHT)):
        jobs[name] |= {"runs-on": list(values.tags), "timeout-minutes": longest, "env": values.variables()}
    for step in (step for job in jobs.values() for step in job["steps"] if "run" in step):
        step["run"] = "\n".join(_commands(step["run"], values))
    jobs["comment"]["runs-on"] = list(values.comment_tags) or "ubuntu-latest"
    jobs["comment"]["steps"][1]["run"] = _beside("comment.py")
    if not values.comment:
        del jobs["comment"]
    if not values.pages:
        del jobs["pages"], jobs["nightly"]["steps"][-1]
    text = _text(document, "github")
    for action, release in set(re.findall(r"uses: (\S+) # (\S+)", template)):
        text = text.replace(f"uses: {action}\n", f"uses: {action} # {release}\n")
    return text


def _beside(name: str) -> str:
    """A file of this folder."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


class _Dumper(yaml.SafeDumper):
    """Lists are indented below their key, and no value is written as a reference to an earlier one."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """A program as it is, line by line."""
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


_Dumper.add_representer(str, _Dumper.represent_str)


def _text(document: dict[str, Any], kind: str) -> str:
    head = f"{MARK} {kind}: change it there and render again. plumbline/extras/ci/job.sh has the steps of every job.\n"
    return head + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)


#: the function that renders the pipeline of each host
RENDER: dict[str, Callable[[Values], str]] = {"gitlab": gitlab, "github": github}


def fixed(named: str | None) -> str:
    """The address, with its hash, of the wheel or address ``named``; None: of what this Plumbline was installed from.

    In a checkout that is the wheel of this version that ``make wheel`` has made. Raises :class:`PlumbError` for what
    could become something else, and where there is nothing.
    """
    if named is None:
        return _present_wheel()
    if _FIXED.fullmatch(named):
        return named
    if "://" in named:
        raise PlumbError(f"{named} could become another file", _WHERE, "add #sha256=… with its SHA-256")
    if not Path(named).is_file():
        raise PlumbError(f"{named} is not a file here, and what has that name elsewhere may not be ours", _WHERE, _CURE)
    return _hashed(Path(named).resolve())


def _hashed(file: Path) -> str:
    return f"{file.as_uri()}#sha256={files.sha256(file)}"


def _present_wheel() -> str:
    if paths.is_installed():
        try:
            direct = json.loads(metadata.distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")  # PEP 610
        except (metadata.PackageNotFoundError, ValueError):
            direct = {}
        url, known = direct.get("url", ""), direct.get("archive_info", {}).get("hashes", {}).get("sha256")
        file = Path(url2pathname(urlsplit(url).path))
        if url.startswith("file:") and file.is_file() and known in (None, files.sha256(file)):
            return _hashed(file)
        if url.startswith("https:") and known:
            return f"{url}#sha256={known}"
        raise PlumbError("it is not known what this Plumbline was installed from", _WHERE, _CURE)
    name = f"{DISTRIBUTION.replace('-', '_')}-{plumbline.__version__}-*{platform.machine()}.whl"
    wheels = sorted(paths.build().glob(f"dist/{name}"))
    if not wheels:
        raise PlumbError("there is no wheel of this checkout", str(paths.build() / "dist"), "make wheel, or --install")
    return _hashed(wheels[-1].resolve())


def _application(named: Path | None) -> str:
    """The plumb.yaml that is ``named``, or that of the present folder, below its repository's top; empty if none is."""
    if (file := model.named_or_here(named)) is None:
        return ""
    model.load(file)
    if (top := git.top(file.parent)) is None:
        raise PlumbError("this is not a git repository", str(file.parent), "git init")
    return str(file.relative_to(top))


@command(
    option("kind", "CI system", choices=tuple(FILES)),
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
    if args.checkout and not application and not (args.checkout / JOB.split()[1]).is_file():
        raise PlumbError(
            "this is no checkout of Plumbline, and no repository with a plumb.yaml", str(args.checkout), model.CURE
        )
    if application and args.profile != "quick":
        raise PlumbError(
            "--profile is for campaigns of the suite: of an application all programs are measured",
            "plumb ci",
            "leave it out",
        )
    values = Values(
        tags=tuple(options.names_of(args.tags)),
        comment_tags=tuple(options.names_of(args.comment_tags)),
        results=str(args.results_folder or ""),
        application=application,
        install=fixed(args.install) if application else "",
        home=str(args.home or ""),
        **{name: getattr(args, name) for name in _PLAIN},
    )
    if args.checkout is None:
        print(RENDER[args.kind](values), end="")
        return 0
    print(f"written: {write(args.kind, values, args.checkout)}")
    if args.kind == "gitlab":
        print(f"Add to .gitlab-ci.yml: include: [{{local: {FILES['gitlab']}}}]")
    return 0
