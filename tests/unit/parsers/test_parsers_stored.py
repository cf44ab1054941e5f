"""Every stored output is parsed whole, and no mutilated one is."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.base.errors import PlumbError
from plumbline.base.units import UNITS
from plumbline.parsers import parse
from plumbline.parsers.measurement import Measurement, ParseError

OUTPUTS = Path(__file__).parents[2] / "data" / "outputs"
MIB = 1 << 20

# measurements per benchmark; the same on every stack
IMB = {
    "mpi1": {
        **{"PingPong": 27, "PingPing": 27, "Sendrecv": 55, "Exchange": 55, "Uniband": 27, "Biband": 27},
        **{"Bcast": 42, "Allreduce": 36, "Reduce": 36, "Allgather": 42, "Alltoall": 42, "Barrier": 3},
    },
    "mpi1-more": {
        **{"Allgatherv": 18, "Alltoallv": 18, "Gather": 18, "Gatherv": 18, "Scatter": 18, "Scatterv": 18},
        **{"Reduce_local": 12, "Reduce_scatter": 12, "Reduce_scatter_block": 12},
        **{"PingPongAnySource": 11, "PingPingSpecificSource": 11},
    },
    "nbc": {"Ibcast": 32, "Iallreduce": 24, "Ialltoall": 32, "Ibarrier": 4, "Ibcast_pure": 24},
    "rma": {
        **{"Unidir_put": 30, "Unidir_get": 30, "Bidir_put": 30, "One_put_all": 15, "All_put_all": 24},
        **{"Accumulate": 22, "Fetch_and_op": 4, "Compare_and_swap": 4, "Truly_passive_put": 16},
    },
    "p2p": {"PingPong": 21, "PingPing": 21, "Unirandom": 21, "SendRecv_Replace": 21},
    "mt": {
        **{"PingPongMT": 16, "SendRecvMT": 16, "UniBandMT": 12, "BiBandMT": 12, "BcastMT": 12, "AllReduceMT": 12},
        "BarrierMT": 3,
    },
    "mt-2threads": {"PingPongMT": 8, "AllReduceMT": 6},
}
PORTS = {
    **{"latency": 24, "bw": 23, "bibw": 23, "multi_lat": 24, "bcast": 22, "allgather": 22, "alltoall": 22},
    **{"alltoallv": 22, "gather": 22, "scatter": 22, "barrier": 1},
}
C_SUITE = {
    **{"latency": 13, "bw": 13, "bibw": 13, "multi_lat": 13, "mbw_mr": 26, "bcast": 13, "allgather": 13},
    **{"alltoall": 13, "alltoallv": 13, "gather": 13, "scatter": 13, "barrier": 1, "put_latency": 13},
    **{"iallreduce": 4 * 13, "ibarrier": 4},
}
#: by suite 7.2: figures of each, up to 1 KiB or 64 bytes
C_SUITE_72 = {
    **{"latency_mt": 7, "latency_persistent": 11, "bw_persistent": 11, "bibw_persistent": 11, "reduce_scatter": 11},
    **{"get_latency": 11, "acc_latency": 11, "get_acc_latency": 11, "put_bw": 11, "put_bibw": 11, "get_bw": 11},
    **{"fop_latency": 1, "cas_latency": 1, "init": 3, "neighbor_allgather": 7, "neighbor_alltoallv": 7},
    **{"ibcast": 44, "ialltoallv": 44, "ireduce_scatter": 44, "ineighbor_alltoall": 28},
}


def cases() -> list[tuple[str, str, dict[str, Any], int]]:
    """Parser, file, context and number of measurements of every sound output."""
    found: list[tuple[str, str, dict[str, Any], int]] = []
    for name in ("gcc-1thread", "gcc-2thread", "gcc-serial", "openmpi-1rank", "mpich-1rank", "intelmpi-1rank"):
        found.append(("stream", f"stream/{name}", {}, 4))
    for stack in ("intelmpi", "mpich"):
        for part, benchmarks in IMB.items():
            for benchmark, count in benchmarks.items():
                context: dict[str, Any] = {"benchmark": benchmark, "ranks": 2}
                if part.startswith("mt"):
                    context["last_bytes"] = 2048 if part == "mt" else 64
                found.append(("imb", f"imb/{stack}-{part}", context, count))
        for benchmark, ranks, count in (
            ("PingPong", 2, 9),
            ("Allreduce", 2, 9),
            ("Allreduce", 4, 9),
            ("Barrier", 4, 3),
        ):
            found.append(("imb", f"imb/{stack}-mpi1-4ranks", {"benchmark": benchmark, "ranks": ranks}, count))
    found.append(("imb", "imb/intelmpi-p2p-4ranks", {"benchmark": "Stencil2D", "ranks": 4}, 9))
    found.append(("imb", "imb/intelmpi-user-lengths", {"benchmark": "PingPong", "last_bytes": 4096}, 5))
    found.append(("imb", "imb/intelmpi-1rank", {"benchmark": "Reduce_local", "ranks": 1}, 9))
    for stack in ("openmpi", "mpich", "intelmpi"):
        for benchmark, count in PORTS.items():
            last = 4 * MIB if benchmark in ("latency", "bw", "bibw", "multi_lat") else MIB
            context = {"benchmark": f"osu_{benchmark}", "last_bytes": last}
            found.append(("osu", f"osu/{stack}-port-{benchmark}", context, count))
        for benchmark, count in {**C_SUITE, "allreduce": 11 + 2, "reduce": 11 + 2}.items():
            context = {"benchmark": f"osu_{benchmark}", "last_bytes": 4096}
            found.append(("osu", f"osu/{stack}-c-{benchmark}", context, count))
        sized = {"last_bytes": 4096}
        found.append(("osu", f"osu/{stack}-c-allreduce-full", {"benchmark": "osu_allreduce", **sized}, 3 * 13))
        found.append(("osu", f"osu/{stack}-c-barrier-full", {"benchmark": "osu_barrier"}, 3))
        found.append(("osu", f"osu/{stack}-c-latency-validated", {"benchmark": "osu_latency", **sized}, 13))
    for benchmark, count in C_SUITE_72.items():
        small = benchmark == "latency_mt" or "neighbor" in benchmark
        context = {"benchmark": f"osu_{benchmark}", "last_bytes": 64 if small else 1024}
        found.append(("osu", f"osu/mpich-c72-{benchmark}", context, count))
    found.append(("osu", "osu/handmade-v5.9-latency", {"benchmark": "osu_latency", "last_bytes": 4096}, 14))
    return found


CASES = cases()
TEXTS = {path.relative_to(OUTPUTS).with_suffix("").as_posix(): path.read_text() for path in OUTPUTS.glob("*/*.txt")}
ERRORS = sorted(name for name in TEXTS if "/error-" in name)


def ident(case: tuple[str, str, dict[str, Any], int]) -> str:
    """Name a case."""
    return "-".join([case[1], str(case[2].get("benchmark", "")), str(case[2].get("ranks", ""))])


@pytest.mark.parametrize("case", CASES, ids=ident)
def test_stored_output_is_parsed_whole(case):
    parser, name, context, count = case
    found = parse(parser, TEXTS[name], context)
    assert len(found) == count
    keys = [(one.metric, tuple(sorted(one.params.items()))) for one in found]
    assert len(set(keys)) == count, "every measurement has its own name and parameters"
    for one in found:
        assert one.unit in UNITS
        assert (one.better == "lower") == (one.unit == "us")
        assert parser == "osu" or (one.iterations or 0) > 0


def test_every_stored_output_is_used():
    used = {name for _, name, _, _ in CASES}
    assert set(TEXTS) == used | set(ERRORS)


def test_stored_outputs_name_no_machine():
    for name, text in TEXTS.items():
        assert not re.search(r"/(?:tmp|work|home|root)/", text), name


@pytest.mark.parametrize(("name", "context", "reason"), [
    ("stream/error-two-ranks-interleaved", {}, "outputs of 2 processes"),
    ("stream/error-validation", {}, "validation failed"),
    ("imb/error-out-of-memory", {"benchmark": "Allgather"}, "out-of-mem"),
    ("imb/error-time-out", {"benchmark": "Allreduce"}, "time-out"),
    ("imb/error-unknown-benchmark-mpich", {"benchmark": "PingPong"}, "Invalid benchmark name pingpongg"),
    ("imb/error-unknown-benchmark-intelmpi", {"benchmark": "Barrier"}, "Invalid benchmark name pingpongg"),
    ("imb/error-one-process", {"benchmark": "PingPong"}, "PingPong is missing: .*invalid for 1 processes"),
    ("imb/error-one-process", {}, "no benchmark ran: .*invalid for 1 processes"),
    ("imb/error-multi-groups", {"benchmark": "PingPong"}, "PingPong is missing: the output holds Multi-PingPong"),
    ("imb/error-multi-groups", {}, "no line '#processes'"),
    ("imb/error-wrong-launcher", {"benchmark": "Bcast", "ranks": 2}, "several independent runs"),
    ("imb/error-killed-rank-mpich", {}, "BAD TERMINATION .* EXIT CODE: 9"),
    ("imb/error-killed-rank-intelmpi", {}, r"BAD TERMINATION .* KILLED BY SIGNAL: 9 \(Killed\)"),
    ("imb/error-missing-library", {}, "error while loading shared libraries: libmpi.so.12"),
    ("osu/error-killed-rank-openmpi", {"last_bytes": 4 * MIB}, "noticed that process rank 1"),
    ("osu/error-killed-rank-mpich", {"last_bytes": 4 * MIB}, "BAD TERMINATION"),
    ("osu/error-killed-rank-intelmpi", {"last_bytes": 4 * MIB}, "BAD TERMINATION"),
    ("osu/error-abort-openmpi", {"last_bytes": 4 * MIB}, "MPI_ABORT was invoked on rank 1"),
    ("osu/error-abort-mpich", {"last_bytes": 4 * MIB}, r"Abort\(7\) on node"),
    ("osu/error-abort-intelmpi", {"last_bytes": 4 * MIB}, r"Abort\(7\) on node"),
    ("osu/error-no-program-openmpi", {"last_bytes": 8}, "unable to launch"),
    ("osu/error-no-program-mpich", {"last_bytes": 8}, "execvp error on file"),
    ("osu/error-no-program-intelmpi", {"last_bytes": 8}, "execvp error on file"),
    ("osu/error-one-process-mpich", {"last_bytes": 8}, "requires exactly two processes"),
    ("osu/error-stderr-in-table-openmpi", {"last_bytes": 4096}, "not a row of the table"),
    ("osu/error-validation-handmade", {"last_bytes": 4096}, "validation failed"),
])  # fmt: skip
def test_error_output_is_refused_with_its_reason(name, context, reason):
    with pytest.raises(ParseError, match=reason):
        parse(name.split("/")[0], TEXTS[name], context)


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("parser", ["stream", "imb", "osu"])
def test_no_parser_accepts_an_error_output(name, parser):
    with pytest.raises(ParseError):
        parse(parser, TEXTS[name], {"last_bytes": 4096})


@pytest.mark.parametrize("parser", ["stream", "imb", "osu"])
@pytest.mark.parametrize("text", ["", "\n", "Killed\n", "\0\xff", "1 2 3\n", "#\n" * 50])
def test_no_output_is_an_error(parser, text):
    with pytest.raises(ParseError):
        parse(parser, text)


def test_unknown_parser():
    with pytest.raises(ParseError, match=r"unknown parser 'hpl'.*stream"):
        parse("hpl", "", {})


def outcome(parser: str, text: str, context: dict[str, Any]) -> list[Measurement] | None:
    """The measurements, or None if the text was refused with a reason."""
    try:
        return parse(parser, text, context)
    except ParseError:
        return None


@pytest.mark.parametrize("case", CASES, ids=ident)
def test_truncated_at_any_line(case):
    """A part of an output is refused, or holds all that the whole one holds."""
    parser, name, context, _ = case
    lines = TEXTS[name].splitlines(keepends=True)
    whole = parse(parser, TEXTS[name], context)
    accepted = [cut for cut in range(len(lines)) if outcome(parser, "".join(lines[:cut]), context) is not None]
    for cut in accepted:
        assert parse(parser, "".join(lines[:cut]), context) == whole
    # what may be missing is blank lines at the end, and in IMB-MT the benchmarks after the one asked for
    if "-mt" not in name:
        assert all(not "".join(lines[cut:]).strip() for cut in accepted)


@settings(max_examples=300)
@given(case=st.sampled_from(CASES), where=st.floats(0, 1, exclude_max=True))
def test_truncated_at_any_character(case, where):
    parser, name, context, _ = case
    text = TEXTS[name]
    found = outcome(parser, text[: int(where * len(text))], context)
    assert found is None or found == parse(parser, text, context)


@settings(max_examples=300)
@given(case=st.sampled_from(CASES), data=st.data())
def test_without_any_row_of_the_table(case, data):
    """A lost line is noticed, or did not matter."""
    parser, name, context, _ = case
    lines = TEXTS[name].splitlines(keepends=True)
    lost = data.draw(st.integers(0, len(lines) - 1))
    found = outcome(parser, "".join(lines[:lost] + lines[lost + 1 :]), context)
    if found is not None and found != parse(parser, TEXTS[name], context):
        # not to be seen: the first sizes (a table may begin anywhere); sizes given by a list; a fact that is optional
        assert re.match(r"\s*[0-9]|# \[ pairs|# window_size|#\s+MODE|# #|# Benchm", lines[lost]), lines[lost]
        if re.match(r"\s*[0-9]", lines[lost]) and not re.search("-mt|-p2p|user", name):
            sizes = {one.params.get("bytes") for one in parse(parser, TEXTS[name], context)}
            first = sorted(size for size in sizes if isinstance(size, int))[:2]
            assert int(lines[lost].split()[0]) in first


@settings(max_examples=300)
@given(case=st.sampled_from(CASES), data=st.data())
def test_any_damage_ends_in_a_parse_error_or_a_result(case, data):
    parser, name, context, _ = case
    text = TEXTS[name]
    start = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 40))
    junk = data.draw(st.one_of(st.text(max_size=12), st.sampled_from(["nan", "-1", "inf", "1e999", "٣", "9" * 5000])))
    outcome(parser, text[:start] + junk + text[start + length :], context)


@settings(max_examples=200)
@given(
    parser=st.sampled_from(["stream", "imb", "osu"]),
    text=st.text(),
    context=st.dictionaries(
        st.sampled_from(["benchmark", "ranks", "last_bytes", "mode", "threads", "array_elements"]),
        st.one_of(st.none(), st.integers(), st.text(max_size=5), st.booleans()),
    ),
)
def test_arbitrary_text_never_raises_anything_else(parser, text, context):
    assert outcome(parser, text, context) is None


@settings(max_examples=100)
@given(case=st.sampled_from(CASES), data=st.data())
def test_two_ranks_in_one_text_are_refused(case, data):
    """Two copies of an output, interleaved line by line in any way, are never taken for one."""
    parser, name, context, _ = case
    lines = TEXTS[name].splitlines(keepends=True)
    order = data.draw(st.lists(st.booleans(), min_size=2 * len(lines), max_size=2 * len(lines)))
    left, right, merged = list(lines), list(lines), []
    for take_left in order:
        source = left if (take_left and left) or not right else right
        merged.append(source.pop(0))
    assert outcome(parser, "".join(merged), context) is None


def test_a_parse_error_is_an_error_for_people():
    with pytest.raises(PlumbError) as caught:
        parse("stream", "", {})
    assert "\n" not in str(caught.value)


#: what UCX and Intel MPI print among figures, in their own words
SAID = (
    "[1612270288.550344] [node1:30381:0]            sys.c:934  UCX  WARN  Conflicting CPU frequencies detected",
    "[1690453622.136000] [gpu-b.example:21:1]         parser.c:2036 UCX  INFO  UCX_* env variable: UCX_TLS=all",
    "[1690453622.136000] [node1:21:0]   +--------------------------+-----------------------+",
    "[0] MPI startup(): Intel(R) MPI Library, Version 2021.18",
    "[0] \t 0       30381    node1      {0,1}",
)


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("case", CASES[::7], ids=ident)
def test_lines_of_a_library_among_the_figures_are_no_figures(case, said):
    parser, name, context, _ = case
    rows = TEXTS[name].splitlines(keepends=True)
    among = "".join(f"{said}\n{row}" for row in rows) + said
    assert parse(parser, among, context) == parse(parser, TEXTS[name], context)


@pytest.mark.parametrize("said", [
    "[1612270288.550344] [node1:30381:0]          ib_md.c:325  UCX  ERROR ibv_reg_mr() failed: no memory",
    "[1612270288.550344] [node1:30381:0] 8 1.50",
    "node1: UCX WARN no device",
])  # fmt: skip
def test_errors_of_a_library_and_halves_of_lines_are_still_garbled_output(said):
    text = TEXTS["osu/mpich-c-latency"].splitlines(keepends=True)
    among = "".join(text[:-3]) + text[-3].rstrip("\n") + said + "\n" + "".join(text[-2:])
    with pytest.raises(ParseError):
        parse("osu", among, {"benchmark": "osu_latency", "last_bytes": 4096})
    if "WARN" in said or "ERROR" in said:
        with pytest.raises(ParseError):
            parse(
                "osu", "".join([*text[:-3], said + "\n", *text[-3:]]), {"benchmark": "osu_latency", "last_bytes": 4096}
            )
