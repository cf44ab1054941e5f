"""Tests by placement: every launch, median and limit of each test that ran on several placements."""

from typing import Any

import pieces
from samples import launch, record, variant

from plumbline.records.model import Record, convert
from plumbline.show.record import ROWS
from plumbline.show.report.launches import BOUND, placements


def placed(
    name: str, *values: float, stack: str = "openmpi", test: str = "membw_triad", bound: float = 0, **params: Any
) -> Record:
    """A record of a test under a placement, whose launches measured ``values`` GB/s, and whose limit is ``bound``."""
    asked = variant(test=test, params={"placement": name, **params})
    document = record(variant=asked, launches=[launch(order, 1000 * value) for order, value in enumerate(values)])
    document["placement"] |= {"name": name}
    document["stack"] |= {"name": stack}
    if bound:
        document["figures"][0]["limit"] = {"value": 1000 * bound, "unit": "MB/s", "method": "channels"}
    return convert(document)


def section(*records: Record) -> dict[str, Any]:
    return placements([(one, number) for number, one in enumerate(records)])


def test_every_launch_is_a_dot_in_the_row_of_its_placement_and_the_limit_is_a_line():
    near = placed("numa", 20.0, 22.0, 21.0, bound=25.0)
    far = placed("core", 10.0, 11.0, 12.0, stack="mpich", bound=50.0)
    (chart,) = pieces.blocks(section(near, far), "chart")
    names = dict(chart["y"]["ticks"])
    shown: dict[tuple[str, str], list[float]] = {}
    for one in chart["series"]:
        for _, value, place, *_ in one["points"]:
            shown.setdefault((one["look"]["name"], names[round(place)]), []).append(value)
    assert shown == {
        ("openmpi", "numa 1x2 local"): [20.0, 22.0, 21.0, 21.0],
        ("mpich", "core 1x2 local"): [10.0, 11.0, 12.0, 11.0],
        (BOUND, "numa 1x2 local"): [25.0],
        (BOUND, "core 1x2 local"): [50.0],
    }
    assert chart["targets"] == [0, 1]


def test_a_test_on_one_placement_is_not_there():
    assert pieces.text(section(placed("numa", 1.0))) == "No test ran on several placements."


def test_other_parameters_have_pictures_of_their_own():
    found = section(
        *(placed(name, 1.0, test="imb_pair", operation=one) for name in ("core", "numa") for one in ("A", "B")),
        placed("core", 1.0, test="imb_pair", operation="C"),
    )
    assert [chart["title"] for chart in pieces.blocks(found, "chart")] == ["imb_pair A: triad", "imb_pair B: triad"]


def test_tests_are_chosen_and_their_further_figures_unfold():
    two = [placed(name, 1.0) for name in ("core", "numa")]
    for one in two:
        more = convert(record(launches=[launch(0, 2.0)])).figures[0]
        more.name = "copy"
        one.figures.append(more)
    found = section(*two, *(placed(name, 1.0, test="pi") for name in ("core", "numa")))
    (choice,) = pieces.blocks(found, "choice")
    assert [name for name, _ in choice["options"]] == ["membw_triad", "pi"]
    (folded,) = pieces.blocks(choice["options"][0][1], "folded")
    assert [chart["title"] for chart in pieces.blocks(folded, "chart")] == ["membw_triad: copy"]


def test_a_picture_is_never_too_tall_to_be_drawn():
    found = section(*(placed(f"ways:{number}", 1.0) for number in range(1, ROWS + 11)))
    titles = [chart["title"] for chart in pieces.blocks(found, "chart")]
    assert titles == ["membw_triad: triad (1 of 2)", "membw_triad: triad (2 of 2)"]
