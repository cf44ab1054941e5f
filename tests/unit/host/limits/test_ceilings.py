"""Ceilings: which figure is held against which, what is measured, what becomes of the launches, and the file."""

import json
import shutil

import msgspec
import pytest
import schema_files
import stack_manifest
from plans import typed
from samples import launch, plan, record, variant

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Facts
from plumbline.commands import sites as site_command
from plumbline.host import ceilings, limits, machine
from plumbline.host.ceilings import Ceiling, Measured
from plumbline.judge.references import References
from plumbline.launch import figures
from plumbline.measure import ceilings as measuring
from plumbline.measure import jobs
from plumbline.records.figure import Ceiling as RecordedCeiling
from plumbline.records.model import convert, document
from plumbline.show import record as show
from plumbline.show import summary
from plumbline.show.report import findings
from plumbline.show.report.entry import Shared, entry

DATA = __file__.rpartition("/unit/")[0] + "/data"
TOPOLOGIES = f"{DATA}/topologies"


def one(median, **where):
    return Ceiling(median=median, spread_percent=2.0, launches=3, method="m", record="0123456789ab", **where)


def measured(**changes):
    """Two NUMA nodes of ten cores each."""
    known = {
        "partition": "default",
        "machine": "a machine",
        "host": "node1",
        "measured": "2026-11-22T10:00:00.000Z",
        "suite": "plumbline 0.1.0",
        "stack": "mpich",
        "session": "s",
        "seconds": 50.0,
        "memory_bandwidth_MB_per_s": [
            one(10_000.0, cores=1),
            one(80_000.0, cores=20),
            one(45_000.0, cores=10, numa_node=0),
            one(44_000.0, cores=10, numa_node=1),
        ],
        "cache_bandwidth_MB_per_s": [
            one(300_000.0, cores=1, level=1),
            one(100_000.0, cores=1, level=2),
            one(30_000.0, cores=1, level=3),
            one(240_000.0, cores=20, level=3),
        ],
        "copy_bandwidth_MB_per_s": [
            one(100_000.0, cores=1, level=1),
            one(40_000.0, cores=1, level=2),
            one(12_000.0, cores=1, level=3),
            one(8_000.0, cores=1, level=0),
        ],
        "peak_GFlop_per_s": [one(20.0, cores=1), one(300.0, cores=20)],
        "handover_latency_ns": [one(50.0, pair="pair:l3"), one(150.0, pair="pair:xsocket")],
    }
    return Measured(**{**known, **changes})


def taken(**changes):
    """One core of a machine with 32 KiB, 256 KiB and 25 MiB of caches."""
    known = {"cores": 1, "threads": 1, "ranks": 1, "nodes": 1, "numa_nodes": (0,), "pair": None}
    caches = {1: 32 << 10, 2: 256 << 10, 3: 25 << 20}
    return ceilings.NodeUse(**{**known, "caches": caches, "own_caches": caches, **changes})


def test_records_have_the_idle_power_that_was_measured_with_the_ceilings():
    assert figures.idle_of(measured()) is None
    found = figures.idle_of(measured(idle_W=61.2))
    assert (found.power_w, found.host, found.measured) == (61.2, "node1", "2026-11-22T10:00:00.000Z")


def bound(metric, unit="MB/s", directions=1, params=None, **changes):
    """The ceiling's value for a figure under a plan, and its words."""
    asked = limits.Quantity(metric, unit, params or {}, directions)
    found = ceilings.of(asked, taken(**changes), measured())
    return found and (round(found.value, 3), found.method)


WHOLE = {"cores": 20, "threads": 20, "numa_nodes": (0, 1)}
PAIR = {"cores": 2, "threads": 2, "ranks": 2, "pair": "pair:xsocket"}


