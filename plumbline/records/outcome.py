"""The outcomes of the test cases of a campaign, also of those that left no record: skipped and failed ones.

``results/SITE/CAMPAIGN.outcome.json`` holds ``{"campaign", "profile", "cases": [{"state", "case", "reason"}]}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plumbline.base import files, paths, schemas
from plumbline.base.errors import PlumbError

#: states of ReFrame that leave no record, or none that is complete
WITHOUT_FIGURES = ("SKIP", "FAIL", "ABORT")


def file(site: str, campaign: str) -> Path:
    """Where the outcome of a campaign is."""
    return paths.results() / site / f"{campaign}.outcome.json"


def write(site: str, campaign: str, profile: str, ended: Iterable[tuple[str, str, str | None]]) -> Path:
    """Keep what became of each case: ``ended`` are (state, case, why it has no figures)."""
    cases = [dict(zip(("state", "case", "reason"), case, strict=True)) for case in ended]
    target = file(site, campaign)
    text = json.dumps({"campaign": campaign, "profile": profile, "cases": cases}, indent=1) + "\n"
    files.write("the outcome", target, text, "make room or permission; records are kept")
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
        return {"profile": str(document["profile"]), "cases": cases}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlumbError(
            f"damaged outcome: {error!r}", str(source), "remove it: the records are not affected"
        ) from None
