"""A record's references in ReFrame's own report: the same values, and never another verdict than the record's."""

import json
import os
import re
import shutil

import own_site
import pytest
import stored
import yaml
from odd_stack import STREAM_OUTPUT
from test_reframe import TESTS, activated, ran, reframe

from plumbline.base import paths
from plumbline.judge.references import match
from plumbline.judge.references.match import Subject

pytestmark = pytest.mark.e2e
#: what the program of STREAM_OUTPUT prints, MB/s
MEASURED = 20000.0


@pytest.fixture
def suite(bench, tmp_path):
    """Run one STREAM variant of a program that prints :data:`MEASURED`; (exit status, output, record or None)."""
    bench.stack(STREAM_OUTPUT)
    sites = tmp_path / "sites"
    shutil.copy(paths.root() / "site-configs" / "settings.py", sites)
    own_site.change(sites, stacks=["odd"])
    environment = activated(
        tmp_path,
        PLUMB_SITES=str(sites),
        PLUMB_STACKS=str(tmp_path / "stacks"),
        PLUMB_TOOLS=os.environ["PLUMB_TOOLS"],
        RFM_CONFIG_FILES=str(sites / "settings.py"),
    )

    def run(references):
        file = sites / "local" / "references" / "stream.yaml"
        if references is None:
            file.unlink()
        else:
            file.write_text(yaml.safe_dump({"schema": 1, "test": "stream", "references": references}))
        words = ("-r", "-n", "stream_threads.*placement=compact.*threads=1", "-S", "launches=1")
        status, output = reframe(*words, tests=TESTS / "stream.py", **environment)
        records = stored.sound()
        return status, output, records[-1] if records else None

    return run


def reference(value, **changes):
    of = {"test": "stream_threads", "figure": "triad", "stack": "odd", "partition": "default"}
    of |= {"params": {"placement": "compact", "threads": 1}, "method": "declared", "source": {"document": "a test"}}
    return {**of, "value": value, "unit": "MB/s", "better": "higher", "lower": -0.05, "upper": 0.05, **changes}


@pytest.mark.parametrize(("entry", "verdict"), [
    pytest.param(reference(MEASURED), "within", marks=pytest.mark.long),
    (reference(MEASURED / 0.95), "within"),  # exactly on the bound
    (reference(2 * MEASURED), "below"),
    pytest.param(reference(MEASURED / 2), "above", marks=pytest.mark.long),
    (reference(MEASURED / 2, upper=None), "within"),
], ids=["equal", "on-the-bound", "twice-too-high", "half", "half-without-upper-bound"])  # fmt: skip
def test_reframe_fails_what_the_record_calls_out_of_range(suite, entry, verdict):
    status, output, record = suite([entry])
    assert record is not None, output
    assert record["verdict"] == verdict
    assert record["verified"]
    failed = verdict != "within"
    assert (status != 0) is failed, output
    assert ran(output)[2] == int(failed)
    assert re.search(rf"P: triad: {MEASURED} MB/s \(r:{re.escape(str(entry['value']))}", output), output
    if failed:
        assert f"failed to meet reference(s): triad={MEASURED} MB/s, expected {entry['value']}" in output


def test_no_reference_is_no_failure(suite):
    status, output, record = suite([])
    assert (status, record["verdict"]) == (0, "unreferenced")
    assert f"P: triad: {MEASURED} MB/s\n" in output


def test_a_missing_reference_file_is_an_error_and_nothing_is_measured(suite):
    status, output, record = suite(None)
    assert status != 0
    assert record is None
    (line,) = re.findall(r"Reason: (.*)", output)
    assert re.fullmatch(
        r"performance error: reference file is missing: \S+/stream.yaml: write it with the lines .*", line
    )


@pytest.mark.parametrize("name", ["rrze-woodcrest", pytest.param("rrze-nehalem", marks=pytest.mark.long)])
def test_every_published_barrier_has_a_variant_that_can_take_it(name, tmp_path):
    """A dry run makes the variants of the machine of the past; each reference is of one of them and its figures."""
    options = ("--system", name, "--dry-run", "--keep-stage-files", "-n", "^barrier_", "-S", "profile=full")
    status, output = reframe(*options, tests=TESTS / "sync.py", **activated(tmp_path))
    assert status == 0, output
    made = [json.loads(file.read_text()) for file in (tmp_path / "reframe").rglob("variant.json")]
    names = ("test", "stack", "partition", "params")
    offered = {
        Subject(**{name: variant[name] for name in names}, figure=figure["name"]).key
        for variant in made
        for figure in variant["figures"]
    }
    wanted = match.read(paths.sites() / name / "references" / "barrier.yaml").references
    assert {entry.unit for entry in wanted} >= {"cycles"}
    assert [str(entry) for entry in wanted if entry.key not in offered] == []
