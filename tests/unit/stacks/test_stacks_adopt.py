"""``plumb stack adopt``: what is there becomes a stack, and a tree whose parts do not fit together is refused."""

import ctypes.util
import json
import re
import subprocess

import pytest
import spack_site
import yaml

from plumbline import mpi
from plumbline.base import paths
from plumbline.commands import cli
from plumbline.extras.spack import environments
from plumbline.stacks import adopt as adopting
from plumbline.stacks import kernels, manifest, module

BANNERS = {
    "openmpi": ("libmpi.so.40", "Open MPI v4.1.4, package: Debian", "mpirun", "mpirun (Open MPI) 4.1.4"),
    "mpich": ("libmpich.so.12", "MPICH Version:\t4.0.2", "mpiexec.hydra", "HYDRA build details:\n Version: 4.0.2"),
    "cray": (
        "libmpi_gnu_123.so.12",
        "MPI VERSION    : CRAY MPICH version 8.1.29.8 (ANL base 3.4a2)",
        "mpiexec.hydra",
        "HYDRA build details:\n Version: 3.4",
    ),
}


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def compiled(program, *libraries, text=""):
    """Make a program that needs the libraries, with ``text`` in it."""
    code = f'int MPI_Init(void *, void *); const char text[] = "{text}"; int main(void) {{ return MPI_Init(0, 0); }}\n'
    source = write(program.with_suffix(".c"), code)
    search = [f"-Wl,-rpath,{library.parent}" for library in libraries]
    subprocess.run(["gcc", "-o", program, source, *libraries, *search], check=True)
    source.unlink()


def tree(folder, family="openmpi", rpath=True):
    """A prefix with library, launcher and compiler wrapper; its library."""
    soname, banner, launcher, version = BANNERS[family]
    library = folder / "lib" / soname
    code = f"""#include <string.h>
    int MPI_Init(void *a, void *b) {{ return a != b; }}
    int MPI_Get_library_version(char *text, int *length)
    {{ strcpy(text, {json.dumps(banner)}); *length = 1; return 0; }}\n"""
    source = write(folder / "lib" / "mpi.c", code)
    subprocess.run(["gcc", "-shared", "-fPIC", f"-Wl,-soname,{soname}", "-o", library, source], check=True)
    search = f" -Wl,-rpath,{library.parent}" if rpath else ""
    text = f'#!/bin/sh\n[ "$1" = -show ] && echo "gcc -lmpi" && exit\nexec gcc "$@" {library}{search}\n'
    write(folder / "bin" / "mpicc", text)
    write(folder / "bin" / launcher, f"#!/bin/sh\nprintf '{version}\\n'\n")
    return library


@pytest.fixture
def adopt(tmp_path, monkeypatch, capsys):
    """A function: status and output of the command; neither kernels nor STREAM are built."""
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "sites"))
    monkeypatch.setattr(kernels, "refresh", lambda name: print(f"kernels of {name}"))
    monkeypatch.setattr(module, "_add_stream", lambda name: None)

    def adopt(*words):
        status = cli.main(["stack", "adopt", *map(str, words)])
        return status, "".join(capsys.readouterr())

    return adopt


