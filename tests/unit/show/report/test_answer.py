"""The first section of a report: whether the machine is fine, what is not as expected, and how near the rest is."""

from typing import Any

import pieces
import pytest
from samples import plan, variant
from test_findings import made

from plumbline.records.model import Record
from plumbline.show.report.answer import answer, sentence
from plumbline.show.report.findings import Campaign


def reference(value: float) -> dict[str, Any]:
    """A figure with a reference of ``value`` MB/s, of which 5 % less is within."""
    known = {"value": value, "unit": "MB/s", "lower": -0.05, "upper": 0.05, "method": "calibrated", "file": "x.yaml"}
    return {"reference": known}


def campaign(*records: Record) -> Campaign:
    return Campaign([(one, number) for number, one in enumerate(records)])


TRIAD = "stream_threads (compact 1x2 local) on openmpi: triad 10.00 GB/s, 2.0 times worse than"


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([made(figure=reference(10000.0))] * 2, "Yes: 2 of 2 figures are as expected."),
        ([made(), made(stack="mpich")], "Yes: 2 of 2 figures are as expected."),
        ([made()],
         "Nothing can be said: no figure is as expected; no expectation: the record does not say how many cores the "
         "host has."),
        ([made(figure=reference(10000.0)), made(figure=reference(20000.0))],
         f"No: below its reference: {TRIAD} its reference, 20.00 GB/s. 1 of 2 figures are as expected."),
        ([made(figure=reference(10000.0)), made(verified=False, reasons=["rank 0 moved"])],
         "No: 1 of 2 variants is not valid. 1 of 1 figure are as expected."),
        ([made(verified=False, reasons=["rank 0 moved"])], "Nothing can be said: no record is valid and has a figure."),
    ],
)  # fmt: skip
def test_one_sentence_says_what_is_wrong_or_that_nothing_is(records, said):
    assert sentence(campaign(*records)) == said


def test_figures_of_mostly_disturbed_launches_are_not_called_fine():
    record = made(figure=reference(20000.0))
    for one in record.launches:
        one.disturbed = True
    assert sentence(campaign(record)) == (
        "Nothing can be said: 7 of 7 launches were disturbed (cause not known), so that figures say little."
    )
    assert campaign(record).faults == []


def test_the_picture_has_the_worst_on_top_and_opens_its_records():
    records = [made(figure=reference(9000.0)), made(figure=reference(20000.0), placement="numa"), made()]
    found = answer(campaign(*records))
    (chart,) = pieces.blocks(found, "chart")
    labels = [label for _, label in chart["y"]["ticks"]]
    assert labels == ["stream_threads (compact 1x2 local)", "stream_threads (numa 1x2 local)"]
    assert [row[5:] for row in chart["rows"]] == [["50", "95"], ["100", "80"], ["111", "95"]]
    assert chart["targets"] == [1, 2, 0]
    (table,) = pieces.blocks(found, "table")
    assert "2.0 times worse than its reference" in pieces.text(table)


def test_what_is_slow_on_purpose_is_held_against_its_own_reference():
    known = made(figure=reference(20000.0), variant=variant(slow_on_purpose=True))
    (chart,) = pieces.blocks(answer(campaign(known)), "chart")
    assert [row[5] for row in chart["rows"]] == ["50"]


def test_messages_do_not_share_the_picture_of_memory():
    """STREAM and a latency that is twice as long as another library's: one lane."""
    ranks = [plan()["ranks"][0] | {"local_rank": rank, "cpus": [rank], "places": [[rank]]} for rank in (0, 1)]
    apart = {"name": "latency", "better": "lower", "plan": plan(ranks=ranks)}
    messages = [made(1.0, "a", **apart), made(2.2, "b", **apart)]
    found = answer(campaign(made(), made(stack="mpich"), *messages))
    (chart,) = pieces.blocks(found, "chart")
    assert len(chart["y"]["ticks"]) == 1
    assert "2.2 times worse than a" in pieces.text(found)
    assert "Yes, but b is slow, 2.2 times in 1 variant. 3 of 4 figures are as expected." in pieces.text(found)


def test_without_anything_to_compare_with_there_is_no_picture():
    assert pieces.blocks(answer(campaign(made())), "chart") == []
