"""IMB: values, and every guard broken on purpose."""

import re
from pathlib import Path
from typing import Any

import pytest

from plumbline.parsers import parse
from plumbline.parsers.measurement import Measurement, ParseError

STORED = Path(__file__).parents[2] / "data" / "outputs" / "imb"
MPI1 = (STORED / "mpich-mpi1.txt").read_text()
USER = (STORED / "intelmpi-user-lengths.txt").read_text()
FOUR = (STORED / "intelmpi-mpi1-4ranks.txt").read_text()
MT = (STORED / "mpich-mt.txt").read_text()


def stored(name: str, size: int | None, **context: Any) -> dict[str, tuple[Any, ...]]:
    """The measurements at one size of a stored output, by metric."""
    found = parse("imb", (STORED / f"{name}.txt").read_text(), context)
    return {
        one.metric: (one.value, one.unit, one.better, one.params, one.iterations)
        for one in found
        if one.params.get("bytes") == size
    }


def test_pingpong():
    assert stored("mpich-mpi1", 2048, benchmark="PingPong", ranks=2) == {
        "latency": (1.4887, "us", "lower", {"bytes": 2048}, 50),
        "bandwidth": (1375.68, "MB/s", "higher", {"bytes": 2048}, 50),
    }


def test_no_bandwidth_of_nothing():
    assert set(stored("mpich-mpi1", 0, benchmark="PingPong")) == {"latency"}
    assert set(stored("mpich-mpi1", 0, benchmark="Uniband")) == {"message_rate"}


def test_the_name_of_the_benchmark_in_any_case_but_whole():
    assert stored("mpich-mpi1", 2048, benchmark="pingpong")["latency"][0] == 1.4887
    with pytest.raises(ParseError, match="benchmark Ping is missing: the output holds Allgather, Allreduce"):
        parse("imb", MPI1, {"benchmark": "Ping"})


def test_columns_decide():
    params = {"bytes": 8}
    assert stored("intelmpi-mpi1", 8, benchmark="Sendrecv") == {
        "time_min": (0.19, "us", "lower", params, 50),
        "time_max": (0.19, "us", "lower", params, 50),
        "time_avg": (0.19, "us", "lower", params, 50),
        "bandwidth": (82.69, "MB/s", "higher", params, 50),
    }
    assert stored("intelmpi-mpi1", 8, benchmark="Biband") == {
        "bandwidth": (96.80, "MB/s", "higher", params, 50),
        "message_rate": (12100087.0, "msg/s", "higher", params, 50),
    }
    swapped = MPI1.replace("t[usec]   Mbytes/sec", "Mbytes/sec   t[usec]")
    found = {
        one.metric: one.value for one in parse("imb", swapped, {"benchmark": "PingPong"}) if one.params["bytes"] == 2048
    }
    assert found == {"bandwidth": 1.49, "latency": 1375.68}


def test_barrier_has_no_size():
    found = parse("imb", MPI1, {"benchmark": "Barrier"})
    assert found[2] == Measurement("time_avg", 0.35, "us", "lower", {}, 50)


def test_nbc():
    assert {name: one[:3] for name, one in stored("mpich-nbc", 8, benchmark="Ibcast").items()} == {
        "time_overall": (3.03, "us", "lower"),
        "time_pure": (1.70, "us", "lower"),
        "time_cpu": (1.31, "us", "lower"),
        "overlap": (0.0, "%", "higher"),
    }


def test_rma_modes():
    found = parse("imb", (STORED / "mpich-rma.txt").read_text(), {"benchmark": "Unidir_put"})
    last = {one.params["mode"]: one.value for one in found if one.params["bytes"] == 64 and one.metric == "bandwidth"}
    assert last == {"non-aggregate": 80.84, "aggregate": 137.72}
    assert stored("mpich-rma", 64, benchmark="Unidir_put", mode="aggregate")["latency"] == (
        *(0.4647, "us", "lower"),
        *({"mode": "aggregate", "bytes": 64}, 20),
    )
    # here the two time columns stand the other way round than in IMB-NBC
    found_8 = stored("mpich-rma", 8, benchmark="Truly_passive_put")
    assert (found_8["time_pure"][0], found_8["time_overall"][0]) == (0.90, 1.42)
    with pytest.raises(ParseError, match="ran with mode = None; aggregate was asked for"):
        parse("imb", MPI1, {"benchmark": "PingPong", "mode": "aggregate"})


