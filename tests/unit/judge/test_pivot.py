"""Figures in rows and columns by what they were measured under."""

import pytest
from samples import barrier as measured

from plumbline.judge import pivot
from plumbline.judge.references.match import Entry, Published, Written
from plumbline.records import model


def table(records: list[model.Record], **axes: dict[str, list[str]]) -> pivot.Pivot:
    """The figures named after a kind, by the axes."""
    return pivot.table(pivot.measured(records, r"time_(?P<kind>\w+)"), axes["rows"], axes["columns"])


def test_groups_of_a_figures_name_and_parameters_are_axes():
    records = [measured(5.0, placement="pair:l3"), measured(70.0, "time_pthread", placement="pair:l3")]
    found = table(records, rows={"kind": []}, columns={"placement": []})
    assert (found.by_row, found.rows, found.columns) == (("kind",), (("pthread",), ("spin",)), (("pair:l3",),))
    assert found.cells[("spin",), ("pair:l3",)].value == 5.0
    assert found.unit == "ns"


def test_an_axis_has_its_order_and_leaves_out_what_it_does_not_name():
    records = [measured(value, placement=name) for name, value in (("a", 1.0), ("b", 2.0), ("c", 3.0))]
    found = table(records, rows={"kind": []}, columns={"placement": ["c", "a"]})
    assert found.columns == (("c",), ("a",))


def test_numbers_are_ordered_by_size():
    records = [measured(1.0, threads=count) for count in (16, 2, 8)]
    assert table(records, rows={"kind": []}, columns={"threads": []}).columns == (("2",), ("8",), ("16",))


def test_what_would_vary_inside_a_cell_is_named_before_the_rows():
    records = [measured(1.0, placement="a"), measured(2.0, placement="a", stack="mpich")]
    found = table(records, rows={"kind": []}, columns={"placement": []})
    assert (found.added, found.by_row) == (1, ("stack", "kind"))
    assert {row: shown.value for (row, _), shown in found.cells.items()} == {
        ("openmpi", "spin"): 1.0,
        ("mpich", "spin"): 2.0,
    }


def test_a_cell_of_several_sessions_has_the_median_of_their_medians():
    records = [measured(value, placement="a") for value in (1.0, 2.0, 6.0)]
    for number, record in enumerate(records):
        record.session = f"session-{number}"
    (shown,) = table(records, rows={"kind": []}, columns={"placement": []}).cells.values()
    assert shown.value == 2.0
    assert shown.cell is not None
    assert len(shown.cell.sessions) == 3


def test_records_that_are_not_valid_are_in_no_table():
    record = measured(1.0, placement="a")
    record.verified = False
    record.reasons = ["rank 0 was elsewhere"]
    assert table([record], rows={"kind": []}, columns={"placement": []}).cells == {}


def test_references_have_the_same_attributes():
    entry: Entry = Published(
        test="barrier_pair", figure="time_spin", stack="intelmpi", partition="ep", params={"placement": "pair:l3"},
        value=267.0, unit="ns", better="lower", lower=-0.1, upper=0.1, source=Written(document="a paper"),
    )  # fmt: skip
    items = pivot.published("nehalem", [entry], r"time_(?P<kind>\w+)")
    found = pivot.table(items, {"kind": []}, {"placement": []})
    (shown,) = found.cells.values()
    assert (shown.value, shown.cell) == (267.0, None)
    assert items[0].get("site") == "nehalem"


@pytest.mark.parametrize(("plot", "drawn"), [(False, ""), (True, "▁█")])
def test_the_text_has_the_unit_once_and_a_plot_if_asked_for(plot, drawn):
    records = [measured(1.0, threads=1), measured(9.0, threads=2)]
    text = pivot.text(table(records, rows={"kind": []}, columns={"threads": []}), plot)
    assert text.splitlines()[0] == "in ns"
    assert text.count("ns") == 1
    assert text.splitlines()[-1].split() == ["spin", "1.00", "9.00", *([drawn] if drawn else [])]
