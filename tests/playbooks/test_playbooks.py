"""Playbooks and roles: what can be said without changing a machine, and onboarding in check mode on this one."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from processes import ended

from plumbline.base import paths

ROOT = Path(__file__).resolve().parents[2]
ROLES = sorted([*(ROOT / "playbooks/roles").iterdir(), *(ROOT / "tests/bed/roles").iterdir()])
PLAYBOOK = Path(sys.executable).parent / "ansible-playbook"


def ansible(*arguments, inventory="playbooks/inventories/localhost", **variables):
    command = [str(PLAYBOOK), "-i", str(inventory), *arguments]
    environment = {**os.environ, "ANSIBLE_FORCE_COLOR": "0", "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), **variables}
    return ended(command, cwd=ROOT, env=environment)


def succeeded(*arguments, **variables):
    """What a playbook says, which succeeds."""
    done = ansible(*arguments, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(*arguments, **variables):
    """What a playbook says, which fails."""
    done = ansible(*arguments, **variables)
    assert done.returncode != 0, done.stdout
    return done.stdout


def tasks(role):
    """All tasks of a role, those in blocks too."""
    waiting = [task for file in (role / "tasks").glob("*.yml") for task in yaml.safe_load(file.read_text())]
    while waiting:
        task = waiting.pop()
        waiting += task.get("block", [])
        yield task


def options(kind):
    """Names of the roles' variables of a type, which somebody may give by ``-e NAME=VALUE``: then it is a string."""
    for role in ROLES:
        for entry in yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"].values():
            found = [name for name, option in entry.get("options", {}).items() if option["type"] == kind]
            yield from (name for name in found if not name.startswith("plumb_inventory_"))


@pytest.mark.parametrize(
    ("name", "use"),
    [(name, rf"(?<![\w=]){name}(?![\w:=])(?! \| bool)") for name in sorted(set(options("bool")))]
    + [(name, rf"(?<!\w){name} (\+|if|else|and|or|==|<|>)") for name in sorted(set(options("int")))],
)
def test_variables_given_on_the_command_line_are_converted(name, use):
    files = [file for role in ROLES for folder in ("tasks", "defaults") for file in (role / folder).glob("*.yml")]
    lines = [f"{file.relative_to(ROOT)}: {line}" for file in files for line in file.read_text().splitlines()]
    used = [line for line in lines if name in line]
    assert used
    handed_on = re.compile(rf"\w+: \"{{{{ {name} }}}}\"$|msg: |~ '")
    assert [line for line in used if re.search(use, line) and not handed_on.search(line)] == []


def test_syntax():
    playbooks = sorted(map(str, (ROOT / "playbooks").glob("*.yml")))
    done = succeeded("--syntax-check", *playbooks)
    assert re.findall(r"^playbook: (.*)$", done, re.MULTILINE) == playbooks


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_default_is_specified_documented_and_prefixed(role):
    defaults = role / "defaults/main.yml"
    defaults = yaml.safe_load(defaults.read_text()) if defaults.exists() else {}
    options = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    readme = (role / "README.md").read_text()
    assert set(options) == set(defaults)
    for name, option in options.items():
        assert name.startswith(f"{role.name}_")
        assert option["description"]
        assert f"`{name}`" in readme
        if isinstance(defaults[name], (str, int)) and "{{" not in str(defaults[name]):
            shown = str(defaults[name]).lower() if isinstance(defaults[name], bool) else str(defaults[name])
            assert re.search(rf"`{name}` \| {f'.*`{re.escape(shown)}`' if shown else 'none '}", readme), name


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_command_says_when_it_changed_something(role):
    for task in tasks(role):
        called = [key for key in task if key.startswith("ansible.builtin.")]
        assert called or "block" in task, task
        if called and called[0] in ("ansible.builtin.command", "ansible.builtin.shell"):
            assert "changed_when" in task or "creates" in task[called[0]], task["name"]
        if "register" in task:
            assert task["register"].startswith(f"{role.name}_")


def test_stages_have_their_tags():
    (play,) = yaml.safe_load((ROOT / "playbooks/onboard.yml").read_text())
    stages = [tag for task in [*play["pre_tasks"], *play["tasks"]] for tag in task["tags"]]
    order = ["preflight", "packages", "tools", "tools", "facts", "site_config", "deploy", "ceilings"]
    assert stages == ["always", "always", *order, "audit", "smoke", "calibrate", "tune", "ci", "report", "report"]


def test_the_last_stages_have_to_be_asked_for():
    """make setup ends with stacks, site and ceilings; campaigns take a tag or the inventory's word."""
    (play,) = yaml.safe_load((ROOT / "playbooks/onboard.yml").read_text())
    asked = {task["tags"][0]: task.get("when", "") for task in play["tasks"]}
    for stage in ("audit", "smoke", "calibrate", "tune", "ci", "report"):
        assert asked[stage] == f"plumb_inventory_full or '{stage}' in ansible_run_tags"
    assert not any(asked[stage] for stage in ("packages", "tools", "facts", "site_config", "deploy", "ceilings"))


