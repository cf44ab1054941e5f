"""A profile as other tools read it: Caliper's JSON, which Hatchet and Thicket load."""

from __future__ import annotations

import json
import shlex
from typing import Any

from plumbline.launch.profiles import sums
from plumbline.launch.profiles.model import Profile
from plumbline.launch.profiles.sums import Total


def caliper(profile: Profile) -> str:
    """Caliper's JSON (json-split): ``hatchet.GraphFrame.from_caliper(FILE)`` and Thicket read it.

    The program is the root of the call tree; its own time is what it spent outside MPI. Every rank has a row for every
    node of the tree, in the order of the nodes: Hatchet takes that order from the first rows. Times are in seconds.
    What describes the launch is next to the rows, as Caliper's globals do; Thicket makes metadata of it.
    """
    totals = sums.per_call(profile.ranks)
    calls = [total.call for total in totals]
    nodes: list[dict[str, Any]] = [{"label": profile.command[0].rpartition("/")[2], "column": "path"}]
    nodes += [{"label": f"MPI_{call}", "column": "path", "parent": 0} for call in calls]
    columns = ["Node order", "mpi.rank", "path", "sum#time.duration", "inclusive#sum#time.duration", "calls", "bytes"]
    rows: list[list[Any]] = []
    for rank in profile.ranks:
        by_call = {total.call: total for total in sums.per_call([rank])}
        rows.append([0, rank.rank, 0, max(rank.wall_ns - rank.mpi_ns, 0) / 1e9, rank.wall_ns / 1e9, 1, 0])
        for number, total in enumerate(totals, start=1):
            of_rank = by_call.get(total.call, Total(total.call, total.role))
            rows.append(
                [number, rank.rank, number, of_rank.time_ns / 1e9, of_rank.time_ns / 1e9, of_rank.count, of_rank.bytes]
            )
    document = {
        "data": rows,
        "columns": columns,
        "column_metadata": [{"is_value": name != "path"} for name in columns],
        "nodes": nodes,
        "cali.caliper.version": "2.0.0",
        "cmdline": shlex.join(profile.command),
        "launchdate": profile.time,
        "record": profile.record,
        "stack": profile.stack,
        "placement": profile.placement,
        "mpi.world.size": profile.ranks[0].size,
    }
    return json.dumps(document)


#: the forms of ``plumb profile --export``
FORMS = {"caliper": caliper}
