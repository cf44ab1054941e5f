"""A verified record above a ceiling raises it: which ceilings, how far, the history in the file, and what is said."""

from __future__ import annotations

import functools
import threading
from types import SimpleNamespace

import msgspec
import pieces
import pytest
from samples import record
from test_ceilings import bound, host, measured, one, sites, taken

from plumbline.base.schemas.site import Facts
from plumbline.host import binder, ceilings, limits
from plumbline.judge.references import References
from plumbline.launch import figures
from plumbline.measure import driver
from plumbline.records.model import convert, document
from plumbline.show import show, summary
from plumbline.show.report import data
from plumbline.site import ceilings_file as file_of

__all__ = ["bound", "host", "sites"]

RECORD = "0123456789ab"
PAIR = {"cores": 2, "threads": 2, "ranks": 2, "pair": "pair:l3"}
TWO = {"cores": 2, "threads": 2}
WHOLE = {"cores": 20, "threads": 20, "numa_nodes": (0, 1)}


@pytest.fixture(scope="module", autouse=True)
def known_placements():
    """``plumb-bind`` tells them once in a process; the build folder of ``sites`` has none."""
    binder.placements()


def after(value, metric="triad", unit="MB/s", params=None, better="higher", known=None, **plan):
    reached = ceilings.Reached(value, better, "2026-11-23T00:00:00.000Z", RECORD)
    figure = limits.Quantity(metric, unit, params or {}, 1)
    return ceilings.raised(known or measured(), figure, taken(**plan), reached)


class TestWhichCeilings:
    def test_several_cores_raise_what_one_core_reaches(self):
        found = after(25_000.0, **TWO).memory_bandwidth_MB_per_s[0]
        assert found.best == 12_500.0
        assert [(step.before, step.after, step.record) for step in found.raised] == [(10_000.0, 12_500.0, RECORD)]

    def test_both_where_the_figure_is_above_both(self):
        known = measured(memory_bandwidth_MB_per_s=[one(4000.0, cores=1), one(90_000.0, cores=20)])
        found = after(100_000.0, known=known, **{**WHOLE, "numa_nodes": None})
        assert [item.best for item in found.memory_bandwidth_MB_per_s] == [5000.0, 100_000.0]

    def test_numa_nodes_are_raised_by_the_same_factor(self):
        known = measured()
        known.memory_bandwidth_MB_per_s.append(one(30_000.0, cores=10, numa_node=2))
        found = after(97_900.0, known=known, **{**WHOLE, "numa_nodes": (0, 1)})
        assert [item.best for item in found.memory_bandwidth_MB_per_s] == [10_000.0, 80_000.0, 49_500.0, 48_400.0, 3e4]

    def test_a_latency_is_raised_downwards(self):
        found = after(0.04, "latency", "us", {"bytes": 8}, "lower", **PAIR).handover_latency_ns
        assert [item.best for item in found] == [40.0, 150.0]

    @pytest.mark.parametrize("value", [9000.0, 10_050.0, 15_100.0])
    def test_nothing_below_within_one_percent_or_too_far_above(self, value):
        known = measured()
        assert after(value, known=known) is known

    def test_small_steps_do_not_go_further_than_one_large_step(self):
        known = after(14_000.0)
        assert after(15_200.0, known=known) is known
        assert [step.after for step in after(15_000.0, known=known).memory_bandwidth_MB_per_s[0].raised] == [14e3, 15e3]


class TestSecondMeasurement:
    def test_the_better_of_both_is_kept_with_its_history(self):
        again = measured(
            measured="2026-11-22T10:05:00.000Z",
            memory_bandwidth_MB_per_s=[one(11_000.0, cores=1), one(70_000.0, cores=20)],
            handover_latency_ns=[one(45.0, pair="pair:l3"), one(160.0, pair="pair:xsocket")],
        )
        found = ceilings.best_of(measured(), again)
        assert [item.best for item in found.memory_bandwidth_MB_per_s] == [11_000.0, 80_000.0, 45_000.0, 44_000.0]
        assert [item.best for item in found.handover_latency_ns] == [45.0, 150.0]
        assert [item.launches for item in found.memory_bandwidth_MB_per_s] == [6, 6, 3, 3]
        assert [step.time for step in found.memory_bandwidth_MB_per_s[0].raised] == ["2026-11-22T10:05:00.000Z"]
        assert found.seconds == 100.0

    def test_what_was_not_measured_before_is_added(self):
        found = ceilings.best_of(measured(peak_GFlop_per_s=[]), measured())
        assert [(item.best, item.raised) for item in found.peak_GFlop_per_s] == [(20.0, []), (300.0, [])]


def job(host, best=8000.0, machine="a machine", **changes):
    """The sample record, STREAM with 10.1 GB/s on two cores, where one core has a ceiling of half of ``best``."""
    made = convert(record(**{"figures": [], "verified": False, "reasons": [], "verdict": "invalid", **changes}))
    made.site, made.partition, made.state = "ulysses", "default", "complete"
    known = measured(machine=machine, memory_bandwidth_MB_per_s=[one(best / 2, cores=1), one(8 * best, cores=20)])
    figures.settle(made, Facts(), host, References([]), known)
    return SimpleNamespace(record=made, host=host, facts=Facts(), ceilings=known)


def of_application(host, metric, value, unit, **params):
    """A record of a program of plumb.yaml on two cores; one core has ceilings of 4 GB/s and 20 GFlop/s."""
    sample = record()
    item = {
        **sample["launches"][0]["measurements"][0],
        "metric": metric,
        "value": value,
        "unit": unit,
        "params": params,
    }
    wanted = {"name": metric, "metric": metric, "where": {}}
    state = {"name": "code", "program": "code"}
    variant = {**sample["variant"], "figures": [wanted], "application": state}
    launches = [
        {**launch, "measurements": [{**item, "value": value + number}]}
        for number, launch in enumerate(sample["launches"])
    ]
    return job(host, variant=variant, launches=launches)


