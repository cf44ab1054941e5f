"""What a benchmark must have done for its figures: a program that only prints them is found out."""

import hashlib
from types import SimpleNamespace

import pytest
from msgspec import structs
from samples import record
from witnesses import of_documents, typed

from plumbline.launch import conclusions, program_files
from plumbline.parsers.measurement import Measurement
from plumbline.records.launch import Disturbance, RankSeen
from plumbline.records.model import convert
from plumbline.stacks.manifest import Loads

MIB = 1 << 20
PAGES = 20_000_000 * 24 // 4096

note, other_library = of_documents(program_files.note), of_documents(program_files.other_library)


def run(known, seen, measurements=(), arguments=()):
    job = SimpleNamespace(record=SimpleNamespace(benchmark=known), variant=SimpleNamespace(arguments=arguments))
    launch = SimpleNamespace(measurements=list(measurements))
    return SimpleNamespace(job=job, seen=list(map(typed, seen)), launch=launch)


def shortfalls(known, seen):
    return conclusions.shortfalls(run(known, seen))


def claims(known, measurements, seen, arguments=()):
    return conclusions.claims(run(known, seen, measurements, arguments))


def benchmark(suite="stream", **facts):
    return structs.replace(convert(record()).benchmark, suite=suite, facts=facts or {"array_elements": 20_000_000})


def process(wall=3.0, cpu=2.7, **changes):
    """A rank that did what STREAM with 20 million elements does."""
    memory = {"page_bytes": 4096, "nodes": {"0": PAGES}, "freed_nodes": {}}
    return {
        "program": "/opt/stream",
        "mpi": False,
        "others": [],
        "objects": [],
        "memory": {**memory, "freed_blocks_skipped": 0, "untracked_mappings": 0, **changes.pop("memory", {})},
        "window": {"wall_s": wall, "cpu_s": cpu},
        **changes,
    }


def stream(rate=10000.0, iterations=10, ranks=1):
    """The table of STREAM, each of its kernels at ``rate``: 1.6 s at 10 GB/s."""
    params = {"array_elements": 20_000_000, "ranks": ranks}
    return [Measurement(name, rate, "MB/s", "higher", params, iterations) for name in ("copy", "scale", "add", "triad")]


def test_an_honest_stream_has_no_fault():
    seen = [process(), process()]
    assert shortfalls(benchmark(), seen) == []
    assert claims(benchmark(), stream(20000.0, ranks=2), seen) == []


def test_arrays_that_no_page_was_seen_of():
    (reason,) = shortfalls(benchmark(), [process(), process(memory={"nodes": {}})])
    assert reason == "a rank held 0 MB in large mappings, the benchmark's arrays are 480 MB a rank"


