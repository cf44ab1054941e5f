"""The live gate for real: one small benchmark on MPICH and on a copy of it, interrupted and resumed."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import own_site
import processes
import pytest
import stack_manifest
import stored
import yaml
from msgspec.structs import replace
from processes import ended, succeeded

from plumbline.base import paths
from plumbline.judge.decide import decide
from plumbline.judge.pairs import read_pairs
from plumbline.stacks import manifest as manifests
from plumbline.statistics.paired import PairedRule

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
PLUMB = str(Path(sys.executable).parent / "plumb")
#: wide margins: thirteen pairs decide however busy the machine is
SELECT = ["--test", "imb_barrier.*placement=core", "--tolerance", "50%", "--must-detect", "400%", "--seed", "1"]


@pytest.fixture
def twins(tmp_path, bench):
    """Stacks ``mpich`` and ``mpich-copy``, offered by the site; returns the environment for ``plumb``."""
    for name in ("mpich", "mpich-copy"):
        document = json.loads((tmp_path / "installed" / "mpich" / manifests.FILE).read_text())
        document["name"] = name
        document["benchmarks"] = {"imb-mpi1": document["benchmarks"]["imb-mpi1"]}
        (tmp_path / "stacks" / name).mkdir(parents=True)
        stack_manifest.save(document)
    own_site.change(tmp_path / "sites", stacks=["mpich", "mpich-copy"])
    settings = tmp_path / "sites" / "settings.py"
    settings.write_text((paths.root() / "site-configs" / "settings.py").read_text())
    # settings.py is where activate says; the gate asks for that of the sites folder
    return {**os.environ, "PLUMB_TOOLS": str(paths.tools())}


def plumb_gate(twins, *options, timeout=600):
    return ended([PLUMB, "gate", *map(str, options)], env=twins, timeout=timeout)


def test_a_stack_against_its_copy_interrupted_and_resumed(tmp_path, twins):
    work = tmp_path / "work"
    command = [PLUMB, "gate", "--measure-equal", "--baseline", "mpich", "--candidate", "mpich-copy", *SELECT]
    command += ["--work", str(work)]
    with subprocess.Popen(command, env=twins, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:
        for line in child.stdout:
            if line.startswith("pair    3"):
                break
        child.send_signal(signal.SIGINT)
        rest = child.stdout.read()
    assert child.returncode == 130, rest
    assert f"plumb gate --resume {work}" in rest
    processes.wait_gone(str(tmp_path))
    (file,) = (tmp_path / "results" / "local").glob("*.jsonl")
    records = list(stored.read_file(file))
    assert {record["state"] for record in records} == {"interrupted"}
    assert [record["stack"]["name"] for record in records] == ["mpich", "mpich-copy"]
    before = [len(record["launches"]) for record in records]
    assert min(before) >= 3

    page = tmp_path / "gate.html"
    answer = plumb_gate(twins, "--resume", work, "--output", page)
    assert answer.returncode in (0, 2), answer.stdout + answer.stderr
    assert answer.stdout.splitlines()[-1].startswith("gate: ")
    assert '{"title":"candidate / baseline"' in page.read_text()  # the pairs are drawn
    records = list(stored.read_file(file))
    assert {record["state"] for record in records} == {"complete"}
    assert all(launch["verified"] for record in records for launch in record["launches"])
    assert all(len(record["launches"]) >= 13 for record in records)

    later = plumb_gate(twins, file, "--json")
    assert later.returncode == answer.returncode, later.stdout + later.stderr
    found = decide(read_pairs(file), PairedRule())
    assert [item["verdict"] for item in json.loads(later.stdout)["series"]] == [item.state for item in found]
    assert "FAIL" not in {item.state for item in found}

    document = manifests.load("mpich-copy")
    manifests.save(replace(document, compiler=replace(document.compiler, version="another")))
    answer = plumb_gate(twins, "--resume", work)
    assert answer.returncode == 3, answer.stdout + answer.stderr
    assert "stacks changed since this gate began" in answer.stderr


def test_what_cannot_be_measured_is_one_line(tmp_path, twins):
    sides = ("--baseline", "mpich", "--candidate")
    for options, said in (
        ((*sides, "mpich-copy", "--test", "no_such_test"), "no test begins with 'no_such_test'"),
        ((*sides, "mpch"), "'mpch' is neither an installed stack nor a commit"),
    ):
        answer = plumb_gate(twins, *options, "--work", tmp_path / "work")
        assert answer.returncode == 3, answer.stdout + answer.stderr
        assert said in answer.stderr
        assert answer.stderr.count("\n") == 1


def test_a_stack_that_the_site_does_not_offer_is_named_with_the_command_that_offers_it(tmp_path, twins):
    own_site.change(tmp_path / "sites", stacks=["mpich"])
    sides = ("--baseline", "mpich", "--candidate", "mpich-copy", *SELECT)
    answer = plumb_gate(twins, *sides, "--work", tmp_path / "work")
    assert answer.returncode == 3, answer.stdout + answer.stderr
    assert "site local does not offer stack mpich-copy" in answer.stderr
    words = re.search(r"plumb (site init .*)", answer.stderr)[1].split()
    succeeded(ended([PLUMB, *words], env=twins, timeout=100))
    file = tmp_path / "sites" / "local" / "site.yaml"
    assert "mpich-copy" in yaml.safe_load(file.read_text())["partitions"][0]["stacks"]
