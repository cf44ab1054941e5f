"""Files that are damaged in any way: what they say, or one error; a line of records that cannot be read is damage."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import acceptance
import fuzz
import node_facts
import pytest
import samples
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
from plumbline.judge import from_csv
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
PAIRS = b"series,baseline,candidate\n" + b"".join(b"a,%d.5,%d.25\n" % (number, number) for number in range(10, 40))
NODES = b"node,class,value\n" + b"".join(b"n%d,all,%d.5\n" % (number % 7, 100 + number) for number in range(40))
LINKS = b"first,second,class,value\n" + b"".join(b"n%d,n%d,all,2.5\n" % (n % 5, 5 + n % 3) for n in range(40))
NUMBERS = b"series,index,value\n" + b"".join(b"a,%d,%d.5\n" % (number, 100 + number % 3) for number in range(40))
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
MANIFEST = {
    "schema": 1,
    "name": "made",
    "provider": "wheel",
    "mpi": {"family": "openmpi", "version": "5.0.11", "abi": "openmpi"},
    "compiler": {"name": "gcc", "version": "12.2.0", "path": "/usr/bin/gcc"},
    "launcher": {"family": "prrte", "command": "/bin/true"},
    "prefix": "/opt/made",
    "environment": {"A": "${B}"},
    "modules": [],
    "benchmarks": {
        "stream": {
            "suite": "stream",
            "version": "5.10",
            "command": ["/bin/true"],
            "file": "/bin/true",
            "sha256": "0" * 64,
            "built": "by hand",
        }
    },
    "sources": [],
}


def as_json(document: Any) -> bytes:
    return json.dumps(document).encode()


def as_yaml(document: Any) -> bytes:
    return yaml.safe_dump(document).encode()


def test_a_line_of_records_is_a_record_or_damage(tmp_path: Path) -> None:
    def read(line: bytes) -> None:
        file = tmp_path / "session.jsonl"
        file.write_bytes(line + b"\n" + STORED[0])
        *_, last = store.read(file)
        assert not isinstance(last, store.Damage), "a damaged line hid the next one"

    fuzz.attack(read, fuzz.spoiled_texts("lines", [line.rstrip() for line in STORED]))


def test_a_record_that_can_be_read_can_be_listed() -> None:
    def read(document: Any) -> None:
        found = store.parse(Path("session.jsonl"), 1, as_json(document) + b"\n")
        if not isinstance(found, store.Damage):
            assert summary.lines([found.row()])

    fuzz.attack(read, fuzz.spoiled_documents("records", [json.loads(line) for line in STORED]))


def plan_of(file: Path) -> None:
    """Read a contract, plan and judge it without records."""
    contract = contracts.load(file)
    forms.plan(contract, [verdict.of_clause(clause, contract, []) for clause in contract.clauses])
    forms.as_json(contract, verdict.judge(contract, []), "0" * 64)


#: what reads a file: the name of the file, the reader, sound contents
TEXTS: dict[str, tuple[str, Callable[[Path], object], list[bytes]]] = {
    "variant": ("variant.json", launch_command.read, [as_json(samples.variant())]),
    "site": ("site/site.yaml", lambda _: site.load("site"), SITES),
    "ceilings": ("site/ceilings.yaml", lambda _: ceilings.read("site"), [CEILINGS]),
    "references": ("site/references/stream.yaml", match.read, REFERENCES),
    "gate.yaml": ("gate.yaml", lambda file: rules.load(file, "site"), [GATE]),
    "manifest": ("made/manifest.json", lambda _: manifest.load("made"), [as_json(MANIFEST)]),
    "topology": ("node.xml", machine.load, TOPOLOGIES),
    "pairs": ("pairs.csv", lambda file: from_csv.pairs(file, "lower"), [PAIRS]),
    "pairs of records": ("s.jsonl", lambda file: read_pairs(file, None), [b"".join(STORED)]),
    "nodes": ("nodes.csv", lambda file: from_csv.nodes(file, "higher"), [NODES]),
    "links": ("links.csv", lambda file: from_csv.matrices(file, "lower"), [LINKS]),
    "numbers": ("numbers.csv", lambda file: from_csv.series(file, "lower"), [NUMBERS]),
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
    "note of a collection": (
        "job.json",
        lambda file: nodes_read.folder(file.parent),
        [as_json({"job": "1", "asked": ["node1"], "size": 1, "began": 1.0, "ended": 2.0})],
    ),
    "witness": ("h.1.json", lambda file: read_witnesses(file.parent), [as_json(samples.plan())]),
}
#: the same files as documents whose members are odd
DOCUMENTS: dict[str, tuple[Callable[[Any], bytes], list[Any]]] = {
    "variant": (as_json, [samples.variant()]),
    "site": (as_yaml, [yaml.safe_load(text) for text in SITES]),
    "ceilings": (as_yaml, [yaml.safe_load(CEILINGS)]),
    "references": (as_yaml, [yaml.safe_load(text) for text in REFERENCES]),
    "contract": (as_yaml, [acceptance.contract()]),
    "gate.yaml": (as_yaml, [yaml.safe_load(GATE)]),
    "manifest": (as_json, [MANIFEST]),
    "run report": (as_json, [REPORT]),
    "facts of a node": (as_json, [node_facts.NODE]),
    "outcome": (as_json, [json.loads(TEXTS["outcome"][2][0])]),
    "note of a collection": (as_json, [json.loads(TEXTS["note of a collection"][2][0])]),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SITES", "RESULTS", "STACKS"):
        monkeypatch.setenv(f"PLUMB_{name}", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", TEXTS)
def test_a_damaged_file_is_one_error_or_read(name: str, place: Path) -> None:
    file, read, sound = TEXTS[name]
    assert sound
    fuzz.attack(_writing(place / file, read, lambda text: text), fuzz.spoiled_texts(name, sound))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_file_with_odd_members_is_one_error_or_read(name: str, place: Path) -> None:
    write, sound = DOCUMENTS[name]
    file, read, _ = TEXTS[name]
    fuzz.attack(_writing(place / file, read, write), fuzz.spoiled_documents(name, sound))


def _writing(file: Path, read: Callable[[Path], object], write: Callable[[Any], bytes]) -> Callable[[Any], None]:
    """Write what is given to ``file``, then read it."""
    file.parent.mkdir(parents=True, exist_ok=True)

    def attempt(item: Any) -> None:
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


@pytest.mark.parametrize("name", ODD_SITE)
def test_an_impossible_site_is_refused(name: str) -> None:
    part = {"name": "main", "scheduler": "local", "topology": "topology/main.xml", "stacks": []}
    document = {"schema": 1, "name": "s", "description": "", "hostnames": ["^s"], "partitions": [part]}
    site.check(copy.deepcopy(document), "site.yaml")
    key, value = ODD_SITE[name]
    part[key] = value
    with pytest.raises(PlumbError):
        site.check(document, "site.yaml")


@pytest.mark.parametrize("pattern", ["(((", "[", "*", "a{99999999999}", "(?P<a", "\\"])
def test_a_pattern_of_host_names_that_is_none_is_refused(pattern: str) -> None:
    part = {"name": "main", "scheduler": "local", "topology": "main.xml", "stacks": []}
    document = {"schema": 1, "name": "s", "description": "", "hostnames": [pattern], "partitions": [part]}
    with pytest.raises(PlumbError, match="is not a regular expression"):
        site.check(document, "site.yaml")


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
def test_an_impossible_variant_is_refused(key: str) -> None:
    for value in ODD_VARIANT[key]:
        with pytest.raises(PlumbError):
            checked(samples.variant(**{key: value}), "variant.json")


def test_a_number_that_no_float_holds_is_one_error(place: Path) -> None:
    digits = b"1" * 400
    for name, text in (
        ("gate.yaml", GATE.replace(b"0.05", digits)),
        ("numbers", NUMBERS.replace(b"101.5", digits)),
        ("pairs", PAIRS.replace(b"11.5", digits)),
        ("nodes", NODES.replace(b"101.5", digits)),
    ):
        file, read, _ = TEXTS[name]
        (place / file).write_bytes(text)
        if name == "pairs":  # the series is INVALID, the others are judged
            assert from_csv.pairs(place / file, "lower")[0].faults
        else:
            with pytest.raises(PlumbError):
                read(place / file)
