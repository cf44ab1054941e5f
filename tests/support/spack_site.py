"""A checkout with the real ``spack-env/``, the fake Spack as a git repository, and one stack that it can install."""

import functools
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import fake_spack
import yaml

from plumbline.base import paths
from plumbline.extras.spack import bootstrap, environments, runner, sites
from plumbline.stacks import fetch, kernels, libraries, stream

REAL = paths.root()
VARIABLES = (
    "SPACK_ROOT",
    "PLUMB_SPACK_SITE",
    "PLUMB_SPACK_PACKAGES",
    "PLUMB_SPACK_WHEELS",
    "PLUMB_SPACK_MIRROR",
    "PLUMB_SPACK_BUILDCACHE",
    "PLUMB_SPACK_KEYS",
)


def foreign_paths(lock):
    """Absolute paths in the file ``lock`` that are not the same on every machine of a site, sorted."""
    texts = re.findall(r'"(/[^"]*)"', lock.read_text())
    return sorted({text for text in texts if not re.match("/(usr|bin|lib|lib64|etc|opt)(/|$)", text)})


def node(lock, package):
    """Hash and element of ``package`` in a lock."""
    return next((digest, element) for digest, element in lock.concrete_specs.items() if element.name == package)


def git(folder, *arguments):
    command = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def repository(folder, tag):
    """Commit everything in ``folder`` under ``tag``; the commit."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")
    git(folder, "tag", tag)
    return git(folder, "rev-parse", "HEAD")


def copy_environments(root):
    """The environments and the default site that every checkout has, in ``root``."""
    place = Path("spack-env") / "environments"
    left_out = shutil.ignore_patterns(environments.LOCK, "ci", "debian12-*")
    shutil.copytree(REAL / place, root / place, ignore=left_out, dirs_exist_ok=True)


#: in place of the folder with the fake MPI library, in the program that was linked once for all tests
ANYWHERE = "/" + "x" * 400


@functools.cache
def compiled():
    """File -> content of a program that needs ``libmpi.so.40``, one that does not, and the library."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "mpi.c").write_text("int fake_mpi(void) { return 0; }\n")
        (folder / "bench.c").write_text("int fake_mpi(void); int main(void) { return fake_mpi(); }\n")
        (folder / "plain.c").write_text("int main(void) { return 0; }\n")
        for command in (
            ["gcc", "-shared", "-fPIC", "-Wl,-soname,libmpi.so.40", "-o", "libmpi.so.40", "mpi.c"],
            ["gcc", "-o", "bench", "bench.c", "./libmpi.so.40", f"-Wl,-rpath,{ANYWHERE}"],
            ["gcc", "-o", "plain", "plain.c"],
        ):
            subprocess.run(command, cwd=folder, check=True)
        return {file: (folder / file).read_bytes() for file in ("bench", "plain", "libmpi.so.40")}


def programs(folder):
    """These files in ``folder``; the program finds the library beside the fake Open MPI."""
    folder.mkdir(parents=True)
    library = bytes(folder.parent / "store/openmpi/lib")
    for name, content in compiled().items():
        (folder / name).write_bytes(content.replace(ANYWHERE.encode(), library.ljust(len(ANYWHERE), b"\0")))
        (folder / name).chmod(0o755)


def versions(root):
    """What ``versions.yaml`` says."""
    return yaml.safe_load((root / "spack-env" / "versions.yaml").read_text())


def pin(root, part, commit):
    """Write ``commit`` into ``versions.yaml``."""
    document = versions(root)
    document[part]["commit"] = commit
    (root / "spack-env" / "versions.yaml").write_text(yaml.safe_dump(document))


def registry(arguments, lock, _):
    """In place of pip: a package of each kind of lock, STREAM's source among them; what is installed is empty."""
    if "--dest" not in arguments:
        return
    folder = Path(arguments[arguments.index("--dest") + 1])
    folder.mkdir(parents=True, exist_ok=True)
    if lock.endswith(stream.LOCK.stem):
        source = folder / "stream.c"
        source.write_text("int main(void) { return STREAM_ARRAY_SIZE / NTIMES < 0; }\n")
        with tarfile.open(folder / f"{stream.PACKAGE.replace('-', '_')}-4.10.4.tar.gz", "w:gz") as tar:
            tar.add(source, f"reframe_hpc-4.10.4/{stream.SOURCE}")
        source.unlink()
    else:
        (folder / "clingo.whl").write_text("wheel\n")


BUILD, START = stream.build, runner.start


