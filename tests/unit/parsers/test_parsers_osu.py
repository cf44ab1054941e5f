"""OSU, C suite and ports: values, and every guard broken on purpose."""

import re
from pathlib import Path
from typing import Any

import pytest

from plumbline.parsers import parse
from plumbline.parsers.measurement import ParseError

STORED = Path(__file__).parents[2] / "data" / "outputs" / "osu"
LATENCY = (STORED / "mpich-c-latency.txt").read_text()
PORT = (STORED / "mpich-port-latency.txt").read_text()
MIB = 1 << 20


def stored(name: str, size: int | None, last: int = 4096) -> dict[str, tuple[Any, ...]]:
    """The measurements at one size of a stored output, by metric."""
    found = parse("osu", (STORED / f"{name}.txt").read_text(), {"last_bytes": last})
    return {
        one.metric: (one.value, one.unit, one.better, one.params, one.iterations)
        for one in found
        if one.params.get("bytes") == size
    }


def test_c_latency():
    assert stored("mpich-c-latency", 2) == {"latency": (1.09, "us", "lower", {"bytes": 2}, None)}
    assert stored("handmade-v5.9-latency", 4096) == {"latency": (0.80, "us", "lower", {"bytes": 4096}, None)}
    assert stored("openmpi-c-put_latency", 4096)["latency"][0] == 0.11


def test_c_bandwidths():
    assert stored("openmpi-c-bw", 4096) == {"bandwidth": (1333.05, "MB/s", "higher", {"bytes": 4096}, None)}
    params = {"pairs": 1, "window": 64, "bytes": 64}
    assert stored("openmpi-c-mbw_mr", 64) == {
        "bandwidth": (617.06, "MB/s", "higher", params, None),
        "message_rate": (9641516.37, "msg/s", "higher", params, None),
    }


def test_c_collectives():
    assert stored("mpich-c-allreduce-full", 4096) == {
        "latency": (2.09, "us", "lower", {"bytes": 4096}, 100),
        "latency_min": (2.08, "us", "lower", {"bytes": 4096}, 100),
        "latency_max": (2.09, "us", "lower", {"bytes": 4096}, 100),
    }
    assert stored("openmpi-c-barrier", None) == {"latency": (0.27, "us", "lower", {}, None)}
    assert stored("intelmpi-c-barrier-full", None)["latency_max"] == (0.26, "us", "lower", {}, 100)
    assert {name: one[0] for name, one in stored("mpich-c-ibarrier", None).items()} == {
        **{"time_overall": 4.38, "time_compute": 2.59, "time_pure": 2.06, "overlap": 12.94}
    }
    assert stored("mpich-c-iallreduce", 4096)["overlap"] == (27.55, "%", "higher", {"bytes": 4096}, None)


def test_ports():
    assert stored("intelmpi-port-latency", 4 * MIB, 4 * MIB)["latency"][:3] == (151.85, "us", "lower")
    assert stored("openmpi-port-barrier", None) == {"latency": (0.37, "us", "lower", {}, None)}
    assert stored("mpich-port-alltoallv", MIB, MIB)["latency"][0] == 226.82


def test_the_title_of_a_port_decides_over_its_wrong_column_name():
    text = (STORED / "mpich-port-bw.txt").read_text()
    assert "Latency [us]" in text
    assert stored("mpich-port-bw", 64, 4 * MIB) == {"bandwidth": (67.69, "MB/s", "higher", {"bytes": 64}, None)}
    fixed = parse("osu", text.replace("Latency [us]", "Bandwidth [MB/s]"), {"last_bytes": 4 * MIB})
    assert fixed == parse("osu", text, {"last_bytes": 4 * MIB})
    with pytest.raises(ParseError, match=r"columns Bandwidth\(MB/s\) under the title 'mpi latency test'"):
        parse("osu", PORT.replace("Latency [us]", "Bandwidth [MB/s]"), {"last_bytes": 4 * MIB})


def test_names_with_and_without_prefix():
    for name in ("osu_latency", "latency", None):
        assert len(parse("osu", LATENCY, {"benchmark": name, "last_bytes": 4096})) == 13
    with pytest.raises(ParseError, match="benchmark osu_bw is missing: the output is that of 'mpi latency test'"):
        parse("osu", LATENCY, {"benchmark": "osu_bw", "last_bytes": 4096})
    with pytest.raises(ParseError, match=r"unknown OSU|unknown benchmark 'osu_latancy'"):
        parse("osu", LATENCY, {"benchmark": "osu_latancy", "last_bytes": 4096})


def test_device_titles():
    text = LATENCY.replace("OSU MPI ", "OSU MPI-CUDA ")
    assert len(parse("osu", text, {"benchmark": "latency", "last_bytes": 4096})) == 13


