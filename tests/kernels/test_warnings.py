"""All C code compiles without a warning; the kernels do so in test_sanitizers.py, too.

At a site, with another compiler or MPI library, a warning is not an error.
"""

import json
import os
import shlex
import subprocess

import pytest
from processes import ended, succeeded

from plumbline.base import paths
from plumbline.stacks import kernels, manifest

STRICT = "-DPLUMB_WARNINGS_AS_ERRORS=ON"
FOLDER = paths.suite() / kernels.FOLDER


def test_the_compiler_reads_the_tools_without_a_warning(tmp_path):
    """What it finds without optimising, which is most; the rest at night."""
    commands = "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"
    subprocess.run(["cmake", "-S", FOLDER, "-B", tmp_path, STRICT, commands], check=True, capture_output=True)
    files = json.loads((tmp_path / "compile_commands.json").read_text())
    assert files
    for file in files:
        words = [*shlex.split(file["command"]), "-fsyntax-only"]
        succeeded(ended(words, cwd=file["directory"]))


@pytest.mark.long
@pytest.mark.parametrize("part", ["tools", "mpich"])
def test_there_is_no_warning(tmp_path, part):
    if part != "tools" and part not in manifest.names():
        pytest.skip(f"the stack {part} is not installed")
    options, around = [], dict(os.environ)
    if part != "tools":
        stack = manifest.load(part)
        options = [f"-DMPI_C_COMPILER={kernels.wrapper(stack)}"]
        around |= manifest.environment(stack, os.environ)
    source = FOLDER if part == "tools" else FOLDER / "kernels"
    for command in (
        ["cmake", "-S", str(source), "-B", str(tmp_path), STRICT, *options],
        ["cmake", "--build", str(tmp_path), "--parallel", str(os.cpu_count())],
    ):
        succeeded(ended(command, env=around))


def test_a_warning_stops_no_installation(tmp_path):
    """As gcc 12 warns at MPI_STATUSES_IGNORE of MPICH 4.0."""
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(one LANGUAGES C)\n"
        f'include("{FOLDER}/common/warnings.cmake")\nadd_executable(one one.c)\n'
    )
    (tmp_path / "one.c").write_text("int main(void) { int unused; return 0; }\n")
    for option, status in (("-DPLUMB_WARNINGS_AS_ERRORS=OFF", 0), (STRICT, 2)):
        build = tmp_path / option
        subprocess.run(["cmake", "-S", str(tmp_path), "-B", str(build), option], check=True, capture_output=True)
        done = ended(["cmake", "--build", str(build)])
        assert done.returncode == status, done.stdout + done.stderr
        assert "unused variable" in done.stdout + done.stderr
