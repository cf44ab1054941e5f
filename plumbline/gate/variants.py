"""The test variants of a live gate, from ReFrame itself: skips and parameters are those that the tests decide on."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from plumbline import site
from plumbline.base import files, paths, programs
from plumbline.base.errors import PlumbError
from plumbline.measure.application import model
from plumbline.measure.application.model import Source
from plumbline.measure.reframe import campaign, cases, settings
from plumbline.measure.reframe.campaign import prepared
from plumbline.records.variant import Variant, checked
from plumbline.stacks import manifest as manifests
from plumbline.stacks import source


@dataclass
class Listing:
    """The variants that ReFrame would run, by stack and by name, and the reasons why it would skip others."""

    variants: dict[str, dict[str, Variant]] = field(default_factory=dict)
    skips: dict[str, dict[str, str]] = field(default_factory=dict)

    def of(self, stack: str) -> dict[str, Variant]:
        """The variants of ``stack``."""
        return self.variants.get(stack, {})


def list_variants(
    stacks: list[str], test: str | None, system: str | None, folder: Path, of: campaign.Tests | None = None
) -> Listing:
    """The variants of ``stacks`` that a dry run of ReFrame prepares, with ``folder`` as its work space.

    ``test`` is a regular expression that names of tests begin with; without it, they are those tagged ``quick``, or all
    of an application's, whose tests are ``of``. ``system`` is ``SITE`` or ``SITE:PARTITION``; without it, the one that
    claims this host. Raises :class:`PlumbError` for a stack without any variant, with the reason.
    """
    prefix = folder / "reframe"
    files.make_anew(prefix)
    command = [paths.program("reframe"), *cases.words(of.files if of else cases.files(test)), "--dry-run"]
    environments = {settings.environment_name(stack): stack for stack in stacks}
    command += ["--nocolor", "-p", f"^({'|'.join(map(re.escape, environments))})$"]
    command += campaign.named(test) if test else [] if of else ["-t", "quick"]
    command += ["--system", system] if system else []
    also = ",".join(stack for stack in stacks if manifests.load(stack).provider == source.PROVIDER)
    variables = {"RFM_PREFIX": str(prefix), "TMPDIR": str(prefix), **(of.variables if of else {}), settings.ALSO: also}
    environment = campaign.environment_of_reframe(variables)
    log = folder / "reframe.out"
    with log.open("w", encoding="utf-8") as stream:
        programs.run(command, env=environment, cwd=paths.suite(), stdout=stream, stderr=subprocess.STDOUT)
    listing = read(log.read_text(encoding="utf-8", errors="replace"), prefix / "stage", environments)
    for stack in stacks:
        _require(listing, stack, system, log)
    shutil.rmtree(prefix)
    return listing


def of_application(
    file: Path,
    state: Source,
    stack: str,
    test: str | None,
    system: str | None,
    folder: Path,
    say: Callable[[str], None],
) -> Listing:
    """The variants of ``stack`` of the application of ``file``, which is built in a ``state`` of its code."""
    return list_variants([stack], test, system, folder, prepared(file, state, [stack], folder, say, test))


def of_names(
    file: Path | None, names: Sequence[str], stack: str, system: str | None, folder: Path, say: Callable[[str], None]
) -> dict[str, Variant]:
    """The variants on ``stack`` of programs of ``file``, as its code is now; without it, of tests with such names."""
    if file:
        test = model.load(file).tests(names, file)
        return of_application(file, model.present_code(file), stack, test, system, folder, say).of(stack)
    say("variants: a dry run of ReFrame")
    return list_variants([stack], "|".join(names), system, folder).of(stack)


def read(output: str, stage: Path, stacks: Mapping[str, str] = MappingProxyType({})) -> Listing:
    """The cases in ReFrame's ``output``, with the descriptions that the tests left below ``stage``.

    ``stacks``: by the names of their environments; one that is not there is called as its environment.
    """
    listing = Listing()
    for line in output.splitlines():
        ended = cases.ended(line)
        if ended and ended[0].state == "SKIP":
            test, environment, _ = ended[0].names
            skips = listing.skips.setdefault(stacks.get(environment, environment), {})
            skips[test] = ended[0].reason or "no reason given"
    for file in sorted(stage.rglob("variant.json")):
        variant = checked(json.loads(file.read_text(encoding="utf-8")), str(file))
        mine = listing.variants.setdefault(variant.stack, {})
        if mine.setdefault(variant.name, variant) != variant:
            raise PlumbError(
                f"{variant.name} is there twice",
                f"partitions {mine[variant.name].partition} and {variant.partition}",
                "choose one: --partition NAME",
            )
    return listing


def _require(listing: Listing, stack: str, system: str | None, log: Path) -> None:
    if listing.of(stack):
        return
    if skips := listing.skips.get(stack, {}):
        why = next(iter(skips.values()))
        raise PlumbError(f"stack {stack}: all {len(skips)} variants are skipped, the first because: {why}", str(log))
    name, _, partition = (system or site.here()).partition(":")
    here = site.load(name)
    parts = [site.partition(here, partition)] if partition else here.partitions
    if manifests.load(stack).provider != source.PROVIDER and not any(stack in part.stacks for part in parts):
        raise PlumbError(
            f"site {name} does not offer stack {stack}",
            str(site.folder(name)),
            f"plumb site init --site {name} --partition {parts[0].name} --offer-also {stack}",
        )
    message = cases.last_words(log.read_text(encoding="utf-8", errors="replace"))
    if message != cases.NONE_SELECTED:
        raise PlumbError(f"no test ran: {message}", str(log), cases.WHOLE)
    raise PlumbError(f"ReFrame selects no test for stack {stack}", str(log), "does the pattern match a test?")