def test_buffers_must_be_those_that_were_asked_for():
    """The line as OSU 5 to 7 print it where they were built for GPUs."""
    title = next(line for line in LATENCY.splitlines() if line.startswith("# OSU"))
    line = "# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)"
    text = LATENCY.replace(title, f"{title.replace('OSU MPI ', 'OSU MPI-CUDA ')}\n{line}")
    found = parse("osu", text, {"benchmark": "latency", "last_bytes": 4096, "buffers": "D H"})
    assert {item.params["buffers"] for item in found} == {"D H"}
    with pytest.raises(ParseError, match="the buffers were D H, D D was asked for"):
        parse("osu", text, {"last_bytes": 4096, "buffers": "D D"})
    with pytest.raises(ParseError, match="the buffers were not named, D D was asked for"):
        parse("osu", LATENCY, {"last_bytes": 4096, "buffers": "D D"})


@pytest.mark.parametrize(("title", "reason"), [
    ("OSU MPI-CUDA Latency Test v7.5", None),
    ("OSU MPI-ROCM Latency Test v7.5.2", None),
    ("OSU MPI-SYCL Latency Test v8.0", None),
    ("OSU MPI Latency Test v7.5", "the buffers were not named"),
    ("OSU MPI-CUDA Latency Test v7.4", "the buffers were not named"),
    ("OSU MPI-CUDA Latency Test v5.9", "the buffers were not named"),
    ("OSU MPI-CUDA Latency Test", "the buffers were not named"),
])  # fmt: skip
def test_from_7_5_on_the_device_in_the_title_and_the_command_line_say_the_buffers(title, reason):
    text = f"# {title}\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n1          1.50\n2          1.51\n"
    for buffers in ("D D", "D H", "H H"):
        context = {"benchmark": "osu_latency", "last_bytes": 2, "buffers": buffers}
        if reason is None:
            assert [item.params["buffers"] for item in parse("osu", text, context)] == [buffers] * 2
            named = text.replace("# Datatype", "# Send Buffer on HOST (H) and Receive Buffer on DEVICE (D)\n# Datatype")
            with pytest.raises(ParseError, match=f"the buffers were H D, {buffers} was asked for"):
                parse("osu", named, context)
        else:
            with pytest.raises(ParseError, match=reason):
                parse("osu", text, context)


def test_the_column_line_of_version_5_6_may_lack_its_mark():
    text = "\n# OSU MPI Non-blocking Barrier Latency Test v5.6.3\n"
    text += "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n"
    text += "\n       Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)\n"
    text += "              8.85              5.04              4.02              5.04\n"
    found = {item.metric: item.value for item in parse("osu", text, {"benchmark": "osu_ibarrier"})}
    assert found == {"time_overall": 8.85, "time_compute": 5.04, "time_pure": 4.02, "overlap": 5.04}


@pytest.mark.parametrize(
    "tag", ["Wed May 27 09:26:50 2020[1,0]<stdout>:", "[prterun-n1-7@1,0]<stdout>: ", "[0] ", "0: ", "11: "]
)
def test_an_output_with_tags_says_that_it_has_them(tag):
    text = "".join(f"{tag}{line}" for line in LATENCY.splitlines(keepends=True))
    with pytest.raises(ParseError, match=r"a launcher has put a tag before each line.*--tag-output"):
        parse("osu", text, {"last_bytes": 4096})


def test_percentiles_and_transmit_size():
    text = "# OSU MPI Latency Test v7.4\n# Size       Avg Latency(us)    P50 Tail Lat(us)       Transmit Size\n"
    text += "1    1.5    1.4    1\n2    1.6    1.5    2\n"
    last = parse("osu", text, {"last_bytes": 2})[-1]
    assert (last.metric, last.value, last.params) == ("latency_p50", 1.5, {"bytes": 2, "transmit_bytes": 2})


