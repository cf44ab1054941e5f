"""Settings of the process: which are tried, what a launch gets of them, what gains; `make rates` has the rates."""

import sys
from types import SimpleNamespace

import msgspec
import pytest
import samples

from plumbline.base import paths
from plumbline.extras.tune import process, report, target
from plumbline.extras.tune import stages as tune
from plumbline.extras.tune.bench import TuningRequest
from plumbline.extras.tune.curves import Row
from plumbline.launch.conclusions import FAULTS, IDLE, SPINS, WAITS, costs
from plumbline.mpi import loading
from plumbline.mpi.settings import Configuration, Setting
from plumbline.records.launch import RankSeen

sys.path.insert(0, str(paths.root() / "tests/rates"))
import tune as rates

HUGE = Configuration((Setting("GLIBC_TUNABLES", process.HUGE),))


def rank(number=0, threads=(10.0,), **usage):
    """A rank of ten seconds that costs nothing but computing."""
    used = {"wall_s": 10.0, "user_s": sum(threads), "system_s": 0.0, "voluntary_switches": 10, "minor_faults": 100,
            "major_faults": 0, **usage}  # fmt: skip
    seen = [{"name": "t", "affinity": [0], "last_cpu": 0, "cpu_s": each} for each in threads]
    document = {"host": "n", "rank": number, "local_rank": number, "threads": seen, "memory": {}, "usage": used}
    return msgspec.convert(document, RankSeen)


@pytest.mark.parametrize(("ranks", "kinds"), [
    ([rank()], []),
    ([rank(user_s=7.8, system_s=2.2, minor_faults=253_546)], ["page faults"]),
    ([rank(user_s=7.8, system_s=2.2)], ["system calls"]),
    ([rank(major_faults=5000)], ["disk"]),
    ([rank(voluntary_switches=50_000)], ["waits"]),
    ([rank(user_s=5.0)], ["idle"]),
    ([rank(threads=(10.0, 9.9))], ["threads"]),
    ([rank(threads=(10.0, 5.0))], ["idle", "load of threads"]),
    ([rank(), rank(1, user_s=9.5), rank(2, user_s=6.0)], ["idle", "load of ranks"]),
    ([], []),
])  # fmt: skip
def test_costs_beyond_mpi_are_told_by_kind(ranks, kinds):
    assert list(costs(ranks)) == kinds


def program(**more):
    return msgspec.structs.replace(samples.asked(name="heat %placement=core", placement="core"), **more)


def test_costs_choose_the_settings(monkeypatch):
    monkeypatch.setattr(process, "find_library", {"jemalloc": "libjemalloc.so.2"}.get)
    monkeypatch.setattr(process, "placements", lambda program: ("spread",))
    monkeypatch.setattr(process, "layouts", lambda program: ("4x2",))

    def names(costs, threads):
        return [knob.name for knob in process.knobs(costs, [program(threads=threads)])]

    assert names([FAULTS], 1) == ["GLIBC_TUNABLES", "LD_PRELOAD"]
    assert names([WAITS], 1) == []
    assert names([SPINS], 2) == ["OMP_WAIT_POLICY", "placement"]
    assert names([IDLE], None) == ["OMP_WAIT_POLICY", "placement", "ranks x threads"]
    assert process.knobs([FAULTS], [program()])[-1].values == ("libjemalloc.so.2",)


def test_no_setting_names_a_file_to_load(monkeypatch):
    """An allocator is what the loader of this machine finds under a known name."""
    monkeypatch.setattr(process, "find_library", lambda name: f"lib{name}.so.2")
    assert process.allocators() == tuple(f"lib{name}.so.2" for name in loading.ALLOCATORS)
    names = [name for name in process.TABLE if loading.loads(name)]
    assert names == [loading.PRELOAD]
    assert process.TABLE[loading.PRELOAD][1] == ()


