"""Jobs over two nodes: what every launcher is told, and what every scheduler is asked for.

Nobody has all these schedulers. ReFrame writes the job scripts of a made-up site without them; they follow the manuals:
sbatch(1); qsub(1B) of PBS; bsub(1); qsub(1) of Grid Engine, whose slots come from the options of the partition;
flux-batch(1); ReFrame's own ssh backend, whose scripts carry no request. A wanted change is written with
``PLUMB_GOLDEN=write pytest tests/golden/test_nodes.py`` and then read as a diff.
"""

import json
import os
import re
import shutil
from pathlib import Path

import forked_reframe
import pytest
import yaml
from archived_sites import sources
from test_seed_sites import LAUNCHERS, as_json, golden, launcher

from plumbline.base import paths
from plumbline.host import binder
from plumbline.mpi import Layout

NODE = "package:2 [numa(memory=1073741824)] core:8 pu:1"
HOSTS = ("n1", "n2")
LAYOUTS = {
    "1 rank x 16 threads on each of 2 nodes": Layout(2, 1),
    "16 ranks on each of 2 nodes": Layout(2, 16),
    "roundrobin": Layout(2, 16, round_robin=True),
    "pair:node": Layout(2, 1),
    "1 rank x 16 threads, by ssh": Layout(2, 1, HOSTS, ssh=True),
    "roundrobin, by ssh": Layout(2, 16, HOSTS, round_robin=True, ssh=True),
}
ACCESS = {
    "slurm": ["--partition=main", "--account=bench"],
    "squeue": ["--partition=main"],
    "pbs": ["-q main"],
    "lsf": ["-q main"],
    "sge": ["-q main", "-pe mpi 16"],
    "flux": ["--queue=main"],
}
SCHEDULERS = ("slurm", "squeue", "pbs", "lsf", "sge", "flux", "ssh", "local")
#: tests whose jobs have two nodes: one rank of 16 threads on each, ranks dealt over them, a pair
SELECTED = (
    "pingpong_threads.*placement=node.*operation=funneled",
    "rank_map.*placement=roundrobin.*node_count=2.*dimensions=2",
    "osu_pair.*operation=latency.*placement=pair:node",
)


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not root, which changes the variables."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)


def told(family: str, layout: Layout) -> str:
    plugin = "pmix" if family == "srun" else None
    exported = ("LD_LIBRARY_PATH", "FI_PROVIDER")
    command = launcher(family, plugin).command(layout, bound=True, exported=exported, environment={})
    variables = [f"{name}='{value}'" for name, value in sorted(command.environment.items())]
    words = [f"'{word}'" if " " in word else word for word in command.arguments]
    return " ".join([*variables, *words])


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize("family", LAUNCHERS)
def test_launchers(family: str) -> None:
    layouts = {name: layout for name, layout in LAYOUTS.items() if family != "srun" or not layout.ssh}
    golden(f"launchers/{family}.json", as_json({name: told(family, layout) for name, layout in layouts.items()}))


@pytest.mark.parametrize("family", ["hydra", "intel-hydra"])
def test_hydra_in_a_job_of_slurm_is_not_bound_by_srun(family: str) -> None:
    found = launcher(family).command(Layout(2, 1), bound=True, environment={"SLURM_JOB_ID": "1"})
    assert found.environment["SLURM_CPU_BIND"] == "none"
    assert "SRUN_CPUS_PER_TASK" in found.removed


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """scheduler -> test -> job script, of one dry run over all schedulers."""
    folder = tmp_path_factory.mktemp("nodes")
    _site(folder / "sites")
    output = _dry_run(folder)
    assert "[  PASSED  ]" in output, output
    found: dict[str, dict[str, str]] = {}
    for file in sorted((folder / "stage" / "made-up").glob("*/*/*/rfm_job.sh")):
        variant = json.loads((file.parent / "variant.json").read_text(encoding="utf-8"))
        text = file.read_text(encoding="utf-8").replace(str(file.parent), "STAGE").replace(str(paths.root()), "ROOT")
        text = text.replace(str(folder / "sites"), "SITES").replace(str(folder / "stacks"), "STACKS")
        text = re.sub(r"(rfm_\w+)_[0-9a-f]{8}\b", r"\1_HASH", text)
        found.setdefault(variant["partition"], {})[variant["name"]] = text
    return found


def _site(sites: Path) -> None:
    partitions = []
    (sites / "made-up" / "topology").mkdir(parents=True)
    xml = binder.ask(["--export-topology", "-", "--topology", NODE])
    (sites / "made-up" / "topology" / "node.xml").write_text(xml, encoding="utf-8")
    for name in SCHEDULERS:
        part = {"name": name, "scheduler": name, "topology": "topology/node.xml", "stacks": ["openmpi"]}
        if name in ("ssh", "local"):
            partitions.append({**part, "hosts": list(HOSTS)})
        else:
            partitions.append({**part, "nodes": 2, "access": ACCESS.get(name, [])})
    document = {"schema": 1, "name": "made-up", "description": "two nodes", "hostnames": ["(?!)"], "archived": True}
    text = yaml.safe_dump({**document, "partitions": partitions})
    (sites / "made-up" / "site.yaml").write_text(text, encoding="utf-8")
    shutil.copy(paths.root() / "site-configs" / "settings.py", sites)


def _dry_run(folder: Path) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("RFM_", "PLUMB_"))}
    environment = {
        **clean,
        "PLUMB_SITES": str(folder / "sites"),
        "PLUMB_STACKS": str(folder / "stacks"),
        "RFM_CONFIG_FILES": str(folder / "sites" / "settings.py"),
        "RFM_PREFIX": str(folder),
    }
    selection = ("-n", "|".join(SELECTED))
    words = [*sources(selection), "--nocolor", "--system", "made-up", "--dry-run", "--keep-stage-files", *selection]
    return forked_reframe.run(*words, environment=environment, folder=folder).stdout


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_job_scripts_over_two_nodes(scheduler: str, scripts: dict[str, dict[str, str]]) -> None:
    found = scripts[scheduler]
    assert len(found) == len(SELECTED)
    golden(f"jobscripts/nodes-{scheduler}.txt", "\n".join(f"### {name}\n{found[name]}" for name in sorted(found)))
