"""Differences between two profiles: calls, sizes, peers, times and shares; why one is slower, not only that it is."""

from __future__ import annotations

from plumbline.base import units
from plumbline.base.table import table
from plumbline.launch.profiles import read, sums
from plumbline.launch.profiles.model import Profile, Traffic
from plumbline.launch.profiles.sums import Total
from plumbline.records.model import AnyRecord

#: a row whose counts are equal is shown if its share of the wall time changed by this many percentage points
SHARE_POINTS = 1.0
#: pairs of ranks whose bytes changed that have a line
PEERS_SHOWN = 8


def of_records(first: AnyRecord, second: AnyRecord) -> str:
    """The :func:`text` of the profiles of two records; empty unless both have one."""
    if not (first.is_profiled and second.is_profiled):
        return ""
    return text(*(read.load(read.file_of(record.site, record.id)) for record in (first, second)))


def text(old: Profile, new: Profile) -> str:
    """Rows that differ, the one whose time changed most first, then the traffic; the important line last."""
    before, after = sums.by_size(old), sums.by_size(new)
    walls = [sum(rank.wall_ns for rank in profile.ranks) or 1 for profile in (old, new)]
    rows = []
    changes = {key: _time(after, key) - _time(before, key) for key in sorted(before.keys() | after.keys())}
    for key in sorted(changes, key=lambda key: -abs(changes[key])):
        pair = before.get(key), after.get(key)
        counts = [total.count if total else 0 for total in pair]
        shares = [100 * (total.time_ns if total else 0) / wall for total, wall in zip(pair, walls, strict=True)]
        if counts[0] != counts[1] or abs(shares[1] - shares[0]) >= SHARE_POINTS:
            means = [f"{total.mean_ns / 1e3:.3f}" if total else "–" for total in pair]
            size = next(total for total in pair if total).most_bytes
            wall = [f"{share:.2f}" for share in shares]
            rows.append((f"MPI_{key[0]}", str(size), *map(str, counts), *means, *wall))
    header = ("call", "size B", "count", "count now", "mean us", "us now", "%wall", "%wall now")
    head = f"before: {old.record}, {old.stack}, {old.placement}\nnow:    {new.record}, {new.stack}, {new.placement}"
    shown = table(header, rows, right=header[1:]) if rows else "no call differs in number or clearly in its share"
    same = {key: total.count for key, total in before.items()} == {key: total.count for key, total in after.items()}
    return "\n\n".join([head, shown, _traffic(old, new), _last(old, new, same, changes)])


def _time(totals: dict[tuple[str, int], Total], key: tuple[str, int]) -> int:
    return totals[key].time_ns if key in totals else 0


def _traffic(old: Profile, new: Profile) -> str:
    both = [sums.traffic(profile) for profile in (old, new)]
    rows = [
        (name, *(str(of[name].messages if name in of else 0) for of in both), *(_bytes(of, name) for of in both))
        for name in sums.CLASSES
        if any(name in of for of in both)
    ]
    header = ("sent inside", "messages", "messages now", "bytes", "bytes now")
    shown = table(header, rows, right=header[1:]) if rows else "no message from one rank to another"
    peers = _peers(sums.matrix(old), sums.matrix(new))
    return "\n\n".join(part for part in (shown, peers) if part)


def _peers(before: list[list[int]], after: list[list[int]]) -> str:
    """The pairs of ranks whose bytes changed most; none for profiles of other numbers of ranks."""
    if len(before) != len(after):
        return ""
    changed = [
        (first, second, then, now)
        for first, rows in enumerate(zip(before, after, strict=True))
        for second, (then, now) in enumerate(zip(*rows, strict=True))
        if then != now
    ]
    if not changed:
        return ""
    changed.sort(key=lambda pair: -abs(pair[3] - pair[2]))
    header = ("from rank", "to rank", "bytes", "bytes now")
    rows = [tuple(map(str, pair)) for pair in changed[:PEERS_SHOWN]]
    pairs = units.counted(len(changed), "pair")
    return table(header, rows, right=header) + f"\nbytes differ between {pairs} of ranks"


def _bytes(traffic: dict[str, Traffic], name: str) -> str:
    return str(traffic[name].bytes if name in traffic else 0)


def _last(old: Profile, new: Profile, same: bool, changes: dict[tuple[str, int], int]) -> str:
    shares = [sums.share(profile.ranks) for profile in (old, new)]
    most = max(changes, key=lambda key: abs(changes[key]), default=None)
    where = f"; most of the change in MPI_{most[0]} ({changes[most] / 1e9:+.6f} s)" if most else ""
    calls = "the same calls and sizes: only times differ" if same else "other calls or sizes"
    return f"{calls}; MPI {shares[0]:.1f} % of the wall time, now {shares[1]:.1f} %{where}"
