"""The commands of ``plumb``, by purpose: those of the core, each a module of its own here, and those of the extras."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from plumbline.base import extensions
from plumbline.base.verdicts import EXIT, GIT_ENDS


class Entry(NamedTuple):
    """Where a command is, ``run_NAME`` in a module, what it does, and an example.

    ``errors``: the exit status of its errors by the beginning of a word on the command line, where it is not 2.
    """

    module: str
    purpose: str
    example: str
    errors: Mapping[str, int] = {}


_OUTPUT = "--output FILE, whose ending says the form"
#: the errors of a command whose exit status is a verdict: 1 is a FAIL, and a CI that tolerates INCONCLUSIVE tolerates 2
OF_VERDICTS = {"": EXIT["INVALID"]}
#: group -> command of the core -> its entry, with the name of the module in this room
_CORE: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "measure": {
        "campaign": (
            "measure",
            "run all tests of a profile and print the summary",
            "plumb campaign --profile full --test stream",
        ),
        "run": (
            "measure",
            "measure the programs of plumb.yaml in this repository",
            "plumb run heat --stack openmpi",
            {"--any": EXIT["INVALID"]},
        ),
        "application": (
            "measure",
            "write or check plumb.yaml, the description of your own programs",
            "plumb application init",
        ),
        "launch": (
            "launch",
            "run the launches of variants and write their records (inside a job)",
            "plumb launch baseline.json candidate.json --records out.jsonl",
        ),
        "prove": (
            "launch",
            "run any command and show where its ranks, threads and memory were",
            "plumb prove -- mpirun -n 4 ./app",
            {"--verdict": EXIT["INVALID"]},
        ),
        "reproduce": ("measure", "rerun the variant of a record on the same stack", "plumb reproduce 4f89ff"),
    },
    "inspect results": {
        "list": ("records", "list the records by test", "plumb list --test stream --ranked"),
        "show": ("records", "show one record: figures, launches, rank map, circumstances", "plumb show last"),
        "diff": (
            "records",
            "show the differences between two records and between their profiles",
            "plumb diff 4f89ff 2cb145",
        ),
        "compare": (
            "report",
            "compare stacks, systems, campaigns, commits or periods side by side",
            "plumb compare openmpi mpich --test osu",
        ),
        "history": (
            "judge",
            "find change points in the records or in a CSV file",
            "plumb history --test stream",
            OF_VERDICTS,
        ),
        "outliers": (
            "judge",
            "find nodes and links that differ from their class",
            "plumb outliers --test stream --figure triad",
            OF_VERDICTS,
        ),
        "topology": (
            "sites",
            "draw the topology of a machine, and the ranks and threads of a placement on it",
            "plumb topology --placement scatter --threads 2",
        ),
        "report": (
            "report",
            "write one campaign and its history to a single HTML file",
            "plumb report --output report.html",
        ),
    },
    "judge": {
        "gate": (
            "gate",
            "compare a candidate with its baseline: PASS, FAIL, INCONCLUSIVE or INVALID",
            "plumb gate --baseline command:./old --candidate command:./new",
            {**OF_VERDICTS, "--for": GIT_ENDS},
        ),
        "calibrate": (
            "judge",
            "derive references from verified sessions, or a node class for plumb check",
            "plumb calibrate --test stream --dry-run",
        ),
        "lint": ("judge", "check every reference of every site", "plumb lint"),
    },
    "manage": {
        "setup": ("sites", "set up this host: stacks from wheels, a site, ceilings", "plumb setup --stack mpich"),
        "stack": ("stacks", "list, install, show, check, pack and remove stacks", "plumb stack install openmpi mpich"),
        "site": (
            "sites",
            "describe this machine as a site and measure its ceilings",
            "plumb site measure --partition default",
        ),
        "nodes": (
            "sites",
            "collect and compare the facts of nodes; list, drain and resume nodes",
            "plumb nodes states --scheduler local",
        ),
        "doctor": (
            "sites",
            "find settings and faults of this host, or of nodes, that disturb benchmarks",
            "plumb doctor",
        ),
        "note": (
            "records",
            "record an event of a site, for history, gates and pages",
            "plumb note 'kernel update' --time 2026-11-22T10:30",
        ),
        "compact": (
            "records",
            "merge many session files into a few compressed files",
            "plumb compact --until 2026-11-01",
        ),
        "completion": (
            "completion",
            "print the shell completion of commands, options and names",
            'eval "$(plumb completion bash)"',
        ),
    },
}
#: group -> command, those of the extras last
GROUPS = {
    group: {
        name: Entry(f"{room}.{module}", *texts)
        for room, table in (
            ("plumbline.commands", commands),
            (extensions.EXTRAS, extensions.table("COMMANDS").get(group, {})),
        )
        for name, (module, *texts) in table.items()
    }
    for group, commands in _CORE.items()
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
#: the commands whose help has the option of jobs, which all that submit some take
JOBS = frozenset({
    "accept", "bisect", "calibrate", "campaign", "gate", "lab", "nodes", "run", "screen", "setup", "site", "tune",
    "why",
})  # fmt: skip
#: the heading above the first command of a group
HEADINGS = {next(iter(group)): heading for heading, group in GROUPS.items()}
#: the first screen: what a person asks -> the command that answers
QUESTIONS = {
    "Did my ranks run where I think?": "prove",
    "Is this host fine for benchmarking?": "doctor",
    "How do I make it ready?": "setup",
    "How fast is it?": "campaign",
    "How fast is my own program?": "run",
    "Which figures are there?": "list",
    "Which stack, system or month is better?": "compare",
    "Is B slower than A?": "gate",
    "Why is B slower?": "why",
    "Which commit made it slower?": "bisect",
    "Since when is it slower?": "history",
    "Which node or link is slow?": "outliers",
}
#: command that has ended -> what is present
GONE = {"hybrid": "plumb compare --hybrid"}
#: command -> option that has ended -> present spelling
ENDED = {
    "ci": {"--tests": "--test", "--output": "--checkout"},
    "compact": {"--before": "--until", "--remove": "--remove-sessions"},
    "compare": {"--format": f"--json, or {_OUTPUT}"},
    "doctor": {"--nodes": "--facts"},
    "gate": {"--tests": "--test", "--junit": _OUTPUT, "--markdown": _OUTPUT, "--html": _OUTPUT},
    "history": {"--min-effect": "--tolerance"},
    "nodes": {"--limit": "--time-limit", "--output": "plumb nodes facts FOLDER"},
    "outliers": {"--min-effect": "--tolerance", "--nodes": "--members"},
    "site": {"--name": "--site", "--add-stacks": "--offer-also"},
    "site init": {"--stacks": "--offer"},  # elsewhere it names the folder of the stacks
    "tune": {"--profile": "--profile-of"},
}
