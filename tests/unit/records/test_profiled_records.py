"""A profiled launch is not a measurement: no figure, reference or pair comes of it, whatever its record says."""

import json
from pathlib import Path

import pytest
import samples
from hypothesis import given
from hypothesis import strategies as st

from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Facts
from plumbline.host import machine
from plumbline.judge.history import series_of_records
from plumbline.judge.pairs import pairs_of_records
from plumbline.judge.references import References, calibrate
from plumbline.judge.samples import nodes
from plumbline.launch import figures
from plumbline.records import model, store
from plumbline.records.model import Record
from plumbline.records.variant import checked

VALUES = st.lists(st.floats(min_value=1e-3, max_value=1e9), min_size=1, max_size=5, unique=True)
VERDICTS = st.sampled_from(["unreferenced", "within", "below", "above"])


def record(values: list[float], verdict: str, profiled: bool = True, ident: str = "0123456789ab") -> Record:
    """A record that looks as good as can be."""
    launches = [samples.launch(2 * order, value, index=order) for order, value in enumerate(values)]
    variant = {**samples.variant(), **({"profiled": True} if profiled else {})}
    return model.convert(samples.record(id=ident, launches=launches, variant=variant, verdict=verdict))


@given(VALUES, VERDICTS)
def test_no_reader_takes_its_figures(values, verdict):
    """Lists, histories, outliers and calibration know the record as invalid, whole or as a row."""
    for taken in (record(values, verdict), record(values, verdict).row()):
        assert not taken.is_valid
        assert taken.final_verdict == "invalid"
        assert calibrate.refusal(taken) is not None
        assert series_of_records([taken]) == []
        assert nodes([taken]) == []
    assert series_of_records([record(values, verdict, profiled=False)])


@given(VALUES, VERDICTS)
def test_a_stored_one_with_figures_is_damage(values, verdict):
    """Figures or measurements in such a record were put there."""
    file = Path("session.jsonl")
    for line in model.encode([record(values, verdict)]).splitlines(keepends=True):
        assert isinstance(store.parse(file, 1, line.encode()), store.Damage)
    bare = record(values, verdict)
    bare.figures = []
    for launch in bare.launches:
        launch.measurements = []
    assert isinstance(store.parse(file, 1, model.encode([bare]).encode()), Record)


@given(VALUES, VERDICTS, st.booleans(), st.booleans())
def test_no_side_of_a_gate(values, verdict, first, second):
    """A pair with one is INVALID, whichever side it is on."""
    sides = [record(values, verdict, profiled, f"{number:012d}") for number, profiled in enumerate((first, second))]
    for side, one in enumerate(sides):
        for launch in one.launches:
            launch.order = 2 * launch.index + side
    for pairs in pairs_of_records(*sides):
        assert any("was profiled" in fault for fault in pairs.faults) == (first or second)


@given(VALUES)
def test_settling_makes_no_figure(values):
    """Even where the launches hold measurements."""
    one = record(values, "within")
    host = machine.load("package:1 core:2 pu:1")
    figures.settle(one, Facts(), host, References([]))
    assert one.figures == []
    assert one.verified


def test_only_a_profiled_variant_may_have_no_figure():
    """And only that may have output that is not read."""
    for changes in ({"figures": []}, {"parser": "none"}):
        checked(samples.variant(profiled=True, **changes), "x")
        with pytest.raises(PlumbError):
            checked(samples.variant(**changes), "x")
        with pytest.raises(PlumbError):
            checked(samples.variant(profiled=False, **changes), "x")


def test_records_of_earlier_versions_are_not_profiled():
    """Their variants do not have the member, and lines that are written now do not either."""
    one = model.convert(samples.record())
    assert not one.is_profiled
    assert "profiled" not in json.loads(model.encode([one]))["variant"]
