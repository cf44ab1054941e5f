"""The outcomes of the test cases of a campaign, also of those that left no record: skipped and failed ones.

``results/SITE/CAMPAIGN.outcome.json`` holds ``{"campaign", "profile", "cases": [{"state", "case", "reason",
"seconds"}]}``; ``seconds`` is the time since the end of the case before, which earlier versions did not keep.
``"part"`` says why it is not a whole campaign of its profile, if it is none.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from plumbline.base import files, paths, schemas
from plumbline.base.errors import PlumbError

#: states of ReFrame that leave no record, or none that is complete
WITHOUT_FIGURES = ("SKIP", "FAIL", "ABORT")
#: earlier campaigns that say how long a case takes
EARLIER = 3
#: no case takes so many seconds
MOST_S = 1e6
#: the profiles of the suite, which are tags of its tests -> launches of a variant; those of whole campaigns
PROFILES = {"quick": 3, "full": 5, "scaling": 5}
WHOLE = ("quick", "full")
#: why a campaign is not whole
CHOSEN, INTERRUPTED = "chosen tests", "interrupted"
#: the profile of a lab's campaign, and those whose campaigns are never whole
LAB = "lab"
PARTS = (LAB, "accept")


def file(site: str, campaign: str) -> Path:
    """Where the outcome of a campaign is."""
    return paths.results() / site / f"{campaign}.outcome.json"


class Standing(NamedTuple):
    """What a campaign is: its profile, None where no outcome is kept, and why it is not whole, if it is not."""

    profile: str | None
    part: str | None

    @property
    def rank(self) -> int:
        """0: whole, of the suite; 1: whole, of an application, or unknown; 2: a part; 3: of a lab."""
        if self.part:
            return 3 if self.profile == LAB else 2
        return int(self.profile not in WHOLE)

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.profile, None if self.profile in PARTS else self.part))) or "campaign"


def write(
    site: str,
    campaign: str,
    profile: str,
    ended: Iterable[tuple[str | float | None, ...]],
    part: str | None = None,
) -> Path:
    """Keep what became of each case: ``ended`` are (state, case, why it has no figures) and, if known, seconds."""
    cases = [dict(zip(("state", "case", "reason", "seconds"), case, strict=False)) for case in ended]
    target = file(site, campaign)
    document = {"campaign": campaign, "profile": profile, **({"part": part} if part else {}), "cases": cases}
    files.write(
        "the outcome", target, json.dumps(document, indent=1) + "\n", "make room or permission; records are kept"
    )
    return target


def read(site: str, campaign: str | None) -> dict[str, Any] | None:
    """The outcome of a campaign, None if none was kept: ReFrame was run directly, or the records are from elsewhere.

    Raises :class:`PlumbError` for a damaged file.
    """
    if campaign is None or Path(campaign).name != campaign or not file(site, campaign).is_file():
        return None
    source = file(site, campaign)
    try:
        document: dict[str, Any] = schemas.parse_json(source.read_text(encoding="utf-8"))
        cases = [{name: case[name] for name in ("state", "case", "reason")} for case in document["cases"]]
        return {"profile": str(document["profile"]), "cases": cases, "part": document.get("part")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlumbError(
            f"damaged outcome: {error!r}", str(source), "remove it: the records are not affected"
        ) from None


def standing(site: str, campaign: str) -> Standing:
    """What a campaign is; of earlier versions' outcomes an aborted case says that it was interrupted."""
    try:
        document = read(site, campaign)
    except PlumbError:  # whoever shows the campaign reports it
        document = None
    if document is None:
        return Standing(None, None)
    aborted = any(case["state"] == "ABORT" for case in document["cases"])
    usual = CHOSEN if document["profile"] in PARTS else INTERRUPTED if aborted else None
    return Standing(document["profile"], document["part"] or usual)


def earlier(site: str, profile: str, number: int, test: str) -> list[list[tuple[str, float]]]:
    """Campaigns of ``profile`` and ``number`` cases that ran ``test``, the newest first: test and seconds of each."""
    campaigns: list[list[tuple[str, float]]] = []
    for source in sorted(file(site, "").parent.glob("*.outcome.json"), reverse=True):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # it is an estimate
            document = schemas.parse_json(source.read_text(encoding="utf-8"))
            cases = document["cases"] if document["profile"] == profile else []
            ran = [(case["case"].split(" ")[0], float(case["seconds"])) for case in cases if case["state"] != "SKIP"]
            if len(cases) == number and test in dict(ran) and all(0 <= seconds < MOST_S for _, seconds in ran):
                campaigns.append(ran)
        if len(campaigns) == EARLIER:
            break
    return campaigns
