"""``plumb launch``: the launches of variants, inside a job."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from plumbline.base import files, schemas, terminal
from plumbline.base.errors import PlumbError
from plumbline.commands.options import command, option
from plumbline.records.variant import Variant, checked


@command(
    option(
        "variant",
        "JSON description of a variant; the launches of several variants alternate in random order",
        nargs="+",
        type=Path,
        metavar="FILE",
    ),
    option("--records", "also copy the session's records to this file", type=files.Copy, metavar="FILE"),
    option("--seed", "seed of the launch order (default: random, recorded)"),
    option("--campaign", "campaign of the records"),
    option("--experiment", "experiment of the records, which excludes them from history", metavar="NAME"),
    option("--work", "working folder of the launches (default: the current folder)", default=Path()),
)
def run_launch(args: argparse.Namespace) -> int:
    """Run the launches; returns 0 if all records are valid, 1 if one is not."""
    from plumbline.launch import process  # imported here: other commands do not need what they load
    from plumbline.measure import driver

    if args.campaign:
        process.leave_group()
    variants = [read(file) for file in args.variant]
    file, records = driver.run(
        variants, args.work.resolve(), args.seed, terminal.say, campaign=args.campaign, experiment=args.experiment
    )
    if args.records:
        shutil.copyfile(file, args.records)
    bad = [record for record in records if record.reasons]
    for record in bad:
        print(f"plumb: {record.variant.name} is invalid: {record.reasons[0]}", file=sys.stderr)
    print(f"records: {file}")
    return 1 if bad else 0


def read(file: Path) -> Variant:
    """The variant that ``file`` describes. Raises :class:`PlumbError` for a file that is unreadable or no variant."""
    try:
        document = schemas.parse_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise PlumbError(
            f"cannot read the variant: {error.strerror}", str(file), "give the path of its JSON description"
        ) from error
    except ValueError as error:
        raise PlumbError(f"not JSON: {error}", str(file), "regenerate it") from error
    return checked(document, str(file))
