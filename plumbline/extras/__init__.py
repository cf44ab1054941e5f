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
            "find settings of an MPI library that are proven to gain, and to harm nothing",
            "plumb tune openmpi --dry-run",
        ),
        "profile": (
            "profiles.command",
            "what a test, or your own program, spends in MPI",
            "plumb profile --stack mpich --placement core -- ./program",
        ),
    },
    "look at what was measured": {
        "lab": (
            "labs.command",
            "experiments of teaching documents, with this machine's figures and the lesson",
            "plumb lab R7",
        ),
        "publish": (
            "publish.command",
            "static pages over all systems and campaigns, for a web server or a disk",
            "plumb publish public",
        ),
    },
    "judge": {
        "why": (
            "search.why.command",
            "which of all that differs makes B slower than A, measured",
            "plumb why 4f89ff 2cb145",
            {"": EXIT["INVALID"]},
        ),
        "bisect": (
            "search.bisect.command",
            "which commit makes a figure slower: git bisect with a gate as its judge",
            "plumb bisect v1.2 main --test heat",
            {"": EXIT["INVALID"]},
        ),
        "check": (
            "nodes.check",
            "check within seconds whether this node is as fast as its peers",
            "plumb check --seconds 55 --form json",
            {"nagios": EXIT["INVALID"], "--form=nagios": EXIT["INVALID"]},  # Nagios takes 2 for a node that is bad
        ),
        "screen": (
            "nodes.screen",
            "every node of a partition checked within some days, when idle, and the links between them",
            "plumb screen --within 7 --node-hours 20 --output machine.html",
        ),
        "accept": (
            "accept.command",
            "does a machine reach what its contract promises, on every node",
            "plumb accept CONTRACT.yaml --plan",
            {"": EXIT["INVALID"]},
        ),
    },
    "manage": {
        "knobs": ("tune.knobs", "what can be set in the MPI library of a stack", "plumb knobs openmpi eager"),
        "export": (
            "exchange.export",
            "figures as CSV, OpenMetrics, or results of ReFrame",
            "plumb export --format csv --test stream",
        ),
        "import": (
            "exchange.import_",
            "figures of other programs, from what ReFrame keeps",
            "plumb import perflogs/*/*/*.log",
        ),
        "ci": (
            "ci.command",
            "pipelines that gate merge requests and measure every night",
            "plumb ci gitlab --tags hpc --stack openmpi",
        ),
    },
}

#: extension point of the core -> functions that it calls there
ADDITIONS = {
    "calibrate.options": ("nodes.calibrate:arguments",),
    "calibrate.run": ("nodes.calibrate:run",),
    "cause.command": ("search.why.offer:command",),
    "cause.search": ("search.why.offer:search",),
    "diff.sections": ("profiles.text:of_records",),
    "doctor.libraries": ("fabric.doctor:examine_libraries",),
    "report.sections": ("labs.forms:of_campaign", "profiles.section:of_campaign"),
    "stack.actions": ("spack.command:actions",),
    "stack.check": ("fabric.doctor:check_stacks",),
}

#: provider of stacks -> its module
PROVIDERS = {"spack": "plumbline.extras.spack"}