@pytest.mark.long
@pytest.mark.e2e
def test_onboarding_in_check_mode_changes_nothing(tmp_path):
    sites = tmp_path / "sites"
    done = succeeded("--check", "playbooks/onboard.yml", PLUMB_SITES=str(sites))
    assert re.search(r"^localhost: ok=\d+ changed=1 failed=0", done, re.MULTILINE)
    assert not sites.exists()  # the one change that it would make


@pytest.mark.e2e
def test_onboarding_again_changes_nothing():
    done = succeeded("playbooks/onboard.yml")
    assert re.search(r"^localhost: ok=\d+ changed=0 failed=0", done, re.MULTILINE)


@pytest.mark.e2e
@pytest.mark.parametrize("required", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_audit_warns_and_changes_nothing_unless_more_is_asked_for(tmp_path, required):
    shutil.copytree(paths.sites(), tmp_path / "sites")
    file = tmp_path / "sites" / "local" / "site.yaml"
    known = yaml.safe_load(file.read_text())
    known["partitions"][0]["environment"] = {"OMPI_MCA_smsc": "^cma"}
    file.write_text(yaml.safe_dump(known))
    words = ["-e", f"plumb_audit_required={required}", "--tags", "audit", "playbooks/onboard.yml"]
    done = ansible(*words, PLUMB_SITES=str(tmp_path / "sites"))
    if required:
        assert done.returncode != 0
        return
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"warning: .*openmpi: CMA: turned off by a setting: OMPI_MCA_smsc=\^cma", done.stdout), done.stdout
    assert re.search(r"^localhost: ok=\d+ changed=0 failed=0", done.stdout, re.MULTILINE), done.stdout


def extra(tmp_path, **variables):
    file = tmp_path / "extra.yml"
    file.write_text(yaml.safe_dump(variables))
    return ["-e", f"@{file}", "playbooks/onboard.yml"]


def need(name, probe):
    return {"name": name, "probe": probe, "Debian": ["libfoo-dev", "bar"], "RedHat": ["foo-devel"]}


def test_missing_packages_are_named_with_the_command(tmp_path):
    needs = [need("foo with headers", "false"), need("shell", "true")]
    done = refused("--tags", "packages", *extra(tmp_path, plumb_packages_needs=needs, plumb_packages_install=False))
    assert "missing: foo with headers. As root: " in done
    assert re.search(r"(apt-get install libfoo-dev bar|dnf install foo-devel)", done)
    assert "shell" not in done.split("missing:")[1]


@pytest.mark.long
def test_nothing_missing_installs_nothing(tmp_path):
    done = succeeded("--tags", "packages", *extra(tmp_path, plumb_packages_needs=[need("shell", "true")]))
    assert "Install packages" not in done


def test_unknown_distribution_is_one_message(tmp_path):
    broken = need("foo", "false")
    del broken["Debian"], broken["RedHat"]
    done = refused(
        "--tags", "packages", *extra(tmp_path, plumb_packages_needs=[{**broken, "Debian": [], "RedHat": []}])
    )
    assert "missing: foo. Install them, or load modules that have them" in done


def test_full_disk_is_named_before_anything_is_made(tmp_path):
    (tmp_path / ".venv/bin").mkdir(parents=True)
    plumb = tmp_path / ".venv/bin/plumb"
    plumb.write_text("")
    plumb.chmod(0o755)
    wanted = {"plumb_root": str(tmp_path), "plumb_inventory_control": str(tmp_path), "plumb_preflight_free_mb": 10**9}
    done = refused("--tags", "preflight", *extra(tmp_path, **wanted))
    assert "1000000000 are needed: free some space" in done