@pytest.mark.parametrize("kind", BANNERS)
def test_a_prefix_with_its_benchmarks_becomes_a_stack(adopt, tmp_path, kind):
    library = tree(tmp_path / "mpi", kind)
    family = {"cray": "mpich"}.get(kind, kind)
    osu = tmp_path / "mpi/libexec/osu-micro-benchmarks/mpi/pt2pt/osu_latency"
    osu.parent.mkdir(parents=True)
    compiled(osu, library, text="# OSU MPI%s Latency Test v7.4\\n")
    compiled(tmp_path / "mpi/bin/IMB-MPI1", library, text="Intel(R) MPI Benchmarks 2021.7")
    status, output = adopt(tmp_path / "mpi")
    rows = [line.split() for line in output.splitlines()]
    version = re.search(r"\d[\d.]+", BANNERS[kind][1])[0]
    assert status == 0
    assert rows[1] == ["MPI", "library", family, version, str(library)]
    assert rows[4] == ["OSU", "7.4,", "1", "program", str(osu.parent)]
    assert rows[5][:4] == ["IMB", "2021.7,", "1", "program"]
    assert rows[6] == ["STREAM", "none", "--stream", "FILE"]
    assert output.splitlines()[-1] == f"nothing is written; --yes adopts it as stack '{family}-{version}'"
    assert not manifest.names()
    status, output = adopt(tmp_path / "mpi", "--yes", "--as", "site-mpi")
    assert "kernels of site-mpi" in output, "a stack that is adopted has benchmarks"
    made = manifest.load("site-mpi")
    assert (made.mpi.family, made.mpi.version, made.prefix) == (family, version, str(tmp_path / "mpi"))
    assert made.launcher.family == mpi.TABLE[family].launcher_kind(version)
    assert made.loads
    assert made.loads.library == str(library)
    assert set(made.benchmarks) == {"osu_latency", "imb-mpi1"}
    assert adopt(tmp_path / "mpi", "--yes", "--as", "site-mpi")[0] == 0, "it may be adopted again"


@pytest.mark.skipif(bool(ctypes.util.find_library("mpi")), reason="the loader of this host finds one of its name")
def test_a_library_that_the_loader_does_not_find_is_in_the_environment(adopt, tmp_path):
    library = tree(tmp_path / "mpi", rpath=False)
    assert adopt(tmp_path / "mpi", "--yes")[0] == 0
    assert manifest.load("openmpi-4.1.4").environment == {"LD_LIBRARY_PATH": str(library.parent)}


def test_what_is_missing_is_named_by_its_option(adopt, tmp_path):
    tree(tmp_path / "mpi")
    (tmp_path / "mpi/bin/mpirun").rename(tmp_path / "starter")
    assert "no launcher of openmpi" in adopt(tmp_path / "mpi")[1]
    (tmp_path / "mpi/bin/mpicc").unlink()
    status, output = adopt(tmp_path / "mpi", "--mpirun", tmp_path / "starter")
    assert status == 0
    options = [" ".join(line.split()[-2:]) for line in output.splitlines()[3:7]]
    assert options == ["--mpicc FILE", "--osu FOLDER", "--imb FOLDER", "--stream FILE"]


def two_wrappers(mpi):
    (mpi / "bin/mpicc").rename(mpi / "bin/mpicc.openmpi")
    tree(mpi, "mpich")


@pytest.mark.parametrize(
    ("mislead", "message"),
    [
        (
            lambda mpi, third: (mpi / "bin/mpicc").write_text((third / "bin/mpicc").read_text()),
            "mpicc links an MPI library of elsewhere: ",
        ),
        (
            lambda mpi, third: compiled(
                mpi / "bin/osu_bw", third / "lib/libmpi.so.40", text="# OSU MPI Bandwidth v7.4"
            ),
            "osu_bw is linked with another MPI library: ",
        ),
        (
            lambda mpi, _: write(mpi / "bin/mpirun", f"#!/bin/sh\nprintf '{BANNERS['mpich'][3]}\\n'\n"),
            "mpirun is of mpich 4.0.2, the library of openmpi 4.1.4",
        ),
        (lambda mpi, _: two_wrappers(mpi), "two MPI libraries: "),
        (lambda mpi, _: write(mpi / "bin/mpicc", "#!/bin/sh\nexit 127\n"), "--env NAME=VALUE sets a variable that it"),
    ],
)
def test_a_misleading_tree_is_refused(adopt, tmp_path, mislead, message):
    for name in ("mpi", "third"):
        tree(tmp_path / name)
    assert adopt(tmp_path / "mpi")[0] == 0
    mislead(tmp_path / "mpi", tmp_path / "third")
    status, output = adopt(tmp_path / "mpi", "--yes")
    assert (status, output.count("\n")) == (2, 1)
    assert message in output
    assert not manifest.names()