class TestTable:
    @pytest.mark.parametrize(("changes", "value"), [
        ({}, (10_000.0, "memory, one core")),
        ({"cores": 3, "threads": 3}, (30_000.0, "memory, 3 x one core")),
        ({"cores": 10, "threads": 10}, (45_000.0, "memory of NUMA node 0")),
        ({"cores": 10, "threads": 10, "numa_nodes": (1,)}, (44_000.0, "memory of NUMA node 1")),
        (WHOLE, (80_000.0, "memory, 20 cores")),
        ({**WHOLE, "numa_nodes": None}, (80_000.0, "memory, 20 cores")),
    ])  # fmt: skip
    def test_memory_has_the_lower_of_cores_and_nodes(self, changes, value):
        assert bound("triad", **changes) == value

    def test_memory_is_compared_with_the_same_loads_and_stores(self):
        known = measured(memory_bandwidth_MB_per_s=[
            one(value, cores=1, kernel=kernel) for kernel, value in (("triad regular", 7e3), ("copy streaming", 1e4))
        ])  # fmt: skip
        for mix, value in (("triad regular", 7e3), ("copy streaming", 1e4), (None, 1e4), ("load loads", None)):
            found = ceilings.of(limits.Quantity("triad", "MB/s", {}, mix=mix), taken(), known)
            assert (found and found.value) == value

    @pytest.mark.parametrize(("program", "metric", "params", "mix"), [
        (("stream", "stream", "gcc 12.2.0"), "copy", {}, "copy streaming"),
        (("stream", "stream", "gcc 12.2.0"), "triad", {}, "triad regular"),
        (("stream", "stream", "icx 2025"), "triad", {}, None),
        (("membw", "kernels", "gcc"), "bandwidth", {"kernel": "copy", "mode": "regular"}, "copy regular"),
        (("daxpy", "kernels", "gcc"), "bandwidth_daxpy", {"touch": "thread"}, "triad streaming"),
        (("daxpy", "kernels", "gcc"), "bandwidth_daxpy", {"touch": "master"}, None),
        (("jacobi", "kernels", "gcc"), "bandwidth", {"stores": "streaming"}, "triad streaming"),
    ])  # fmt: skip
    def test_loads_and_stores_of_programs(self, program, metric, params, mix):
        assert ceilings.mix(*program, metric, params) == mix

    @pytest.mark.parametrize(
        ("data", "value"), [(16 << 10, 300_000.0), (128 << 10, 100_000.0), (4 << 20, 30_000.0), (100 << 20, 10_000.0)]
    )
    def test_a_sweep_has_the_level_of_its_data(self, data, value):
        assert bound("bandwidth_daxpy", params={"working_set": data})[0] == value

    def test_a_shared_cache_has_what_all_cores_reached(self):
        caches = {1: 640 << 10, 2: 5 << 20, 3: 50 << 20}
        assert bound("bandwidth", params={"working_set": 40 << 20}, **WHOLE, caches=caches)[0] == 240_000.0
        assert bound("bandwidth", params={"working_set": 3 << 20}, **WHOLE, caches=caches)[0] == 2_000_000.0

    def test_operations(self):
        assert bound("rate", "GFlop/s")[0] == 20.0
        assert bound("rate", "GFlop/s", **WHOLE)[0] == 300.0

    @pytest.mark.parametrize(("size", "directions", "value"), [(8192, 1, 1e5), (1 << 18, 1, 4e4), (4 << 20, 2, 24e3)])
    def test_a_message_has_a_copy_of_itself(self, size, directions, value):
        assert bound("bandwidth", directions=directions, params={"bytes": size}, **PAIR)[0] == value

    def test_a_message_of_a_gpu_has_none(self):
        for buffers, value in (("H H", True), ("D H", False), ("D D", False)):
            found = bound("bandwidth", params={"bytes": 1 << 22, "buffers": buffers}, ranks=2, pair="pair:l3")
            assert bool(found) is value

    def test_a_short_message_has_the_handover_between_such_cores(self):
        assert bound("latency", "us", params={"bytes": 8}, **PAIR) == (0.15, "handover of a cache line, pair:xsocket")
        one_of_many = {"cores": 20, "threads": 20, "ranks": 20}
        assert bound("latency", "us", params={"bytes": 8, "class": "pair:l3"}, **one_of_many)[0] == 0.05

    @pytest.mark.parametrize(("metric", "params", "changes"), [
        ("triad", {}, {"threads": 2}),  # two threads of a core
        ("triad", {}, {"nodes": 2}),
        ("bandwidth", {"bytes": 8192}, {"ranks": 4, "cores": 4, "threads": 4}),
        ("latency", {"bytes": 65}, PAIR),
        ("latency", {"bytes": 8}, {**PAIR, "pair": "pair:numa"}),
        ("time_avg", {"bytes": 8}, PAIR),
        ("spin", {}, PAIR),
    ])  # fmt: skip
    def test_what_has_none(self, metric, params, changes):
        assert bound(metric, params=params, **changes) is None

    def test_what_was_not_measured_bounds_nothing(self):
        asked = limits.Quantity("triad", "MB/s", {}, 1)
        without = measured(memory_bandwidth_MB_per_s=[one(80_000.0, cores=20)])
        assert ceilings.of(asked, taken(), without) is None


