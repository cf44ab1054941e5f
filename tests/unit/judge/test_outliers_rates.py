"""What ``plumb outliers`` says of simulated clusters, one by one. `make rates` measures how often it errs."""

import itertools
import sys

import numpy as np
import pytest

from plumbline.base import paths
from plumbline.judge.outliers import Margins, decide

sys.path.insert(0, str(paths.root() / "tests/rates"))
import outliers as simulated
from promises import Promises

SEED = 2


def draw(name):
    return np.random.default_rng([SEED, *name.encode()])


def verdict(decided):
    """P9.3 is a PASS that would have seen 9.3 %; of a matrix two: of its ends and of its links."""
    seen = ("–" if size is None else f"{100 * size:.1f}" for size in decided.seen.values())
    return decided.state[0] + "/".join(seen)


def report(decided):
    """The verdict, and what is reported with the ratio of its time to the usual one."""
    return f"{verdict(decided)}: " + ", ".join(f"{item.name} {item.ratio:.3f}" for item in decided.findings)


#: of 3, 5, 8, 16 and 64 nodes with 3, 5 and 10 launches each
NODES = {
    "quiet": "I– I– I– I– P3.4 P7.8 P9.3 P3.2 P4.4 I32.1 P5.0 P4.4 I8.5 P5.8 P4.1",
    "bimodal": "I– I– I– I– P8.6 I27.4 I19.0 P7.7 P6.4 I12.3 P8.6 P6.6 I11.2 I10.2 P7.3",
    "drift": "I– I– I– I– I20.7 I12.4 P9.5 P9.0 P7.3 I16.4 I10.5 I10.1 I10.4 I12.9 I13.4",
    "burst": "I– I– I– I– I18.0 I16.6 I11.1 I13.5 P8.4 P9.0 I10.9 I10.0 I17.6 I10.9 P7.3",
    "noisy": "I– I– I– I– I92.6 I57.1 I18.3 I26.4 I12.3 I39.7 I21.5 I16.8 I48.4 I24.6 I17.7",
    "spread": "I– I– I– I– I33.6 I23.9 I12.3 I11.4 I23.5 I13.7 I11.9 P7.9 I14.6 I13.2 I11.5",
    "rounded": "I– I– I– I– P5.0 P5.0 I13.3 P7.9 P5.0 P5.0 P7.9 P5.0 P7.9 P7.9 P5.0",
}


@pytest.mark.parametrize("model", simulated.MODELS)
def test_healthy_nodes_are_not_reported(model):
    noise = draw(model)
    sizes = itertools.product((3, 5, 8, 16, 64), (3, 5, 10))
    clusters = [decide([simulated.nodes(model, *size, noise, {})], Margins()) for size in sizes]
    assert " ".join(verdict(decided) for (decided,) in clusters) == NODES[model]


#: of all links of 4, 6 and 8 nodes with 3, 5 and 10 launches each
LINKS = {
    "quiet": "I–/– I–/14.9 I–/6.9 I–/44.3 P3.6/3.9 P6.8/5.3 P5.4/9.6 P4.6/5.9 P6.5/6.3",
    "bimodal": "I–/– I–/18.5 I–/15.4 I–/9.8 I12.6/13.0 I11.6/6.2 I7.5/12.3 I7.1/11.1 P5.0/7.1",
    "drift": "I–/– I–/13.5 I–/19.6 I–/13.7 P8.3/8.8 I12.8/9.3 P6.0/8.0 I6.4/11.5 I5.3/10.1",
    "burst": "I–/– I–/24.1 I–/22.2 I–/11.5 I10.4/9.0 I15.5/11.1 I7.1/12.4 P7.7/9.1 P7.3/6.7",
    "noisy": "I–/– I–/77.5 I–/51.4 I–/28.6 I20.8/27.0 I21.4/12.9 I16.3/45.1 I10.7/22.2 I21.1/22.8",
    "spread": "I–/– I–/21.9 I–/20.2 I–/20.8 I15.5/14.7 I25.6/14.4 I14.2/13.8 P5.2/4.1 I10.3/10.6",
    "rounded": "I–/– I–/11.0 I–/4.1 I–/7.2 P2.8/5.1 P6.3/3.6 P6.6/6.2 P6.0/5.0 P5.4/4.5",
}


@pytest.mark.parametrize("model", simulated.MODELS)
def test_healthy_links_are_not_reported(model):
    noise = draw(model)
    sizes = itertools.product((4, 6, 8), (3, 5, 10))
    clusters = [decide([simulated.matrix(model, *size, noise, {})], Margins()) for size in sizes]
    assert " ".join(verdict(decided) for (decided,) in clusters) == LINKS[model]