def test_a_wrapper_of_elsewhere_is_refused_where_it_is_named_too_and_so_is_a_name_that_is_taken(adopt, tmp_path):
    for name in ("mpi", "third"):
        tree(tmp_path / name)
    elsewhere = adopt(tmp_path / "mpi", "--mpicc", tmp_path / "third/bin/mpicc")[1]
    assert "mpicc links an MPI library of elsewhere: " in elsewhere
    assert adopt(tmp_path / "third", "--yes", "--as", "x")[0] == 0
    status, output = adopt(tmp_path / "mpi", "--yes", "--as", "x")
    assert (status, "plumb stack remove x, or --as NAME" in output) == (2, True)
    assert manifest.load("x").prefix == str(tmp_path / "third")


def test_a_program_stream_of_elsewhere_is_a_file(adopt, tmp_path, monkeypatch):
    tree(tmp_path / "mpi")
    monkeypatch.setattr(adopting.Search, "_arrays", lambda *_: {"array_elements": 9})
    stream = write(tmp_path / "else/stream_c", "STREAM version $Revision: 5.10 $")
    assert "STREAM            5.10, 1 program" in adopt(tmp_path / "mpi", "--stream", stream)[1]


@pytest.fixture
def spack(tmp_path):
    """A person's Spack environment whose view has an Open MPI of the lock."""
    folder, lock = tmp_path / "env", environments.folder() / "environments/openmpi" / environments.LOCK
    digest, node = spack_site.node(environments.load(lock), "openmpi")
    store = tmp_path / "store" / f"openmpi-{node.version}-{digest}"
    tree(store)
    write(store / ".spack/spec.json", json.dumps({"spec": {"nodes": [{"name": "openmpi", "hash": digest}]}}))
    for file in ("bin/mpicc", "bin/mpirun", "lib/libmpi.so.40"):
        (folder / ".spack-env/view" / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / ".spack-env/view" / file).symlink_to(store / file)
    (folder / environments.LOCK).write_text(lock.read_text())
    return folder, digest, store


def test_a_spack_environment_is_adopted_with_the_hashes_of_its_lock(adopt, spack):
    folder, digest, _ = spack
    assert adopt(folder, "--yes")[0] == 0
    made = manifest.load("openmpi-4.1.4")
    assert f"spack:{digest}" in {source.hash for source in made.sources}
    assert made.prefix == str(folder / ".spack-env/view")


def test_a_view_of_another_lock_and_none_are_refused(adopt, spack):
    folder, digest, store = spack
    record = store / ".spack/spec.json"
    record.write_text(record.read_text().replace(digest, "a" * 32))
    assert "the view has another openmpi than the lock (/aaaaaaa)" in adopt(folder)[1]
    (folder / ".spack-env").rename(folder / "gone")
    assert "this Spack environment has no view of installed packages" in adopt(folder)[1]


@pytest.fixture
def a_module(tmp_path, monkeypatch):
    """Modules of the prefix ``mpi`` for a login shell that has ``third`` in its PATH; ``cray/8`` only names it."""
    tree(tmp_path / "mpi")
    home = f"export MPI_HOME={tmp_path}/mpi"
    cases = f'"load openmpi/4") PATH={tmp_path}/mpi/bin:$PATH; {home} ;; "load cray/8") {home} ;; unload*) ;;'
    profile = write(
        tmp_path / "home/.bash_profile",
        f'PATH={tmp_path}/third/bin:$PATH\nunset BASH_ENV; module() {{ case "$*" in {cases} *) return 1 ;; esac; }}\n',
    )
    monkeypatch.setenv("HOME", str(profile.parent))
    monkeypatch.delenv("BASH_ENV", raising=False)


def test_a_module_is_adopted_with_its_name(adopt, tmp_path, a_module):
    status, output = adopt("openmpi/4", "--yes")
    assert status == 0, output
    made = manifest.load("openmpi-4.1.4")
    assert (made.modules, made.environment) == (["openmpi/4"], {"MPI_HOME": str(tmp_path / "mpi")})
    assert "kernels of openmpi-4.1.4" in output