def test_arrays_given_back_count_and_those_of_another_process_of_the_rank():
    halves = {"nodes": {"0": PAGES // 2}, "freed_nodes": {"1": PAGES // 2}}
    assert shortfalls(benchmark(), [process(memory=halves)]) == []
    child = process(memory={"nodes": {}}, others=[process()])
    assert shortfalls(benchmark(), [child]) == []


@pytest.mark.parametrize(
    "gap", [{"unavailable": "numa_maps: gone"}, {"freed_blocks_skipped": 3}, {"untracked_mappings": 1}]
)
def test_memory_that_was_not_counted_whole_proves_nothing(gap):
    assert shortfalls(benchmark(), [process(memory={"nodes": {}, **gap})]) == []


@pytest.mark.parametrize("figure", ["other_cpu_fraction", "steal_fraction"])
def test_more_cpu_time_than_there_was_says_that_the_clock_is_wrong(figure):
    """A clock at a tenth of its speed: 566 % of the CPUs, and 4 MiB in 233 us. Short launches count in whole ticks."""

    def reasons(share, resolution=0.01):
        launch = SimpleNamespace(disturbance=Disturbance(figures={figure: share, "cpu_resolution": resolution}))
        return conclusions._impossible(SimpleNamespace(launch=launch))

    assert reasons(5.664) == ["566 % of the planned CPUs' time was used: the clock of the ranks is not the kernel's"]
    assert reasons(0.99) == reasons(1.3, 0.2) == []


@pytest.mark.parametrize(
    ("seen", "but"),
    [(process(wall=0.02), "no rank ran longer than 0.02 s"), (process(cpu=0.01), "the ranks used 0.01 s of CPU time")],
)
def test_figures_of_a_program_that_ended_at_once_or_slept(seen, but):
    (reason,) = claims(benchmark(), stream(), [seen])
    assert reason == f"the figures imply 1.6 s of work, but {but}"


def test_an_mpi_benchmark_whose_ranks_never_called_mpi():
    seen = [process(mpi=True), process(program="/opt/stream")]
    (reason,) = shortfalls(benchmark("osu"), seen)
    assert reason.startswith("1 of 2 ranks never called MPI_Init")
    assert shortfalls(benchmark("imb"), [process(mpi=True)]) == []


def test_ranks_of_different_programs():
    (reason,) = shortfalls(benchmark(), [process(), process(program="/opt/other")])
    assert reason == "the ranks ran different programs: /opt/other, /opt/stream"


def latency(value, iterations, metric="latency", **params):
    return Measurement(metric, value, "us", "lower", params, iterations)


def test_the_longest_row_of_a_table_must_fit_into_the_run():
    rows = [
        latency(2.0, 1000, bytes=8),
        latency(800.0, 10_000, bytes=1 << 20),
        latency(900.0, 10_000, "p99", bytes=1 << 20),
    ]
    (reason,) = claims(benchmark("imb"), rows, [process(wall=3.9)])
    assert reason.startswith("the figures imply 8 s of work")
    assert claims(benchmark("imb"), rows, [process(wall=4.1)]) == []


#: 14 small sizes of 1000 iterations at least, 9 large ones of 100: 1000 x 14 x 0.5 us + 100 x 9 x 100 us
LATENCIES = [latency(0.5, None, bytes=1 << power) for power in range(14)]
LATENCIES += [latency(100.0, None, bytes=1 << power) for power in range(14, 23)]


BANDWIDTH = Measurement("bandwidth", 10_000.0, "MB/s", "higher", {"bytes": 4_000_000}, None)
WIDE = structs.replace(BANDWIDTH, params={"bytes": 4_000_000, "window": 64, "pairs": 2})


@pytest.mark.parametrize(("rows", "wall", "arguments", "implied"), [
    (LATENCIES, 0.097, [], None),
    (LATENCIES, 0.001, ["-i", "10"], None),
    ([latency(0.5, 400_000, bytes=8)], 0.09, [], 0.2),  # the table says how often
    ([BANDWIDTH], 0.1, [], 0.256),  # 20 windows of 32 messages of 4 MB at 10 GB/s
    ([WIDE], 0.1, [], 1.02),
    ([latency(44.1, None)], 0.0209, [], None),  # the port calls its barrier 100 times: beside other work 4.4 ms
    ([latency(44.1, None)], 0.002, [], 0.00441),
    ([latency(90_000.0, None, "time_avg", ranks=2)], 0.1, [], None),  # the times of a start are no loop
])  # fmt: skip
def test_what_a_table_of_osu_implies_although_it_names_no_repetitions(rows, wall, arguments, implied):
    reasons = claims(benchmark("osu"), rows, [process(wall=wall, cpu=2 * wall)], arguments)
    assert len(reasons) == bool(implied)
    assert f"the figures imply {implied} s of work" in "".join(reasons) or not implied


def test_a_table_of_osu_that_was_only_printed_or_by_a_sleeping_program():
    assert claims(benchmark("osu"), LATENCIES, [process(wall=0.001, cpu=0.0001)]) == [
        "the figures imply 0.097 s of work, but no rank ran longer than 0.001 s",
        "the figures imply 0.097 s of work, but the ranks used 0.0001 s of CPU time",
    ]
    (reason,) = claims(benchmark("osu"), LATENCIES, [process(wall=0.3, cpu=0.001)] * 2)
    assert reason == "the figures imply 0.097 s of work, but the ranks used 0.002 s of CPU time"


def test_the_working_set_of_a_kernel_must_have_been_there():
    row = Measurement("bandwidth", 9000.0, "MB/s", "higher", {"working_set": 512 * MIB}, 5)
    (reason,) = claims(benchmark("kernels"), [row], [process(), process(memory={"nodes": {"0": 1000}})])
    assert reason.startswith("a rank held 4 MB in large mappings, the benchmark's arrays are 268 MB a rank")
    small = structs.replace(row, params={"working_set": 8 * MIB})
    assert claims(benchmark("kernels"), [small], [process(memory={"nodes": {}})]) == []


class TestLoaded:
    """The files that ranks loaded."""

    @staticmethod
    def rank(**changes):
        mpi = {"path": "/opt/libmpi.so", "build_id": "", "bytes": 900, "modified_ns": 5, **changes}
        return process(objects=[{"path": "/opt/stream", "build_id": "ab", "bytes": 10, "modified_ns": 1}, mpi])

    def test_files_are_listed_once(self):
        item = convert(record())
        assert note(item, [self.rank(), self.rank()]) == []
        assert note(item, [self.rank()]) == []
        assert [(file.path, file.bytes) for file in item.loaded] == [("/opt/stream", 10), ("/opt/libmpi.so", 900)]

    @pytest.mark.parametrize("change", [{"bytes": 901}, {"build_id": "cd"}, {"modified_ns": 6}])
    def test_a_library_that_changes_between_launches_is_named(self, change):
        item = convert(record())
        note(item, [self.rank()])
        (reason,) = note(item, [self.rank(**change)])
        assert reason == "loaded other files than before: /opt/libmpi.so changed since the first launch"

    def test_nodes_may_have_copies_made_at_different_times(self):
        item = convert(record())
        item.placement = structs.replace(item.placement, nodes=2)
        assert note(item, [self.rank(), self.rank(modified_ns=6)]) == []
        assert len(note(item, [self.rank(bytes=901)])) == 1

    def test_another_program_than_in_the_first_launch_is_named(self):
        item = convert(record())
        memory, usage = {"page_bytes": 4096, "nodes": {}, "freed_nodes": {}}, {}
        first = RankSeen(host="n1", rank=0, local_rank=0, threads=[], memory=memory, usage=usage, program="/opt/stream")
        item.launches[0].ranks = [first]
        assert note(item, [self.rank()]) == []
        (reason,) = note(item, [self.rank(), {**self.rank(), "program": "/opt/fast"}])
        assert reason == "the ranks ran /opt/fast, those of the first launch /opt/stream"


class TestMpiLibrary:
    """The library that the ranks used, and the world that it made."""

    LOADS = Loads(library="/s/libmpi.so.12", files={"/s/libmpi.so.12": "a", "/s/libmpi_abi.so.1": "b"})

    def test_any_of_the_stacks_own(self):
        for path in self.LOADS.files:
            assert other_library(self.LOADS, 2, [{"world": 2, "mpi_library": path}]) == []

    def test_a_copy(self, tmp_path):
        (tmp_path / "libmpi.so.12").write_bytes(b"same")
        known = Loads(library="/s/x", files={"/s/x": hashlib.sha256(b"same").hexdigest()})
        assert other_library(known, 2, [{"world": 2, "mpi_library": str(tmp_path / "libmpi.so.12")}]) == []

    def test_another_world_or_another_library(self):
        (alone,) = other_library(self.LOADS, 2, [{"world": 1, "mpi_library": "/s/libmpi.so.12"}] * 2)
        assert alone == "MPI_COMM_WORLD has 1 rank, planned: 2"
        (other,) = other_library(self.LOADS, 2, [{"world": 2, "mpi_library": "/o/libmpi.so.12"}])
        assert other == "the program loaded another MPI library: /o/libmpi.so.12, the stack's is /s/libmpi.so.12"

    def test_ranks_that_were_not_asked(self):
        assert other_library(None, 2, [{}, {"world": 2, "mpi_library": "/o/libmpi.so"}]) == []
