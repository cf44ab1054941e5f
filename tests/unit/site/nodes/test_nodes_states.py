"""States of nodes from what the schedulers print."""

import json
from pathlib import Path

import msgspec
import pytest
import samples

from plumbline import schedulers
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.schedulers import flux, lsf, pbs, slurm

DATA = Path(__file__).resolve().parents[3] / "data" / "schedulers"
PBSNODES = (DATA / "pbs/nodes.out").read_text(encoding="utf-8")


def usable(nodes):
    return {node.name for node in nodes if node.usable}


def reasons(nodes):
    return {node.name: node.reason for node in nodes}


def test_pbs():
    nodes = pbs.read_nodes(PBSNODES, "main")
    assert reasons(nodes) == {"n1": "", "n2": "", "n3": "memory errors", "n4": "", "n6": ""}
    assert usable(nodes) == {"n1", "n2"}
    assert "n5" in usable(pbs.read_nodes(PBSNODES, None))


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "a b", "$(id)", "a/../b", "a;b"])
def test_hostile_names_from_a_scheduler(name):
    with pytest.raises(PlumbError, match="cannot be a host name"):
        slurm.read_nodes(f"{name}|idle|none\n")
    with pytest.raises(PlumbError, match="cannot be"):
        flux.read_nodes(f"avail|{name}|\n")
    with pytest.raises(PlumbError, match="cannot be a host name"):
        pbs.read_nodes(json.dumps({"nodes": {name: {"state": "free"}}}), None)
    with pytest.raises(PlumbError, match="cannot be a host name"):
        lsf.read_nodes(json.dumps({"RECORDS": [{"HOST_NAME": name, "STATUS": "ok"}]}))


def test_output_that_is_not_understood():
    with pytest.raises(PlumbError, match="sinfo printed something unexpected"):
        slurm.read_nodes("slurm_load_partitions: error\n")
    with pytest.raises(PlumbError, match="pbsnodes printed no valid JSON"):
        pbs.read_nodes("{", None)
    with pytest.raises(PlumbError, match="no JSON object"):
        lsf.read_nodes("[]")


@pytest.fixture
def bin_folder(tmp_path, monkeypatch):
    """Programs that stand for a scheduler's, first on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def program(name, text):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)

    return program


def test_command_asks_for_the_partition(bin_folder, tmp_path, capsys, output_of):
    (tmp_path / "out").write_text("node9|idle|none\nnode10|down*|fan\n")
    bin_folder("sinfo", f'echo "$@" > {tmp_path}/asked; cat {tmp_path}/out')
    arguments = ["nodes", "states", "--scheduler", "squeue", "--partition", "main"]
    out = output_of(0, *arguments)
    assert out.splitlines()[2].split() == ["node10", "down*", "no", "does", "not", "respond;", "fan"]
    assert out.splitlines()[-1] == "1 of 2 nodes can be used"
    assert (tmp_path / "asked").read_text() == "-N -h -o %N|%T|%E --partition=main\n"
    assert cli.main([*arguments, "--json", "--access=-p other"]) == 0
    assert [node["name"] for node in json.loads(capsys.readouterr().out)] == ["node9", "node10"]
    assert "--partition=other" in (tmp_path / "asked").read_text()


def test_lsf_queue_with_hosts(bin_folder, tmp_path):
    bin_folder("bqueues", """echo '{"RECORDS":[{"HOSTS":"grp1/ a1+2"}]}'""")
    bin_folder("bhosts", f'echo "$@" > {tmp_path}/asked; cat {DATA}/lsf/nodes.out')
    assert len(schedulers.named("lsf").nodes("main")) == 4
    assert (tmp_path / "asked").read_text().split()[-2:] == ["grp1", "a1"]


def test_partition_without_nodes_and_failing_scheduler(bin_folder, refused):
    bin_folder("sinfo", "exit 0")
    assert "void has no nodes" in refused(2, "nodes", "states", "--scheduler", "slurm", "--partition", "void")
    bin_folder("sinfo", "echo 'slurm_load_node: Unable to contact slurm controller' >&2; exit 1")
    assert "Unable to contact slurm controller (exit status 1)" in refused(2, "nodes", "states", "--scheduler", "slurm")
    assert "flux is not on PATH" in refused(2, "nodes", "states", "--scheduler", "flux")
    assert cli.main(["nodes", "states", "--scheduler", "slurm", "--partition=-x"]) == 2


def test_local_and_ssh(bin_folder, output_of):
    assert "1 of 1 nodes can be used" in output_of(0, "nodes", "states")
    bin_folder("ssh", 'case "$*" in *h2*) echo "ssh: connect to host h2: No route to host" >&2; exit 255;; esac')
    out = output_of(0, "nodes", "states", "--scheduler", "ssh", "--hosts", "h[1-3]")
    assert "No route to host" in out
    assert "2 of 3 nodes can be used" in out
    assert cli.main(["nodes", "states", "--scheduler", "ssh"]) == 2
    assert cli.main(["nodes", "states", "--scheduler", "sge"]) == 2


def test_scheduler_and_partition_are_those_of_the_site_that_claims_the_host(bin_folder, tmp_path, monkeypatch):
    parts = [{"name": name, "scheduler": "squeue", "access": [f"--partition={name}-queue"]} for name in ("thin", "fat")]
    folder = tmp_path / "sites" / "big"
    folder.mkdir(parents=True)
    (folder / "t.xml").touch()
    (folder / "site.yaml").write_text(msgspec.json.encode(samples.site(*parts, name="big")).decode())
    monkeypatch.setenv("PLUMB_SITES", str(folder.parent))
    bin_folder("sinfo", f'echo "$@" > {tmp_path}/words; echo "node9|idle|none"')
    asked = ([], ""), (["--partition", "fat"], " --partition=fat-queue"), (["--partition", "x"], " --partition=x")
    for words, told in asked:
        assert cli.main(["nodes", "states", *words]) == 0
        assert (tmp_path / "words").read_text() == f"-N -h -o %N|%T|%E{told}\n"
