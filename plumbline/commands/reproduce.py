"""``plumb reproduce``: runs the variant of a record again on the same stack, and prints the differences."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from plumbline.base import terminal
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.launch import brought
from plumbline.launch.prepare import APPLICATION, OWN, entry_of
from plumbline.measure import driver
from plumbline.measure.session import passing_folder
from plumbline.records import query
from plumbline.records.model import Record
from plumbline.show import diff
from plumbline.stacks import manifest as manifests


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb reproduce``."""
    parser.add_argument("id", help="beginning of the record's id")
    options.add_trust(parser)


def run(args: argparse.Namespace) -> int:
    """Run it and print the differences and both sets of figures; 1 if the new record is not verified."""
    old, new = _measure(args.id, args.trust, terminal.say)
    print()
    print(diff.text(old, new))
    print(f"\n{'verified' if new.verified else 'NOT VERIFIED'}: plumb show {new.id}")
    return 0 if new.verified else 1


def _measure(prefix: str, trusted: bool, say: Callable[[str], None]) -> tuple[Record, Record]:
    """Run the variant of the record whose id begins with ``prefix`` again; returns the old and the new record.

    A program that has changed is only reported, by ``say``. Raises :class:`PlumbError` for an imported record, for one
    that names code to run unless it is ``trusted``, and when the stack is not installed any more or lacks the
    benchmark.
    """
    old = query.find(prefix)
    if old.is_imported:
        raise PlumbError("an imported record", old.id, "run it with the program that measured it")
    variant = brought.variant_of(old, trusted)
    stack = manifests.load(variant.stack)
    if variant.benchmark not in (APPLICATION, OWN, *stack.benchmarks):
        raise PlumbError(f"stack {variant.stack} no longer has {variant.benchmark}", "its manifest", "install it again")
    now = entry_of(variant, stack)
    if now.sha256 != old.benchmark.sha256:
        say(
            f"note: {variant.benchmark} is another program now: "
            f"sha256 {now.sha256[:12]}, then {old.benchmark.sha256[:12]}"
        )
    with passing_folder("reproduce") as folder:
        seed = old.seed or int(old.environment.get("PLUMB_SEED", "0"))
        _, records = driver.run([variant], folder, seed=seed, say=say)
    return old, records[0]