@pytest.fixture(scope="module")
def host():
    return machine.load(f"{TOPOLOGIES}/ulysses-2x10.xml")


def settled(host, facts=None, best=10_000.0):
    made = convert(record(figures=[], verified=False, reasons=[], verdict="invalid"))
    alone = [one(best, cores=1, kernel="triad regular"), one(8 * best, cores=20, kernel="triad regular")]
    figures.settle(made, Facts(**(facts or {})), host, References([]), measured(memory_bandwidth_MB_per_s=alone))
    return made


def dgemm(host, facts):
    """Launches of dgemm at 72.0, 72.3 and 73.0 % of their own peaks; the median rate is 73.0 % of the median peak."""
    wanted = [{"name": name, "metric": name, "where": {}} for name in ("rate", "efficiency")]
    launches = []
    for order, (rate, peak) in enumerate([(36.0, 50.0), (61.455, 85.0), (58.4, 80.0)]):
        rows = [("rate", rate, "GFlop/s", {"model": peak}), ("efficiency", 100 * rate / peak, "%", {})]
        measurements = [
            {"metric": name, "params": {}, "value": value, "unit": unit, "better": "higher", **model}
            for name, value, unit, model in rows
        ]
        remark = f"{100 * rate / peak:.1f} % of the peak of the same run, less than 80 %; likely cause: the BLAS"
        launches.append(launch(order, 1.0, measurements=measurements, remarks=[remark]))
    asked = variant(test="dgemm_node", name="dgemm_node", benchmark="dgemm", figures=wanted)
    made = convert(record(figures=[], variant=asked, launches=launches, reasons=[], verdict="unreferenced"))
    figures.settle(made, Facts(**facts), host, References([]), measured())
    return made


