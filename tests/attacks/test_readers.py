"""Files that are damaged in any way: what they say, or one error; a line of records that cannot be read is damage."""

import copy
import json
from pathlib import Path

import acceptance
import fuzz
import node_facts
import pytest
import samples
import stack_manifest
import yaml

from plumbline import site
from plumbline.base.errors import PlumbError
from plumbline.commands import launch as launch_command
from plumbline.extras.accept import forms, verdict
from plumbline.extras.accept import model as contracts
from plumbline.extras.exchange import imported
from plumbline.gate import rules
from plumbline.gate.setup import GATE as GATE_FOLDER
from plumbline.host import ceilings, machine
from plumbline.judge.pairs import read_pairs
from plumbline.judge.references import match
from plumbline.launch.witness.processes import read as read_witnesses
from plumbline.records import outcome, store
from plumbline.records.variant import checked
from plumbline.show import summary
from plumbline.site.nodes import collection as nodes_read
from plumbline.stacks import manifest

DATA = Path(__file__).parents[1] / "data"
ROOT = Path(__file__).parents[2]
STORED = (DATA / "records" / "before-typed-model.jsonl").read_bytes().splitlines(keepends=True)
REFERENCES = [file.read_bytes() for file in sorted(ROOT.glob("site-configs/*/references/*.yaml"))][:20]
SITES = [file.read_bytes() for file in sorted(ROOT.glob("site-configs/*/site.yaml"))]
TOPOLOGIES = [file.read_bytes() for file in sorted((DATA / "topologies").glob("*.xml"))]
CEILINGS = (DATA / "ceilings.yaml").read_bytes()
GATE = b"rules:\n  - test: stream_.*\n    figure: triad\n    tolerance: 0.01\n    must_detect: 0.05\n"
LOG = b"job_completion_time|name|system|partition|environ|rate_value|rate_unit\n" + b"".join(
    b"2026-01-%02dT00:00:00|T %%n=1|sys|part|gnu|%d.5|GB/s\n" % (day, day) for day in range(1, 29)
)
REPORT = {
    "session_info": {"data_version": "4.2", "uuid": "abc"},
    "runs": [{
        "testcases": [{
            "name": "T", "system": "sys", "partition": "part", "environ": "gnu", "job_nodelist": ["n1"],
            "job_completion_time_unix": 1767225600.5, "perfvalues": {"sys:part:rate": [1.5, 0, None, None, "GB/s"]},
        }]
    }],
}  # fmt: skip
MANIFEST = stack_manifest.LEAST | {"environment": {"A": "${B}"}}


def as_json(document):
    return json.dumps(document).encode()


def as_yaml(document):
    return yaml.safe_dump(document).encode()


def test_a_line_of_records_is_a_record_or_damage(tmp_path):
    def read(line):
        file = tmp_path / "session.jsonl"
        file.write_bytes(line + b"\n" + STORED[0])
        *_, last = store.read(file)
        assert not isinstance(last, store.Damage), "a damaged line hid the next one"

    fuzz.attack(read, fuzz.spoiled_texts("lines", [line.rstrip() for line in STORED]))


def test_a_record_that_can_be_read_can_be_listed():
    def read(document):
        found = store.parse(Path("session.jsonl"), 1, as_json(document) + b"\n")
        if not isinstance(found, store.Damage):
            assert summary.lines([found.row()])

    fuzz.attack(read, fuzz.spoiled_documents("records", [json.loads(line) for line in STORED]))


def plan_of(file):
    """Read a contract, plan and judge it without records."""
    contract = contracts.load(file)
    forms.plan(contract, [verdict.of_clause(clause, contract, []) for clause in contract.clauses])
    forms.as_json(contract, verdict.judge(contract, []), "0" * 64)


