"""The records of a page: those of a site and a campaign."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.base.errors import PlumbError
from plumbline.records import sources
from plumbline.records.model import Row


def campaign(rows: Sequence[Row], wanted: str, site: str) -> tuple[str | None, list[Row]]:
    """The campaign whose id begins with ``wanted`` and its rows; ``last`` is that of the newest record of any campaign.

    Records of no campaign (``plumb launch`` by hand) are taken when there is no campaign at all. Raises
    :class:`PlumbError` unless exactly one campaign matches.
    """
    if not rows:
        raise sources.none_of(site)
    if wanted == "last":
        name = next((row.campaign for row in reversed(rows) if row.campaign), None)
    else:
        known = list(dict.fromkeys(row.campaign for row in rows if row.campaign))
        matches = [item for item in known if item.startswith(wanted)]
        if len(matches) != 1:
            some = ", ".join((matches or known)[-3:]) or "none"
            message = f"'{wanted}' begins {len(matches)} campaigns" if matches else f"no campaign '{wanted}'"
            raise PlumbError(message, f"site {site}", f"the newest are {some}")
        name = matches[0]
    return name, [row for row in rows if row.campaign == name]
