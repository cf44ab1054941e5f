"""The first section of a report: whether the machine is fine, and the picture that shows it."""

from __future__ import annotations

from typing import Any

import pieces
import pytest
from samples import variant
from test_findings import made

from plumbline.records.model import Record
from plumbline.show.report.answer import answer, sentence
from plumbline.show.report.findings import Campaign


def reference(value: float) -> dict[str, Any]:
    """A figure with a reference of ``value`` MB/s, of which 5 % less is within."""
    known = {"value": value, "unit": "MB/s", "lower": -0.05, "upper": 0.05, "method": "calibrated", "file": "x.yaml"}
    return {"reference": known}


def reaching(percent: float) -> dict[str, Any]:
    """A figure that reached so many percent of its limit."""
    return {"limit": {"value": 20000.0, "unit": "MB/s", "method": "channels", "percent": percent}}


def campaign(*records: Record) -> Campaign:
    numbered = [(one, number) for number, one in enumerate(records)]
    return Campaign(numbered)


UNKNOWN = "No figure has a reference, so nothing says how fast this machine should be: plumb calibrate makes them."


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([made(figure=reference(10000.0))] * 2,
         "Yes: all 2 variants are verified, and none of 2 figures with a reference is below it."),
        ([made()],
         f"The variant is verified, and no benchmark of memory or arithmetic falls short. {UNKNOWN}"),
        ([made(figure=reference(10000.0)), made(figure=reference(20000.0))],
         "Not everything: 1 of 2 figures with a reference is below it."),
        ([made(figure=reference(10000.0)), made(verified=False, reasons=["rank 0 moved"])],
         "Not everything: 1 of 2 variants is not valid."),
        ([made(figure=reaching(20.0))],
         f"Not everything: 1 test of memory or arithmetic is far from what the machine can do. {UNKNOWN}"),
        ([made(verified=False, reasons=["rank 0 moved"])],
         "Nothing can be said: no record is valid and has a figure."),
    ],
)  # fmt: skip
def test_one_sentence_says_what_is_wrong_or_that_nothing_is(records: list[Record], said: str) -> None:
    assert sentence(campaign(*records)) == said


def test_figures_of_mostly_disturbed_launches_are_not_called_fine() -> None:
    record = made(figure=reference(10000.0))
    for one in record.launches:
        one.disturbed = True
    assert sentence(campaign(record)) == ("Not everything: 7 of 7 launches were disturbed, so that figures say little.")


def test_the_picture_has_the_worst_on_top_and_opens_its_records() -> None:
    found = answer(campaign(made(figure=reaching(80.0)), made(figure=reaching(40.0), placement="none"), made()))
    (chart,) = pieces.blocks(found, "chart")
    assert [label for _, label in chart["y"]["ticks"]] == [
        "stream_threads, compact 1x2 local",
        "stream_threads, none 1x2 local",
    ]
    assert [row[4] for row in chart["rows"]] == ["40.0", "80.0"]
    assert chart["targets"] == [1, 0]


def test_what_is_slow_on_purpose_is_counted_and_not_called_the_worst() -> None:
    free = made(figure=reaching(20.0), placement="none", bound=False)
    far = made(figure=reaching(10.0), variant=variant(slow_on_purpose=True))
    found = answer(campaign(made(figure=reaching(80.0)), free, far))
    (chart,) = pieces.blocks(found, "chart")
    assert [row[4] for row in chart["rows"]] == ["80.0"]
    assert "Not here: 2 variants that are slow on purpose" in chart["about"]
    assert "is far from" not in pieces.text(found)


def test_what_is_slow_on_purpose_is_held_against_its_own_reference() -> None:
    known = made(figure=reference(20000.0), variant=variant(slow_on_purpose=True))
    (chart,) = pieces.blocks(answer(campaign(known)), "chart")
    assert [(row[4], row[5]) for row in chart["rows"]] == [("50.0", "reference")]


def test_without_anything_to_compare_with_there_is_no_picture() -> None:
    assert pieces.blocks(answer(campaign(made())), "chart") == []
