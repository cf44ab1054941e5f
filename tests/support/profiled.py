"""Small profiles for tests: ranks, their calls and sizes."""

from typing import Any

import msgspec

from plumbline.launch.profiles import Profile, RankPlace, RankProfile


def sizes(count: int, size: int, time: int, **changes: int) -> dict[str, int]:
    """``count`` calls of one size that took ``time`` ns together."""
    each = time // count
    found = {"count": count, "time_ns": time, "least_ns": each, "most_ns": each, "bytes": count * size}
    return {
        **found,
        "least_bytes": size,
        "most_bytes": size,
        "completed": 0,
        "completion_ns": 0,
        "waited_ns": 0,
        **changes,
    }


def call(name: str, role: str, *of: dict[str, int]) -> dict[str, Any]:
    """A call with its sizes."""
    return {"call": name, "role": role, "request": False, "sizes": list(of)}


def rank_document(
    rank: int, size: int, calls: list[dict[str, Any]], peers: dict[int, int], **changes: Any
) -> dict[str, Any]:
    """What the library writes of a rank; ``peers``: bytes sent to each, in one message."""
    comm = {"id": 1, "size": size, "rank": rank, "members": "ab", "window": False, "inter": False, "calls": calls}
    return {
        "schema": 1, "host": "n1", "pid": 100 + rank, "rank": rank, "size": size, "program": "/bin/p",
        "ended": "MPI_Finalize", "wall_ns": 1_000_000, "cost_ps": 30000, "clock_ps": 16000, "clock": "counter",
        "thread_level": 0, "multiple": False, "threads": 1, "waiting_split": False, "communicators": [comm],
        "peers": [
            {"rank": other, "sent_messages": 1, "sent_bytes": count, "received_messages": 0, "received_bytes": 0}
            for other, count in peers.items()
        ],
        "lost": {"communicators": 0, "members": 0, "peers": 0, "requests": 0}, **changes,
    }  # fmt: skip


def profile(
    *documents: dict[str, Any], places: list[RankPlace] | None = None, missing: list[int] | None = None
) -> Profile:
    """A profile of such ranks."""
    return Profile(
        record="0123456789ab", variant="profile p", stack="mpich: mpich 5.0.2", placement="core, 2 x 1 on 1 node",
        command=["/bin/p", "1"], time="2026-01-01T00:00:00.000Z",
        ranks=[msgspec.convert(one, RankProfile) for one in documents], missing=missing or [], places=places or [],
    )  # fmt: skip


def place(rank: int, core: int = 0, l3: int = 0, numa: int = 0, package: int = 0, host: str = "n1") -> RankPlace:
    """A rank bound to one core."""
    return RankPlace(rank=rank, host=host, cpus=[core], core=core, l3=l3, numa=numa, package=package)
