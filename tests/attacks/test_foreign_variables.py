"""Variables of people, modules and schedulers that would change what programs of ours do, set before them."""

import os
import subprocess
import sys

import pytest
from foreign_variables import ROWS, UNKNOWN, foreign, named

from plumbline import mpi
from plumbline.base import git, paths, surroundings
from plumbline.base.errors import PlumbError
from plumbline.gate import variants
from plumbline.host import binder, collector
from plumbline.launch import environment
from plumbline.launch.environment import TABLE, inherit
from plumbline.measure.reframe import campaign
from plumbline.stacks import manifest

PLUMB = paths.suite_program("plumb")


@pytest.mark.parametrize(("row", "text"), ROWS)
def test_each_variable_of_the_table_is_kept_or_removed_as_it_says(row, text, monkeypatch):
    name = named(text)
    monkeypatch.setenv(name, "harm")
    with surroundings.isolated():
        assert (name in os.environ) == (row.programs != "removed")
        assert surroundings.of_user()[name] == "harm"
        found = inherit(surroundings.of_user())
    assert os.environ[name] == "harm"
    assert (name in found.kept, name in found.stated) == (row.launches in ("kept", "stated"), row.launches == "stated")
    assert (name in found.removed({})) == (row.launches == "named")


def test_what_no_row_has_reaches_programs_and_no_launch():
    assert surroundings.row(UNKNOWN, TABLE) is None
    assert surroundings.for_programs({UNKNOWN: "x"}) == {UNKNOWN: "x"}
    assert inherit({UNKNOWN: "x"}) == inherit({})


@pytest.mark.parametrize("name", next(row.names for row in TABLE if row.programs == "refused"))
def test_what_reframe_would_not_get_is_refused_by_name(name, monkeypatch, tmp_path):
    monkeypatch.setenv(name, "/nonexistent")
    with pytest.raises(PlumbError, match=f"unset {name}"):
        campaign.environment_of_reframe({})
    with pytest.raises(PlumbError, match=f"unset {name}"):
        variants.list_variants(["openmpi"], "stream", None, tmp_path)


def test_what_activate_sets_is_no_foreign_setting_of_reframe(monkeypatch, tmp_path):
    monkeypatch.setenv("PLUMB_BUILD", str(tmp_path))
    monkeypatch.setenv("RFM_CONFIG_FILES", str(paths.root() / "site-configs/settings.py"))
    monkeypatch.setenv("RFM_PREFIX", str(paths.root() / "build/reframe"))
    monkeypatch.setenv("RFM_TIMESTAMP_DIRS", "%F")
    found = campaign.environment_of_reframe({})
    assert (found["RFM_PREFIX"], found["RFM_TIMESTAMP_DIRS"]) == (str(tmp_path / "reframe"), "%F")


def test_this_host_and_this_checkout_stay_what_they_are(monkeypatch, tmp_path):
    before = binder.ask(["--placement=node", "--print"]), git.commit()
    for name, value in foreign(tmp_path).items():
        monkeypatch.setenv(name, value)
    with surroundings.isolated():
        assert (binder.ask(["--placement=node", "--print"]), git.commit()) == before


def test_the_collector_of_a_node_looks_at_that_node(monkeypatch, tmp_path):
    """It runs without the package, in a job with the variables of a login shell."""
    before = collector.topology(str(paths.binder()))
    for name, value in foreign(tmp_path).items():
        if name != "TMPDIR":  # the pages of this process
            monkeypatch.setenv(name, value)
    assert collector.topology(str(paths.binder()))[0] is not None
    assert (collector.topology(str(paths.binder()))[0] or "").count("PU") == (before[0] or "").count("PU")


def test_pip_gets_of_variables_and_settings_files_how_a_registry_is_reached(monkeypatch, tmp_path):
    for name, value in foreign(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "7")
    found = surroundings.for_pip(sys.executable, os.environ)
    told = found["PIP_RETRIES"], found["PIP_DEFAULT_TIMEOUT"], found["PIP_CONFIG_FILE"]
    assert told == ("9", "7", os.devnull)
    assert not {"PIP_USER", "PIP_TARGET", "PYTHONPATH", "PYTHONHOME"} & found.keys()
    monkeypatch.setenv("PIP_RETRIES", "5")
    assert surroundings.for_pip(sys.executable, os.environ)["PIP_RETRIES"] == "5"


