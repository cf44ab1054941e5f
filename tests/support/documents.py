"""Random records, and records with a fault."""

import copy

import samples
from hypothesis import strategies as st
from samples import launch, record

HEX = st.text("0123456789abcdef", min_size=12, max_size=12)
WORDS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8)
NUMBERS = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-5, 10**9))
TIMES = ("2026-01-01T00:00:00.000", "2026-02-03T04:05:06.789", "2027-01-01T00:00:00.000")
PARAMS = st.dictionaries(st.sampled_from(["bytes", "operation"]), st.one_of(st.integers(0, 3), WORDS, st.just(8.0)))


@st.composite
def measurements(draw):
    return {
        "metric": draw(st.sampled_from(["time", "triad", "bandwidth"])),
        "value": draw(NUMBERS),
        "unit": draw(st.sampled_from(["us", "MB/s"])),
        "better": draw(st.sampled_from(["higher", "lower"])),
        "params": draw(PARAMS),
        "iterations": draw(st.one_of(st.none(), st.integers(1, 9))),
    }


@st.composite
def launches(draw, order):
    extra = draw(st.sampled_from([{}, {"superseded": True}, {"output_tail": "x", "waiting": ["rank 1"]}]))
    return launch(
        order,
        1.0,
        status=draw(st.sampled_from(["ok", "failed", "timeout"])),
        verified=draw(st.booleans()),
        disturbed=draw(st.booleans()),
        exit_code=draw(st.one_of(st.none(), st.integers(0, 255))),
        reasons=draw(st.lists(WORDS, max_size=2)),
        measurements=draw(st.lists(measurements(), max_size=4)),
        **extra,
    )


@st.composite
def figures(draw):
    limit = {"value": 5.0, "unit": "us", "method": draw(WORDS), "percent": draw(NUMBERS)}
    reference = {"value": draw(NUMBERS), "unit": "us", "method": "calibrated", "file": "local/references/a.yaml"}
    return {
        "name": draw(WORDS),
        "value": draw(NUMBERS),
        "unit": "us",
        "better": draw(st.sampled_from(["higher", "lower"])),
        "launches": draw(st.integers(0, 9)),
        "samples": draw(st.lists(NUMBERS, min_size=1, max_size=4)),
        "limit": draw(st.sampled_from([None, limit])),
        "reference": draw(st.sampled_from([None, reference])),
    }


@st.composite
def documents(draw):
    """Random records that obey the schema."""
    wanted = st.fixed_dictionaries({"name": WORDS, "metric": st.sampled_from(["time", "triad"]), "where": PARAMS})
    return record(
        id=draw(HEX),
        campaign=draw(st.one_of(st.none(), WORDS)),
        time=draw(st.sampled_from([f"{time}Z" for time in TIMES])),
        state=draw(st.sampled_from(["running", "complete", "interrupted"])),
        nodes=draw(st.lists(WORDS, max_size=3)),
        variant=samples.variant(
            test=draw(st.sampled_from(["imb_pair", "stream_threads"])),
            params=draw(PARAMS),
            figures=draw(st.lists(wanted, max_size=3)),
        ),
        launches=[draw(launches(order)) for order in range(draw(st.integers(0, 3)))],
        verified=draw(st.booleans()),
        reasons=draw(st.lists(WORDS, max_size=2)),
        verdict=draw(st.sampled_from(["invalid", "unreferenced", "within"])),
        figures=draw(st.lists(figures(), max_size=2)),
        host={"kernel": draw(WORDS), "load": [draw(NUMBERS)], "governor": None, "nested": {"load": None}},
    )


def spoil(item, path, value):
    """``item`` with ``value`` at ``path``; the member is removed if ``value`` is ``...``."""
    item = copy.deepcopy(item)
    *way, last = path
    target = item
    for step in way:
        target = target[step]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return item


def everywhere(value, path=()):
    """The paths of all members of ``value``."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from everywhere(item, (*path, key))


#: members of a record, with values that the schema forbids
FORBIDDEN = [
    (("schema",), 2),
    (("id",), "xyz"),
    (("id",), 12),
    (("campaign",), ...),
    (("state",), "done"),
    (("nodes",), ["a", None]),
    (("nodes",), "a"),
    (("verified",), "yes"),
    (("verdict",), "PASS"),
    (("verdict",), None),
    (("host",), []),
    (("host",), ...),
    (("unknown",), 1),
    (("stack", "mpi"), "openmpi"),
    (("stack", "mpi", "version"), 5),
    (("variant", "test"), ...),
    (("variant", "params"), []),
    (("variant", "figures"), None),
    (("variant", "figures", 0, "where"), None),
    (("variant", "figures", 0), "triad"),
    (("placement", "threads"), "2"),
    (("reasons",), [1]),
    (("launches",), {}),
    (("launches", 1), None),
    (("launches", 1, "status"), "fine"),
    (("launches", 1, "disturbed"), 1),
    (("launches", 1, "index"), -1),
    (("launches", 1, "order"), "1"),
    (("launches", 1, "measurements"), ...),
    (("launches", 1, "measurements", 0), 3.0),
    (("launches", 1, "measurements", 0, "value"), "3.0"),
    (("launches", 1, "measurements", 0, "value"), ...),
    (("launches", 1, "measurements", 0, "better"), "faster"),
    (("launches", 1, "measurements", 0, "params"), None),
    (("figures", 0, "better"), "faster"),
    (("figures", 0, "value"), None),
    (("figures", 0, "samples"), [1.0, None]),
    (("figures", 0, "samples"), ["1.0"]),
    (("figures", 0, "limit"), 5.0),
    (("figures", 0, "limit"), {"value": "5"}),
]
