"""Outputs of nodes and libraries that nobody has here, as they were published: never run for real by this project."""

from pathlib import Path

import pytest
import yaml
from fabrics import case, smoke

from plumbline.extras.fabric import causes
from plumbline.mpi import ways

FILE = Path(__file__).parents[3] / "data" / "fabrics" / "recorded.yaml"
RECORDED = yaml.safe_load(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("entry", RECORDED, ids=lambda entry: str(entry["from"]).removeprefix("https://"))
def test_what_was_published_is_understood(entry):
    told = ways.reported(entry["lines"])
    assert told == entry["told"]
    assert [way for way in ways.FABRICS if any(ways.is_of(word, way) for word in told)] == entry["uses"]
    if name := entry.get("cause"):
        way = ways.CMA if "copies" in name else ways.INFINIBAND
        found = causes.of(case(way, smoke(lines=tuple(entry["lines"]))))
        assert name in [why.cause for why in found]


def test_every_entry_says_where_it_is_from():
    assert all(str(entry["from"]).startswith("https://") and entry["node"] for entry in RECORDED)