#: what reads a file: the name of the file, the reader, sound contents
TEXTS = {
    "variant": ("variant.json", launch_command.read, [as_json(samples.variant())]),
    "site": ("site/site.yaml", lambda _: site.load("site"), SITES),
    "ceilings": ("site/ceilings.yaml", lambda _: ceilings.read("site"), [CEILINGS]),
    "references": ("site/references/stream.yaml", match.read, REFERENCES),
    "gate.yaml": ("gate.yaml", lambda file: rules.load(file, "site"), [GATE]),
    "manifest": ("made/manifest.json", lambda _: manifest.load("made"), [as_json(MANIFEST)]),
    "topology": ("node.xml", machine.load, TOPOLOGIES),
    "pairs of records": ("s.jsonl", lambda file: read_pairs(file, None), [b"".join(STORED)]),
    "contract": ("contract.yaml", plan_of, [as_yaml(acceptance.contract())]),
    "performance log": ("T.log", imported.read, [LOG]),
    "run report": ("report.json", imported.read, [as_json(REPORT)]),
    "state of a gate": ("state.json", lambda file: GATE_FOLDER.peek(file.parent), [b'{"name":"a","rule":{}}']),
    "outcome": (
        "site/c.outcome.json",
        lambda _: outcome.read("site", "c"),
        [as_json({"campaign": "c", "profile": "quick", "cases": [{"state": "OK", "case": "a", "reason": None}]})],
    ),
    "facts of a node": ("node1.json", lambda file: nodes_read.folder(file.parent), [as_json(node_facts.NODE)]),
    "note of a collection": ("job.json", lambda file: nodes_read.folder(file.parent),
                             [as_json({"job": "1", "asked": ["node1"], "size": 1, "began": 1.0, "ended": 2.0})]),
    "witness": ("h.1.json", lambda file: read_witnesses(file.parent), [as_json(samples.plan())]),
}  # fmt: skip
#: the same files as documents whose members are odd
DOCUMENTS = {
    name: (as_json, list(map(json.loads, sound)))
    if file.endswith("json")
    else (as_yaml, list(map(yaml.safe_load, sound)))
    for name, (file, _, sound) in TEXTS.items()
    if file.endswith((".json", ".yaml"))
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    for name in ("SITES", "RESULTS", "STACKS"):
        monkeypatch.setenv(f"PLUMB_{name}", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", TEXTS)
def test_a_damaged_file_is_one_error_or_read(name, place):
    file, read, sound = TEXTS[name]
    assert sound
    fuzz.attack(_writing(place / file, read, lambda text: text), fuzz.spoiled_texts(name, sound))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_file_with_odd_members_is_one_error_or_read(name, place):
    write, sound = DOCUMENTS[name]
    file, read, _ = TEXTS[name]
    fuzz.attack(_writing(place / file, read, write), fuzz.spoiled_documents(name, sound))


def _writing(file, read, write):
    file.parent.mkdir(parents=True, exist_ok=True)

    def attempt(item):
        file.write_bytes(write(item))
        read(file)

    return attempt


#: what no schema lets pass: name, where, value
ODD_SITE = {
    "not a number": ("facts", {"memory_mts": float("nan")}),
    "infinite": ("facts", {"link_gbit": float("inf")}),
    "beyond any machine": ("facts", {"memory_mts": 1e308}),
    "a clock of light": ("facts", {"core_ghz": 1e9}),
    "a count with a point": ("nodes", 2.0),
    "a huge count": ("nodes", 10**30),
    "a name of two lines": ("name", "main\n"),
    "a stack of two lines": ("stacks", ["openmpi\n"]),
    "a topology outside": ("topology", "../../other/topology/main.xml"),
    "an absolute topology": ("topology", "/etc/passwd"),
    "a hidden path": ("topology", "topology/../../x.xml"),
    "text with NUL": ("description", "a\0b"),
    "half a character": ("description", "\ud800"),
    "a host of two lines": ("hosts", ["n1\nn2"]),
    "a variable's name": ("environment", {"A B": "1"}),
    "no time": ("max_job_s", 0),
    "time without end": ("max_pending_s", 10**40),
    "a truth": ("nodes", True),
}


def site_of(hosts):
    part = {"name": "main", "scheduler": "local", "topology": "topology/main.xml", "stacks": []}
    return {"schema": 1, "name": "s", "description": "", "hostnames": [hosts], "partitions": [part]}


@pytest.mark.parametrize("name", ODD_SITE)
def test_an_impossible_site_is_refused(name):
    document = site_of("^s")
    site.check(copy.deepcopy(document), "site.yaml")
    key, value = ODD_SITE[name]
    document["partitions"][0][key] = value
    with pytest.raises(PlumbError):
        site.check(document, "site.yaml")


@pytest.mark.parametrize("pattern", ["(((", "[", "*", "a{99999999999}", "(?P<a", "\\"])
def test_a_pattern_of_host_names_that_is_none_is_refused(pattern):
    with pytest.raises(PlumbError, match="is not a regular expression"):
        site.check(site_of(pattern), "site.yaml")


ODD_VARIANT = {
    "launches": [10**30, 0, -1, 1.0, True, "3", None, float("nan"), 100_001],
    "time_limit_s": [float("inf"), float("nan"), 0, -1, 10**12, "60"],
    "threads": [10**9, 0, 1.0],
    "ranks_per_node": [10**9, 0, 2.0],
    "nodes": [10**9, 0, 1.0],
    "name": ["a\nb", "a\0", "", "\x1b[2J"],
    "site": ["../other", "a/b", "", "a\n"],
    "stack": ["../made", "", "a b"],
    "arguments": [["\0"], [1], "x", [None]],
    "environment": [{"A=B": "1"}, {"": "1"}, {"A\0": "1"}, {"A": "\0"}, {"A": 1}],
}


@pytest.mark.parametrize("key", ODD_VARIANT)
def test_an_impossible_variant_is_refused(key):
    for value in ODD_VARIANT[key]:
        with pytest.raises(PlumbError):
            checked(samples.variant(**{key: value}), "variant.json")


def test_a_number_that_no_float_holds_is_one_error(place):
    (place / "gate.yaml").write_bytes(GATE.replace(b"0.05", b"1" * 400))
    with pytest.raises(PlumbError):
        rules.load(place / "gate.yaml", "site")