class TestNodes:
    """Playbooks for root on nodes, in check mode on this machine as one on which they never ran."""

    def play(self, folder, name, **variables):
        node = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "ansible_become": False}
        (folder / "hosts.yml").write_text(yaml.safe_dump({"plumb_nodes": {"hosts": {"n1": {**node, **variables}}}}))
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        return ansible(f"playbooks/{name}.yml", "--check", inventory=folder / "hosts.yml", PATH=path)

    @pytest.mark.parametrize("name", ["health", "advice"])
    @pytest.mark.parametrize(("known", "told"), [("", True), ("plumbline/check plumbline-advice/prolog", False)])
    def test_slurm_is_told_unless_it_knows(self, tmp_path, name, known, told):
        """A run that ended between the change of slurm.conf and scontrol is made up for by the next."""
        for file in ("conf", "class", "program", "program-gpu"):
            (tmp_path / file).touch()
        scontrol = tmp_path / "scontrol"
        scontrol.write_text(f"#!/bin/sh\nprintf '/usr/local/lib/%s\\n' {known}\n")
        scontrol.chmod(0o755)
        files = (
            {"class": "class", "runner": "program"} if name == "health" else {"spool": "spool", "library": "program"}
        )
        files = {f"plumb_{name}_{key}": str(tmp_path / file) for key, file in {**files, "slurm_conf": "conf"}.items()}
        done = self.play(tmp_path, name, plumb_health_scheduler="slurm", **files)
        assert done.returncode == 0, done.stdout
        assert bool(re.search(r"Has Slurm read them, .* changed ", done.stdout)) is told, done.stdout

    @pytest.mark.parametrize(("scheduler", "needed"), [
        ("flux", {}), pytest.param("pbs", {"server": "n1"}, marks=pytest.mark.long),
        pytest.param("sge", {"server": "n1", "queues": ["a.q"]}, marks=pytest.mark.long),
        ("lsf", {"server": "n1", "queues": ["normal"], "lsb_queues": "/lsf/lsb.queues"}),
    ])  # fmt: skip
    def test_each_scheduler_gets_its_files_and_its_server_is_told(self, tmp_path, scheduler, needed):
        (tmp_path / "program").touch()
        (tmp_path / "flux").write_text('#!/bin/sh\n[ "$*" = "config get job-manager.housekeeping" ]\n')
        (tmp_path / "flux").chmod(0o755)
        own = {"scheduler": scheduler, "spool": str(tmp_path / "spool"), "plumb": "/opt/plumb", "modules": "/opt/mod",
               "library": str(tmp_path / "program"), "flux": str(tmp_path / "lua.d")}  # fmt: skip
        done = self.play(tmp_path, "advice", **{f"plumb_advice_{key}": value for key, value in (own | needed).items()})
        assert done.returncode == 0, done.stdout
        written = re.findall(r"Write what the scheduler starts or reads, .* changed", done.stdout)
        assert len(written) == 1 + (scheduler != "pbs"), done.stdout  # with the modulefile
        if needed:
            less = {f"plumb_advice_{key}": value for key, value in own.items()}
            assert "plumb_advice_server: name the host" in self.play(tmp_path, "advice", **less).stdout

    @pytest.mark.parametrize("key", ["spool", "plumb"])
    def test_a_path_that_a_shell_would_not_take_as_it_is(self, tmp_path, key):
        paths_of_site = {"plumb_advice_spool": "/shared", f"plumb_advice_{key}": "/opt/x; touch y"}
        done = self.play(tmp_path, "advice", **paths_of_site)
        assert done.returncode != 0
        assert "without blanks" in done.stdout, done.stdout


def test_wrong_type_of_a_variable_is_refused(tmp_path):
    done = refused("--tags", "preflight", *extra(tmp_path, plumb_preflight_free_mb="plenty"))
    assert "plumb_preflight_free_mb" in done


def test_unknown_stack_is_one_line(tmp_path):
    done = refused("--tags", "deploy", "-e", "stacks=opnmpi", "playbooks/onboard.yml")
    assert "no wheel stack is called 'opnmpi'" in done


@pytest.mark.parametrize(("program", "said"), [
    ('echo "SyntaxError: future feature annotations is not defined" >&2; exit 1', "deserialization failed"),
    pytest.param('echo "Welcome to newton"; exit 1', "No start of json", marks=pytest.mark.long),
    pytest.param(None, "not found", marks=pytest.mark.long),
])  # fmt: skip
def test_a_python_that_is_too_old_for_ansible_is_named_with_the_cure(tmp_path, program, said):
    """As python3 of RHEL 8, which is 3.6: Ansible says only that it could not read the answer of its module."""
    python = tmp_path / "python3"
    if program is not None:
        python.write_text(f"#!/bin/sh\n{program}\n")
        python.chmod(0o755)
    (tmp_path / "hosts.yml").write_text(
        f"plumb_login: {{hosts: {{newton: {{ansible_connection: local, ansible_python_interpreter: {python}}}}},"
        f" vars: {{plumb_root: {tmp_path}/root}}}}\n"
    )
    done = refused("playbooks/onboard.yml", "--tags", "preflight", inventory=tmp_path / "hosts.yml")
    assert said in done
    assert "has to be 3.9 or newer. Set ansible_python_interpreter of this host" in done


@pytest.mark.skipif(shutil.which("script") is None, reason="no script, which gives a terminal")
def test_a_terminal_sees_what_runs_and_a_pipe_only_what_ended(tmp_path):
    tasks_of_play = [{"name": "Wait", "ansible.builtin.command": "sleep 7"}]
    play = {"hosts": "localhost", "gather_facts": False, "tasks": tasks_of_play}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    command = f"{PLAYBOOK} -i localhost, -c local -e ansible_python_interpreter={sys.executable} {tmp_path}/play.yml"
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "TERM": "xterm"}
    both = [
        subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
        for words in (["script", "-qec", command, "/dev/null"], command.split())
    ]
    shown = [child.communicate()[0] for child in both]
    assert ["Wait" in text and "runs" in text for text in shown] == [True, False]
    assert all("changed" in text for text in shown)


def test_inventory_without_hosts_says_which_group(tmp_path):
    (tmp_path / "hosts.yml").write_text("all:\n  hosts: {}\n")
    done = ansible("playbooks/onboard.yml", inventory=tmp_path / "hosts.yml")
    assert "plumb_login" in done.stdout
