"""What the documents published, fed back as measurements of five rounds, and figures that contradict their lessons."""

import numpy as np
import pytest
from msgspec import structs
from samples import barrier

from plumbline.base import group
from plumbline.extras.labs import evidence, model
from plumbline.records.figure import Figure

TEMPLATE = barrier(1.0).row()
ROUNDS, LAUNCHES = 5, 1
#: labs whose published figures stand on both sides of one of their comparisons
WITH_BOTH = ("T5", "R7", "U1", "U3", "U4", "S3", "D7")


def measured(points, noise, random):
    """Rows of rounds in which each launch is off by a factor with that standard deviation (of its logarithm).

    A point is a test, its parameters, stack and partition, and its figures: name, value, unit, better.
    """
    rows = []
    for test, params, stack, partition, figures in points:
        variant = structs.replace(TEMPLATE.variant, test=test, name=test, params=params)
        for number in range(ROUNDS):
            values = [
                Figure(
                    name=name, value=float(np.median(samples)), unit=unit, better=better, samples=samples,
                    launches=LAUNCHES, limit=None, reference=None,
                )
                for name, value, unit, better in figures
                for samples in [[float(item) for item in value * np.exp(noise * random.standard_normal(LAUNCHES))]]
            ]  # fmt: skip
            row = structs.replace(TEMPLATE, variant=variant, figures=values, launch_count=LAUNCHES, partition=partition)
            row.session, row.stack = f"{number}-{len(rows)}", structs.replace(TEMPLATE.stack, name=stack)
            rows.append(row)
    return rows


def published(name):
    places = {place for table in model.named(name).tables for place in table.published}
    entries = [
        entry
        for place in sorted(places)
        for entry in evidence._references(place.partition(":")[0])
        if entry.partition == place.partition(":")[2] and entry.method == "published"
    ]
    by_record = group(((entry.test, str(entry.params), entry.stack, entry.partition), entry) for entry in entries)
    return [
        (test, dict(of[0].params), stack, partition, [(item.figure, item.value, item.unit, item.better) for item in of])
        for (test, _, stack, partition), of in by_record.items()
    ]


def states(name, points, noise, seed):
    rows = measured(points, noise, np.random.default_rng(seed))
    return {finding.subject: finding.state for finding in evidence.findings(model.named(name), rows)}


def wrong(name, noise, repeats):
    """The firm lines that contradict what the document's figures say without noise."""
    points = published(name)
    truth = states(name, points, 1e-6, 0)
    assert set(truth.values()) & {evidence.HOLDS, evidence.OPPOSITE}, truth
    firm = {evidence.HOLDS, evidence.OPPOSITE}
    return [
        (subject, state)
        for seed in range(repeats)
        for subject, state in states(name, points, noise, seed).items()
        if {state, truth[subject]} == firm
    ]


@pytest.mark.parametrize("repeats", [10, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("noise", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("name", WITH_BOTH)
def test_published_figures_never_get_a_wrong_firm_line(name, noise, repeats):
    assert wrong(name, noise, repeats) == []


#: the comparisons that the documents' own figures show, with 1 % of noise, in the rounds of one lab
SHOWN = {
    "U1": {"One thread has more bandwidth from its own memory than from the other node's",
           "Four threads have more bandwidth from their own memory than from the other node's",
           "Four threads have more bandwidth than one"},
    "U4": {"The product in nodeperf's shape reaches the measured peak of all cores within 5 %"},
    "T5": {"In tmpi's order, sixteen small messages take no longer than one large message, within 10 % (mvapich)"},
    "D7": {"A message between GPUs on one switch takes less time than between two sockets",
           "Between nodes a process near to GPU 2 sends in less time than a far one"},
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_the_documents_own_figures_hold(name):
    shown = states(name, published(name), 0.01, 1)
    assert {subject: shown.get(subject) for subject in SHOWN[name]} == dict.fromkeys(SHOWN[name], evidence.HOLDS)


def test_what_openmpi_did_on_ranger_is_against_the_lesson():
    (against,) = [
        subject for subject, state in states("T5", published("T5"), 0.01, 1).items()
        if state == evidence.OPPOSITE and subject.startswith("In tmpi's order")
    ]  # fmt: skip
    assert against.endswith("(openmpi)")


PINGPONG = {"operation": "PingPong"}
#: figures that contradict a sentence of a document, typed from that sentence
CONTRADICTING = {
    # "the bandwidth ... within the same socket is around 25 GB/s", "from another socket ... around 10 GB/s"
    "U1": [
        ("stream_numa", {"cpu_node": 0, "memory_node": node, "threads": threads}, "openmpi", "default",
         [("triad", value, "MB/s", "higher")])
        for node, threads, value in [(0, 1, 10_000.0), (1, 1, 14_000.0), (0, 4, 9_000.0), (1, 4, 25_000.0)]
    ],
    # "higher bandwidth clusters is resulted from the pinging among cores within the same socket"
    "U2": [
        ("pairs_cores", {"operation": "serial"}, "openmpi", "default",
         [("latency_l3", 0.6, "us", "lower"), ("latency_xsocket", 0.2, "us", "lower"),
          ("bandwidth_l3", 5_500.0, "MB/s", "higher"), ("bandwidth_xsocket", 11_000.0, "MB/s", "higher")]),
    ],
    # "increased the latency", "bandwidth was also decreased" between nodes
    "U3": [
        ("imb_pair", {**PINGPONG, "placement": place}, "openmpi", "default",
         [("time_8B", latency, "us", "lower"), ("bandwidth", bandwidth, "MB/s", "higher")])
        for place, latency, bandwidth in [("pair:l3", 1.65, 3_000.0), ("pair:node", 0.35, 11_000.0)]
    ],
    # "99.7% of peak performance"
    "U4": [
        ("dgemm_update", {}, "openmpi", "default",
         [("rate", 90.0, "GFlop/s", "higher"), ("peak", 448.0, "GFlop/s", "higher")]),
    ],
    # "sent as quickly as one long message"
    "T5": [
        ("pingpong_threads", {"operation": "serialized", "placement": "node"}, "openmpi", "default",
         [("cold_time_16_ordered", 89_490.0, "us", "lower"), ("cold_time_large_one", 5_500.0, "us", "lower")]),
    ],
    # "for small P, linear actually faster"; "hierarchical tree obviously scales much better"
    "S2": [
        ("collective_algorithms", {"operation": "bcast", "rank_count": ranks}, "openmpi", "default",
         [("linear_8B", linear, "us", "lower"), ("tree_8B", tree, "us", "lower")])
        for ranks, linear, tree in [(4, 9.0, 3.0), (8, 4.0, 8.0), (64, 9.0, 90.0)]
    ],
    # "Latency is good, but bandwidth may not be what you expect"
    "R6": [
        ("imb_pair", {**PINGPONG, "placement": place}, "openmpi", "default",
         [("time_8B", latency, "us", "lower"), ("bandwidth", bandwidth, "MB/s", "higher")])
        for place, latency, bandwidth in [
            ("pair:l3", 3.0, 9_000.0), ("pair:xsocket", 2.0, 9_000.0), ("pair:node", 1.5, 1_500.0)]
    ],
}  # fmt: skip


@pytest.mark.parametrize("noise", [0.001, 0.05])
@pytest.mark.parametrize("name", CONTRADICTING)
def test_figures_that_contradict_a_document_never_hold(name, noise):
    for seed in range(10):
        shown = states(name, CONTRADICTING[name], noise, seed)
        assert evidence.HOLDS not in {state for subject, state in shown.items() if subject != "Every product is right"}
        assert noise > 0.01 or evidence.OPPOSITE in shown.values()
