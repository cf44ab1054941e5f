"""Extras: capabilities around the core. Each imports the core and no other extra; the core imports none of them.

What they add is in these tables, which are data: nothing is loaded until it is used (:mod:`plumbline.base.extensions`).
"""

from __future__ import annotations

from plumbline.base.verdicts import EXIT

#: group of ``plumb help --all`` -> command -> module below this one, what the command does, an example, and the status
#: of its errors by the beginning of a word on the command line, where it is not 2
COMMANDS = {
    "measure": {
        "tune": (
            "tune.command",
            "find settings of a program, or of an MPI library, with a proven gain and no proven loss",
            "plumb tune openmpi --dry-run",
        ),
        "profile": (
            "profiles.command",
            "show where the time of a test or of your own program goes, in MPI and beyond",
            "plumb profile --stack mpich --placement core -- ./program",
        ),
        "scale": (
            "scale.command",
            "measure how a command scales over threads or ranks, and why its curve bends",
            "plumb scale --counts 1,2 -- ./program",
        ),
        "neighbours": (
            "neighbours.command",
            "measure what a neighbour on the same node costs a program, at each distance",
            "plumb neighbours --kinds sleeper,memory -- ./program",
        ),
    },
    "inspect results": {
        "lab": (
            "labs.command",
            "run published teaching experiments on this machine and explain the results",
            "plumb lab R7",
        ),
        "publish": (
            "publish.command",
            "write static HTML pages of all systems and campaigns",
            "plumb publish public",
        ),
    },
    "judge": {
        "advice": (
            "advice.command",
            "show where the launches of users' jobs really ran, and the line to write instead",
            "plumb advice show 4711",
        ),
        "why": (
            "search.why.command",
            "find and measure the cause of a slowdown between two records or sides",
            "plumb why 4f89ff 2cb145",
            {"": EXIT["INVALID"]},
        ),
        "bisect": (
            "search.bisect.command",
            "find the commit that makes a figure slower: git bisect, judged by gates",
            "plumb bisect v1.2 main --test heat",
            {"": EXIT["INVALID"]},
        ),
        "check": (
            "nodes.check",
            "check within seconds whether this node performs like its peers",
            "plumb check --seconds 55 --form json",
            {"nagios": EXIT["INVALID"], "--form=nagios": EXIT["INVALID"]},  # Nagios takes 2 for a node that is bad
        ),
        "screen": (
            "nodes.screen",
            "check every idle node and link of a partition within a given number of days",
            "plumb screen --within 7 --node-hours 20 --output machine.html",
        ),
        "accept": (
            "accept.command",
            "judge each promise of a contract on every node",
            "plumb accept CONTRACT.yaml --plan",
            {"": EXIT["INVALID"]},
        ),
    },
    "manage": {
        "knobs": ("tune.knobs", "list and describe the settings of a stack's MPI library", "plumb knobs openmpi eager"),
        "export": (
            "exchange.command",
            "export figures as CSV, OpenMetrics or ReFrame results",
            "plumb export --format csv --test stream",
        ),
        "import": (
            "exchange.command",
            "import figures from ReFrame's performance logs, results databases and run reports",
            "plumb import perflogs/*/*/*.log",
        ),
        "ci": (
            "ci.pipelines",
            "write CI pipelines that gate merge requests and measure every night",
            "plumb ci gitlab --tags hpc --stack openmpi",
        ),
    },
}

#: extension point of the core -> functions that it calls there
ADDITIONS = {
    "calibrate.options": ("nodes.checks:arguments",),
    "calibrate.run": ("nodes.checks:run",),
    "cause.command": ("search.why.command:cause_command",),
    "cause.search": ("search.why.command:cause_search",),
    "diff.sections": ("profiles.text:of_records",),
    "doctor.libraries": ("fabric.doctor:examine_libraries",),
    "report.sections": ("labs.command:of_campaign", "profiles.section:of_campaign"),
    "stack.actions": ("spack.command:actions",),
    "stack.adopt": ("spack:adopt",),
    "stack.check": ("fabric.doctor:check_stacks",),
}

#: provider of stacks -> its module
PROVIDERS = {"spack": "plumbline.extras.spack"}
