"""What schedulers believe of nodes, by answers as they print them."""

import pytest

from plumbline.base.errors import PlumbError
from plumbline.schedulers import believed
from plumbline.schedulers.believed import Believed

SLURM = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=48 CPUAlloc=0 CPUTot=192 Gres=gpu:a100:4(S:0-1),nic:2 "
    "RealMemory=515000 Sockets=2 ThreadsPerCore=2 State=IDLE\n\nNodeName=n2 CPUTot=8 CoresPerSocket=4 "
    "Gres=(null) RealMemory=1 Sockets=2 ThreadsPerCore=1 State=DOWN\n"
)
PBS = """{"nodes": {"n1": {"Mom": "n1", "resources_available": {"host": "n1", "mem": "131072kb", "ncpus": 96,
"ngpus": 4}}, "n2": {"Mom": "n2"}}}"""
ANSWERS = {
    "slurm": (SLURM, {"n1": Believed(2, 96, 192, 515000 << 20, 4, "known"), "n2": Believed(2, 8, 8, 1 << 20, 0)}),
    "pbs": (PBS, {"n1": Believed(threads=96, memory=131072 << 10, gpus=4), "n2": Believed()}),
    "flux": ("n[1-2]|2|96|8\n|0|0|0\n", dict.fromkeys(("n1", "n2"), Believed(cores=48, gpus=4))),
}


@pytest.mark.parametrize(("scheduler", "answer"), ANSWERS.items())
def test_answers_are_read(scheduler, answer, monkeypatch):
    monkeypatch.setattr(believed, "answer", lambda *_: answer[0])
    assert believed.nodes(scheduler) == answer[1]


@pytest.mark.parametrize(
    ("scheduler", "text"), [("slurm", "NodeName=n1 Sockets=two"), ("pbs", "[]"), ("flux", "n1|0|1|1"), ("lsf", "")]
)
def test_others_are_refused(scheduler, text, monkeypatch):
    monkeypatch.setattr(believed, "answer", lambda *_: text)
    with pytest.raises(PlumbError):
        believed.nodes(scheduler)