def test_mt():
    assert stored("mpich-mt", 32, benchmark="UniBandMT", last_bytes=2048)["message_rate"] == (
        *(1551857.0, "msg/s", "higher"),
        *({"threads": 1, "window": 64, "bytes": 32}, 20),
    )
    assert stored("mpich-mt-2threads", 64, benchmark="AllReduceMT", last_bytes=64, threads=2)["time_avg"][0] == 29.14
    with pytest.raises(ParseError, match="ran with threads = 1; 2 was asked for"):
        parse("imb", MT, {"benchmark": "UniBandMT", "last_bytes": 2048, "threads": 2})


def test_p2p_grid():
    assert stored("intelmpi-p2p-4ranks", 4, benchmark="Stencil2D")["message_rate"] == (
        *(1213073.0, "msg/s", "higher"),
        *({"grid": "2x2", "bytes": 4}, 3),
    )


def test_number_of_processes_selects():
    assert stored("intelmpi-mpi1-4ranks", 8, benchmark="Allreduce", ranks=2)["time_max"][0] == 5.28
    assert stored("intelmpi-mpi1-4ranks", 8, benchmark="Allreduce", ranks=4)["time_max"][0] == 10.44
    with pytest.raises(ParseError, match=r"Allreduce ran with 2, 4 processes.*'ranks'"):
        parse("imb", FOUR, {"benchmark": "Allreduce"})
    with pytest.raises(ParseError, match="PingPong ran with processes = 2; 4 was asked for"):
        parse("imb", FOUR, {"benchmark": "PingPong", "ranks": 4})


def test_several_benchmarks_need_a_name():
    with pytest.raises(ParseError, match=r"the output holds Allreduce, Barrier, PingPong.*'benchmark'"):
        parse("imb", FOUR, {"ranks": 2})
    assert len(parse("imb", USER, {})) == 5


ROW = r"( +1024 +50 +)([0-9.]+)( +)([0-9.]+)\n"


@pytest.mark.parametrize(("pattern", "replacement", "reason"), [
    (r"# All processes entering MPI_Finalize\n", "", "truncated: no line 'All processes entering MPI_Finalize'"),
    (r"(?s)(\n +4 +50 [^\n]*).*", r"\1\n", "truncated: no line"),
    (r"#    Intel.*\n", "", "no line 'Intel"),
    (r"(#    Intel.*\n)", r"\1\1", "several independent runs"),
    (r"\Z", "# All processes entering MPI_Finalize\n", "end mark of a second run"),
    (ROW, r"\1nan\3\4\n", r"column t\[usec\]: 'nan' is not a finite"),
    (ROW, r"\1inf\3\4\n", "'inf' is not a finite"),
    (ROW, r"\1-1.0\3\4\n", "'-1.0' is not a finite, non-negative"),
    (ROW, r"\1****\3\4\n", r"'\*\*\*\*' is not a finite"),
    (ROW, r"\1\2\3\2\4.0\n", "is not a finite"),
    (ROW, r"\g<1>\2\n", "is not a row of the table: garbled"),
    (ROW, r"\1\2\3\4\1\2\3\4\n", "is not a row of the table: garbled"),
    (ROW, "", "sizes between 512 and 2048 bytes are missing"),
    (ROW, r"\1\2\3\4\n\1\2\3\4\n", "1024 bytes follow 1024: rows of two outputs"),
    (ROW, r"\1\2\3\4\n           64 50 1.0 1.0\n", "64 bytes follow 1024"),
    (ROW, r"\1\2\3\4\nwarning: something\n", "'warning: something' is not a row"),
    (ROW, r"\1\2\3\4\n# a comment\n", "'# a comment' is not a row"),
    (ROW, r"\1\2\3\4\n\n", "is outside any table: garbled"),
    (r" +4096 +50 +[0-9.]+ +[0-9.]+\n", "", "ends at 2048 bytes, 4096 bytes were expected last"),
    (r" +1024 +50 ", "   1024.5 50 ", r"column #bytes: '1024.5' is not a non-negative integer"),
    (r" +1024 +50 ", "   1024 -5 ", r"column #repetitions: '-5' is not"),
    (r" +1024 +50 ", "   1024 0 ", "a row without repetitions"),
    (r" +1024 +50 .*\n", "   1024 out-of-mem.; needed X=   9 GB\n", "out-of-mem"),
    (r" +1024 +50 .*\n", "   1024 int-overflow; The production rank*size caused int overflow;\n", "int-overflow"),
    (r" +1024 +50 .*\n", "   1024 time-out.; Time limit is over\n", "time-out"),
    (r"Mbytes/sec\n", "Gbytes/sec\n", "column 'Gbytes/sec' is not known"),
    (r"t\[usec\]", "Mbytes/sec", "a column appears twice"),
    (r"(?s)(# Benchmarking PingPong) .*?(?= +#bytes)", r"\1\n", "no line '#processes'"),
    (r"# Benchmarking PingPong \n", "", "is outside any table|a table without a line|missing"),
    (r"(# #processes = 2) \n", r"\1 \n\1\n", "a second '#processes' line"),
    (r"(# #processes = 2) \n", r"\1 \nhello\n", "'hello' is in the heading"),
    (r"(# #processes = 2) \n", "# #processes = 3\n", "ran with processes = 3; 2 was asked for"),
    (r"(# Benchmarking )PingPing ", r"\1PingPong ", "the table appears twice"),
    (r"(?s)( +#bytes[^\n]*\n)( +[0-9][^\n]*\n)+", r"\1", "the table has no rows"),
    (
        r"(?s)(# Benchmarking PingPong[^\n]*\n).*?\n\n",
        r"\1# NO SUCCESSFUL EXECUTIONS\n#----\n\n",
        "no successful executions",
    ),
    (r"\Z", "CHECK FAILURES: rank 1: 3\n", "the run failed: 'CHECK FAILURES"),
    (r"\Z", "slurmstepd-node1: error: *** STEP CANCELLED\n", "the run failed"),
])  # fmt: skip
def test_each_guard(pattern, replacement, reason):
    damaged = re.sub(pattern, replacement.replace("\\n", "\n"), MPI1, count=1)
    assert damaged != MPI1
    with pytest.raises(ParseError, match=reason):
        parse("imb", damaged, {"benchmark": "PingPong", "ranks": 2})