@pytest.mark.parametrize(("fault", "reports"), [
    (
        simulated.Fault("node", "nodes", "1 %", 16, 5, {(3,): 0.05}),
        ["F4.1: n003 1.048", "F5.5: n003 1.064", "F4.8: n003 1.048", "F4.0: n003 1.051"],
    ),
    (
        simulated.Fault("nodes", "nodes", "1 %", 32, 5, {(3,): 0.05, (9,): 0.05, (30,): 0.05}),
        [
            "F4.8: n003 1.051, n030 1.046, n009 1.046",
            "F5.0: n009 1.049, n030 1.041, n003 1.039",
            "F4.5: n009 1.055, n030 1.055, n003 1.036",
            "F4.9: n030 1.055, n009 1.051, n003 1.051",
        ],
    ),
    (
        simulated.Fault("link", "matrix", "2 %", 8, 5, {(2, 5): 0.10}),
        [
            "F4.9/7.6: n02 – n05 1.093",
            "F6.2/7.8: n02 – n05 1.099",
            "F5.5/6.6: n02 – n05 1.102",
            "F9.6/9.5: n02 – n05 1.100",
        ],
    ),
    (
        simulated.Fault("node", "matrix", "1 %", 16, 3, {(3,): 0.05}),
        ["F4.5/7.0: n03 1.045", "F3.5/7.2: n03 1.050", "F4.0/6.4: n03 1.047", "F2.8/6.3: n03 1.049"],
    ),
    (
        simulated.Fault("both", "matrix", "1 %", 16, 3, {(3,): 0.05, (6, 9): 0.20}),
        [
            "F4.8/7.4: n03 1.050, n06 – n09 1.210",
            "F3.2/6.7: n03 1.047, n06 – n09 1.190",
            "F4.1/7.6: n03 1.061, n06 – n09 1.177",
            "F3.2/6.7: n03 1.042, n06 – n09 1.200",
        ],
    ),
], ids=lambda value: f"{value.what}-{value.kind}" if isinstance(value, simulated.Fault) else None)  # fmt: skip
def test_what_is_slow_is_reported_and_nothing_else(fault, reports):
    noise = draw(fault.what)
    clusters = [decide([simulated.cluster(fault, noise)], Margins()) for _ in reports]
    assert [report(decided) for (decided,) in clusters] == reports


#: of each figure, and of all together; ``alike`` (True) are figures of the same launches
SEVERAL = {
    ("quiet", False): "II I–, PP P5.1, IPIPIPPP P3.8, IIIIIIII P9.0",
    ("bimodal", False): "II I–, IP P6.9, IIIIIIII P4.3, IIIIIIII P5.2",
    ("drift", False): "II I–, PI P6.7, IIIIIIII P4.6, IIIIIIII P3.6",
    ("burst", False): "II I–, PP P5.7, IIIIIIPI P3.3, IIIIIIII P4.2",
    ("noisy", False): "II I–, II I17.1, IIIIIIII I14.6, IIIIIIII I13.4",
    ("spread", False): "II I–, II P6.1, IIIPIIII P2.7, IIIIIIII P3.2",
    ("rounded", False): "II I–, PP P3.6, PPPPPPPP P2.0, IIIIIIII P2.9",
    ("quiet", True): "II I–, PP P7.8, IIIIIIII P9.8, IIIIIIII I21.0",
    ("bimodal", True): "II I–, II I10.0, PPPPPPPP P9.3, IIIIIIII I13.2",
    ("drift", True): "II I–, II I14.1, IIIIIIII I11.6, IIIIIIII I12.7",
    ("burst", True): "II I–, II I15.9, IIIIIIII I11.9, IIIIIIII I10.2",
    ("noisy", True): "II I–, II I24.3, IIIIIIII I46.5, IIIIIIII I106.8",
    ("spread", True): "II I–, II I10.1, IIIIIIII I30.4, IIIIIIII I14.5",
    ("rounded", True): "II I–, PP P6.3, PPPPPPPP P2.0, IIIIIIII P2.0",
}


@pytest.mark.parametrize(("model", "alike"), SEVERAL)
def test_healthy_clusters_of_several_figures_are_not_reported(model, alike):
    noise = draw(model)
    clusters = [
        decide(simulated.several(model, nodes, launches, noise, {}, figures, alike), Margins())
        for nodes, launches, figures in ((8, 3, 2), (16, 5, 2), (8, 5, 8), (16, 3, 8))
    ]
    shown = ["".join(item.state[0] for item in apart) + " " + verdict(together) for *apart, together in clusters]
    assert ", ".join(shown) == SEVERAL[model, alike]


def test_a_node_that_is_slow_in_every_figure_is_reported_where_no_figure_shows_it():
    noise = draw("node")
    clusters = [decide(simulated.several("2 %", 16, 3, noise, {3: 0.05}, 8, False), Margins()) for _ in range(4)]
    assert {item.state for *apart, _ in clusters for item in apart} == {"INCONCLUSIVE"}
    assert [report(together) for *_, together in clusters] == [
        "F4.1: n003 1.048",
        "F3.8: n003 1.056",
        "F4.1: n003 1.057",
        "F3.7: n003 1.048",
    ]


@pytest.mark.parametrize("kind", ["nodes", "matrix"])
def test_the_smallest_detectable_slowdown_is_detected(kind):
    assert simulated.kept(kind, 7, SEED) == (6, 6)


def test_a_rule_that_errs_breaks_its_promise(monkeypatch):
    """A guard broken on purpose: a rule with a hundred times the error reports healthy clusters."""
    monkeypatch.setattr(simulated, "MODELS", ("spread",))
    monkeypatch.setattr(simulated, "SIZES", (8, 16))
    monkeypatch.setattr(simulated, "ENDS", (4,))
    monkeypatch.setattr(simulated, "faults", lambda: ())
    monkeypatch.setattr(simulated, "kept", lambda *_: (7, 7))
    monkeypatch.setattr(simulated, "report_together", lambda *_: ())
    promises = Promises()
    list(simulated.report(2, 1, SEED, promises))
    assert promises.broken == []
    monkeypatch.setattr("plumbline.judge.outliers.SIDE", 0.5)
    monkeypatch.setattr("plumbline.judge.members.ALLOWED", -10.0)
    list(simulated.report(2, 1, SEED, promises))
    assert [line.partition(":")[0] for line in promises.broken] == ["report of healthy nodes, spread"]


def test_what_a_fault_promises():
    fault = simulated.Fault("node 5 %", "nodes", "1 %", 16, 5, {(3,): 0.05}, least=0.9)
    promises = Promises()
    simulated.keep(simulated.Found(fault, 100, exact=90, more=5), promises)
    assert promises.broken == []
    simulated.keep(simulated.Found(fault, 100, exact=89, more=15), promises)
    assert len(promises.broken) == 2
