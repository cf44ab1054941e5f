"""Programs of a ``plumb.yaml`` that measure nothing: what is printed again, kept from before, or only half read."""

import own_code
import pytest

pytestmark = pytest.mark.e2e

#: what it does is its first argument
PROGRAM = """
import os, sys, time
how, kept = sys.argv[1:]
end = time.process_time() + 0.05
while time.process_time() < end: pass
value = f"{1 + os.getpid() % 997 / 1000:.3f}{time.time_ns() % 1000:03}"
print("running")
if how in ("constant", "coarse"):
    print("R 1234.56789" if how == "constant" else "R 1.4")
elif how == "long":
    print("R", 1000 + float(value))
elif how == "half":
    print("R 9.5e-05")
elif how == "kept" and not os.path.exists(kept):
    open(kept, "w").write(f"R {value}")
elif how == "dated":
    open(f"HPCG-Benchmark_3.1_{time.time_ns()}.txt", "w").write(f"R {value}")
elif how == "logged":
    open(kept, "a").write(f"R {value}\\n")
"""
RATE = {"pattern": r"^R (\S+)", "unit": "timesteps/s", "better": "higher"}
#: name -> (members of its figure, what its record says; None: it is measured); tests/unit/launch/test_written.py has
#: every way in which a file is old
PROGRAMS = {
    "constant": ({}, "rate: 3 of 3 launches printed the same 1234.56789 timesteps/s, digit by digit"),
    "coarse": ({}, None),
    "long": ({"unit": "s", "better": "lower"}, "s is more than the launch took, "),
    "half": ({"pattern": "R ([0-9.]+)"}, "figure rate: the group takes '9.5' of '9.5e-05' (the standard output)"),
    "kept": ({"file": "{folder}/kept.txt"}, "kept.txt is older than the launch, which did not write it"),
    "inside": ({"file": "dat?/old.txt"}, "the file dat?/old.txt is older than the launch, which did not write it"),
    "dated": ({"file": "HPCG-Benchmark_3.1_*.txt"}, None),
    "logged": ({"file": "{folder}/logged.txt"}, None),
}


def launches(name):
    """Two show what the first one left; that a figure repeats is said of three."""
    return 3 if name in ("constant", "coarse") else 2


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The records of :data:`PROGRAMS`, by name."""
    folder = tmp_path_factory.mktemp("figures") / "code"
    (folder / "data").mkdir(parents=True)
    (folder / "lie.py").write_text(PROGRAM)
    (folder / "data" / "old.txt").write_text("R 1.23456789\n")
    programs = {}
    for name, (members, _) in PROGRAMS.items():
        rule = {key: value.format(folder=folder.parent) if key == "file" else value for key, value in members.items()}
        programs[name] = {
            "command": ["python", "lie.py", name, str(folder.parent / f"{name}.txt")],
            "figures": {"rate": RATE | rule, "time": {"wall": True}},
            "inputs": ["lie.py", "data"],
            **{"mpi": False, "placements": ["numa"], "ranks": 1, "threads": 1, "launches": launches(name)},
        }
    own_code.commit(folder, {"application": "code", "programs": programs})
    around = own_code.variables(folder.parent)
    status, output = own_code.plumb(folder, around, "run", "--stack", "openmpi")
    assert status == 1, output
    return own_code.records(around)


@pytest.mark.parametrize("name", PROGRAMS)
def test_only_what_a_launch_measured_is_a_figure(ran, name):
    record, said = ran[name], PROGRAMS[name][1]
    if said is None:
        assert record["reasons"] == []
        assert [len(figure["samples"]) for figure in record["figures"]] == [launches(name)] * 2
    else:
        assert record["verdict"] == "invalid"
        assert any(said in reason for reason in record["reasons"]), record["reasons"]