def raise_by(job):
    said = []
    return driver._raise_ceilings(job, References([]), said.append), said


class TestApplication:
    @pytest.mark.parametrize(("metric", "unit"), [("triad", "GB/s"), ("rate", "GFlop/s"), ("latency", "us")])
    def test_a_name_of_a_user_means_nothing(self, host, metric, unit):
        """HPC Challenge prints its triad in GB/s: compared by name, it had 0.1 % of what memory reached in MB/s."""
        (figure,) = of_application(host, metric, 39.4, unit).record.figures
        assert figure.limit is None
        assert figure.ceiling is None

    @pytest.mark.parametrize(
        ("metric", "unit", "work", "reached", "percent"),
        [("time_bandwidth", "MB/s", "bytes", 3999.0, 50.0), ("time_flop_rate", "GFlop/s", "flops", 19.0, 50.0)],
    )
    def test_declared_work_is_compared_with_memory_and_peak(self, host, metric, unit, work, reached, percent):
        made = of_application(host, metric, reached, unit, work=work)
        (figure,) = made.record.figures
        assert figure.ceiling.percent == percent

    def test_declared_work_never_raises_a_ceiling(self, host, sites):
        made = of_application(host, "time_bandwidth", 10_000.0, "MB/s", work="bytes")
        assert made.record.figures[0].ceiling.percent > 120
        file_of.save("ulysses", made.ceilings)
        assert raise_by(made)[1] == []
        assert file_of.read("ulysses") == [made.ceilings]


class TestRecord:
    def test_the_file_has_the_new_value_and_the_record_says_what_it_did(self, sites, host):
        made = job(host)
        file_of.save("ulysses", made.ceilings)
        done, said = raise_by(made)
        line = "triad of record 0123456789ab: ceiling memory, 2 x one core raised from 8.000 GB/s to 10.10 GB/s"
        assert (done, said) == (True, [line])
        (now,) = file_of.read("ulysses")
        assert now.memory_bandwidth_MB_per_s[0].best == 5050.0
        assert now.memory_bandwidth_MB_per_s[0].raised[0].record == RECORD
        ceiling = made.record.figures[0].ceiling
        assert (ceiling.percent, ceiling.raised_from, ceiling.suspect) == (100.0, 8000.0, False)
        assert convert(document(made.record)).figures[0].ceiling == ceiling
        assert "raised from 8.000 GB/s to 10.10 GB/s by this record" in show.text(made.record)
        assert summary.legend([made.record])[1:] == [
            "ceiling memory, 2 x one core raised from 8.000 GB/s to 10.10 GB/s: triad of 0123456789ab reached more than"
            " at set-up"
        ]
        page = data.document(data.Scope("ulysses"), [made.record])
        notes = [pieces.text(one) for one in pieces.blocks(pieces.section(page, "overview"), "note")]
        assert notes[1:] == summary.legend([made.record])
        assert f"; {ceiling.raising} by this record" in pieces.text(pieces.blocks(page["entries"], "table")[0])

    def test_disturbed_launches_raise_nothing(self, host):
        made = job(host)
        for launch in made.record.launches:
            launch.disturbed = True
        assert raise_by(made) == (False, [])
        assert made.record.figures[0].ceiling.suspect

    def test_a_record_that_is_not_verified_raises_nothing(self, host):
        made = job(host)
        made.record.verified = False
        assert raise_by(made) == (False, [])

    def test_a_figure_too_far_above_stays_suspect(self, host):
        made = job(host, best=6000.0)
        assert raise_by(made) == (False, [])
        assert made.record.figures[0].ceiling.suspect

    def test_a_file_that_cannot_be_written_is_said_and_harms_nothing(self, sites, host, monkeypatch):
        made = job(host)
        file_of.save("ulysses", made.ceilings)

        def full(*_):
            raise OSError(30, "Read-only file system")

        monkeypatch.setattr(file_of.files, "replace", full)
        done, (line,) = raise_by(made)
        assert not done
        assert "which cannot be raised: cannot write the ceilings: Read-only file system" in line
        assert made.record.is_valid

    def test_ceilings_that_were_raised_meanwhile_are_not_lowered(self, sites, host):
        made = job(host)
        higher = made.ceilings.memory_bandwidth_MB_per_s
        better = [msgspec.structs.replace(higher[0], best=7000.0), higher[1]]
        file_of.save("ulysses", msgspec.structs.replace(made.ceilings, memory_bandwidth_MB_per_s=better))
        assert raise_by(made)[0]
        assert file_of.read("ulysses")[0].memory_bandwidth_MB_per_s[0].best == 7000.0
        assert made.record.figures[0].ceiling.percent == pytest.approx(72.14)


def test_two_processes_lose_nothing(sites):
    """Each changes another ceiling of the same file while the other one waits."""
    file_of.save("ulysses", measured())

    def change(value, **plan):
        for step in range(1, 6):
            how = functools.partial(lambda known, to: after(to, known=known, **plan), to=value * (1 + step / 50))
            file_of.change("ulysses", "default", "a machine", how)

    threads = [
        threading.Thread(target=change, args=given, kwargs=plan) for given, plan in (((1e4,), {}), ((8e4,), WHOLE))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (now,) = file_of.read("ulysses")
    assert [item.best for item in now.memory_bandwidth_MB_per_s[:2]] == [11_000.0, 88_000.0]
    assert [len(item.raised) for item in now.memory_bandwidth_MB_per_s[:2]] == [5, 5]