@functools.cache
def built(source, compiler, llc_bytes):
    """The facts about STREAM, made of the text ``source``, and its program."""
    with tempfile.TemporaryDirectory() as name:
        file, program = Path(name) / "stream.c", Path(name) / "stream"
        file.write_bytes(source)
        facts = BUILD(file, program, compiler, llc_bytes)
        return facts, program.read_bytes()


def build(source, program, compiler, llc_bytes):
    """In place of :func:`plumbline.stacks.stream.build`: the same source is compiled once."""
    facts, content = built(source.read_bytes(), compiler, llc_bytes)
    program.write_bytes(content)
    program.chmod(0o755)
    return dict(facts)


def once(look):
    """``look`` with ldd once into programs of the same content and with the same variables, its last argument."""
    known = {}

    def remembered(program, *rest):
        key = Path(program).read_bytes(), str(rest[-1])
        if key not in known:
            known[key] = look(program, *rest)
        return known[key]

    return remembered


def suit_any_machine(set_attribute):
    """Locks fit this machine, whatever its processor, caches and compilers are; ``set_attribute`` is as setattr.

    What an installation would find out or compile again, with the same result, is done once.
    """
    set_attribute(stream, "last_level_cache_bytes", lambda: 1 << 20)
    set_attribute(fetch, "pip", registry)
    set_attribute(sites, "target_options", lambda *_: ["-DTARGET"])
    for check in ("check_target", "check_system", "check_compilers"):
        set_attribute(sites, check, lambda *_, **__: None)
    set_attribute(kernels, "refresh", lambda _: True)
    set_attribute(kernels, "stale", lambda _: None)
    set_attribute(stream, "build", build)
    set_attribute(libraries, "of", once(libraries.of))
    set_attribute(libraries, "linked", once(libraries.linked))


@functools.cache
def checkouts():
    """Mode and content of each file of the checkout, of the fake Spack's repository and of that of its packages."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root, program, packages = folder / "root", folder / "spack/bin/spack", folder / "packages/repos/spack_repo"
        shutil.copytree(REAL / "spack-env", root / "spack-env", ignore=shutil.ignore_patterns(".ruff_cache"))
        program.parent.mkdir(parents=True)
        program.write_text(f"#!{sys.executable}\n{Path(fake_spack.__file__).read_text()}")
        program.chmod(0o755)
        (packages / "builtin").mkdir(parents=True)
        (packages / "builtin" / "repo.yaml").write_text("repo: {namespace: builtin}\n")
        for part in ("spack", "packages"):
            pin(root, part, repository(folder / part, versions(root)[part]["tag"]))
        agree(root)
        files = (file for file in folder.rglob("*") if file.is_file())
        return {file.relative_to(folder): (file.stat().st_mode, file.read_bytes()) for file in files}


def make(folder, monkeypatch):
    """The checkout; the environment of this process points at it, and Spack's commands are run in this process.

    They are processes, as outside of tests, after :func:`start_processes`, which is called in these tests:

    - ``test_spack_provider.py``: a command's words, variables, folder and exit status; an installation; one whose
      source cannot be had; two at once
    - ``test_spack_archive.py``: an installation by the Spack that was unpacked
    - ``test_spack_signing.py``: what was pushed and signed is taken
    """
    root, state = folder / "root", folder / "fake"
    for name, (mode, content) in checkouts().items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(mode)
    (root / "custom-kernels").symlink_to(REAL / "custom-kernels")
    programs(state / "programs")
    shutil.copytree(root / "spack-env" / "environments", state / "locks")
    for name in (*VARIABLES, "PLUMB_SPACK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(paths, "root", lambda: root)
    monkeypatch.setattr(runner, "start", fake_spack.Process)
    places = {
        "PLUMB_STACKS": "root/stacks",
        "FAKE_SPACK": "fake",
        "SPACK_ROOT": "spack",
        "PLUMB_SPACK_PACKAGES": "packages",
    }
    for name, place in places.items():
        monkeypatch.setenv(name, str(folder / place))
    venv = environments.home() / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    (venv / "lock").write_text(bootstrap.solver_mark(venv))
    return root


def start_processes(monkeypatch):
    """See :func:`make`."""
    monkeypatch.setattr(runner, "start", START)


def agree(root):
    """The locks name the commit that is pinned now."""
    commit = versions(root)["spack"]["commit"]
    for file in (root / "spack-env" / "environments").rglob(environments.LOCK):
        file.write_text(file.read_text().replace("2e907202bcc8209a6a62243aab50c179b524cc3b", commit))