def test_defects_are_wrong_data():
    damaged = USER.replace("Mbytes/sec", "Mbytes/sec      defects")
    damaged = re.sub(r"(?m)^( +(?:0|100|4096) +20 .*)$", r"\1  0.00", damaged)
    assert len(parse("imb", damaged, {})) == 5
    with pytest.raises(ParseError, match=r"wrong data received: 0\.01 defects"):
        parse("imb", damaged.replace("11.86  0.00", "11.86  0.01"), {})


def test_user_lengths_end_where_they_should():
    cut = re.sub(r" +4096 +20 .*\n", "", USER)
    assert len(parse("imb", cut, {})) == 3, "nothing in the output says that a size is missing"
    with pytest.raises(ParseError, match="ends at 100 bytes, 4096 bytes were expected last"):
        parse("imb", cut, {"last_bytes": 4096})


def test_barrier_with_two_rows():
    double = re.sub(r"(#repetitions  t_min.*t_avg\[usec\]\n( +[0-9].*\n))(?=\n\n# All)", r"\1\2", MPI1)
    assert double != MPI1
    with pytest.raises(ParseError, match="2 rows where one was expected"):
        parse("imb", double, {"benchmark": "Barrier"})


def test_mt_prints_no_end_mark():
    context = {"benchmark": "PingPongMT"}
    with pytest.raises(ParseError, match=r"IMB-MT prints no end mark.*'last_bytes'"):
        parse("imb", MT, context)
    with pytest.raises(ParseError, match="ends at 2048 bytes, 4096 bytes were expected last"):
        parse("imb", MT, {**context, "last_bytes": 4096})
    with pytest.raises(ParseError, match="ends within a line"):
        parse("imb", MT.rstrip("\n"), {**context, "last_bytes": 2048})
    assert len(parse("imb", MT, {"benchmark": "BarrierMT"})) == 3


#: a table with one time and a rate, as most of IMB's benchmarks between two ranks print it
ONE_TIME = r"#bytes #repetitions +t\[usec\] +Mbytes/sec\n((?: +[0-9.]+ +[0-9]+ +[0-9.]+ +[0-9.]+\n)+)"


@pytest.mark.parametrize("stack", ["mpich", "intelmpi"])
@pytest.mark.parametrize("name", ["mpi1", "mpi1-more", "mpi1-4ranks", "rma"])
def test_a_rate_is_the_bytes_in_the_printed_time(stack, name):
    """What IMB means by Mbytes/sec there, which times with more digits rest on: true of every row stored."""
    tables = re.findall(ONE_TIME, (STORED / f"{stack}-{name}.txt").read_text())
    rows = [line.split() for table in tables for line in table.splitlines()]
    rows = [(int(size), float(time), float(rate)) for size, _, time, rate in rows if float(rate)]
    assert len(rows) >= 4
    for size, time, rate in rows:
        assert size / (rate + 0.005) - 0.005 <= time <= size / (rate - 0.005) + 0.005


