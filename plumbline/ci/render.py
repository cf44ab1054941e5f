"""The pipelines as YAML text: the jobs are constant, what a site chooses is data in their variables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from plumbline.errors import PlumbError

#: the first line of a rendered file: only files that begin so are replaced
MARK = "# Rendered by plumb ci"
#: commits of the actions' release tags, read from their repositories; a tag can be moved, a commit cannot
CHECKOUT = ("actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1", "v7.0.1")
UPLOAD = ("actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f", "v7.0.0")
UPLOAD_PAGES = ("actions/upload-pages-artifact@fc324d3547104276b827a68afc52ff2a11cc49c9", "v5.0.0")
DEPLOY = ("actions/deploy-pages@cd2ce8fcbc39b97be8ca5fce6e763baed58fa128", "v5.0.0")
JOB = "bash plumbline/ci/job.sh"
OUTPUT = "plumb-ci/"
#: where job.sh leaves the pages, and the folder that GitLab publishes
PAGES, PUBLIC = f"{OUTPUT}pages/", "public"
#: days for which a pipeline keeps its artifacts
DAYS = 30
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]{0,99}")
_CRON = re.compile(r"[0-9*,/-]+( [0-9A-Za-z*,/-]+){4}")


@dataclass(frozen=True)
class Values:
    """What differs from site to site; an empty value leaves the default of the command that gets it.

    Raises :class:`PlumbError` for a value that no pipeline can hold.

    ``tags`` are those of the runner, ``site`` is ``SITE[:PARTITION]``, ``tests`` a regular expression of test names,
    ``baseline`` a stack or commit (default: where the change left its target branch), ``results`` a folder that
    outlives jobs, ``minutes`` how long the gate may start pairs, ``inconclusive`` is ``warn`` or ``fail``, ``pages``
    has the nightly job publish all campaigns.
    """

    tags: tuple[str, ...]
    site: str = ""
    stack: str = ""
    tests: str = ""
    baseline: str = ""
    results: str = ""
    profile: str = "quick"
    minutes: int = 60
    cron: str = "17 2 * * *"
    inconclusive: str = "warn"
    comment: bool = False
    pages: bool = False

    def __post_init__(self) -> None:
        for tag in self.tags:
            if not _TAG.fullmatch(tag):
                raise PlumbError(
                    f"'{tag}' cannot be a runner's tag", "plumb ci --tags", "letters, digits, '.', '_', '-'"
                )
        if not self.tags:
            raise PlumbError("no runner's tag", "plumb ci", "say --tags with those of a runner that may start jobs")
        for name in ("site", "stack", "tests", "baseline", "results"):
            _plain(name, getattr(self, name))
        if not _CRON.fullmatch(self.cron):
            raise PlumbError(f"'{self.cron}' is not a schedule", "plumb ci --cron", "five fields, such as '17 2 * * *'")
        if not 1 <= self.minutes <= 1440:
            raise PlumbError(f"{self.minutes} minutes", "plumb ci --minutes", "from 1 to 1440")

    def variables(self) -> dict[str, str]:
        """The variables that job.sh reads."""
        found = {
            "PLUMB_CI_SITE": self.site,
            "PLUMB_CI_STACK": self.stack,
            "PLUMB_CI_TESTS": self.tests,
            "PLUMB_CI_BASELINE": self.baseline,
            "PLUMB_CI_RESULTS": self.results,
            "PLUMB_CI_PROFILE": self.profile,
            "PLUMB_CI_MINUTES": str(self.minutes),
            "PLUMB_CI_INCONCLUSIVE": self.inconclusive,
            "PLUMB_CI_PAGES": "yes" if self.pages else "",
        }
        return {name: value for name, value in found.items() if value}


def _plain(name: str, value: str) -> None:
    """Refuse what a pipeline would expand by itself before any shell sees it, and what no terminal shows."""
    if not value.isprintable():
        raise PlumbError(f"a character that cannot be printed in {value!r}", f"plumb ci --{name}", "leave it out")
    if "${{" in value:
        raise PlumbError("'${{' begins an expression of the pipeline", f"plumb ci --{name}", "leave it out")


def gitlab(values: Values) -> str:
    """A file to include in ``.gitlab-ci.yml``: the gate on merge requests, the campaign on schedules."""
    # "expand: false": GitLab would replace $NAME inside the values
    variables: dict[str, Any] = {name: {"value": value, "expand": False} for name, value in values.variables().items()}
    variables["GIT_DEPTH"] = "0"  # the baseline's commit has to be there
    tolerated = {"allow_failure": {"exit_codes": [2]}} if values.inconclusive == "warn" else {"allow_failure": False}
    keep = {"when": "always", "expire_in": f"{DAYS} days", "paths": [OUTPUT]}
    common = {
        "stage": "test",
        "tags": list(values.tags),
        "timeout": f"{values.minutes + 60} minutes",
        "resource_group": "plumbline",  # one at a time: two jobs that measure disturb each other
        "variables": variables,
        **tolerated,
    }
    gate: dict[str, Any] = {
        "extends": ".plumb",
        "rules": [{"if": '$CI_PIPELINE_SOURCE == "merge_request_event"'}],
        "interruptible": True,
        "script": [f"{JOB} gate"],
        **({"after_script": [f"{JOB} comment"]} if values.comment else {}),
        "artifacts": {**keep, "reports": {"junit": f"{OUTPUT}gate.xml"}},
    }
    nightly: dict[str, Any] = {
        "extends": ".plumb",
        "rules": [{"if": '$CI_PIPELINE_SOURCE == "schedule"'}],
        "script": [f"{JOB} nightly"],
        "artifacts": keep,
    }
    jobs = {".plumb": common, "plumb-gate": gate, "plumb-nightly": nightly}
    if values.pages:
        jobs["pages"] = {  # the name by which GitLab knows what to publish
            "stage": "deploy",
            "tags": list(values.tags),
            "needs": ["plumb-nightly"],
            "rules": [{**nightly["rules"][0], "when": "always"}],  # a night with an alarm is published too
            "script": [f"{JOB} pages"],
            "artifacts": {"paths": [PUBLIC]},
        }
    return _text(jobs, "gitlab")


def github(values: Values) -> str:
    """A workflow: the gate on pull requests from this repository's branches, the campaign every night."""
    own = "github.event_name == 'pull_request' && github.event.pull_request.head.repo.full_name == github.repository"
    steps: list[dict[str, Any]] = [
        {"uses": CHECKOUT[0], "with": {"fetch-depth": 0, "persist-credentials": False, "ref": _HEAD}},
        {"name": "Gate", "run": f"{JOB} gate"},
    ]
    if values.comment:
        steps.append(
            {
                "name": "Comment",
                "if": "always()",
                "run": f"{JOB} comment",
                "env": {"GITHUB_TOKEN": "${{ github.token }}", "PLUMB_CI_REQUEST": "${{ github.event.number }}"},
            }
        )
    common = {"runs-on": list(values.tags), "timeout-minutes": values.minutes + 60, "env": values.variables()}
    gate = {
        # a runner at a site must not run what strangers propose
        "if": own,
        "permissions": {"contents": "read", **({"pull-requests": "write"} if values.comment else {})},
        "concurrency": {"group": "plumb-gate-${{ github.ref }}", "cancel-in-progress": True},
        **common,
        "steps": [*steps, _keep("gate")],
    }
    by_night = "github.event_name == 'schedule' || github.event_name == 'workflow_dispatch'"
    nightly: dict[str, Any] = {
        "if": by_night,
        "permissions": {"contents": "read"},
        **common,
        "steps": [
            {"uses": CHECKOUT[0], "with": {"persist-credentials": False}},
            {"name": "Campaign", "run": f"{JOB} nightly"},
            _keep("nightly"),
        ],
    }
    jobs = {"gate": gate, "nightly": nightly}
    if values.pages:
        nightly["steps"].append({"if": "always()", "uses": UPLOAD_PAGES[0], "with": {"path": PAGES}})
        jobs["pages"] = {
            "needs": "nightly",
            "if": f"!cancelled() && ({by_night})",  # a night with an alarm is published too
            "permissions": {"pages": "write", "id-token": "write"},
            "environment": {"name": "github-pages", "url": "${{ steps.deployment.outputs.page_url }}"},
            "runs-on": "ubuntu-latest",
            "steps": [{"id": "deployment", "uses": DEPLOY[0]}],
        }
    document = {
        "name": "Plumbline",
        "on": {"pull_request": {}, "schedule": [{"cron": values.cron}], "workflow_dispatch": {}},
        "permissions": {},
        "defaults": {"run": {"shell": "bash"}},
        "jobs": jobs,
    }
    text = _text(document, "github")
    for action, release in (CHECKOUT, UPLOAD, UPLOAD_PAGES, DEPLOY):
        text = text.replace(f"uses: {action}\n", f"uses: {action} # {release}\n")
    return text


#: the proposed commit itself, not GitHub's merge of it: the gate compares it with the commit where it left the branch
_HEAD = "${{ github.event.pull_request.head.sha }}"


def _keep(name: str) -> dict[str, Any]:
    return {
        "if": "always()",
        "uses": UPLOAD[0],
        "with": {"name": f"plumb-{name}", "path": OUTPUT, "if-no-files-found": "warn", "retention-days": DAYS},
    }


class _Dumper(yaml.SafeDumper):
    """Lists are indented below their key, and no value is written as a reference to an earlier one."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(document: dict[str, Any], kind: str) -> str:
    head = f"{MARK} {kind}: change it there and render again. plumbline/ci/job.sh has the steps of every job.\n"
    return head + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)