def test_of_a_module_without_a_wrapper_no_other_in_the_path_is_taken(adopt, tmp_path, a_module):
    tree(tmp_path / "third", "mpich")
    (tmp_path / "mpi/bin/mpicc").unlink()
    status, output = adopt("openmpi/4")
    assert (status, "compiler wrapper  none" in output, "openmpi 4.1.4" in output) == (0, True, True), output


def test_a_wrapper_beside_a_module_must_link_the_library_that_the_module_names(adopt, tmp_path, a_module):
    tree(tmp_path / "third")
    parts = ["--mpirun", tmp_path / "mpi/bin/mpirun", "--mpicc"]
    assert adopt("cray/8", *parts, tmp_path / "mpi/bin/mpicc")[0] == 0
    assert "links an MPI library of elsewhere: " in adopt("cray/8", *parts, tmp_path / "third/bin/mpicc")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["/not/there"], "no such folder (/not/there)"),
        (["mpi", "--osu", "/not/there"], "no such file or folder (/not/there)"),
        (["mpi", "--as", "../x"], "'../x' cannot be the name of a stack"),
        (["mpi", "--osu", "empty"], "no program osu_* ("),
        (["mpi", "--env", "nonsense"], "'nonsense' is not NAME=VALUE"),
        (["empty"], "no compiler wrapper and no MPI library"),
    ],
)
def test_bad_input_is_one_line(adopt, tmp_path, monkeypatch, words, message):
    tree(tmp_path / "mpi")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    status, output = adopt(*words)
    assert (status, output.count("\n")) == (2, 1)
    assert message in output


def test_the_description_is_one_that_a_site_may_have(adopt, tmp_path):
    tree(tmp_path / "mpi")
    adopt(tmp_path / "mpi", "--yes")
    document = yaml.safe_load((paths.stacks() / "openmpi-4.1.4" / module.FILE).read_text())
    assert list(document["stacks"]) == ["openmpi-4.1.4"]
    assert module.names() == ("openmpi-4.1.4",)
    write(paths.stacks() / "taken" / manifest.FILE, "{}")
    status, output = adopt(tmp_path / "mpi", "--as", "taken", "--yes")
    assert (status, "there is a stack 'taken' already" in output) == (2, True)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("Open MPI v5.0.11, package: Open MPI", ("openmpi", "5.0.11")),
        ("mpirun (Open MPI) 5.0.11", ("openmpi", "5.0.11")),
        ("MPICH Version:      5.0.2\nMPICH Release date", ("mpich", "5.0.2")),
        ("MPI VERSION    : CRAY MPICH version 8.1.32.110 (ANL base 3.4a2)", ("mpich", "8.1.32.110")),
        ("HYDRA build details:\n    Version:                                 5.0.2", ("mpich", "5.0.2")),
        ("MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Release date", ("mvapich", "2.3.7")),
        ("Intel(R) MPI Library 2021.18.1 for Linux* OS", ("intelmpi", "2021.18.1")),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626", ("intelmpi", "2021.18.1")),
        ("Some MPI 1", None),
    ],
)
def test_a_library_and_a_launcher_tell_family_and_version(text, known):
    found = mpi.identify(text)
    assert (found and (found[0].name, found[1])) == known


def test_a_scheduler_starts_the_ranks_if_it_is_named(adopt, tmp_path, monkeypatch):
    tree(tmp_path / "mpi")
    write(tmp_path / "slurm/srun", "#!/bin/sh\necho slurm 22.05.8\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/slurm", prepend=":")
    assert adopt(tmp_path / "mpi", "--mpirun", "srun", "--yes")[0] == 0
    launcher = manifest.load("openmpi-4.1.4").launcher
    assert (launcher.family, launcher.command) == ("srun", str(tmp_path / "slurm/srun"))
