"""``plumb application init -- COMMAND``: what a run shows, and the plumb.yaml that comes of it."""

import shutil
import subprocess
import sys

import pytest
import stack_manifest

from plumbline.commands import cli
from plumbline.measure.application import init, model

PROGRAM = r"""
#include <stdio.h>
#include <time.h>
int main(void)
{
    char name[64];
    struct timespec begin, end;
    double sum = 0.0;
    FILE *input = fopen("input.dat", "r");
    int n = 0;
    if (input == NULL || fscanf(input, "%d", &n) != 1)
        return 1;
    fclose(input);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 1; i <= n; i++)
        sum += 1.0 / i;
    clock_gettime(CLOCK_MONOTONIC, &end);
    double spent = (end.tv_sec - begin.tv_sec) + 1e-9 * (end.tv_nsec - begin.tv_nsec);
    snprintf(name, sizeof name, "log_2026-11-29_%ld.txt", (long)end.tv_nsec);
    FILE *log = fopen(name, "w");
    fprintf(log, "Solve time: %.9f s\nChecksum = %.6f\n", spent, sum);
    fclose(log);
    return 0;
}
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    """A small code in C, built by its Makefile, that reads a file and writes a log with a date in its name."""
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "small.c").write_text(PROGRAM)
    (folder / "Makefile").write_text("small: small.c\n\tcc -O1 -o small small.c\n")
    (folder / "input.dat").write_text("2000000\n")
    subprocess.run(["make", "-s"], cwd=folder, check=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler")
def test_a_command_becomes_a_plumb_yaml_outside_of_its_code(code, tmp_path, capsys):
    file = tmp_path / "elsewhere.yaml"
    assert cli.main(["application", "init", "--yes", "--application", str(file), "--", "./small"]) == 0
    application = model.load(file)
    (program,) = application.programs.values()
    assert (application.build, model.code_folder(file)) == (["make"], code)
    assert (program.words, program.inputs, program.mpi, program.threads) == (["./small"], ["input.dat"], False, 1)
    ((name, figure),) = program.figures.items()
    assert (name, figure.file, figure.unit, figure.better) == ("solve_time", "log_*.txt", "s", "lower")
    assert [(check.value, check.file) for check in program.checks] == [(15.085874, "log_*.txt")]
    assert not (code / "plumb.yaml").exists()
    assert f"next: plumb run --application {file}" in capsys.readouterr().out
    assert model.present_code(file).folder == code


@pytest.mark.parametrize(("words", "message"), [
    (["./absent"], "cannot start ./absent"),
    (["mpirum"], "cannot start mpirum: No such file or directory (--): an installed stack has it: PATH=HERE/bin:$"),
    ([sys.executable, "-c", "raise SystemExit(3)"], "the command ended with exit status 3"),
    ([sys.executable, "-c", "print('ERROR: no grid'); raise SystemExit(3)"], "exit status 3: ERROR: no grid"),
])  # fmt: skip
def test_a_command_that_does_not_run_leaves_nothing(words, message, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    stack_manifest.save({**stack_manifest.LEAST, "prefix": str(tmp_path)})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mpirum").touch()
    assert message.replace("HERE", str(tmp_path)) in refused(2, "application", "init", "--", *words)
    assert not (tmp_path / "plumb.yaml").exists()


def test_a_person_chooses_figures_and_build(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Makefile").write_text("all:\n")
    (tmp_path / "run.sh").write_text(
        "#!/bin/sh\ndate '+rate %N MB/s' | sed 's/ 0*/ /'\ndate '+other %N.5 GB/s' | sed 's/ 0*/ /'\n"
    )
    (tmp_path / "run.sh").chmod(0o755)
    answers = iter(["9", "2,1", "make all"])
    monkeypatch.setattr("builtins.input", lambda question: next(answers))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert cli.main(["application", "init", "--", "./run.sh"]) == 0
    application = model.load(tmp_path / "plumb.yaml")
    assert application.build == ["make all"]
    assert sorted(rule.unit for rule in application.programs["run"].figures.values()) == ["GB/s", "MB/s"]


@pytest.mark.parametrize(
    ("present", "program", "first"),
    [
        ({"Makefile": "", "CMakeLists.txt": ""}, "code", ["make"]),
        (
            {
                "Makefile": "",
                "CMakeLists.txt": 'option(WITH_MPI "MPI" OFF)\noption(SAFE "tests" ON)\n',
                "out/CMakeCache.txt": "MODEL:UNINITIALIZED=omp\nWITH_MPI:BOOL=ON\nSAFE:BOOL=ON\n"
                "CMAKE_CXX_COMPILER:STRING=/opt/bin/mpicxx\nCMAKE_BUILD_TYPE:STRING=Debug\n",
            },
            "out/bin/code",
            [
                "cmake -S . -B out -DCMAKE_BUILD_TYPE=Debug -DMODEL=omp -DWITH_MPI=ON -DCMAKE_CXX_COMPILER=mpicxx",
                "cmake --build out -j2",
            ],
        ),
        (
            {"configure": "", "config.status": "", "config.log": "  $ ./configure --with-x='a b'\n"},
            "src/code",
            ["./configure --with-x='a b'", "make"],
        ),
        ({"meson.build": "", "b/meson-private/x": ""}, "b/code", ["meson setup build", "meson compile -C build"]),
        ({"Cargo.toml": "", "Makefile": "", "target/.rustc_info.json": ""}, "target/code", ["cargo build --release"]),
        ({"src/Makefile": "", "src/code.o": ""}, "src/code", ["cd src && make"]),
        ({"src/Makefile": "", "doc/text": ""}, "bin/code", ["cd src && make"]),
        (
            {"setup.py": ""},
            "python3.11",
            ['pip --python "$(command -v python)" install --quiet --target python-packages .'],
        ),
    ],
)  # fmt: skip
def test_build_lines_come_from_what_lies_there(present, program, first, tmp_path):
    for name, text in present.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    lines = init.builds(tmp_path, tmp_path / program, ["study.py"])[0]
    assert [set(line.split()) for line in lines] == [set(line.split()) for line in first]


def test_a_program_of_the_system_has_no_build(tmp_path):
    (tmp_path / "Makefile").touch()
    assert init.builds(tmp_path, tmp_path.parent / "bin" / "code", []) == []


def test_the_program_of_a_launch_line_is_found(tmp_path):
    (tmp_path / "code").write_text("")
    (tmp_path / "code").chmod(0o755)
    words = ["env", "A=1", "mpirun", "-n", "2", "./code", "-x"]
    assert init.program(words, [], tmp_path)[0] == 5
    keys = init.circumstances(words, 5, [])
    assert (keys["ranks"], keys["environment"], "mpi" in keys) == (1, {"A": "1"}, False)


def test_a_folder_that_a_variable_names_is_an_input(tmp_path):
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "part").touch()
    run = init.Run("", {}, [], {"packages/part"}, set(), 1.0)
    draft = init.draft(["env", "PYTHONPATH=packages", "A=1", "cat", "x"], [run] * 3, tmp_path)
    assert draft.keys["inputs"] == ["packages"]


def test_many_inputs_of_a_folder_are_the_folder(tmp_path):
    names = [f"data/{number}" for number in range(9)] + ["a.in", "tool"]
    (tmp_path / "data").mkdir()
    for name in names:
        (tmp_path / name).write_bytes(b"\x7fELF" if name == "tool" else b"x")
    assert init.inputs(names, tmp_path) == ["a.in", "data"]


def test_a_file_that_runs_append_to_is_read_from_there():
    logs = ["".join(f"time {n}\n" for n in range(count)) for count in (1, 2, 3)]
    runs = [init.Run("", {"log": log}, [], set(), set(), 1.0) for log in logs]
    assert init.outputs(runs)["log"] == ["time 0\n", "time 1\n", "time 2\n"]


def test_what_a_run_reads_and_then_changes_is_copied(tmp_path):
    for name in ("state", "log", "input"):
        (tmp_path / name).write_text("1")
    script = "read a < state; read b < input; echo $((a + b)) > state; echo 2 > log; read c < log"
    run = init.run(["bash", "-c", script], tmp_path)
    assert (run.inputs, run.changed) == ({"input"}, {"state"})
