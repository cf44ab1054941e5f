"""The types of a record and the JSON schema are one definition; figures and launches know what counts."""

import copy
import json

import msgspec
import pytest
import samples
import schema_files
from documents import FORBIDDEN, documents, everywhere, spoil
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import launch, record

from plumbline.base import paths
from plumbline.records import model


def obeys_the_schema(document):
    try:
        schema_files.check("record", document)
    except ValueError:
        return False
    return True


def decodes(document):
    try:
        model.decode(json.dumps(document).encode())
    except ValueError:
        return False
    return True


def unsealed(found):
    return msgspec.structs.replace(found, seal=None)


@pytest.mark.parametrize("name", schema_files.TYPES)
def test_the_schema_is_made_from_the_types(name):
    written = schema_files.file(name).read_text(encoding="utf-8")
    assert written == schema_files.text(name), "run .venv/bin/python tests/support/schema_files.py"


def test_the_sample_is_a_record():
    assert obeys_the_schema(record())
    assert model.document(model.convert(record())) == record()


@settings(max_examples=60)
@given(data=st.data(), item=documents(), value=st.sampled_from([..., None, 7, -1, 1.5, "x", [], [None], {}, True]))
def test_types_and_schema_agree_on_what_is_damage(data, item, value):
    assert obeys_the_schema(item)
    assert decodes(item)
    found = model.convert(item)
    assert unsealed(model.decode(model.encode([found]).encode())) == found
    bad = spoil(item, data.draw(st.sampled_from(list(everywhere(item)))), value)
    assert decodes(bad) == obeys_the_schema(bad)


@pytest.mark.parametrize(("path", "value"), FORBIDDEN, ids=lambda item: str(item)[:40])
def test_damage_names_the_member(path, value):
    bad = spoil(record(), path, value)
    assert not obeys_the_schema(bad)
    with pytest.raises(ValueError, match="not a valid record: ") as caught:
        model.decode(json.dumps(bad).encode())
    named = [name for name in path if isinstance(name, str)][0 if value is ... or path == ("unknown",) else -1]
    assert named in str(caught.value)


def test_a_record_of_the_first_version_is_read():
    """What was added since: members of a launch, a measurement, a figure, the stack's MPI library, the environment."""
    old = record()
    old["variant"]["environment"] = {}
    del old["environment"], old["stack"]["mpi"]["abi"]
    for one in old["launches"]:
        del one["exit_code"], one["measurements"][0]["iterations"]
    old["figures"][0]["limit"] = {"value": 1.0, "unit": "MB/s", "method": "facts"}
    assert obeys_the_schema(old)
    found = model.convert(old)
    assert found.is_valid
    assert found.figures[0].reached.percent == pytest.approx(1010000.0)


@pytest.mark.parametrize("path", [("suite",), ("stack",), ("variant",), ("benchmark",), ("placement",), ("host",),
                                  ("plan",), ("plan", "ranks", 0), ("plan", "ranks", 0, "mem"),
                                  ("launches", 0, "measurements", 0), ("launches", 0, "disturbance")])  # fmt: skip
def test_members_that_another_version_added_are_ignored(path):
    newer = spoil(record(), (*path, "added_later"), 1)
    assert obeys_the_schema(newer)
    found = model.document(model.convert(newer))
    found["host"].pop("added_later", None)
    assert found == record()


def test_a_whole_number_stays_one():
    item = model.convert(record(launches=[launch(0, 12), launch(1, 12.0)]))
    written = [json.dumps(one.measurements[0].value) for one in item.launches]
    assert written == ["12", "12.0"]


def test_superseded_launches_do_not_count():
    again = [launch(0, 1.0, superseded=True, disturbed=True), launch(1, 2.0, disturbed=True), launch(2, 3.0)]
    item = model.convert(record(launches=again))
    assert [one.order for one in item.counting()] == [1, 2]
    assert (item.launch_count, item.disturbed_count) == (2, 1)
    assert (item.row().launch_count, item.row().disturbed_count) == (2, 1)


@pytest.mark.parametrize(
    "change",
    [{"state": "running"}, {"verified": False}, {"reasons": ["x"]}, {"verdict": "invalid"},
     {"launches": [launch(0, 1.0, verified=False)]}],
)  # fmt: skip
def test_what_makes_a_record_invalid_makes_its_row_invalid(change):
    assert model.convert(record()).is_valid
    assert model.convert(record()).row().is_valid
    item = model.convert(record(**change))
    assert not item.is_valid
    assert not item.row().is_valid


def test_a_row_is_without_what_changes_by_the_minute():
    row = model.convert(record()).row()
    assert row.host == {"kernel": "6.1", "governor": "performance"}
    assert row.figure("triad") is row.figures[0]
    assert row.figure("copy") is None


def test_numbers_that_are_not_finite_are_not_written():
    bad = copy.deepcopy(samples.record())
    bad["launches"][0]["wall_s"] = float("nan")
    with pytest.raises(ValueError, match="JSON compliant"):
        model.encode([model.convert(bad)])


@pytest.mark.parametrize(
    "line", (paths.root() / "tests/data/records/before-typed-model.jsonl").read_bytes().splitlines()
)
def test_records_written_before_these_types_lose_nothing(line):
    """A complete record and an interrupted one, as the driver wrote them when a record was a bare dictionary."""
    written = json.loads(line)
    assert written["schema"] == 1
    assert "seed" not in written
    if written["benchmark"]["version"].startswith("mpi4py"):  # since then a variant of the port is called so
        written["variant"]["name"] += " %program=mpi4py"
        written["variant"]["params"]["program"] = "mpi4py"
    again = json.loads(model.encode([model.decode(line)]))
    assert again.pop("seal")
    assert again == written