def test_times_of_short_messages_have_the_digits_of_their_rates():
    (table, *_) = re.findall(ONE_TIME, MPI1)
    printed = {int(row.split()[0]): float(row.split()[2]) for row in table.splitlines()}
    found = parse("imb", MPI1, {"benchmark": "PingPong"})
    times = {one.params["bytes"]: one.value for one in found if one.metric == "latency"}
    assert times.keys() == printed.keys()
    assert all(abs(times[size] - printed[size]) <= 0.0056 for size in printed)
    assert times[0] == printed[0]
    assert sum(times[size] != printed[size] for size in printed) >= 8


@pytest.mark.parametrize(("time", "rate", "value"), [
    *(("0.23", "34.78", 0.23), ("0.23", "35.16", 0.2275), ("0.11", "70.18", 0.114), ("0.89", "9.03", 0.886)),
    *(("0.90", "8.92", 0.9), ("0.23", "39.00", 0.23), ("0.23", "0.00", 0.23), ("0.00", "99.00", 0.0)),
])  # fmt: skip
def test_a_time_from_a_rate_has_the_decimals_that_it_has(time, rate, value):
    """Eight bytes: three decimals and more up to 0.89 us; a rate that contradicts the time changes nothing."""
    text = re.sub(r"(\n +8 +50 +)[0-9.]+( +)[0-9.]+", rf"\g<1>{time}\g<2>{rate}", MPI1)
    found = parse("imb", text, {"benchmark": "PingPong"})
    assert [one.value for one in found if one.metric == "latency" and one.params["bytes"] == 8] == [value]


def test_rates_of_pairs_at_random_say_nothing_of_one_time():
    """IMB-P2P prints messages a second too: there a rate is not that of the time beside it."""
    text = (STORED / "mpich-p2p.txt").read_text()
    found = parse("imb", text, {"benchmark": "PingPong"})
    assert all(round(one.value, 2) == one.value for one in found if one.metric == "latency")


TITLE = "Intel(R) MPI Benchmarks 2021.11, MPI-1 part"


@pytest.mark.parametrize("title", [
    "Intel(R) MPI Benchmarks 2019 Update 6, MPI-1 part",
    "Intel(R) MPI Benchmarks 2019, MPI-1 part",
    "Intel (R) MPI Benchmarks 2018 Update 1, MPI-1 part    ",
    "Intel (R) MPI Benchmarks 2018, MPI-1 part",
    "Intel (R) MPI Benchmarks 2017 Update 1, MPI-1 part",
    "Intel(R) MPI Benchmarks 2021.2, MPI-1 part (GPU)",
])  # fmt: skip
def test_titles_of_other_versions(title):
    assert TITLE in MPI1
    context = {"benchmark": "PingPong"}
    assert parse("imb", MPI1.replace(TITLE, title), context) == parse("imb", MPI1, context)


@pytest.mark.parametrize(
    "title", ["Intel (R) MPI Benchmarks 4.0 Update 1, MPI-1 part", "Intel (R) MPI Benchmark Suite V3.2.2, MPI-1 part"]
)
def test_versions_3_and_4_count_megabytes_of_2_to_the_20(title):
    """As an output of 4.0 says: 4194304 bytes in 839.36 us are 4765.53 Mbytes/sec there."""
    rows = "0 1000 0.50 0.00", "4194304 1000 839.36 4765.53"
    text = MPI1.replace(TITLE, title)
    begin = "#bytes #repetitions      t[usec]   Mbytes/sec\n"
    first, last = text.index(begin) + len(begin), text.index("\n\n", text.index(begin))
    text = "# Message lengths were user defined\n" + text[:first] + "\n".join(rows) + text[last:]
    zero, time, rate = parse("imb", text, {"benchmark": "PingPong"})
    assert (zero.value, time.value) == (0.5, 839.36)
    assert rate.value == pytest.approx(4194304 / 839.36, rel=1e-5)
    assert rate.step == pytest.approx(0.0104858, rel=1e-5)


@pytest.mark.parametrize("title", ["Another(R) MPI Benchmarks 2019, MPI-1 part", "Intel(R) MPI Benchmarks, MPI-1 part"])
def test_another_title_is_refused(title):
    with pytest.raises(ParseError, match="not the output of IMB"):
        parse("imb", MPI1.replace(TITLE, title), {"benchmark": "PingPong"})
