"""A checkout with the real ``spack-env/``, the fake Spack as a git repository, and one stack that it can install."""

import functools
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import yaml

from plumbline.base import paths
from plumbline.stacks import fetch, stream
from plumbline.stacks.spack import bootstrap, buildcache, environments, sites

REAL = paths.root()
SUPPORT = Path(__file__).parent
VARIABLES = (
    "SPACK_ROOT",
    "PLUMB_SPACK_SITE",
    "PLUMB_SPACK_PACKAGES",
    "PLUMB_SPACK_WHEELS",
    "PLUMB_SPACK_MIRROR",
    "PLUMB_SPACK_BUILDCACHE",
    "PLUMB_SPACK_KEYS",
    *buildcache.LOGIN,
)


def foreign_paths(lock):
    """Absolute paths in the file ``lock`` that are not the same on every machine of a site, sorted."""
    texts = re.findall(r'"(/[^"]*)"', lock.read_text())
    return sorted({text for text in texts if not re.match("/(usr|bin|lib|lib64|etc|opt)(/|$)", text)})


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
    site = Path("sites") / environments.DEFAULT_SITE / "packages.yaml"
    for part in (Path(environments.FILE), site):
        copied = root / "spack-env" / part
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REAL / "spack-env" / part, copied)


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


def pin(root, part, commit):
    """Write ``commit`` into ``versions.yaml``."""
    file = root / "spack-env" / "versions.yaml"
    document = yaml.safe_load(file.read_text())
    document[part]["commit"] = commit
    file.write_text(yaml.safe_dump(document))


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


def suit_any_machine(set_attribute):
    """Locks fit this machine, whatever its processor, caches and compilers are; ``set_attribute`` is as setattr."""
    set_attribute(stream, "last_level_cache_bytes", lambda: 1 << 20)
    set_attribute(fetch, "pip", registry)
    set_attribute(sites, "target_options", lambda *_: ["-DTARGET"])
    for check in ("check_target", "check_system", "check_compilers"):
        set_attribute(sites, check, lambda *_, **__: None)


def make(folder, monkeypatch):
    """The checkout; the environment of this process points at it."""
    root, state = folder / "root", folder / "fake"
    shutil.copytree(REAL / "spack-env", root / "spack-env", ignore=shutil.ignore_patterns(".ruff_cache"))
    (root / "custom-kernels").symlink_to(REAL / "custom-kernels")
    programs(state / "programs")
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(paths, "root", lambda: root)
    for name, value in {"PLUMB_STACKS": root / "stacks", "FAKE_SPACK": state}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("PLUMB_SPACK_HOME", raising=False)
    spack, packages = folder / "spack", folder / "packages"
    (spack / "bin").mkdir(parents=True)
    program = spack / "bin" / "spack"
    program.write_text(f"#!{sys.executable}\n{(SUPPORT / 'fake_spack.py').read_text()}")
    program.chmod(0o755)
    (packages / "repos" / "spack_repo" / "builtin").mkdir(parents=True)
    (packages / "repos" / "spack_repo" / "builtin" / "repo.yaml").write_text("repo: {namespace: builtin}\n")
    pinned = environments.versions()
    for part, place, name in (("spack", spack, "SPACK_ROOT"), ("packages", packages, "PLUMB_SPACK_PACKAGES")):
        pin(root, part, repository(place, getattr(pinned, part).tag))
        monkeypatch.setenv(name, str(place))
    agree(root)
    shutil.copytree(root / "spack-env" / "sites" / environments.DEFAULT_SITE, state / "locks")
    venv = environments.home() / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    (venv / "lock").write_text(bootstrap.solver_mark(venv))
    return root


def agree(root):
    """The locks name the commit that is pinned now."""
    commit = environments.versions().spack.commit
    for file in (root / "spack-env" / "sites").glob("*/*.lock"):
        file.write_text(file.read_text().replace("2e907202bcc8209a6a62243aab50c179b524cc3b", commit))
