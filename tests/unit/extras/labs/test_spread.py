"""Tables of how far launches are from their median, and of each launch."""

from plumbline.judge import pivot
from plumbline.records.figure import Figure


def item(samples):
    """Of a figure whose launches measured this."""
    middle = sorted(samples)[len(samples) // 2]
    figure = Figure(
        name="triad", value=middle, unit="MB/s", better="higher", launches=len(samples), samples=samples,
        limit=None, reference=None,
    )  # fmt: skip
    row = None
    return pivot.Item({"test": "t"}, {}, "MB/s", "higher", measured=(row, figure))


def test_the_spread_of_a_figure_is_the_distance_of_its_launches_from_their_median():
    changed = pivot.spread(item([90.0, 100.0, 100.0, 103.0, 50.0]))
    assert changed.measured is not None
    figure = changed.measured[1]
    assert (figure.samples, figure.value) == ([10.0, 0.0, 0.0, 3.0, 50.0], 3.0)
    assert {(changed.unit, changed.better), (figure.unit, figure.better)} == {("%", "lower")}
    assert changed.parameters == {"test": "t"}


def test_a_figure_of_zero_has_no_spread():
    changed = pivot.spread(item([0.0, 0.0, 1.0]))
    assert changed.measured is not None
    assert changed.measured[1].samples == [0.0, 0.0, 0.0]


def test_a_published_figure_has_no_launches():
    published = pivot.Item({"test": "t"}, {}, "MB/s", "higher", published=7.0)
    assert pivot.spread(published) == published


def test_launches_of_several_records_are_numbered_in_a_row():
    each = pivot.launches([item([90.0, 100.0]), pivot.Item({"test": "u"}, {}, "MB/s", "higher"), item([70.0])])
    assert [(one.get("launch"), one.measured and one.measured[1].samples) for one in each] == [
        ("1", [90.0]),
        ("2", [100.0]),
        ("3", [70.0]),
    ]
