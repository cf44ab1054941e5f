"""The plumb.yaml of docs/examples: in order, and right about what these programs print (lines of runs on Debian 12).

Those of ``heat`` are run by tests/e2e/test_wheel.py, with the tutorial.
"""

import msgspec
import pytest

from plumbline.base import paths
from plumbline.measure.application import model
from plumbline.parsers import application
from plumbline.parsers.application import Rules
from plumbline.parsers.measurement import ParseError

EXAMPLES = [
    file for file in sorted((paths.root() / "docs" / "examples").glob("*/plumb.yaml")) if file.parent.name != "heat"
]
LAMMPS = """\
Step Temp E_pair E_mol TotEng Press
       0         1.44   -6.7733681            0   -4.6134356   -5.0197073
     100    0.7574531   -5.7585055            0   -4.6223613   0.20726105
Loop time of 0.68602 on 2 procs for 100 steps with 32000 atoms

Performance: 62971.967 tau/day, 145.768 timesteps/s
Pair    | 0.55114    | 0.55343    | 0.55573    |   0.3 | 80.67
"""
ESPRESSO = """\
!    total energy              =     -15.84770396 Ry
     convergence has been achieved in   6 iterations
     fftw         :      0.22s CPU      0.29s WALL (    5572 calls)
     PWSCF        :      0.35s CPU      0.44s WALL
"""
HPCC = """\
Success=1
HPL_Tflops=0.00842122
StarDGEMM_Gflops=5.99385
MPIRandomAccess_Errors=0
StarSTREAM_Triad=73.4198
MPIFFT_Gflops=6.73038
AvgPingPongLatency_usec=0.133075
AvgPingPongBandwidth_GBytes=13.5299
"""
#: program -> what it prints, where, its figures, and a line with the wrong answer in place of the right one
PRINTED = {
    "lammps": (LAMMPS, None, {"rate": 145.768, "pair": 0.55573}, ("-4.6223613", "-4.6224613")),
    "quantum-espresso": (ESPRESSO, None, {"time": 0.44, "fft": 0.29}, ("-15.84770396", "-15.84779396")),
    "hpcc": (
        HPCC,
        "hpccoutf.txt",
        {"hpl": 0.00842122, "dgemm": 5.99385, "triad": 73.4198, "fft": 6.73038, "latency": 0.133075}
        | {"bandwidth": 13.5299},
        ("Success=1", "Success=0"),
    ),
}


def test_every_example_is_here():
    assert [file.parent.name for file in EXAMPLES] == sorted(PRINTED)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.parent.name)
def test_an_example_reads_what_its_program_prints(file):
    text, name, figures, (right, wrong) = PRINTED[file.parent.name]
    (program,) = model.load(file).programs.values()
    rules = msgspec.to_builtins(Rules(figures=program.figures, checks=program.checks))

    def read(printed: str) -> dict[str, float]:
        files = {"files": {name: printed}} if name else {}
        found = application.parse("" if name else printed, {"rules": rules, **files})
        return {item.metric: item.value for item in found}

    assert read(text) == figures
    with pytest.raises(ParseError, match="wrong answer"):
        read(text.replace(right, wrong))