class TestFigures:
    """The sample is STREAM on two cores: 10100 MB/s."""

    def test_the_ceiling_and_its_percentage_are_in_the_record(self, host):
        made = settled(host)
        schema_files.check("record", document(made))
        found = made.figures[0].ceiling
        assert (found.value, found.percent, found.measured) == (20_000.0, 50.5, "2026-11-22T10:00:00.000Z")
        assert not found.suspect
        assert summary.percent(made.figures[0]) == "50.5c"
        assert "50.5 % of ceiling memory by triad regular, 2 x one core, measured 2026-11-22" in show.text(made)
        assert summary.legend([made])[0].startswith("c: percent of what this machine reached")

    def test_a_declared_limit_counts_first(self, host):
        made = settled(host, {"memory_channels_per_package": 2, "memory_mts": 3200})
        assert made.figures[0].ceiling is None
        assert summary.percent(made.figures[0]) == "19.7"
        assert summary.legend([made]) == []

    def test_a_figure_above_makes_the_ceiling_suspect_and_stays_valid(self, host):
        made = settled(host, best=4000.0)
        assert made.figures[0].ceiling.suspect
        assert made.reasons == []
        assert made.verdict == "unreferenced"
        assert summary.legend([made, made.row()])[1] == (
            "suspect: 126.2 % of ceiling memory by triad regular, 2 x one core, triad of 0123456789ab and 1 more:"
            " plumb site measure"
        )
        assert "suspect: plumb site measure" in show.text(made)
        drawn = json.dumps(entry(made, Shared()))
        assert "126.2 % of ceiling memory by triad regular, 2 x one core" in drawn
        assert "(8.000 GB/s); suspect: plumb site measure" in drawn

    @pytest.mark.parametrize(("spread", "suspect"), [(2.0, True), (30.0, False)])
    def test_the_spread_of_the_launches_is_no_cause_for_suspicion(self, host, spread, suspect):
        ceiling = msgspec.structs.replace(settled(host, best=4000.0).figures[0].ceiling, spread_percent=spread)
        assert ceiling.suspect is suspect

    @pytest.mark.parametrize(("models", "percent"), [([20_000.0] * 9, 50.5), ([5000.0] * 9, 202.0), ([5000.0], None)])
    def test_without_limit_and_ceiling_the_benchmarks_own_model_counts(self, host, models, percent):
        made = convert(record(figures=[], verified=False, reasons=[], verdict="invalid"))
        for each, model in zip(made.launches, models, strict=False):
            each.measurements = [msgspec.structs.replace(item, model=model) for item in each.measurements]
        figures.settle(made, Facts(), host, References([]))
        if percent is None:
            assert made.figures[0].ceiling is None, "a launch without"
            return
        schema_files.check("record", document(made))
        assert summary.percent(made.figures[0]) == f"{percent}m"
        assert f"{percent} % of the benchmark's model, for the same launches" in show.text(made)
        assert summary.legend([made]) == [summary.MARKS["m"]], "a model makes nothing suspect"

    @pytest.mark.parametrize(
        ("facts", "shown", "bound"),
        [({}, "72.3m", "the benchmark's model"), ({"flops_per_cycle": 16, "core_ghz": 4}, "45.6", "cores")],
    )
    def test_every_view_gives_one_percentage_of_a_record(self, host, facts, shown, bound):
        """dgemm measures the peak itself; the ceiling of the same cores is another one, and was 80.1 %."""
        made = dgemm(host, facts)
        percent = shown.rstrip("m")
        assert summary.percent(made.figures[0]) == shown
        assert f" {shown} " in summary.lines([made])
        assert f"{percent} % of " in show.text(made)
        assert f"{percent} % of " in json.dumps(entry(made, Shared()))
        (said,) = findings.shortfalls(findings.Campaign([(made, 0)]))
        assert f"reaches {percent} % of " in said.text
        assert "72.0" not in said.text, "of one launch"
        assert bound in made.figures[0].reached.bound
        assert f"{made.figures[1].value:.1f}" == "72.3", "the efficiency that the benchmark prints"

    def test_a_record_that_was_held_against_the_ceiling_keeps_its_percentage_in_the_findings(self, host):
        made = dgemm(host, {})
        about = {"value": 1.0, "unit": "GFlop/s", "method": "multiply-add peak, 2 cores", "spread_percent": 1.0}
        made.figures[0].ceiling = RecordedCeiling(**about, percent=80.1, measured="2026-11-22T10:00:00.000Z")
        (said,) = findings.shortfalls(findings.Campaign([(made, 0)]))
        assert summary.percent(made.figures[0]) == "80.1c"
        assert "rate reaches 80.1 % of ceiling multiply-add peak, 2 cores; likely cause: the BLAS" in said.text

    def test_a_time_is_held_against_what_it_cannot_fall_below(self):
        about = convert(record()).figures[0]
        about.better, about.value = "lower", 0.2
        found = figures._ceiling(about, ceilings.Bound(0.05, "us", "m", 1.0), "2026-11-22T10:00:00.000Z")
        assert found.percent == 25.0

    def test_records_of_earlier_versions_have_none(self):
        assert convert(record()).figures[0].ceiling is None


class TestExperiments:
    def test_every_numa_node_and_every_class_of_pairs(self, monkeypatch, host):
        monkeypatch.setattr(measuring, "_exists", lambda placement: placement in ("pair:l3", "pair:xsocket"))
        found = list(measuring.experiments(host))
        memory = [item for item in found if item.gives[0].list == measuring.MEMORY_LIST]
        assert [(item.place.placement, *item.place.members.values()) for item in memory] == [
            ("compact", 1), ("node", 20), ("numa:0", 10, 0), ("numa:1", 10, 1),
        ]  # fmt: skip
        assert [item.place.members["pair"] for item in found if item.program == "handover"] == [
            "pair:l3",
            "pair:xsocket",
        ]

    def test_arrays_are_beyond_the_caches_and_sweeps_inside_theirs(self, monkeypatch, host):
        monkeypatch.setattr(measuring, "_exists", lambda _: False)
        for item in measuring.experiments(host):
            words = list(item.arguments)
            if item.program != "membw":
                continue
            elements = int(words[words.index("--size") + 1])
            level = item.gives[0].level
            if level is None:
                assert 3 * 8 * elements > 3.9 * host.last_level_cache_bytes
            else:
                arrays = 2 if "copy" in words else 1
                around = host.cores[0].cpus[:1] if item.place.members["cores"] == 1 else host.cpus
                assert 8 * elements * arrays <= ceilings.cache_bytes(host, around)[level]

    def test_one_core_is_measured_once(self, monkeypatch):
        monkeypatch.setattr(measuring, "_exists", lambda _: False)
        lone = machine.load("package:1 [numa(memory=1073741824)] l3:1(size=4194304) core:1 pu:1")
        assert {item.place.members.get("cores") for item in measuring.experiments(lone)} == {1}