@pytest.mark.parametrize(("pattern", "replacement", "reason"), [
    (r"# OSU.*\n", "", "no title line"),
    (r"# OSU.*\n", "# OSU MPI Latency Benchmark v7.4\n", "no title line"),
    (r"# OSU.*\n", "# OSU MPI Spelling Test v7.4\n", "unknown title 'mpi spelling test'|is missing"),
    (r"(# OSU.*\n)", r"\1\1", "several independent runs"),
    (r"# Size.*\n", "", "is in the heading: garbled"),
    (r"(?s)# Size.*", "", "no column line: truncated"),
    (r"(?s)(# Size[^\n]*\n).*", r"\1", "the table has no rows"),
    (r"Avg Latency\(us\)", "Avg Latency(ns)", r"column 'AvgLatency\(ns\)' is not known"),
    (r"Avg Latency\(us\)", "Avg Latency(us)   Avg Latency(us)", "a column appears twice|no row"),
    (r"4096 .*\n", "", "ends at 2048 bytes, 4096 bytes were expected last"),
    (r"\n\Z", "", "ends within a line"),
    (r"\n64 .*", "", "sizes between 32 and 128 bytes are missing"),
    (r"(\n64 .*)", r"\1\1", "64 bytes follow 64"),
    (r"(\n64 .*)", r"\1\n16   1.0", "16 bytes follow 64"),
    (r"(\n64 .*)(\n)", r"\1 64  1.0\2", "not a row of the table: garbled"),
    (r"(\n64 .*)", r"\1\n\n", "not a row of the table: garbled"),
    (r"(\n64 .*)", r"\1\n# note", "not a row of the table: garbled"),
    (r"(\n64 .*)", r"\1\n[node1] warning", r"column Size: '\[node1\]' is not"),
    (r"(\n64 +).*", r"\1nan", "'nan' is not a finite"),
    (r"(\n64 +).*", r"\1-nan", "'-nan' is not a finite"),
    (r"(\n64 +).*", r"\1inf", "'inf' is not a finite"),
    (r"(\n64 +)", r"\1-", "is not a finite, non-negative"),
    (r"(\n64 +)", r"\1x", "is not a finite"),
    (r"\n64 ", "\n64.0 ", "column Size: '64.0' is not a non-negative integer"),
    (r"\Z", "DATA VALIDATION ERROR: osu_latency exited with status 1\n", "the run failed"),
    (r"\Z", "[node1:1] *** Process received signal ***\n", "the run failed"),
])  # fmt: skip
def test_each_guard(pattern, replacement, reason):
    damaged = re.sub(pattern, replacement.replace("\\n", "\n"), LATENCY, count=1)
    assert damaged != LATENCY
    with pytest.raises(ParseError, match=reason):
        parse("osu", damaged, {"benchmark": "osu_latency", "last_bytes": 4096})


def test_validation_column():
    text = (STORED / "mpich-c-latency-validated.txt").read_text()
    assert len(parse("osu", text, {"last_bytes": 4096})) == 13
    with pytest.raises(ParseError, match="validation failed: '64 "):
        parse("osu", re.sub(r"(\n64 .*)Pass", r"\1Fail", text), {"last_bytes": 4096})


def test_a_sized_table_needs_its_last_size():
    with pytest.raises(ParseError, match=r"no end mark.*'last_bytes'"):
        parse("osu", LATENCY, {})


def test_barrier_with_two_rows():
    for name in ("mpich-c-barrier", "mpich-port-barrier"):
        text = (STORED / f"{name}.txt").read_text()
        with pytest.raises(ParseError, match="2 rows where one was expected"):
            parse("osu", text + text.splitlines(keepends=True)[-1], {})


def test_start_up_has_the_ranks_and_microseconds():
    text = (STORED / "mpich-c72-init.txt").read_text()
    (line,) = re.findall(r"nprocs.*", text)
    least, most, mean = (1000.0 * int(word) for word in re.findall(r"(\d+) ms", line))
    found = stored("mpich-c72-init", None)
    assert found["time_avg"] == (mean, "us", "lower", {"ranks": 2}, None)
    assert (found["time_min"][0], found["time_max"][0]) == (least, most)
    for damaged in (text + line + "\n", text.replace(line + "\n", ""), text.replace("avg:", "avg: -")):
        with pytest.raises(ParseError, match="no line 'nprocs: N, min"):
            parse("osu", damaged, {"benchmark": "osu_init"})


def test_the_datatype_may_stand_between_columns_and_rows():
    text = (STORED / "mpich-c72-latency_mt.txt").read_text()
    assert re.search(r"# Size.*\n# Datatype: MPI_CHAR.\n", text)
    with pytest.raises(ParseError, match="not a row of the table: garbled"):
        parse("osu", text.replace("MPI_CHAR.\n", "MPI_CHAR.\n# Datatype: MPI_INT.\n"), {"last_bytes": 64})


def test_atomic_operations_have_one_row_whatever_their_operand():
    text = (STORED / "mpich-c72-cas_latency.txt").read_text()
    for name in ("fop_latency", "cas_latency"):
        assert stored(f"mpich-c72-{name}", None)["latency"][1:4] == ("us", "lower", {})
    row = text.splitlines(keepends=True)[-1]
    assert parse("osu", text.replace(row, "8" + row[1:])) == parse("osu", text)
    with pytest.raises(ParseError, match="2 rows where one"):
        parse("osu", text + "2" + row[1:])
