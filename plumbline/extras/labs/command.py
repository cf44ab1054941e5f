"""``plumb lab``: an experiment of a document, this machine's figures beside it, and whether the lesson holds."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace

from plumbline import site
from plumbline.base import files, terminal, units
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.commands.options import command, flag, option
from plumbline.extras.labs import evidence, forms, model
from plumbline.extras.labs.forms import Done
from plumbline.extras.labs.model import RECORD, Lab
from plumbline.records import outcome, query
from plumbline.records.store import Damage
from plumbline.show.columns import Column, Table
from plumbline.show.pages import page

#: launches of each variant: enough for three comparisons on each of three stacks to claim a difference
LAUNCHES = 6


@command(
    option("labs", "labs to run, such as R7, or all (default: list the labs)", nargs="*", metavar="LAB"),
    flag("--recorded", "use existing records without measuring"),
    option("--minutes", "start no lab whose estimated end is after M minutes"),
    options.output("write the lab to a file", ".html", ".json", ".md", ".txt"),
    option(
        "--handout",
        "write a handout for a class: question, commands, empty table, and the solution on a separate page",
        type=files.Output,
        metavar="FILE",
    ),
    options.records("site", "stack", "campaign", "since", "until"),
)
def run_lab(args: argparse.Namespace) -> int:
    """List the labs, or measure and show some; 1 if a case failed or records are damaged."""
    names = list(model.every()) if args.labs == ["all"] else args.labs
    labs, lacks = [model.named(name) for name in names], _lacking()
    if not labs:
        terminal.page(listing(lacks))
        return 0
    single = [file for file in args.output if file.suffix != ".md"]
    if len(labs) > 1 and (single or args.handout):
        raise PlumbError("this file shows one lab", str((*single, args.handout)[0]), "name one lab, or write .md")
    status, left, shown = 0, args.minutes, []
    for lab in labs:
        if left is not None and lab.minutes > left:
            print(f"{lab.name} left out: it takes {lab.minutes:g} min, {left:.0f} min are left")
            continue
        left = None if left is None else left - lab.minutes
        if not args.recorded:
            status = max(status, _measure(lab))
        done, damages = _done(lab, lacks(lab), args)
        status = max(status, int(options.report_damage(damages)))
        shown.append(done)
        terminal.page(forms.text(done) + ("\n" if len(labs) > 1 else ""))
    if len(labs) > 1:
        print("\n" + forms.SUMMARY.text(shown))
    _write(shown, args)
    return status


def listing(lacks: Callable[[Lab], str]) -> str:
    """The labs by document: minutes, and the needs that this host lacks."""
    shown = Table[Lab](
        "Labs",
        [
            Column("lab", lambda lab: lab.name),
            Column("experiment", lambda lab: lab.title),
            Column("min", lambda lab: f"{lab.minutes:g}", "number"),
            Column("needs", lambda lab: model.words(lab.needs)),
            Column("here", lambda lab: f"no: {lacks(lab)}" if lacks(lab) else "yes"),
        ],
        whole=True,
    )
    parts = []
    for letter, document in model.DOCUMENTS.items():
        labs = [lab for lab in model.every().values() if lab.name.startswith(letter)]
        parts.append(f"{document}\n{shown.text(labs)}")
    count = units.counted(len(model.every()), "lab")
    return "\n\n".join([*parts, f"{count}; plumb lab R7 measures one, plumb lab R7 --recorded uses the records"])


def _lacking() -> Callable[[Lab], str]:
    """A function that names the means a lab needs and the site of this host lacks."""
    here = site.claiming(site.load_all())
    if here is None:
        return lambda lab: "no site is configured for this host: plumb site init"
    offers = model.offered(here)
    return lambda lab: model.lacking(lab.needs, offers)


def _measure(lab: Lab) -> int:
    """Run the tests of a lab as a campaign; returns its exit status."""
    if not lab.tests:
        return 0
    from plumbline.measure.reframe import campaign, cases  # here: a list of labs needs no ReFrame

    chosen = [*campaign.named(lab.pattern), *lab.options]
    if not any(option.startswith("launches=") for option in lab.options):
        chosen += ["-S", f"launches={LAUNCHES}"]
    print(f"{lab.name}: {lab.question}", flush=True)
    status = campaign.measure(
        campaign.Tests(cases.files(lab.pattern), outcome.LAB, chosen, part=outcome.CHOSEN, experiment=outcome.LAB)
    )
    if status == campaign.INTERRUPTED:  # the next lab is not begun
        raise KeyboardInterrupt
    return status


def _done(lab: Lab, lacks: str, args: argparse.Namespace) -> tuple[Done, list[Damage]]:
    """A lab with the records that the options choose, by default those of this host's site; and the damages."""
    where = options.selection(args, test=f"(?:{lab.pattern})" if lab.tests else "(?!)")
    rows, damages = query.records(where if where.site else replace(where, site=site.here()))
    rows = [row for row in rows if row.experiment in (None, outcome.LAB)]
    if not rows:
        query.require(replace(where, test=None))
    newest = rows[-1].id if rows else ""
    outputs, findings = [], evidence.findings(lab, rows)
    for entry in lab.prints:
        if (args.recorded and entry.measures) or (RECORD in entry.command and not newest):
            findings += evidence.not_run(entry)
            continue
        outputs.append(evidence.run_printed(entry, newest))
        findings += outputs[-1].findings
    return Done(lab, evidence.filled(lab, rows), outputs, findings, evidence.closing(lab, findings, lacks)), damages


def _write(shown: Sequence[Done], args: argparse.Namespace) -> None:
    """The files that the options name."""
    if not shown:
        return
    done = shown[0]
    options.write("the lab", args.output, {
        ".html": lambda: page.render(forms.document(done)),
        ".json": lambda: forms.as_json(done),
        ".md": lambda: f"{forms.SUMMARY.markdown(shown)}\n",
        ".txt": lambda: f"{forms.text(done)}\n",
    })  # fmt: skip
    if args.handout:
        files.write("the hand-out", args.handout, page.render(forms.handout(done)))