def experiment(program="membw", **given):
    gives = [measuring.Gives(**{"list": measuring.COPY_LIST, "metric": "triad", **given})]
    return measuring.Experiment(program, ("--size", "512"), measuring.ExperimentPlace("compact", {"cores": 1}), gives)


def copied():
    """The sample, whose figure is asked for by the name of a ceiling."""
    known = convert(record())
    known.figures[0].name = measuring.COPY_LIST
    return known


class TestCollect:
    def test_the_median_of_undisturbed_launches_counts_with_their_distance(self):
        left_out, known = [], copied()
        (found,) = measuring.collect([experiment(part=0.5)], [known], left_out)[measuring.COPY_LIST]
        assert (found.median, found.spread_percent, found.launches) == (5050.0, 1.98, 3)
        assert found.record == "0123456789ab"
        assert left_out == []
        known.launches[1].disturbed = True
        (found,) = measuring.collect([experiment(part=0.5)], [known], left_out)[measuring.COPY_LIST]
        assert (found.median, found.spread_percent, found.disturbed_launches) == (5025.0, 1.0, 1)

    def test_two_experiments_give_the_better_of_both(self):
        low = copied()
        low.figures[0].samples = [1.0, 2.0, 3.0]
        for order in ((low, copied()), (copied(), low)):
            found = measuring.collect([experiment(), experiment()], order, [])[measuring.COPY_LIST]
            assert [item.median for item in found] == [10100.0]

    def test_what_was_not_verified_is_left_out_with_its_reason(self):
        bad = convert(record(verified=False, verdict="invalid", reasons=["rank 0 left no witness"]))
        left_out = []
        assert measuring.collect([experiment()], [bad], left_out) == {}
        assert left_out[0].endswith(": rank 0 left no witness")


@pytest.fixture
def sites(tmp_path, monkeypatch):
    shutil.copytree(paths.sites() / "ulysses", tmp_path / "ulysses")
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path))
    monkeypatch.setenv("PLUMB_BUILD", str(tmp_path / "build"))
    return tmp_path


class TestFile:
    def test_what_is_written_is_read(self, sites):
        ceilings.save("ulysses", measured())
        assert ceilings.read("ulysses") == [measured()]
        assert "memory_bandwidth_MB_per_s:" in ceilings.ceilings_file("ulysses").read_text()

    def test_only_the_partition_that_was_measured_is_replaced(self, sites):
        for name, seconds in (("a", 1.0), ("b", 2.0), ("a", 3.0)):
            ceilings.save("ulysses", measured(partition=name, seconds=seconds))
        assert [(item.partition, item.seconds) for item in ceilings.read("ulysses")] == [("a", 3.0), ("b", 2.0)]

    def test_another_machine_has_none(self, sites):
        ceilings.save("ulysses", measured())
        assert ceilings.ceilings_of("ulysses", "default", "a machine") == measured()
        assert ceilings.ceilings_of("ulysses", "default", "another machine") is None
        assert ceilings.ceilings_of("ulysses", "other", "a machine") is None

    @pytest.mark.parametrize(("old", "new", "said"), [
        ("median: 10000.0", "median: 0", "median: .* > 0.0"),
        ("cores: 1\n", "kernels: 1\n", "kernels"),
        ("schema: 2", "[", "YAML"),
    ])  # fmt: skip
    def test_a_damaged_file_is_one_line_with_its_cure(self, sites, old, new, said):
        file = ceilings.save("ulysses", measured())
        file.write_text(file.read_text().replace(old, new, 1))
        with pytest.raises(PlumbError, match=f"{said}.*: remove it: plumb site measure") as caught:
            ceilings.read("ulysses")
        assert str(file) in str(caught.value)
        file.unlink()  # the cure
        assert ceilings.save("ulysses", measured()) == file
        assert sorted(found.name for found in file.parent.iterdir()) == [
            "ceilings.yaml", "references", "site.yaml", "topology",
        ]  # fmt: skip

    def test_a_file_that_was_measured_is_readable(self, sites):
        shutil.copy(f"{DATA}/ceilings.yaml", ceilings.ceilings_file("ulysses"))
        (found,) = ceilings.read("ulysses")
        assert [one.cores for one in found.memory_bandwidth_MB_per_s] == [1, 2]

    def test_a_file_of_the_first_version_counts_as_not_measured(self, sites):
        file = ceilings.save("ulysses", measured())
        file.write_text(file.read_text().replace("schema: 2", "schema: 1").replace("median:", "best:"))
        assert ceilings.read("ulysses") == []
        ceilings.save("ulysses", measured())
        assert ceilings.read("ulysses") == [measured()]


