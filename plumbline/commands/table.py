"""The commands of ``plumb``, by purpose: those of the core, each a module of its own here, and those of the extras."""

from __future__ import annotations

from typing import NamedTuple

from plumbline.base import extensions


class Command(NamedTuple):
    """The purpose of a command, an example, and its module."""

    purpose: str
    example: str
    module: str


#: group -> command of the core -> its purpose, and an example
_CORE = {
    "measure": {
        "campaign": (
            "run all tests of a profile and print the summary",
            "plumb campaign --profile full --test stream",
        ),
        "run": (
            "measure the programs of plumb.yaml in this repository",
            "plumb run heat --stack openmpi",
        ),
        "application": (
            "write or check plumb.yaml, which describes programs of your own",
            "plumb application init",
        ),
        "launch": (
            "run the launches of variants and write their records (inside a job)",
            "plumb launch baseline.json candidate.json --records out.jsonl",
        ),
        "reproduce": (
            "run the variant of a record again on the same stack",
            "plumb reproduce 4f89ff",
        ),
    },
    "look at what was measured": {
        "list": (
            "the records, oldest first",
            "plumb list --test stream --ranked",
        ),
        "show": (
            "one record: figures, launches, rank map, circumstances",
            "plumb show last",
        ),
        "diff": (
            "what differs between two records, and between their profiles",
            "plumb diff 4f89ff 2cb145",
        ),
        "compare": (
            "stacks, systems, campaigns, commits or periods side by side",
            "plumb compare openmpi mpich --test osu",
        ),
        "hybrid": (
            "the best hybrid code against the best pure MPI code, with an interval",
            "plumb hybrid --test jacobi",
        ),
        "history": (
            "change points in the records, or in given numbers",
            "plumb history --test stream",
        ),
        "outliers": (
            "nodes and links that differ from their class",
            "plumb outliers --test stream --figure triad",
        ),
        "topology": (
            "draw a machine, with a plan's ranks and threads in their places",
            "plumb topology --placement scatter --threads 2",
        ),
        "report": (
            "one campaign and its history as a single HTML file",
            "plumb report --output report.html",
        ),
    },
    "judge": {
        "gate": (
            "PASS, FAIL, INCONCLUSIVE or INVALID for a candidate compared with its baseline",
            "plumb gate --baseline main --candidate HEAD --stack openmpi --test 'stream|osu_pair'",
        ),
        "calibrate": (
            "make references from the records of verified sessions, or a class of nodes for plumb check",
            "plumb calibrate --test stream --dry-run",
        ),
        "lint": (
            "check every reference of every site",
            "plumb lint",
        ),
    },
    "manage": {
        "setup": (
            "make this host ready: stacks from wheels, a site, ceilings",
            "plumb setup --stack mpich",
        ),
        "stack": (
            "list, install, show, check and remove stacks",
            "plumb stack install openmpi mpich",
        ),
        "site": (
            "describe this machine as a site, and measure what it reaches",
            "plumb site measure --partition default",
        ),
        "nodes": (
            "facts of the nodes of a partition, which of them differ, which can be used",
            "plumb nodes states --scheduler local",
        ),
        "doctor": (
            "what is wrong with this host, or these nodes, for benchmarking",
            "plumb doctor",
        ),
        "note": (
            "write down what happened to a site; history, gates and pages show it",
            "plumb note 'kernel update' --time 2026-11-22T10:30",
        ),
        "compact": (
            "make few compressed files of many session files",
            "plumb compact --until 2026-11-01",
        ),
        "completion": (
            "completion of plumb for a shell: commands, options, names",
            'eval "$(plumb completion bash)"',
        ),
    },
}
#: group -> command, those of the extras last
GROUPS = {
    group: {
        **{name: Command(*texts, f"plumbline.commands.{name}") for name, texts in commands.items()},
        **{
            name: Command(purpose, example, f"{extensions.EXTRAS}.{module}")
            for name, (module, purpose, example) in extensions.table("COMMANDS").get(group, {}).items()
        },
    }
    for group, commands in _CORE.items()
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
#: the heading above the first command of a group
HEADINGS = {next(iter(group)): heading for heading, group in GROUPS.items()}
