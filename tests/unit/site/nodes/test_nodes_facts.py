"""The collector, and the job that runs it on every node."""

import ast
import json
import os
import shlex
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import schema_files
from msgspec import to_builtins
from node_facts import XML, node, write

from plumbline import schedulers, site
from plumbline.base import schemas
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Facts
from plumbline.commands import cli
from plumbline.host import collector
from plumbline.schedulers import hosts, names, program
from plumbline.site.nodes import collection
from plumbline.site.nodes.model import Node

COLLECTOR = Path(collector.__file__)


def asked(tmp_path, scheduler, **changes):
    return collection.FactsRequest(scheduler, tmp_path / "out", collection="j", **changes)


def commands(request):
    return schedulers.named(request.scheduler).on_every_node(request.job(), request.program())


def command(tmp_path, scheduler, **changes):
    (words,) = commands(asked(tmp_path, scheduler, **changes))
    return words


# --- the collector


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """What the collector writes here, run alone: no package, no environment of ours, an empty working folder."""
    folder = tmp_path_factory.mktemp("facts")
    alone = folder / "alone.py"
    shutil.copyfile(COLLECTOR, alone)
    done = subprocess.run(
        [sys.executable, "-I", str(alone), "--output", str(folder / "out"), "--host", "here"],
        env={"PATH": "/usr/bin:/bin"}, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "out"


def test_facts_obey_their_schema(collected):
    facts = json.loads((collected / "here.json").read_text())
    assert to_builtins(schemas.convert("node", facts, Node, "here.json")) == facts
    schema_files.check("node", facts)
    assert facts["threads"] == len(os.sched_getaffinity(0)) or facts["cgroup"]["cpus_allowed"]
    assert facts["numa"] or "numa" in facts["missing"]
    assert stat.S_IMODE((collected / "here.json").stat().st_mode) == 0o640
    assert {file.name for file in collected.iterdir()} <= {"here.json", "here.xml"}


def test_nothing_is_silently_absent(collected):
    facts = json.loads((collected / "here.json").read_text())
    for key, value in facts["knobs"].items():
        assert value is not None or facts["missing"][f"knobs.{key}"]
    for key in ("core_ghz", "link_gbit", "memory_mts"):
        assert key in facts["limits"] or facts["missing"][f"limits.{key}"]
    assert (collected / "here.xml").exists() or facts["missing"]["topology"]


def test_old_python_understands_it():
    ast.parse(COLLECTOR.read_text(), feature_version=(3, 6))


def test_no_python_newer_than_3_6_is_imported():
    tree = ast.parse(COLLECTOR.read_text())
    imported = {alias.name for item in ast.walk(tree) if isinstance(item, ast.Import) for alias in item.names}
    imported |= {item.module for item in ast.walk(tree) if isinstance(item, ast.ImportFrom)}
    assert imported <= set(sys.stdlib_module_names)
    assert "__future__" not in imported  # annotations came with 3.7


def test_machine_from_sysfs(tmp_path):
    for path, text in {
        "proc/cpuinfo": "model name : Big CPU\nmicrocode : 0x2\nflags : sse2 avx2 foo\n",
        "proc/self/mounts": "root / ext4 rw 0 0\nsrv:/s /shared nfs4 rw 0 0\n",
        "sys/devices/system/node/node0/cpulist": "0-1",
        "sys/devices/system/node/node0/distance": "10 21",
        "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:       2048 kB\n",
        "sys/devices/system/node/node10/cpulist": "",
        "sys/devices/system/node/node2/cpulist": "2-3",
        "sys/bus/pci/devices/0000:01:00.0/class": "0x030200",
        "sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de",
        "sys/bus/pci/devices/0000:01:00.0/device": "0x20b0",
        "sys/bus/pci/devices/0000:01:00.0/numa_node": "1",
        "sys/bus/pci/devices/0000:02:00.0/class": "0x020000",
        "sys/class/net/ib0/operstate": "up",
        "sys/class/infiniband/mlx5_0/hca_type": "MT4123",
        "sys/class/infiniband/mlx5_0/device/numa_node": "-1",
        "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE",
        "sys/class/infiniband/mlx5_0/ports/1/rate": "200 Gb/sec (4X HDR)",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    facts = collector.collect("n1", Path("/shared/x"), root=tmp_path)
    assert to_builtins(schemas.convert("node", facts, Node, "n1")) == facts
    schema_files.check("node", facts)
    assert [item["node"] for item in facts["numa"]] == [0, 2, 10]
    assert facts["numa"][0] == {"node": 0, "cpus": "0-1", "memory_mib": 2, "distances": [10, 21]}
    assert facts["gpus"] == [
        {"address": "0000:01:00.0", "class": "0302", "vendor": "0x10de", "device": "0x20b0", "numa": 1}
    ]
    port = {"port": 1, "state": "ACTIVE", "rate_gbit": 200.0, "link_layer": None}
    assert facts["hcas"] == [{"name": "mlx5_0", "type": "MT4123", "numa": None, "ports": [port]}]
    assert facts["mount"] == {"path": "/shared", "type": "nfs4", "source": "srv:/s"}
    assert facts["cpu"] == {"model": "Big CPU", "microcode": "0x2", "simd": ["avx2", "sse2"]}
    assert facts["missing"]["smt"] == "/sys/devices/system/cpu/smt/active: No such file or directory"


def test_serials_are_not_published(tmp_path):
    program = tmp_path / "bind"
    kinds = ("ProductSerial", "ProductUUID", "ChassisAssetTag")
    serial = "".join(f'  <info name="DMI{kind}" value="SECRET"/>\n' for kind in kinds)
    program.write_text(f"#!/bin/sh\nprintf '%s' '{XML.replace('</topology>', serial + '</topology>')}' > \"$2\"\n")
    program.chmod(0o755)
    assert collector.topology(str(program)) == (XML, "")


@pytest.mark.parametrize("host", ["-x", "../up", "a b", "$(id)"])
def test_collector_refuses_hostile_names(tmp_path, host):
    with pytest.raises(SystemExit):
        collector.main(["--output", str(tmp_path), f"--host={host}"])
    assert list(tmp_path.iterdir()) == []


def test_collector_without_a_place_to_write(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert collector.main(["--output", str(tmp_path / "file"), "--host", "a"]) == 2
    assert "cannot write" in capsys.readouterr().err


# --- the job


def test_srun(tmp_path):
    words = command(tmp_path, "squeue", nodes=["n1", "n2"], access=["-p main", "--account lab"])
    assert words[:6] == ["salloc", "--quiet", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--exclusive"]
    assert "--nodelist=n[1-2]" in words
    assert words[words.index("-pmain") + 1] == "--account=lab"
    step = words[words.index("--account=lab") + 1 :]
    assert step[:4] == ["srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1"]
    assert "--exclusive" not in step  # of a step it means: just the CPUs that it asks for
    assert next(word for word in step[1:] if not word.startswith("-")) == "python3"
    assert "--partition=main" in command(tmp_path, "slurm", count=3, queue="main")


def test_pbs(tmp_path):
    words = command(tmp_path, "pbs", nodes=["n1", "n2"], access=["-A x"], queue="q1")
    assert "select=1:ncpus=1:host=n1+1:ncpus=1:host=n2" in words
    assert words[words.index("--") : words.index("--") + 3] == ["--", "/bin/sh", "-c"]
    assert words[words.index("python3") - 1] == "pbsdsh"
    assert [words[2], words[words.index("--") - 1]] == ["block=true", "-Ax"]
    assert "select=7:ncpus=1" in command(tmp_path, "pbs", count=7)


def test_lsf_flux_sge(tmp_path):
    words = command(tmp_path, "lsf", nodes=["n1", "n2"], access=["-q big"])
    assert words[:2] == ["bsub", "-K"]
    assert "span[ptile=1]" in words
    assert words[words.index("-m") + 1] == "n1 n2"
    assert words[words.index("blaunch") - 2 : words.index("blaunch")] == ["-q", "big"]
    words = command(tmp_path, "flux", nodes=["n1", "n2"], queue="debug")
    assert words[:6] == ["flux", "run", "-N", "2", "-n", "2"]
    assert {"--requires=host:n[1-2]", "--queue=debug"} <= set(words)
    jobs = commands(asked(tmp_path, "sge", nodes=["n1", "n2"]))
    assert [job[job.index("-l") + 1] for job in jobs] == ["hostname=n1", "hostname=n2"]
    with pytest.raises(PlumbError, match="needs the names of the nodes"):
        commands(asked(tmp_path, "sge"))


def test_a_job_that_fails_is_told_in_its_own_words(tmp_path, monkeypatch):
    """PBS brings them when qsub has ended; what an earlier job said is not its own."""
    qsub = tmp_path / "qsub"
    said = "pbs_mom, exec of pbsdsh failed with error: No such file or directory"
    qsub.write_text(
        f"#!/bin/sh\n(sleep 0.3; echo '{said}' >{tmp_path}/.job.log) >&- 2>&- &\necho 4711.head\nexit 254\n"
    )
    qsub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(program, "LOG_S", 600)
    (tmp_path / ".job.log").write_text("earlier\n")
    done = collection.collect(collection.FactsRequest("pbs", tmp_path, nodes=["n1"]))
    assert done.last() == f"{said} (exit status 254)"


@pytest.mark.parametrize("scheduler", ["squeue", "pbs", "lsf", "flux", "sge"])
def test_paths_that_a_scheduler_would_change_are_refused(scheduler):
    request = collection.FactsRequest(scheduler, Path("/shared/a b;id"), nodes=["n1"])
    with pytest.raises(PlumbError, match="holds letters"):
        schedulers.named(scheduler).run_on_every_node(request.job(), request.program, 1)


@pytest.mark.parametrize(
    "option", ["main", "", "-p main evil", "-p --wrap=x", "--a=1 --b=2", "-", "--", "-p 'x", "-\n"]
)
def test_hostile_access_options(option):
    with pytest.raises(PlumbError, match="option"):
        names.access([option])


@pytest.mark.parametrize("name", ["--nodelist=x", "-oProxyCommand=id", "a b", "a;id", "$(id)", "@all", "a/b", "x\n"])
def test_hostile_nodes(tmp_path, name, capsys):
    with pytest.raises(PlumbError, match="cannot be a host name"):
        collection.collect(asked(tmp_path, "ssh", nodes=[name]))
    with pytest.raises(PlumbError, match="cannot be host names"):
        names.expand(name, "--node")
    arguments = ["nodes", "facts", str(tmp_path / "out"), "--scheduler", "squeue"]
    assert cli.main([*arguments, f"--node={name}"]) == 2
    assert cli.main([*arguments, "--node=n1", f"--partition={name}"]) == 2
    assert not (tmp_path / "out").exists()
    assert capsys.readouterr().err.count("plumb: ") == 2


def test_expand_and_queue():
    assert names.expand("n[1-3],x", "w") == ["n1", "n2", "n3", "x"]
    assert names.expand("x,n10,n[9,1-2]-ib,n10", "w") == ["x", "n10", "n1-ib", "n2-ib", "n9-ib"]
    for text in ("a,,b", "a,", "n[]", "a]"):
        with pytest.raises(PlumbError, match="cannot be host names"):
            names.expand(text, "w")
    with pytest.raises(PlumbError, match="hosts"):
        names.expand("n[1-999999]", "w")
    with pytest.raises(PlumbError, match="cannot be host names"):
        names.expand("n[1-", "w")
    assert schedulers.named("squeue").queue("label", ["--partition=main"]) == "main"
    assert schedulers.named("squeue").queue("label", ["-pmain"]) == "main"
    assert schedulers.named("pbs").queue("label", ["-q main"]) == "main"
    assert schedulers.named("squeue").queue("label", ["--account=x"]) is None
    assert schedulers.named("squeue").queue("main", []) == "main"
    assert schedulers.named("sge").queue("main", ["-pe mpi 64"]) is None
    assert schedulers.named("sge").queue("main", ["-pe mpi 64", "-q all.q"]) == "all.q"


def test_time_limit_ends_the_program():
    done = program.run(["sleep", "600"], 0.2)
    assert done.status is None
    assert "time limit" in done.last()


# --- the command


def test_here(tmp_path, capsys):
    output = tmp_path / "out"
    assert cli.main(["nodes", "facts", "--scheduler", "local", str(output)]) == 0
    assert f"1 of 1 nodes answered: {socket.gethostname()}" in capsys.readouterr().out
    assert (output / f"{socket.gethostname()}.json").exists()
    assert cli.main(["nodes", "compare", str(output)]) == 0


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """``salloc``, ``srun`` and ``ssh`` that run the collector here as each node; node ``n3`` never answers."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    of_slurm = 'echo "$@" > "$0.asked"\nwhile [[ "$1" == -* ]]; do shift; done\n'
    programs = {
        "srun": of_slurm + 'for name in n1 n2; do SLURMD_NODENAME=$name "$@" || exit 1; done\n'
        '[[ ! -e "$0.fails" ]] || { echo "srun: error: n3: task 2: Exited" >&2; exit 1; }\n',
        "salloc": of_slurm + 'exec "$@"\n',
        "ssh": '[[ "${@: -2:1}" != n3 ]] || { echo "ssh: no route" >&2; exit 255; }\nbash -c "${@: -1}"\n',
        "sinfo": "printf 'n1|idle|none\\nn2|mixed|none\\nn4|drained|bad fan\\n'\n",
    }
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}")
        (folder / name).chmod(0o755)
    return folder


def test_all_usable_nodes_of_a_partition(fake, tmp_path, output_of):
    out = output_of(0, "nodes", "facts", "--scheduler=squeue", "--access=--partition=main", str(tmp_path / "o"))
    assert "n4: not asked: drained (bad fan)" in out
    assert "2 of 2 nodes answered: n[1-2]" in out
    said = shlex.split((fake / "salloc.asked").read_text())
    assert {"--nodes=2", "--nodelist=n[1-2]", "--partition=main"} <= set(said)


def test_a_node_that_does_not_answer(fake, tmp_path, capsys):
    (fake / "srun.fails").write_text("")
    arguments = ["nodes", "facts", "--scheduler", "squeue", "--node=n[1-3]", str(tmp_path / "o")]
    assert cli.main(arguments) == 1
    said = "n3: no answer\nsqueue: srun: error: n3: task 2: Exited (exit status 1)\n"
    assert capsys.readouterr().out == f"{said}2 of 3 nodes answered: n[1-2] in {tmp_path / 'o'}\n"


def test_a_folder_that_the_nodes_do_not_share(fake, tmp_path, capsys):
    (fake / "srun").write_text("#!/bin/sh\n")
    assert cli.main(["nodes", "facts", "--scheduler", "squeue", "--node=n1", str(tmp_path / "o")]) == 2
    assert f"({tmp_path}/o): name a folder that this host and the nodes share\n" in capsys.readouterr().err


def test_a_job_that_fails_on_all(fake, tmp_path, capsys):
    (fake / "srun").write_text("#!/bin/sh\necho 'srun: error: Invalid account' >&2\nexit 1\n")
    assert cli.main(["nodes", "facts", "--scheduler", "squeue", "--node=n1", str(tmp_path / "o")]) == 2
    assert "the job failed: srun: error: Invalid account (exit status 1)" in capsys.readouterr().err
    (fake / "salloc").unlink()
    assert cli.main(["nodes", "facts", "--scheduler", "squeue", "--node=n1", str(tmp_path / "o")]) == 2
    assert "salloc is not on PATH" in capsys.readouterr().err


def test_by_ssh(fake, tmp_path, output_of):
    arguments = ["nodes", "facts", "--scheduler", "ssh", "--hosts", "n1,n[2-3]", str(tmp_path / "o")]
    out = output_of(1, *arguments)
    assert "n3: no answer" in out
    assert "ssh: n3: ssh: no route (exit status 255)" in out
    assert "2 of 3 nodes answered: n[1-2]" in out
    assert cli.main(["nodes", "facts", "--scheduler", "ssh", str(tmp_path / "o")]) == 2


def test_ssh_hands_on_words_unchanged(fake):
    assert hosts.each({"n1": ["printf", "%s|", "a b", "$(id)", "x;y"]}, 600)["n1"].stdout == "a b|$(id)|x;y|"
    assert hosts.each({"n1": ["sleep", "600"]}, 0.2)["n1"].status is None, "a time limit ends it"


def test_bad_numbers_and_programs(tmp_path, capsys):
    with pytest.raises(SystemExit):
        cli.main(["nodes", "facts", "--nodes", "0", str(tmp_path)])
    assert "'0' is not a whole number from 1 to 1000000" in capsys.readouterr().err
    assert cli.main(["nodes", "facts", "--python=-c", str(tmp_path)]) == 2


# --- the site


@pytest.fixture
def sites(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "sites"))
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    return tmp_path / "sites"


def test_site_from_facts(sites, tmp_path, capsys, output_of):
    folder = write(
        tmp_path / "facts", *(node(f"n{number}") for number in range(1, 4)), node("a0", smt=False, limits={})
    )
    (folder / "a0.xml").write_text(XML.replace("2.0", "9.9"))
    init = [
        "site", "init", "--site", "new", "--partition", "main", "--scheduler", "squeue", "--offer", "mpich",
        "--access=--partition=main", "--facts", str(folder), "--hostname", "^login[0-9]$", "--hostname", "^ctl$",
    ]  # fmt: skip
    assert cli.main(init) == 0
    document = site.load("new")
    (part,) = document.partitions
    assert document.hostnames == ["^login[0-9]$", "^ctl$"]
    assert (part.nodes, part.facts) == (4, Facts(core_ghz=3.7, simd_bits=512, link_gbit=200.0))
    assert part.description.startswith("3 like nodes: AMD EPYC 9654")
    assert part.description.endswith("a0 differs")
    assert (sites / "new/topology/main.xml").read_text() == XML
    file = sites / "new/site.yaml"
    file.write_text(file.read_text().replace("nodes: 4", "nodes: 2  # enough"))
    capsys.readouterr()
    assert output_of(0, *init) == "site new: unchanged\n"
    assert "nodes: 2  # enough" in file.read_text()


def test_site_nodes_as_told_and_bad_input(sites, tmp_path, capsys, refused):
    folder = write(tmp_path / "facts", node("n1"), xml=None)
    init = ["site", "init", "--offer", "mpich", "--nodes", "7", "--facts", str(folder)]
    assert "has a topology" in refused(2, *init)
    with pytest.raises(SystemExit):
        cli.main([*init, "--hostname", "("])
    assert "is not a regular expression" in capsys.readouterr().err
    (folder / "n1.xml").write_text(XML)
    assert cli.main(init) == 0
    assert site.load("local").partitions[0].nodes == 7