def test_a_launch_gets_variables_placement_and_layout_and_a_job_script_their_lines():
    chosen = {"OMP_WAIT_POLICY": "passive", "placement": "spread", "ranks x threads": "4x2"}
    given = process.applied(program(environment={"A": "1"}), chosen)
    assert (given.placement, given.ranks_per_node, given.threads) == ("spread", 4, 2)
    assert given.environment == {"A": "1", "OMP_WAIT_POLICY": "passive"}
    assert process.lines(chosen)[-1] == "export OMP_WAIT_POLICY=passive"
    both = Configuration((*HUGE.settings, Setting("eager", "1")))
    assert process.settings(both) == {"GLIBC_TUNABLES": process.HUGE}
    assert process.of_library(both).settings == (Setting("eager", "1"),)


def test_the_sides_of_a_gate_differ_in_them_alone():
    bench = SimpleNamespace(request=SimpleNamespace(program=(program(),)), settings=lambda one: {})
    ((default, tuned),), _ = target.couples(bench, HUGE)
    assert tuned == msgspec.structs.replace(default, environment={"GLIBC_TUNABLES": process.HUGE})


def test_a_launch_whose_answer_is_wrong_is_no_candidate():
    """A rate counts as a time; a figure that is absent, and a launch that is not verified, have no curve."""
    figure = SimpleNamespace(name="rate", optional=False)

    def launch(verified, value):
        item = value and SimpleNamespace(value=value, better="higher")
        return SimpleNamespace(verified=verified, find=lambda _: item)

    launches = [launch(True, 4.0), launch(False, 8.0), launch(True, None)]
    record = SimpleNamespace(counting=lambda: launches, variant=SimpleNamespace(figures=[figure]))
    assert target.curves_of(record) == [{Row("rate", 0): 0.25}, None, None]


class Bench:
    """A program with page faults: what each candidate takes, and what its gate says."""

    def __init__(self, gains):
        self.gains, self.tried = gains, []
        self.request = msgspec.convert(
            {"site": "s", "partition": "p", "stack": "s", "family": "openmpi", "placements": ["core"], "sizes": [8],
             "seed": 1, "circumstances": {}}, TuningRequest
        )  # fmt: skip
        self.request = msgspec.structs.replace(self.request, program=(program(threads=1),))

    def profiles(self):
        seen = [rank(user_s=7.8, system_s=2.2, minor_faults=253_546)]
        return [SimpleNamespace(launches=[SimpleNamespace(ranks=seen)])]

    def programs(self, _name, candidates, rounds):
        self.tried += candidates
        return [[SimpleNamespace(time=0.8 if each == HUGE else 1.0, rounds=rounds, reasons=[])] for each in candidates]


@pytest.fixture
def searched(monkeypatch):
    def run(state):
        bench = Bench(state)
        monkeypatch.setattr(process, "find_library", lambda name: None)
        monkeypatch.setattr(target, "curves_of", lambda record: [{Row("time", 0): record.time}] * record.rounds)
        verdict = SimpleNamespace(state=state, reason="why", count=13, ratio=0.8, interval=(0.79, 0.81),
                                  pairs=SimpleNamespace(better="lower"))  # fmt: skip
        confirmed = tune.Confirmed(HUGE, {("core", tune.confirm.Point("heat", Row("time", 0))): verdict}, ("s",), True)
        monkeypatch.setattr(tune.confirm, "confirm", lambda bench, name, each: confirmed)
        return tune.of_process(bench, 0.004), bench

    return run


def test_a_gain_that_the_gate_proves_is_what_later_steps_begin_with(searched):
    tuning, bench = searched("GAIN")
    assert tuning.process.configuration == HUGE
    assert report.closing(tuning) == "GAIN: heat: time 20 % less (19 % to 21 %)"
    assert bench.request.program[0].environment["GLIBC_TUNABLES"] == process.HUGE


def test_nothing_to_gain_says_why(searched):
    tuning, bench = searched("PASS")
    assert tuning.process is tuning.winner is None
    assert report.closing(tuning) == (
        "nothing to gain: stream_threads: 0.4 % of its time in MPI, page faults; of 3 settings of the process the best "
        "took 0.800 of the default's time in the race, the gate saw no gain"
    )
    assert "GLIBC_TUNABLES" not in bench.request.program[0].environment


@pytest.mark.parametrize("model", ["quiet", "noisy"])
def test_searches_without_a_gain_claim_none(model):
    """Of 1000, one in 100 may: `make rates`."""
    assert rates.rate(model, 0.0, 20)[0] == 0