class TestApplication:
    """A record of a program of plumb.yaml on two cores, where one core has 10 GB/s and 20 GFlop/s."""

    @pytest.mark.parametrize(("metric", "value", "unit", "params", "percent"), [
        ("triad", 39.4, "GB/s", {}, None),  # HPC Challenge prints its own: a name of a user means nothing
        ("rate", 39.4, "GFlop/s", {}, None),
        ("time_bandwidth", 9999.0, "MB/s", {"work": "bytes"}, 50.0),
        ("time_flop_rate", 19.0, "GFlop/s", {"work": "flops"}, 50.0),
    ])  # fmt: skip
    def test_only_declared_work_is_compared(self, host, metric, value, unit, params, percent):
        about = {"metric": metric, "unit": unit, "params": params, "better": "higher"}
        launches = [launch(order, 1.0, measurements=[about | {"value": value + order}]) for order in range(3)]
        asked = variant(
            figures=[{"name": metric, "metric": metric, "where": {}}], application={"name": "code", "program": "code"}
        )
        made = convert(record(variant=asked, launches=launches, figures=[], reasons=[], verdict="unreferenced"))
        figures.settle(made, Facts(), host, References([]), measured())
        (figure,) = made.figures
        assert figure.limit is None
        assert (figure.ceiling and figure.ceiling.percent) == percent


class TestCommand:
    def plumb(self, *words):
        import argparse

        parser = argparse.ArgumentParser()
        site_command.run_site.add_to(parser)
        args = parser.parse_args(["measure", "--site", "ulysses", *words])
        return args.run(args)

    @pytest.fixture
    def part(self, sites, monkeypatch):
        """A partition that only jobs reach, and the submissions."""
        file = sites / "ulysses" / "site.yaml"
        text = file.read_text().replace("archived: true\n", "").replace("scheduler: local", "scheduler: slurm")
        file.write_text(text)
        asked = []
        monkeypatch.setattr(jobs, "run", lambda submission, say: asked.append(submission) or 0)
        monkeypatch.delenv("SLURM_JOB_ID", raising=False)
        return asked

    def test_a_partition_behind_jobs_is_measured_in_one(self, part):
        assert self.plumb("--stack", "mpich") == 0
        (submission,) = part
        command = list(submission.command)
        assert submission.nodes == 1
        assert command[command.index("site") :] == [
            "site", "measure", "--site", "ulysses", "--partition", "default", "--stack", "mpich",
        ]  # fmt: skip

    def test_if_needed_measures_another_machine_only(self, part, sites, capsys):
        topology = sites / "ulysses" / "topology" / "default.xml"
        ceilings.save("ulysses", measured(machine=ceilings.words(machine.load(topology))))
        assert self.plumb("--if-needed") == 0
        assert part == []
        assert "are up to date" in capsys.readouterr().out
        ceilings.save("ulysses", measured())
        assert self.plumb("--if-needed") == 0
        assert len(part) == 1

    def test_a_stack_without_the_kernels_is_named(self, sites, monkeypatch, tmp_path):
        monkeypatch.setattr(measuring, "experiments", lambda host: [])
        monkeypatch.setattr(measuring.machine, "load", lambda: None)
        monkeypatch.setattr(measuring.manifests, "load", stack_manifest.made)
        with pytest.raises(PlumbError, match=r"has none of the kernels that measure \(mpich\)"):
            measuring._here("ulysses", {"name": "default"}, "mpich", tmp_path, print)

    def test_an_archived_site_is_not_measured(self, sites):
        with pytest.raises(PlumbError, match="archived"):
            self.plumb()


def test_a_plan_takes_its_caches_and_memory(host):
    made = ceilings.use_of(typed(plan(ranks=[dict(plan()["ranks"][0], cpus=[0, 1])])), host, 1)
    assert (made.cores, made.threads, made.ranks, made.numa_nodes, made.pair) == (2, 2, 1, (0,), None)
    assert made.caches[3] == max(made.own_caches.values())
    assert made.caches[1] == 2 * made.own_caches[1]
    assert ceilings.words(host).startswith("unknown processor; 2 packages, 2 NUMA nodes, 20 cores, 20 hardware threads")
