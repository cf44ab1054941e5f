"""What a first campaign is compared with: healthy machines are fine, and each planted fault is named."""

import sys
from typing import Any

import pytest
from msgspec.structs import replace
from samples import launch, record, variant

from plumbline.base import paths
from plumbline.judge import expectations
from plumbline.judge.expectations import Expectation
from plumbline.records.figure import Ceiling
from plumbline.records.model import Record, convert

sys.path.insert(0, str(paths.root() / "tests/rates"))
import first

SHEET = {"cpu": "AMD EPYC 7763 64-Core Processor", "packages": 1, "cores": 2, "virtual": "no"}
PEAK = 204_800.0


def stream(triad: float, host: dict[str, Any] | None = None, **changes: Any) -> Record:
    """STREAM by GCC, with so many MB/s in each of three launches, on a whole host of a data sheet."""
    launches = [launch(order, triad) for order in range(3)]
    return convert(record(launches=launches, host=SHEET | (host or {}), **changes))


def of(*records: Record) -> Expectation:
    """What is expected of the first one's figure."""
    return expectations.expectations(records)[0]


class TestRates:
    """`make rates` measures more of them."""

    @pytest.mark.parametrize("noise", first.NOISES)
    def test_a_healthy_machine_is_fine(self, noise):
        assert sum(first.said(first.healthy(noise, seed)).startswith("Yes") for seed in range(3)) == 3

    @pytest.mark.parametrize("name", first.FAULTS)
    def test_a_fault_is_named(self, name):
        slower, words = first.FAULTS[name]
        assert words in first.said(first.measured(first.healthy(first.NOISES[0], 1), slower))

    def test_few_figures_of_the_default_campaign_have_no_expectation(self):
        records = [first.decode(line) for line in first.LINES]
        figures = {id(known.figures[0]) for known in records}
        states = [each.state for each in expectations.expectations(records) if id(each.figure) in figures]
        assert len(states) == 72
        assert states.count("no expectation") < 10

    @pytest.mark.parametrize(("stack", "most"), [("openmpi", 14), ("intelmpi", 12), ("mpich", 12)])
    def test_with_a_single_library_half_of_them_have_one(self, stack, most):
        """Its tests bound one another; mpi4py's ports of OSU, with Python's own time, are seven of the others."""
        records = [known for known in map(first.decode, first.LINES) if known.stack.name == stack]
        expected = expectations.expectations(records)
        states = [each.state for each in expected if each.figure is each.record.figures[0]]
        assert len(states) == 24
        assert states.count("no expectation") <= most
        assert states.count("slow") <= 1

    @pytest.mark.parametrize(("test", "times", "origin"), [
        ("imb_barrier", 3.0, "1 message of 8 B of"), ("deadlock_fixed", 3.0, "1 message of 8 B of"),
        ("imb_window", 2.0, "bandwidth of osu_pair bw"), ("imb_pair", 3.0, "12 hand-overs of a cache line"),
    ])  # fmt: skip
    def test_a_slow_operation_of_a_single_library_is_seen(self, test, times, origin):
        own = [known for known in map(first.decode, first.LINES) if known.stack.name in ("intelmpi", "openmpi")]
        kept = [known for known in own if known.stack.name == "intelmpi" or known.variant.test == "barrier_pair"]
        records = first.measured(kept, lambda known, _: times if known.variant.test == test else 1.0)
        slow = [each for each in expectations.expectations(records) if each.state == "slow"]
        assert {each.record.variant.test for each in slow} >= {test}
        assert any(origin in each.origin for each in slow if each.record.variant.test == test)

    def test_a_loss_of_30_percent_is_seen_where_it_is_said_to_be(self):
        known = first.tight([first.decode(line) for line in first.LINES])
        assert len(known) >= 15
        for lost in known:
            records = first.measured(
                [first.decode(line) for line in first.LINES],
                lambda r, _, name=lost.id: 1 / 0.7 if r.id == name else 1.0,
            )
            slow = {each.record.id for each in expectations.expectations(records) if each.state == "slow"}
            assert lost.id in slow or lost.variant.test == "dgemm_node"  # whose peak was as slow in the same launches


class TestDataSheet:
    def test_processors(self):
        assert expectations.memory_peak("Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz", 2) == (
            409_600, "2 packages x 8 channels x 3200 MT/s x 8 B by data sheet",
        )  # fmt: skip
        assert expectations.memory_peak("Intel(R) Xeon(R) Processor", 2) is None

    @pytest.mark.parametrize(
        ("share", "state"), [(0.62, "as expected"), (0.53, "as expected"), (0.52, "slow"), (0.62 * 0.7, "slow")]
    )
    def test_stream_with_regular_stores_counts_three_quarters_of_70_percent(self, share, state):
        found = of(stream(share * PEAK))
        assert (found.state, found.kind) == (state, "memory")
        assert found.origin.startswith("52 % of 1 packages x 8 channels x 3200 MT/s") or found.origin.startswith("53 %")

    @pytest.mark.parametrize(
        ("host", "why"),
        [({"virtual": "yes"}, "a virtual machine is a part of a host"), ({"cores": 64}, "a part of the cores")],
    )
    def test_a_part_of_a_host_has_no_band(self, host, why):
        found = of(stream(0.1 * PEAK, host))
        assert found.state == "no expectation"
        assert why in found.origin


class TestCeilings:
    def compared(self, spread: float, method: str = "memory by triad regular, 2 cores", **changes: Any) -> Expectation:
        """STREAM at 70 % of a ceiling with this spread."""
        known = stream(7000.0, {"virtual": "yes"}, **changes)
        about = {"unit": "MB/s", "method": method, "percent": 70.0, "measured": "2026-01-01T00:00:00.000Z"}
        known.figures[0].ceiling = Ceiling(value=10_000.0, spread_percent=spread, **about)
        return of(known)

    def test_the_same_kernel_at_set_up(self):
        found = self.compared(3.0)
        assert (found.state, found.about) == ("slow", "1.4 times worse than set-up's memory by triad regular, 2 cores")

    def test_nothing_is_claimed_where_the_spread_exceeds_the_distance(self):
        assert self.compared(35.0).about == (
            "launches too far apart to compare with set-up's memory by triad regular, 2 cores"
        )

    def test_another_kernel_is_no_ceiling(self):
        assert self.compared(3.0, "memory, 2 cores").state == "no expectation"

    def test_disturbed_launches_are_the_reason_and_nothing_else(self):
        known = stream(5000.0, {"virtual": "yes"})
        for each in known.launches:
            each.disturbed = True
            each.disturbance = replace(each.disturbance, disturbed=True, causes=["other processes used 0.9 CPUs"])
        fine = stream(10_000.0, {"virtual": "yes"}, id="1" * 12, stack=known_stack("mpich"))
        assert of(known, fine).origin == "disturbed: other processes on the planned CPUs"
        for each in known.launches:
            each.disturbed = False
        assert of(known, fine).state == "slow"

    def test_what_is_slow_on_purpose_is_not_called_slow(self):
        far = stream(5000.0, {"virtual": "yes"}, variant=variant(slow_on_purpose=True))
        near = stream(10_000.0, {"virtual": "yes"}, id="1" * 12, variant=variant(test="stream_numa"))
        assert of(far, near).origin == "slow on purpose"
        spread = stream(5000.0, {"virtual": "yes"}, placement=record()["placement"] | {"memory": "interleave"})
        assert of(spread, near).origin == "nothing is expected of interleave memory"


def known_stack(name: str) -> dict[str, Any]:
    return record()["stack"] | {"name": name}
