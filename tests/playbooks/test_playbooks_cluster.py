"""Playbooks against a cluster: a second folder of this machine stands for it, with a scheduler and a plumb of straw."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from processes import ended

ROOT = Path(__file__).resolve().parents[2]
ROLES = ROOT / "playbooks/roles"
BIN = Path(sys.executable).parent


def load(file):
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FILTERS = load(ROOT / "playbooks/filter_plugins/plumb.py")
GOOD = {
    "root": "/shared/plumbline",
    "here": False,
    "site": "newton",
    "partitions": [{"name": "main", "scheduler": "squeue", "access": ["--partition=main", "-A bench"], "nodes": 2}],
    "stacks": ["openmpi", "spack:mpich", "--all"][:2],
    "python": "python3.12",
    "environment": {"PATH": "/opt/bin:/usr/bin"},
}
HOSTILE = ["x; touch {canary}", "$(touch {canary})", "`touch {canary}`", "a'b\"c", "two\nlines", "-rf", "../..", ""]


@pytest.fixture
def cluster(tmp_path):
    """An inventory with its control folder and the cluster's, and the programs on the cluster's PATH."""
    for folder in ("control", "cluster", "bin", "inventory"):
        (tmp_path / folder).mkdir()
    hosts = {
        "plumb_login": {
            "hosts": {
                "straw": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable},
            },
            "vars": {
                "plumb_root": str(tmp_path / "cluster"),
                "plumb_site": "straw",
                "plumb_partitions": [{"name": "main", "scheduler": "squeue", "access": ["--partition=main"]}],
                "plumb_environment": {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
            },
        }
    }
    (tmp_path / "inventory/hosts.yml").write_text(yaml.safe_dump(hosts))
    return tmp_path


def play(cluster, playbook, *arguments, **variables):
    """Run a playbook; the control machine's checkout is ``cluster/control``."""
    file = cluster / "extra.yml"
    file.write_text(yaml.safe_dump({"plumb_inventory_control": str(cluster / "control"), **variables}))
    environment = {**os.environ, "ANSIBLE_FORCE_COLOR": "0", "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    # a job is started below HOME, and looked for below the home that the system knows
    environment["ANSIBLE_ASYNC_DIR"] = str(cluster / "async")
    command = [str(BIN / "ansible-playbook"), "-i", str(cluster / "inventory"), "-e", f"@{file}", *arguments]
    command.append(f"playbooks/{playbook}.yml")
    return ended(command, cwd=ROOT, env=environment)


def succeeded(cluster, playbook, *arguments, **variables):
    """What a playbook says, which succeeds."""
    done = play(cluster, playbook, *arguments, **variables)
    assert done.returncode == 0, done.stdout
    return done.stdout


def refused(cluster, playbook, *arguments, **variables):
    """What a playbook says, which fails."""
    done = play(cluster, playbook, *arguments, **variables)
    assert done.returncode != 0, done.stdout
    return done.stdout


def calls(cluster):
    """The arguments of each call of the plumb of straw."""
    return [json.loads(line) for line in (cluster / "cluster/called").read_text().splitlines()]


def program(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


def bash(script, *arguments, home=None):
    environment = {**os.environ, **({"HOME": str(home)} if home else {})}
    command = ["bash", str(script), *map(str, arguments)]
    return ended(command, env=environment)


# values of the inventory


def test_good_values_have_no_faults():
    assert FILTERS.faults(GOOD) == []


@pytest.mark.parametrize(("scheduler", "faults"), [("squeue", 1), ("slurm", 1), ("pbs", 1), ("local", 0), ("ssh", 0)])
def test_hosts_beside_a_scheduler_that_names_its_nodes_are_the_fault(scheduler, faults):
    part = {"name": "main", "scheduler": scheduler, "hosts": ["n1"]}
    told = FILTERS.faults({**GOOD, "partitions": [part]})
    wanted = f"'main': hosts goes with scheduler local and ssh alone; {scheduler} names its nodes: remove it"
    assert told == [f"plumb_partitions: {wanted}"] * faults


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("key", ["root", "site", "python", "stack", "partition", "access", "host", "variable"])
def test_hostile_values_are_faults(key, value):
    part = dict(GOOD["partitions"][0])
    changed = {
        "root": {"root": f"/{value}" if value != "-rf" else value},
        "site": {"site": value},
        "python": {"python": value},
        "stack": {"stacks": [value]},
        "partition": {"partitions": [{**part, "name": value}]},
        "access": {"partitions": [{**part, "access": [value if value != "-rf" else "-rf;"]}]},
        "host": {"partitions": [{**part, "hosts": [value]}]},
        "variable": {"environment": {value: "x"}},
    }[key]
    if key == "python" and value == "../..":
        pytest.skip("a path upwards is a path: it is run as it is, never by a shell")
    assert len(FILTERS.faults({**GOOD, **changed})) == 1


def test_values_of_variables_may_hold_anything_that_can_be_printed():
    assert FILTERS.faults({**GOOD, "environment": {"A": "$(touch x); 'quoted'"}}) == []
    assert FILTERS.faults({**GOOD, "environment": {"A": "two\nlines"}})


@pytest.mark.parametrize(
    "value", [HOSTILE[1], *(pytest.param(value, marks=pytest.mark.long) for value in (HOSTILE[0], *HOSTILE[2:5]))]
)
def test_hostile_inventory_is_refused_before_anything_runs(cluster, value):
    canary = cluster / "canary"
    keys = ["plumb_root", "plumb_site", "plumb_python"]
    done = refused(cluster, "onboard", **dict.fromkeys(keys, value.format(canary=canary)))
    assert not canary.exists()
    assert re.findall(r"^(plumb_\w+): ", done, re.MULTILINE) == keys
    assert list((cluster / "cluster").iterdir()) == []
    assert "ok=0" in done or "Preflight" not in done


def test_hostile_partition_is_refused_before_anything_runs(cluster):
    canary = cluster / "canary"
    part = {"name": "main", "scheduler": "ssh", "hosts": [f"node1; touch {canary}"], "access": [f"$(touch {canary})"]}
    done = refused(cluster, "onboard", plumb_partitions=[part])
    assert not canary.exists()
    assert "cannot be a host's name" in done
    assert "has to be one option" in done


def test_unknown_scheduler_and_unknown_key_are_refused(cluster):
    parts = [{"name": "main", "scheduler": "slrum"}, {"name": "fat", "scheduler": "squeue", "lunch": "srun"}]
    done = refused(cluster, "onboard", plumb_partitions=parts)
    assert "slrum" in done
    assert "lunch" in done


def test_the_night_runs_hostile_options_unharmed(cluster):
    """The one place where a shell reads values: the script of the night, in which they are quoted."""
    from ansible.plugins.filter.core import quote
    from jinja2 import Environment

    canary = cluster / "canary"
    plumb(cluster, 0)
    (cluster / "cluster/build/onboard").mkdir(parents=True)
    environment = Environment(trim_blocks=True, autoescape=False)  # noqa: S701  (a shell script)
    environment.filters["quote"] = quote
    hostile = f"$(touch {canary}); touch {canary} 'q'"
    text = environment.from_string((ROLES / "plumb_ci/templates/nightly.j2").read_text()).render(
        plumb_inventory_root=str(cluster / "cluster"),
        plumb_inventory_site="straw",
        plumb_ci_nightly_options=["-n", hostile],
        plumb_inventory_environment={"A": hostile},
    )
    program(cluster / "nightly", text)
    assert bash(cluster / "nightly").returncode == 0
    assert not canary.exists()
    assert calls(cluster) == [["campaign", "--profile", "quick", "--", "-n", hostile], ["history", "--site", "straw"]]


def test_host_keys_are_always_checked():
    assert "host_key_checking = true" in (ROOT / "ansible.cfg").read_text()
    for file in [ROOT / "ansible.cfg", *(ROOT / "playbooks").rglob("*"), *(ROOT / "tests/bed").rglob("*")]:
        if file.is_file() and "__pycache__" not in file.parts:
            text = file.read_text(encoding="utf-8", errors="replace")
            assert not re.search(r"StrictHostKeyChecking[ =]+(no|off|accept)", text, re.IGNORECASE), file
            assert not re.search(r"UserKnownHostsFile[ =]+/dev/null", text, re.IGNORECASE), file


def test_no_task_gives_others_permissions():
    """Two roles put files of root on nodes, which everybody may read and run; documents of jobs are like /tmp."""
    for file in (ROOT / "playbooks").rglob("*.yml"):
        for mode in re.findall(r"^\s*(?:directory_)?mode: (.*)$", file.read_text(), re.MULTILINE):
            wanted = mode.strip("\"'")
            modes = {"plumb_health": ("0755", "0644"), "plumb_advice": ("0755", "1777")}
            public = wanted in modes.get(file.parts[-3], ())
            assert re.fullmatch(r"0[0-7][0-5]0", wanted) or wanted.endswith("o=") or public, f"{file}: {mode}"


# preflight


def slurm(cluster, srun):
    for name in ("sbatch", "salloc", "sinfo", "scontrol", "squeue"):
        program(cluster / "bin" / name, "#!/bin/sh\n")
    program(cluster / "bin/srun", f"#!/bin/bash\n{srun}\n")


#: runs what comes after the options
RUNS = 'while [[ $1 == -* ]]; do shift; done; exec "$@"'


@pytest.mark.long
def test_preflight_proves_the_shared_folder_by_a_job(cluster):
    slurm(cluster, f'echo "$@" >>{cluster}/jobs; {RUNS}')
    succeeded(cluster, "onboard", "--tags", "preflight")
    assert "--partition=main" in (cluster / "jobs").read_text()
    assert list((cluster / "cluster").iterdir()) == []  # the probe and its copy are gone


@pytest.mark.parametrize(("srun", "said"), [
    ("exit 0", "does not share"),
    pytest.param(
        "echo 'cp: cannot create regular file' >&2; exit 1", "cannot create regular file", marks=pytest.mark.long
    ),
    pytest.param("sleep 30", "ran a job within 1 s", marks=pytest.mark.long),
])  # fmt: skip
def test_preflight_names_a_root_that_is_not_shared(cluster, srun, said):
    slurm(cluster, srun)
    done = refused(cluster, "onboard", "--tags", "preflight", plumb_preflight_wait_s=1)
    assert said in done
    assert list((cluster / "cluster").iterdir()) == []


def test_preflight_names_the_commands_that_are_missing(cluster):
    environment = {"PATH": f"{cluster / 'bin'}:/usr/bin:/bin"}
    done = refused(cluster, "onboard", "--tags", "preflight", plumb_environment=environment, plumb_partitions=[
        {"name": "main", "scheduler": "lsf"}
    ])  # fmt: skip
    assert re.search(r"not on PATH of \S+: bhosts, bjobs, bsub", done)


@pytest.mark.long
def test_preflight_names_an_old_python(cluster):
    slurm(cluster, RUNS)
    program(cluster / "bin/oldpython", "#!/bin/sh\necho 3.9; exit 1\n")
    done = refused(cluster, "onboard", "--tags", "preflight", plumb_python="oldpython")
    assert "is Python 3.9; 3.10 or newer is needed: give its path as plumb_python" in done


@pytest.mark.parametrize("kind", ["slurm", "squeue", "pbs", "sge", "lsf", "flux", "ssh"])
def test_jobs_of_all_schedulers_are_argument_lists(kind):
    part = {"name": "main", "scheduler": kind, "access": ["-q x"], "hosts": ["node1"]}
    command = FILTERS.job(part, ["/bin/cp", "a b", "c"], 5)
    between = "'a b'" if kind in ("lsf", "ssh") else "a b"  # a shell reads theirs
    assert command[-3:] == ["/bin/cp", between, "c"]
    assert command[command.index("-q") + 1] == "x"
    assert command[:1] == ["timeout"]


def test_root_is_made_for_owner_and_group_only(tmp_path):
    root = tmp_path / "deep" / "root"
    done = bash(ROLES / "plumb_preflight/files/root.sh", root, "make")
    assert (done.returncode, done.stdout) == (0, "made\n")
    assert root.stat().st_mode & 0o777 == 0o750
    assert bash(ROLES / "plumb_preflight/files/root.sh", root, "make").stdout == ""


def test_root_of_somebody_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    done = bash(ROLES / "plumb_preflight/files/root.sh", tmp_path, "make")
    assert done.returncode == 1
    assert "holds other files" in done.stdout
    home = bash(ROLES / "plumb_preflight/files/root.sh", tmp_path, "make", home=tmp_path)
    assert "is a home" in home.stdout


# checkout


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "control"
    (folder / "site-configs/newton").mkdir(parents=True)
    git(folder, "init", "--quiet")
    (folder / "a").write_text("1")
    (folder / "site-configs/newton/site.yaml").write_text("committed")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "1")
    return folder


def carry(control, root, commit):
    files = ROLES / "plumb_checkout/files"
    bundle = root.parent / "bundle"
    made = bash(files / "bundle.sh", control, commit, bundle)
    assert made.returncode == 0, made.stderr
    return bash(files / "checkout.sh", root, bundle, commit, "newton")


def commit(folder, *arguments):
    return bash(ROLES / "plumb_checkout/files/commit.sh", folder, "newton", *arguments).stdout.split()


def test_checkout_arrives_with_its_commit_and_leaves_no_reference(repository, tmp_path):
    root = tmp_path / "root"
    (head,) = commit(repository)
    assert carry(repository, root, head).returncode == 0
    assert git(root, "rev-parse", "HEAD") == head
    assert (root / ".git/plumbline").is_file()
    assert git(repository, "for-each-ref", "refs/plumbline") == ""


def test_checkout_keeps_the_sites_folder_and_refuses_other_changes(repository, tmp_path):
    root = tmp_path / "root"
    carry(repository, root, commit(repository)[0])
    (root / "site-configs/newton/site.yaml").write_text("edited there")
    (root / "site-configs/newton/new.yaml").write_text("made there")
    (repository / "a").write_text("2")
    (repository / "site-configs/newton/site.yaml").write_text("committed again")
    git(repository, "commit", "--quiet", "-a", "-m", "2")
    assert carry(repository, root, commit(repository)[0]).returncode == 0
    assert (root / "a").read_text() == "2"
    assert (root / "site-configs/newton/site.yaml").read_text() == "edited there"
    assert (root / "site-configs/newton/new.yaml").read_text() == "made there"
    (root / "a").write_text("edited there")
    (repository / "a").write_text("3")
    git(repository, "commit", "--quiet", "-a", "-m", "3")
    refused = carry(repository, root, commit(repository)[0])
    assert refused.returncode == 1
    assert "changes that are not committed" in refused.stdout
    assert (root / "a").read_text() == "edited there"


def test_checkout_that_was_interrupted_gives_the_sites_folder_back(repository, tmp_path):
    root = tmp_path / "root"
    head = commit(repository)[0]
    carry(repository, root, head)
    (root / ".git/plumbline-site").mkdir()
    (root / ".git/plumbline-site/site.yaml").write_text("edited there")
    (root / ".git/plumbline-site.new").mkdir()
    (root / "site-configs/newton/site.yaml").unlink()
    assert carry(repository, root, head).returncode == 0
    assert (root / "site-configs/newton/site.yaml").read_text() == "edited there"
    assert [file.name for file in (root / "site-configs/newton").iterdir()] == ["site.yaml"]
    assert not (root / ".git/plumbline-site").exists()


def test_a_clone_that_cannot_be_copied_says_so(repository, tmp_path):
    git(repository, "commit", "--quiet", "--allow-empty", "-m", "2")
    git(tmp_path, "clone", "--quiet", "--depth", "1", repository.as_uri(), "shallow")
    done = bash(ROLES / "plumb_checkout/files/commit.sh", tmp_path / "shallow", "newton")
    assert done.returncode == 1
    assert "is a shallow clone, which cannot be copied: git -C" in done.stdout
    assert "is not a git checkout" in bash(ROLES / "plumb_checkout/files/commit.sh", tmp_path, "newton").stdout


def test_uncommitted_changes_are_said_or_carried(repository, tmp_path):
    head = commit(repository)[0]
    (repository / "site-configs/newton/site.yaml").write_text("edited here")
    assert commit(repository) == [head]  # the site's folder goes its own way
    (repository / "new").write_text("new")
    assert commit(repository) == [head, "dirty"]
    (carried,) = commit(repository, "uncommitted")
    assert commit(repository, "uncommitted") == [carried]  # the same files are the same commit
    assert git(repository, "status", "--porcelain").splitlines()[-1] == "?? new"
    root = tmp_path / "root"
    assert carry(repository, root, carried).returncode == 0
    assert (root / "new").read_text() == "new"


# the virtual environment


@pytest.mark.long
def test_an_archive_reaches_the_virtual_environment_with_its_checksum(cluster, repository):
    """A cluster without a route is in tests/bed (long), a checkout without a network in tests/e2e/test_offline.py."""
    noted = cluster / "noted"
    program(cluster / "bin/make", f'#!/bin/sh\necho "$PLUMB_ARCHIVE $PLUMB_ARCHIVE_SHA256 $*" >{noted}\n')
    program(cluster / "bin/cmake", "#!/bin/sh\n")
    archive = cluster / "all.tar"
    archive.write_bytes(bytes(range(256)))
    (cluster / "all.tar.sha256").write_text("c0ffee  all.tar\n")
    beside = cluster / "cluster.bundle"
    beside.write_text("of somebody else")
    root = cluster / "cluster"
    copied = root / "stacks/onboard-archive.tar"
    again = ["-W", "requirements.txt"]  # a new archive: what is installed is checked again
    for more in (again, []):
        succeeded(cluster, "onboard", "--tags", "tools", plumb_archive=str(archive))
        assert copied.read_bytes() == archive.read_bytes()
        words = [str(copied), "c0ffee", "--no-print-directory", "-C", str(root), "PYTHON=python3", *more, "venv"]
        assert noted.read_text().split() == words
    assert beside.read_text() == "of somebody else"


# the site folder on two machines


def test_directions_of_files():
    base = {"same": "1", "here": "1", "there": "1", "both": "1"}
    control = {"same": "1", "here": "2", "there": "1", "both": "2", "new": "1", "twice": "1"}
    cluster = {"same": "1", "here": "1", "there": "2", "both": "3", "fresh": "1", "twice": "1"}
    assert FILTERS.directions(control, cluster, base) == {
        "push": ["here", "new"],
        "fetch": ["fresh", "there"],
        "conflict": ["both"],
    }


def test_odd_names_are_never_carried():
    names = ["good.jsonl", "sub/good.gz", "../up", "/abs", "-option", "new\nline", "a b", ".hidden", "sub/.hidden"]
    found = {"files": [{"path": f"/r/{name}", "checksum": "1"} for name in names]}
    assert list(FILTERS.sums(found, "/r")) == ["good.jsonl", "sub/good.gz"]


def test_a_group_that_the_inventory_lacks_is_named(cluster):
    done = play(cluster, "health")
    assert "no host matches: does the inventory have the group plumb_nodes?" in done.stdout, done.stdout + done.stderr


def test_a_file_changed_on_both_machines_is_named(cluster):
    for machine in ("control", "cluster"):
        folder = cluster / machine / "site-configs/straw"
        folder.mkdir(parents=True)
        (folder / "site.yaml").write_text(machine)
    done = refused(cluster, "onboard", "--tags", "site_config")
    assert re.search(r"changed on both machines .* site.yaml", done.replace("\n", " "))
    assert (cluster / "control/site-configs/straw/site.yaml").read_text() == "control"
    assert (cluster / "cluster/site-configs/straw/site.yaml").read_text() == "cluster"


@pytest.mark.parametrize("take", ["neither", pytest.param("cluster", marks=pytest.mark.long)])
def test_a_later_stage_keeps_what_was_edited_on_both_machines(cluster, take):
    """Ceilings, references and offboarding bring files back, too."""
    plumb(cluster, 0)
    (cluster / "cluster/.git").mkdir()
    mine = cluster / "control/site-configs/straw/site.yaml"
    mine.parent.mkdir(parents=True)
    mine.write_text("edited here\n")
    done = play(cluster, "onboard", "--tags", "ceilings", plumb_site_take=take)
    assert (done.returncode == 0) is (take == "cluster"), done.stdout
    assert ("since they were last alike" in done.stdout) is (take == "neither")
    assert mine.read_text() == ("edited here\n" if take == "neither" else "schema: 1\n")


def test_a_site_file_that_is_not_in_order_goes_nowhere(cluster):
    folder = cluster / "control/site-configs/straw"
    folder.mkdir(parents=True)
    (folder / "site.yaml").write_text(
        "schema: 1\nname: straw\ndescription: d\nhostnames: [a]\npartitions:\n"
        "  - {name: main, scheduler: squeue, hosts: [n1], topology: t.xml, stacks: []}\n"
    )
    done = refused(cluster, "onboard", "--tags", "site_config")
    told = " ".join(done.split())
    assert "partitions[0]: hosts goes with scheduler local and ssh alone, not with 'squeue'" in told, told[-2000:]
    assert not (cluster / "cluster/site-configs").exists()


def test_keys_of_the_inventory_are_options_and_a_persons_are_kept(tmp_path):
    folder = tmp_path / "straw"
    folder.mkdir()
    (folder / "site.yaml").write_text(
        "schema: 1\nname: straw\ndescription: d\nhostnames: [a]\npartitions:\n"
        "  - name: main  # mine\n    scheduler: ssh\n    topology: t.xml\n    stacks: []\n    launcher: mpirun\n"
    )
    part = {"name": "main", "scheduler": "ssh", "launcher": "srun", "srun_mpi": {"mpich": "pmix"}, "max_pending_s": 60}
    part |= {"environment": {"FI_PROVIDER": "tcp;ofi", "LEVEL": 1}, "hosts": ["a1", "a2"]}
    command = [str(BIN / "plumb"), "site", "init", "--site", "straw", "--partition", "main"]
    command += ["--scheduler", "ssh", "--offer", "openmpi", *FILTERS.keys(part)]

    def run(*more):
        environment = {**os.environ, "PLUMB_SITES": str(tmp_path)}
        done = ended([*command, *more], env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run()
    text = (folder / "site.yaml").read_text()
    assert "# mine" in text
    written = yaml.safe_load(text)["partitions"][0]
    assert written["launcher"] == "mpirun"
    assert {key: written[key] for key in ("srun_mpi", "environment", "hosts", "max_pending_s")} == {
        **{key: part[key] for key in ("srun_mpi", "hosts", "max_pending_s")},
        "environment": {"FI_PROVIDER": "tcp;ofi", "LEVEL": "1"},
    }
    assert "site straw: unchanged\n" in run()


# campaigns and records


@pytest.mark.parametrize("playbook", [("onboard", "--tags", "tools"), ("doctor",)])
def test_a_dry_run_copies_and_submits_nothing(cluster, repository, playbook):
    plumb(cluster, 0)
    (cluster / "cluster/called").touch()
    before = sorted((cluster / "cluster").rglob("*"))
    succeeded(cluster, *playbook, "--check")
    assert sorted((cluster / "cluster").rglob("*")) == before


def test_facts_of_each_partition_are_collected(cluster):
    """Whatever it is called: the facts are below build/nodes."""
    plumb(cluster, 0)
    (cluster / "cluster/build/nodes/thin").mkdir(parents=True)
    (cluster / "cluster/build/nodes/thin/n1.json").write_text("{}")
    parts = [{"name": name, "scheduler": "squeue"} for name in ("thin", "nodes")]
    play(cluster, "onboard", "--tags", "facts", plumb_partitions=parts)
    assert [call[3] for call in calls(cluster) if call[1] == "facts"] == ["nodes"]


@pytest.mark.long
def test_facts_that_do_not_come_in_time_are_an_error(cluster):
    plumb(cluster, 0)
    program(cluster / "cluster/.venv/bin/plumb", "#!/bin/sh\nsleep 30\n")
    done = refused(cluster, "onboard", "--tags", "facts", plumb_facts_seconds=-58)
    assert "Timeout exceeded" in done


@pytest.mark.parametrize(("nightly", "when"), [("timer", "17 2 * * 1"), ("timer", "*/5 2 * * *"), ("cron", "17 2 * *")])
def test_a_time_that_cannot_be_kept_is_refused(cluster, nightly, when):
    done = refused(cluster, "onboard", "--tags", "ci", plumb_ci_nightly=nightly, plumb_ci_when=when)
    assert "has to be five fields of cron" in done


@pytest.mark.long
def test_pipelines_of_two_clusters_are_not_one_file(cluster):
    plumb(cluster, 0, "control")
    file = cluster / "inventory/hosts.yml"
    hosts = yaml.safe_load(file.read_text())
    both = hosts["plumb_login"]["hosts"]
    both["stray"] = {**both["straw"], "plumb_site": "stray"}
    file.write_text(yaml.safe_dump(hosts))
    words = [cluster, "onboard", "--tags", "ci"]
    given = {"plumb_ci_kind": "github", "plumb_ci_output": str(cluster / "control")}
    done = refused(*words, **given)
    assert "plumbline.yml would be the pipeline of several clusters" in done
    assert not any("--checkout" in call for call in map(json.loads, (cluster / "control/called").open()))
    succeeded(*words, "--limit", "straw", **given)


def plumb(cluster, status, root="cluster"):
    """A plumb that notes its arguments as JSON, says something, and ends with ``status``."""
    site = cluster / root / "site-configs/straw"
    (site / "topology").mkdir(parents=True, exist_ok=True)
    (cluster / root / "stacks").mkdir(exist_ok=True)
    (site / "site.yaml").write_text("schema: 1\n")
    program(
        cluster / root / ".venv/bin/plumb",
        f"#!{sys.executable}\nimport json, pathlib, sys\n"
        f"with open({str(cluster / root / 'called')!r}, 'a') as stream:\n"
        "    print(json.dumps(sys.argv[1:]), file=stream)\n"
        f"print('   1/2 OK  stream\\n\\nTABLE of the campaign'); sys.exit({status})\n",
    )


def test_smoke_is_shown_and_not_repeated(cluster):
    """Options of ReFrame are a person's to choose: regular expressions have to pass, and no shell may see them."""
    canary = cluster / "canary"
    plumb(cluster, 0)
    program(cluster / "bin/git", "#!/bin/sh\necho c0ffee\n")
    options = ["-n", f"a|b $(touch {canary}) `touch {canary}`; touch {canary} 'q'"]
    first = succeeded(cluster, "onboard", "--tags", "smoke", plumb_smoke_options=options)
    assert not canary.exists()
    assert calls(cluster) == [["campaign", "--profile", "quick", "--", *options]]
    assert "\nTABLE of the campaign\n" in first
    assert "1/2 OK" not in first
    again = play(cluster, "onboard", "--tags", "smoke", plumb_smoke_options=options)
    assert re.search(r"changed=0 failed=0", again.stdout), again.stdout
    assert len(calls(cluster)) == 1
    state = (cluster, "-s", cluster / "cluster", "straw", *options)
    passed = (cluster / "cluster/build/onboard/smoke").read_text()
    assert smoke_state(*state) == passed
    (cluster / "cluster/site-configs/straw/site.yaml").write_text("schema: 1\n# changed\n")
    assert smoke_state(*state) != passed


def smoke_state(cluster, *words):
    """What the role compares with what has passed, to decide whether a campaign is needed."""
    script = (ROLES / "plumb_smoke/files/state.sh").read_text()
    command = ["bash", *map(str, words)]
    environment = {**os.environ, "PATH": f"{cluster / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(command, input=script, capture_output=True, text=True, check=True, env=environment).stdout


@pytest.mark.long
def test_failed_smoke_shows_what_the_job_said_and_is_repeated(cluster):
    plumb(cluster, 1)
    stage = cluster / "cluster/build/reframe/stage/straw/main/openmpi/stream"
    stage.mkdir(parents=True)
    (stage / "rfm_job.err").write_text("slurmstepd: error: out of memory\n")
    (cluster / "cluster/build/reframe/campaign.out").write_text("FAILURE INFO\n")
    for _ in range(2):
        done = refused(cluster, "onboard", "--tags", "smoke")
        assert "slurmstepd: error: out of memory" in done
        assert "FAILURE INFO" in done
        assert "a variant failed or is not verified (above)" in done.replace("\n", " ")
    assert len(calls(cluster)) == 2


@pytest.mark.long
def test_a_campaign_that_measured_nothing_says_so_and_not_that_a_variant_failed(cluster):
    plumb(cluster, 1)
    file = cluster / "cluster/.venv/bin/plumb"
    why = "no variant was measured: all 9 were skipped, 9 x node n1 is drained"
    file.write_text(file.read_text().replace("sys.exit(1)", f"print({why!r}, file=sys.stderr); sys.exit(1)"))
    done = refused(cluster, "campaign", "--tags", "run")
    told = " ".join(done.split())
    assert f"the campaign ended with status 1: {why} (above)" in told
    assert "a variant failed" not in told


@pytest.mark.long
def test_ceilings_of_every_partition_are_measured_and_brought_back(cluster):
    plumb(cluster, 0)
    (cluster / "cluster/.git").mkdir()
    parts = [{"name": name, "scheduler": "squeue"} for name in ("thin", "fat")]
    succeeded(cluster, "onboard", "--tags", "ceilings", plumb_partitions=parts)
    asked = ["site", "measure", "--site", "straw", "--partition"]
    assert calls(cluster) == [[*asked, name, "--if-needed"] for name in ("thin", "fat")]
    assert (cluster / "control/site-configs/straw/site.yaml").exists()  # what the cluster has came back
    for option in (["-e", "plumb_ceilings_measure=false"], ["--check"]):
        play(cluster, "onboard", "--tags", "ceilings", *option, plumb_partitions=parts)
    assert len(calls(cluster)) == 2


@pytest.mark.long
@pytest.mark.parametrize(("status", "code"), [(1, 0), (2, 0), (3, 2)])
def test_ceilings_that_are_missing_are_a_warning(cluster, status, code):
    plumb(cluster, status)
    (cluster / "cluster/.git").mkdir()
    done = play(cluster, "onboard", "--tags", "ceilings")
    assert done.returncode == code, done.stdout
    assert ("partition main:" in done.stdout) is (code == 0)
    assert ("changed=0" in done.stdout) is (status != 1)
    assert ("plumb site measure tries again" in done.stdout.replace("\n", " ")) is (code == 0)


@pytest.mark.long
def test_calibration_goes_on_where_it_was_interrupted(cluster):
    plumb(cluster, 0)
    (cluster / "cluster/site-configs/straw/references").mkdir()
    (cluster / "cluster/.git").mkdir()
    (cluster / "cluster/build/onboard").mkdir(parents=True)
    (cluster / "cluster/build/onboard/session-1").write_text("done\n")
    given = {"plumb_calibrate_nodes": 2, "plumb_calibrate_options": ["-n", "stream"]}
    given |= {"plumb_campaign_options": ["-n", "other"], "plumb_campaign_turn": "7/9"}  # for campaign.yml alone
    succeeded(cluster, "onboard", "--tags", "calibrate", plumb_calibrate_sessions=3, **given)
    quick = ["campaign", "--profile", "quick"]
    turns = [[*quick, "--turn", f"{number}/2", "--", "-n", "stream"] for number in (2, 3)]
    assert calls(cluster)[:2] == turns
    assert [call[0] for call in calls(cluster)[2:]] == ["calibrate"]
    assert (cluster / "control/site-configs/straw/site.yaml").exists()  # what the cluster has came back
    (cluster / "cluster/site-configs/straw/references/stream.yaml").write_text("references:\n  - a: b\n    method: x\n")
    again = play(cluster, "onboard", "--tags", "calibrate", plumb_calibrate_sessions=3)
    assert "changed=0" in again.stdout


@pytest.mark.long
def test_a_stack_is_tuned_once(cluster):
    """In a job of the first partition, if the inventory names a stack; what was found says that it is done."""
    plumb(cluster, 0)
    parts = [{"name": name, "scheduler": "squeue"} for name in ("thin", "fat")]
    found = cluster / "cluster/build/onboard/tuned-mpich.json"
    wanted = ["tune", "mpich", "--site", "straw", "--partition", "thin", "--output", str(found), "--sizes", "8,64"]
    options = {"plumb_tune": ["mpich"], "plumb_tune_options": ["--sizes", "8,64"], "plumb_partitions": parts}
    assert "changed=0" in play(cluster, "onboard", "--tags", "tune", plumb_partitions=parts).stdout
    succeeded(cluster, "onboard", "--tags", "tune", **options)
    found.write_text("{}\n")  # as plumb tune would
    assert "changed=0" in play(cluster, "onboard", "--tags", "tune", **options).stdout
    play(cluster, "onboard", "--tags", "tune", plumb_tune_again=True, **options)
    assert calls(cluster) == [wanted, wanted]


@pytest.mark.long
def test_records_are_collected_once_and_again_when_they_change(cluster):
    there = cluster / "cluster/results/straw"
    (there / "compact").mkdir(parents=True)
    (there / "a.jsonl").write_text("1\n")
    (there / "b c.jsonl").write_text("odd\n")
    (there / "compact/2026-11.0001.jsonl.gz").write_bytes(b"\0\1")
    here = cluster / "control/results/straw"
    here.mkdir(parents=True)
    (here / "mine.jsonl").write_text("only here\n")
    succeeded(cluster, "collect")
    names = sorted(str(file.relative_to(here)) for file in here.rglob("*") if file.is_file())
    assert names == ["a.jsonl", "compact/2026-11.0001.jsonl.gz", "mine.jsonl"]
    assert re.search(r"changed=0 failed=0", play(cluster, "collect").stdout)
    (there / "a.jsonl").write_text("1\n2\n")
    assert "1 of 3" in play(cluster, "collect").stdout.replace("\n", " ")
    assert (here / "a.jsonl").read_text() == "1\n2\n"


@pytest.mark.long
def test_what_comes_back_may_be_kept_outside_the_checkout(cluster):
    there = cluster / "cluster/results/straw"
    there.mkdir(parents=True)
    (there / "a.jsonl").write_text("1\n")
    succeeded(cluster, "collect", plumb_keep=str(cluster / "kept"))
    assert (cluster / "kept/results/straw/a.jsonl").read_text() == "1\n"
    assert not (cluster / "control/results").exists()


# offboarding


@pytest.mark.long
def test_offboard_wants_the_name_and_fetches_first(cluster):
    root = cluster / "cluster"
    (root / "results/straw").mkdir(parents=True)
    (root / "results/straw/a.jsonl").write_text("1\n")
    (root / ".git").mkdir()
    (root / ".git/plumbline").write_text("made\n")
    said = refused(cluster, "offboard")
    assert "say -e confirm=straw" in said
    assert root.exists()
    table = cluster / "table"
    table.write_text("0 1 * * * other\n# plumbline straw\n17 2 * * * /r/nightly\n")
    keep = f"cat >{table}.new; mv {table}.new {table}"
    program(cluster / "bin/scrontab", f'#!/bin/sh\nif [ "$1" = -l ]; then cat {table}; else {keep}; fi\n')
    succeeded(cluster, "offboard", "-e", "confirm=straw")
    assert not root.exists()
    assert table.read_text() == "0 1 * * * other\n"
    assert (cluster / "control/results/straw/a.jsonl").read_text() == "1\n"
    again = succeeded(cluster, "offboard", "-e", "confirm=straw")
    assert "changed=0" in again


def test_a_removal_that_breaks_off_keeps_the_note(tmp_path, monkeypatch):
    root = tmp_path / "root"
    (root / ".git/objects").mkdir(parents=True)
    (root / "zz").mkdir()
    (root / ".git/plumbline").write_text("made\n")
    program(tmp_path / "rm", "#!/bin/sh\nexit 1\n")
    scripts = ROLES / "plumb_offboard/files"
    with monkeypatch.context() as broken:
        broken.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        assert bash(scripts / "remove.sh", root).returncode == 1
    assert sorted(root.rglob("*")) == [root / ".git", root / ".git/plumbline"]
    assert bash(scripts / "mine.sh", root).stdout == "mine\n"
    assert bash(scripts / "remove.sh", root).returncode == 0
    assert not root.exists()


def test_offboard_refuses_what_onboarding_did_not_make(cluster):
    (cluster / "cluster/thesis.tex").write_text("")
    done = refused(cluster, "offboard", "-e", "confirm=straw")
    assert "was not made by onboarding" in done
    assert (cluster / "cluster/thesis.tex").exists()


def test_offboard_refuses_a_home(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/plumbline").write_text("")
    script = ROLES / "plumb_offboard/files/mine.sh"
    assert bash(script, tmp_path).stdout == "mine\n"
    assert bash(script, tmp_path, home=tmp_path).returncode == 1
    assert bash(script, "/").returncode == 1
    assert bash(script, tmp_path / "absent").stdout == "gone\n"


@pytest.mark.long
def test_cron_without_crontab_says_what_to_use(cluster):
    if shutil.which("crontab"):
        pytest.skip("this machine has crontab, and the role looks for the real one")
    done = play(cluster, "onboard", "--tags", "ci", plumb_ci_nightly="cron")
    told = " ".join(done.stdout.split())
    assert done.returncode != 0
    assert "has no crontab command: say plumb_ci_nightly=timer (systemd)" in told
    assert not (cluster / "cluster/build/onboard/nightly").exists()


def test_scrontab_keeps_other_entries(tmp_path):
    table = tmp_path / "table"
    table.write_text("#SCRON -t 5\n0 1 * * * other\n")
    keep = f"cat >{table}.new; mv {table}.new {table}"
    program(tmp_path / "scrontab", f'#!/bin/sh\nif [ "$1" = -l ]; then cat {table}; else {keep}; fi\n')
    script = ROLES / "plumb_ci/files/scrontab.sh"

    def run(*arguments):
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        command = ["bash", str(script), *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout

    assert run("straw", "17 2 * * * /r/nightly") == "changed\n"
    assert run("straw", "17 2 * * * /r/nightly") == ""
    wanted = "#SCRON -t 5\n0 1 * * * other\n# plumbline straw\n17 2 * * * /r/nightly\n"
    assert table.read_text() == wanted
    assert run("straw", "18 2 * * * /r/nightly") == "changed\n"
    assert table.read_text() == wanted.replace("17 2", "18 2")
    assert run("straw") == "changed\n"
    assert table.read_text() == "#SCRON -t 5\n0 1 * * * other\n"


# what people see


@pytest.mark.parametrize(("said", "cure"), [
    ("bench@login: Permission denied (publickey).", "the SSH key is refused"),
    pytest.param("Host key verification failed.", "its host key is not the known one", marks=pytest.mark.long),
    pytest.param(
        "ssh: Could not resolve hostname login: Name or service not known",
        "fix ansible_host",
        marks=pytest.mark.long,
    ),
    pytest.param("ssh: connect to host login port 22: Connection timed out", "is the host up", marks=pytest.mark.long),
])  # fmt: skip
def test_a_host_that_cannot_be_reached_is_one_line(cluster, said, cure):
    program(cluster / "bin/ssh", f"#!/bin/sh\necho '{said}' >&2\nexit 255\n")
    hosts = yaml.safe_load((cluster / "inventory/hosts.yml").read_text())
    hosts["plumb_login"]["hosts"] = {
        "login": {"ansible_connection": "ssh", "ansible_ssh_executable": str(cluster / "bin/ssh")}
    }
    (cluster / "inventory/hosts.yml").write_text(yaml.safe_dump(hosts))
    done = refused(cluster, "onboard")
    (line,) = [line for line in done.splitlines() if line.startswith("login: ") and "ok=" not in line]
    assert said.rstrip(".") in line
    assert cure in line


@pytest.mark.long
def test_warnings_are_shown_once_at_the_end(cluster):
    slurm(cluster, RUNS)
    needs = [{"name": "a program", "probe": "false", "optional": True, "Debian": ["a-tool"], "RedHat": ["a-tool"]}]
    variables = {"plumb_packages_needs": needs, "plumb_packages_install": False}
    done = succeeded(cluster, "onboard", "--tags", "preflight,packages", **variables)
    said = [line for line in done.splitlines() if line.startswith("warning: missing: a program. As root: ")]
    assert done.splitlines()[-2:-1] == said


@pytest.mark.long
def test_packages_of_the_other_family_are_named(cluster):
    """RHEL family without one at hand: the same play with its facts."""
    needs = yaml.safe_load((ROLES / "plumb_packages/defaults/main.yml").read_text())["plumb_packages_needs"]
    needs = [{**need, "probe": "false"} for need in needs]
    variables = {"plumb_packages_needs": needs, "plumb_packages_install": False, "plumb_packages_family": "RedHat"}
    done = refused(cluster, "onboard", "--tags", "packages", **variables)
    assert "As root: dnf install gcc glibc-devel make cmake git pkgconf-pkg-config hwloc-devel numactl-devel" in (
        done.replace("\n", " ")
    )


def test_the_example_inventory_is_in_order():
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    command = [str(BIN / "ansible-inventory"), "-i", "playbooks/inventories/example", "--host", "newton"]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=True).stdout
    values = json.loads(said)
    known = {"root": values["plumb_root"], "here": False, "site": values["plumb_site"], "python": "python3"}
    more = {"partitions": values["plumb_partitions"], "stacks": values["plumb_stacks"], "environment": {}}
    assert FILTERS.faults({**known, **more}) == []


@pytest.mark.long
def test_a_refused_calibration_is_not_measured_again_until_somebody_asks(cluster):
    plumb(cluster, 1)  # campaigns that were not verified, and records that gave no reference
    (cluster / "cluster/site-configs/straw/references").mkdir()
    (cluster / "cluster/.git").mkdir()
    for again, wanted in ((False, 2), (False, 1), (True, 2)):
        (cluster / "cluster/called").unlink(missing_ok=True)
        options = {"plumb_calibrate_sessions": 1, "plumb_calibrate_again": again}
        done = succeeded(cluster, "onboard", "--tags", "calibrate", **options)
        assert "plumb_calibrate_again=true measures again" in done.replace("\n", " ")
        assert len(calls(cluster)) == wanted
