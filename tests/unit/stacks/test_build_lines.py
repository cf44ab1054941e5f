"""What the lines of a build end with: the error that compilers and tools name, and Fortran where it is missing."""

import subprocess
from pathlib import Path

import pytest
import stack_manifest
from msgspec.structs import replace

from plumbline.stacks import abi, manifest
from plumbline.stacks.fetch import first_error

#: what a tool prints (the end of it, shortened), and the line that counts
PRINTED = {
    "gcc": ("cc -Werror -c error.c\nerror.c: In function 'f':\nerror.c:1:26: error: 'x' undeclared\n", 2),
    "gcc without a place": ("gcc: error: unrecognized command-line option '-qopenmp'\nmake: *** [a] Error 1", 0),
    "clang": ("error.c:1:26: error: use of undeclared identifier 'x'\n1 error generated.\nmake: *** [a] Error 1", 0),
    "flang": ("error: Semantic errors in error.f90\n./error.f90:3:9: error: No explicit type declared for 'x'\n", 1),
    "icx": ("error.c(4): remark: loop\nerror.c:1:26: error: use of undeclared identifier 'x'\n", 1),
    "ifx": ("error.f90(3): error #5082: Syntax error, found END-OF-STATEMENT\ncompilation aborted (code 1)\n", 0),
    "nvc": ('"error.c", line 1: warning: x\n"error.c", line 2: error: identifier "x" is undefined\n', 1),
    "nvfortran": ("NVFORTRAN-S-0034-Syntax error at or near end of line (error.f90: 3)\n  0 inform, 1 severes\n", 0),
    "Cray": ("ftn-197 ftn: ERROR P, File = error.f90, Line = 3, Column = 1\n  Unexpected syntax.\n", 0),
    "linker": ("link.c:(.text+0x5): undefined reference to `f'\ncollect2: error: ld returned 1 exit status\n", 0),
    "library": ("/usr/bin/ld: cannot find -lblas: No such file or directory\ncollect2: error: ld returned 1\n", 0),
    "make": ("make: *** No rule to make target 'a.c', needed by 'a'.  Stop.\n", 0),
    "make without compiler": ("mpif95 -c a.f90\nmake: mpif95: No such file or directory\nmake: *** [a] Error 127", 1),
    "ninja": ("[1/2] cc a.c\nFAILED: a.o\na.c:1:2: error: 'x'\nninja: build stopped: subcommand failed.", 2),
    "bash": ("bash: line 1: mpif95: command not found\n", 0),
    "pip": (
        "  error: subprocess-exited-with-error\n  × Building wheel did not run\n      error.c:1:26: error: 'x'\n"
        "ERROR: Failed building wheel\nERROR: Failed to build x\n",
        2,
    ),
    "pip without package": ("ERROR: Could not find a version that satisfies the requirement x\n", 0),
    "Python": ("Traceback:\n  File 'a', line 1\nModuleNotFoundError: No module named 'x'\n", 2),
    "configure": ("checking... no\nconfigure: error: no acceptable C compiler found in $PATH\nSee config.log", 1),
    "meson": ("Program error found\nmeson.build:1:0: ERROR: Unknown compiler(s): [['cc']]\n", 1),
    "nothing of an error": ("first\nlast words\n", 1),
}  # fmt: skip
#: those whose error is made of several lines
JOINED = {
    "gfortran": (
        "gfortran -c error.f90\nerror.f90:3:26:\n\n    3 |   call error_handler(error\n      |            1\n"
        "Error: Syntax error in argument list at (1)\n",
        "error.f90:3:26: Error: Syntax error in argument list at (1)",
    ),
    "CMake": (
        "-- Looking\nCMake Error at CMakeLists.txt:3 (find_package):\n  Could not find X.\n\nSee also errors.log\n",
        "CMake Error at CMakeLists.txt:3 (find_package): Could not find X.",
    ),
    "cargo": (
        "   Compiling x\nerror[E0425]: cannot find value `y`\n --> src/main.rs:1:25\n  |\n"
        'error: could not compile `x` (bin "x") due to 1 previous error\n',
        "src/main.rs:1:25: error[E0425]: cannot find value `y`",
    ),
}


@pytest.mark.parametrize("tool", PRINTED)
def test_the_line_with_the_cause_counts(tool):
    printed, number = PRINTED[tool]
    assert first_error(printed) == printed.splitlines()[number].strip()


@pytest.mark.parametrize("tool", JOINED)
def test_an_error_of_several_lines_is_one(tool):
    printed, line = JOINED[tool]
    assert first_error(printed) == line


@pytest.fixture
def prefix(tmp_path, monkeypatch) -> Path:
    """The prefix of a stack with an mpicc, on a host with gfortran 12."""
    for name, text in {"stack/bin/mpicc": "", "host/gfortran": "#!/bin/sh\necho 12.2.0\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'host'}:/usr/bin:/bin")
    return tmp_path / "stack"


def fortran(prefix: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> subprocess.CompletedProcess[str]:
    """The wrapper ``name`` of a build with the stack of ``prefix``, run."""
    stack = replace(stack_manifest.made("s"), prefix=str(prefix))
    monkeypatch.setattr(manifest, "load_all", lambda: [replace(stack, name="able", prefix=str(prefix)), stack])
    file = abi.write_fortran(stack, prefix.parent / "wrappers") / name
    return subprocess.run([file, "-c", "a b.f90"], capture_output=True, text=True, check=False)


def test_a_stack_without_fortran_says_so_in_one_line(prefix, monkeypatch):
    for name in abi.FORTRAN:
        ran = fortran(prefix, name, monkeypatch)
        assert (ran.returncode, ran.stdout) == (1, "")
        assert ran.stderr.startswith(f"{name}: error: stack s has no Fortran modules of MPI; use a stack")
        assert first_error(f"{ran.stderr}make: *** [Makefile:2: a] Error 1") == ran.stderr.strip()


def test_a_stack_with_one_of_the_names_has_them_all_and_the_modules_of_this_compiler(prefix, monkeypatch):
    (prefix / "bin" / "mpif90").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (prefix / "bin" / "mpif90").chmod(0o755)
    assert fortran(prefix, "mpifort", monkeypatch).stdout.splitlines() == ["-c", "a b.f90"]
    for version in ("11.1.0", "12.4.0"):
        (prefix / "include" / "mpi" / "gfortran" / version).mkdir(parents=True)
    modules = f"-I{prefix}/include/mpi/gfortran/12.4.0"
    assert fortran(prefix, "mpif90", monkeypatch).stdout.splitlines() == [modules, "-c", "a b.f90"]