def test_no_variable_of_a_user_chooses_what_a_stack_is_compiled_by(monkeypatch):
    others = ("OMPI_CC", "OMPI_CFLAGS", "MPICH_CC", "I_MPI_CC", "CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH")
    for name in (*others, *map(named, mpi.VARIABLES)):
        monkeypatch.setenv(name, "clang")
    stack = manifest.load("mpich")
    assert not [name for name, value in manifest.around(stack).items() if value == "clang"]


def test_a_package_in_a_folder_of_pythonpath_is_ours():
    ours = str(paths.root())
    assert surroundings.for_programs({"PYTHONPATH": f"/opt/other:{ours}"}) == {"PYTHONPATH": ours}


@pytest.mark.parametrize("words", [["topology"], ["stack", "list"], ["help"]])
def test_a_command_says_the_same_among_foreign_variables(words, tmp_path):
    def said(variables):
        done = subprocess.run([PLUMB, *words], env=variables, cwd=tmp_path, capture_output=True, check=True)
        return done.stdout.decode(errors="replace")

    assert said({**os.environ, **foreign(tmp_path), "LC_ALL": "C.UTF-8"}) == said({**os.environ, "LC_ALL": "C.UTF-8"})


@pytest.mark.parametrize("name", ["reframe", "ansible-playbook"])
def test_what_else_people_start_here_takes_no_module_of_another_python(name, tmp_path):
    around = {**os.environ, **foreign(tmp_path), "LC_ALL": "C.UTF-8", "HOME": str(tmp_path)}
    done = subprocess.run([paths.suite_program(name), "--version"], env=around, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_plumb_of_a_wheel_imports_nothing_from_pythonpath(tmp_path):
    """Its first line is pip's, which does not start Python isolated."""
    around = {**os.environ, "PYTHONPATH": f"{foreign(tmp_path)['PYTHONPATH']}:{paths.root()}"}
    (tmp_path / "python/typing.py").unlink()
    code = "from plumbline.commands import cli; raise SystemExit(cli.main(['stack', 'list']))"
    done = subprocess.run([sys.executable, "-c", code], env=around, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_program_of_ours_is_started_by_the_table_without_any_package(tmp_path):
    """As ``make setup`` starts Ansible and pip."""
    file = str(paths.root() / "plumbline/base/surroundings.py")
    show = "import os; print(*sorted(os.environ.items()), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-I", file, sys.executable, "-c", show],
        env={**os.environ, **foreign(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    removed = [name for name in foreign(tmp_path / "again") if surroundings.for_programs({name: "x"}) == {}]
    assert len(removed) > 8
    assert not [name for name in removed if f"('{name}'" in done.stdout]


def test_the_page_has_the_table():
    page = (paths.root() / "docs/environment.md").read_text(encoding="utf-8")
    for row in environment.TABLE:
        names = ", ".join(f"`{text}*`" if text.endswith("_") else f"`{text}`" for text in row.names)
        assert f"| {names} | {row.programs} | {row.launches} | {row.does} |" in page, row


def test_a_command_within_a_command_restores_what_it_found(monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.setenv("HWLOC_XMLFILE", "/other.xml")
    before = dict(os.environ)
    with surroundings.isolated():
        with surroundings.isolated():
            assert "HWLOC_XMLFILE" not in os.environ
        assert "HWLOC_XMLFILE" not in os.environ
        assert surroundings.of_user()["HWLOC_XMLFILE"] == "/other.xml"
    assert dict(os.environ) == before
    assert surroundings.of_user() == before


def test_a_date_for_builds_ends_no_command(tmp_path):
    """NumPy, which SciPy loads, wants a number."""
    table = tmp_path / "nodes.csv"
    table.write_text("node,class,value\n" + "".join(f"n{n},all,1.{n}{i}\n" for n in range(1, 9) for i in range(9)))
    words = [PLUMB, "outliers", "--members", table, "--better", "lower"]
    around = {**os.environ, "SOURCE_DATE_EPOCH": "today"}
    done = subprocess.run(words, env=around, capture_output=True, text=True, check=False)
    assert done.stderr == ""
