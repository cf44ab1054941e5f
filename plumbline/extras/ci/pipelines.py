"""The pipelines that gate merge requests and measure every night.

The jobs are in templates, ``gitlab.yml`` and ``github.yml``; the choices of a site are data in their variables. The
templates are for a checkout of this suite; in the repository of an application each job installs Plumbline first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from plumbline.base import files, yaml_text
from plumbline.base.errors import PlumbError

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
        for tag in (*self.tags, *self.comment_tags):
            if not _TAG.fullmatch(tag):
                raise PlumbError(
                    f"'{tag}' cannot be a runner's tag", "plumb ci --tags", "letters, digits, '.', '_', '-'"
                )
        if not self.tags:
            raise PlumbError("no runner's tag", "plumb ci", "say --tags with those of a runner that may start jobs")
        for name in ("site", "partition", "stack", "test", "baseline", "results", "application", "install", "home"):
            _plain(name, getattr(self, name))
        if self.partition and not self.site:
            raise PlumbError("a partition of no site", "plumb ci --partition", "say --site too")
        if not _CRON.fullmatch(self.cron):
            raise PlumbError(f"'{self.cron}' is not a schedule", "plumb ci --cron", "five fields, such as '17 2 * * *'")
        if not 1 <= self.minutes <= 1440:
            raise PlumbError(f"{self.minutes:g} minutes", "plumb ci --minutes", "from 1 to 1440")
        if not 0 <= self.cause_minutes <= 1440:
            raise PlumbError(f"{self.cause_minutes:g} minutes", "plumb ci --cause-minutes", "from 0 to 1440")

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


def _plain(name: str, value: str) -> None:
    """Refuse what a pipeline would expand before any shell sees it, and what no terminal shows."""
    if not value.isprintable():
        raise PlumbError(f"a character that cannot be printed in {value!r}", f"plumb ci --{name}", "leave it out")
    if "${{" in value:
        raise PlumbError("'${{' begins an expression of the pipeline", f"plumb ci --{name}", "leave it out")


def _commands(line: str, values: Values) -> list[str]:
    """The commands of the ``line`` of a template; for an application, job.sh is in a wheel, installed by each job."""
    if not values.application or not line.startswith(JOB):
        return [line]
    # -I: not what lies in the checkout
    run = f"{ENVIRONMENT}/bin/python -I -m plumbline.extras.ci {line.removeprefix(JOB)}"
    pip = f"{ENVIRONMENT}/bin/python -I -m pip install --quiet --no-input --disable-pip-version-check"
    return [f"python3 -I -m venv --clear {ENVIRONMENT}", f'{pip} -- "$PLUMB_CI_INSTALL"', run]


def gitlab(values: Values) -> str:
    """A file to include in ``.gitlab-ci.yml``: the gate on merge requests, the campaign on schedules."""
    jobs = yaml_text.load(_template("gitlab"))
    tags, common = list(values.tags), jobs[".plumb"]
    # "expand: false": GitLab would replace $NAME inside the values
    variables: dict[str, Any] = {name: {"value": value, "expand": False} for name, value in values.variables().items()}
    variables["GIT_DEPTH"] = "0"  # the baseline's commit has to be there
    common |= {"tags": tags, "timeout": f"{values.longest} minutes", "variables": variables}
    if values.inconclusive != "warn":
        common["allow_failure"] = False
    for job in jobs.values():
        if "script" in job:
            job["script"] = [command for line in job["script"] for command in _commands(line, values)]
    if values.comment_tags:
        jobs["plumb-comment"]["tags"] = list(values.comment_tags)
    jobs["plumb-comment"]["script"] = [f"python3 -I - <<'PLUMB'\n{comment()}PLUMB\n"]
    if not values.comment:
        del jobs["plumb-comment"]
    jobs["plumb-nightly"]["timeout"] = f"{NIGHT} minutes"
    jobs["pages"]["tags"] = tags
    if not values.pages:
        del jobs["pages"]
    return _text(jobs, "gitlab")


def github(values: Values) -> str:
    """A workflow: the gate on pull requests from this repository's branches, the campaign every night."""
    template = _template("github")
    document = yaml_text.load(template)
    jobs = document["jobs"]
    document["on"]["schedule"][0]["cron"] = values.cron
    common = {
        "runs-on": list(values.tags),
        "timeout-minutes": values.longest,
        "env": values.variables(),
    }
    for name in ("gate", "nightly"):
        jobs[name] |= common
    jobs["nightly"]["timeout-minutes"] = NIGHT
    for step in (step for job in jobs.values() for step in job["steps"] if "run" in step):
        step["run"] = "\n".join(_commands(step["run"], values))
    jobs["comment"]["runs-on"] = list(values.comment_tags) or "ubuntu-latest"
    jobs["comment"]["steps"][1]["run"] = comment()
    if not values.comment:
        del jobs["comment"]
    if not values.pages:
        del jobs["pages"], jobs["nightly"]["steps"][-1]
    text = _text(document, "github")
    for action, release in set(re.findall(r"uses: (\S+) # (\S+)", template)):
        text = text.replace(f"uses: {action}\n", f"uses: {action} # {release}\n")
    return text


def comment() -> str:
    """The program that posts the comment."""
    return Path(__file__).with_name("comment.py").read_text(encoding="utf-8")


def _template(kind: str) -> str:
    return Path(__file__).with_name(f"{kind}.yml").read_text(encoding="utf-8")


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
