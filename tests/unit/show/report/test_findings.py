"""The findings of a page: each rule says its sentence where it holds, and nothing where it does not."""

import itertools
import json

import pieces
import pytest
from msgspec import structs
from plans import typed
from samples import launch, plan, record, variant

from plumbline.base import units
from plumbline.records import store
from plumbline.records.model import convert
from plumbline.show.report import findings

numbers = itertools.count(1)


def made(value=10000.0, stack="openmpi", placement="compact", bound=True, name="triad", better="higher", **changes):
    """A record of seven launches about ``value``: enough to tell stacks apart that are measured once."""
    samples = [factor * value for factor in (0.99, 0.993, 0.996, 1.0, 1.003, 1.006, 1.01)]
    document = record(
        id=f"{next(numbers):012x}",
        launches=[launch(order, sample) for order, sample in enumerate(samples)],
        plan=plan(bound=bound),
    )
    unit = "MB/s" if better == "higher" else "us"
    figure = document["figures"][0] | {"name": name, "value": value, "samples": samples, "better": better, "unit": unit}
    document |= {
        "stack": document["stack"] | {"name": stack},
        "placement": document["placement"] | {"name": placement},
        "session": f"s{document['id']}",
        "figures": [figure | changes.pop("figure", {})],
        **changes,
    }
    return convert(document)


def said(rule, *records):
    numbered = [(one, number) for number, one in enumerate(records)]
    return [item.text for item in findings.ranked(rule(findings.Campaign(numbered)))]


def test_records_that_are_not_valid_are_counted_with_the_first_reason():
    bad = made(verified=False, reasons=["rank 0 moved"])
    (text,) = said(findings.not_valid, bad, made())
    expected = "1 of 2 records are not valid; the first is stream_threads (compact 1x2 local) on openmpi: rank 0 moved"
    assert text == expected
    assert said(findings.not_valid, made()) == []


def test_figures_below_their_reference_come_worst_first():
    reference = {"value": 10000.0, "unit": "MB/s", "lower": -0.05, "upper": 0.05}
    reference |= {"method": "calibrated", "file": "references/x.yaml"}
    records = [made(value, verdict="below", figure={"reference": reference}) for value in (9000.0, 5000.0)]
    first, second = said(findings.not_as_expected, *records)
    assert first.endswith("triad 5.000 GB/s, 2.0 times worse than its reference, 10.00 GB/s")
    assert "9.000 GB/s" in second
    assert said(findings.not_as_expected, made(verdict="within", figure={"reference": reference})) == []
    # the record is below for another figure's sake
    assert said(findings.not_as_expected, made(verdict="below", figure={"reference": reference})) == []


@pytest.mark.parametrize(
    ("free", "better", "words"),
    [(5000.0, "higher", "loses 50 % of"), (20000.0, "lower", "takes 2.0 times of"), (9900.0, "higher", None)],
)
def test_what_the_lack_of_placement_costs(free, better, words):
    texts = said(findings.unbound, made(free, placement="none", bound=False, better=better), made(better=better))
    assert [words in text for text in texts] == ([True] if words else [])


def test_only_the_placement_differs_between_what_is_compared():
    free = {"placement": "none", "bound": False, "better": "lower"}
    asked = variant(params={"operation": "Alltoall", "placement": "none"})
    other = variant(params={"operation": "Bcast", "placement": "compact"})
    assert said(findings.unbound, made(20000.0, variant=asked, **free), made(variant=other, better="lower")) == []
    same = variant(params={"operation": "Alltoall", "placement": "compact"})
    assert said(findings.unbound, made(20000.0, variant=asked, **free), made(variant=same, better="lower")) != []
    elsewhere = made(variant=same, better="lower", partition="gpu")
    assert said(findings.unbound, made(20000.0, variant=asked, **free), elsewhere) == []


@pytest.mark.parametrize(("free", "bound"), [(0.0, 50.0), (0.0, 0.0), (50.0, 0.0)])
@pytest.mark.parametrize("better", ["higher", "lower"])
def test_an_overlap_of_nothing_is_no_finding(free, bound, better):
    names = {"name": "overlap", "better": better}
    control = made(free, placement="none", bound=False, **names)
    assert said(findings.unbound, control, made(bound, **names)) == []


def test_the_stacks_that_differ_most_are_named_once_a_test():
    texts = said(findings.stacks_apart, made(10000.0), made(30000.0, "mpich"), made(10100.0, "intelmpi"))
    ((text),) = texts
    assert text.endswith("triad is 30.00 GB/s on mpich and 10.00 GB/s on openmpi, 3.0 times apart")
    assert said(findings.stacks_apart, made(10000.0), made(10100.0, "mpich")) == []
    assert said(findings.stacks_apart, made(10000.0)) == []


def test_what_a_kernel_says_of_a_figure_that_falls_short_is_said_once():
    remarks = ["70.1 % of the peak; likely cause: the BLAS", "BLAS: some"]
    one, other = ([launch(0, 1e4, remarks=[r.replace("70", n) for r in remarks])] for n in ("70", "71"))
    alone = variant(launches=1)
    both = made(launches=one, variant=alone), made(stack="mpich", launches=other, variant=alone)
    (text,) = said(findings.shortfalls, *both)
    assert text == "stream_threads (compact 1x2 local) on openmpi: triad falls short; likely cause: the BLAS"


def test_a_figure_that_is_not_steady_is_said_with_its_cause():
    remark = "not steady: 3 of 40 figures; after 0.1 s of warm-up a call's time still changed by 7.0 %; likely cause: X"
    (text,) = said(findings.shortfalls, made(launches=[launch(0, 1e4, remarks=[remark])], variant=variant(launches=1)))
    assert text == f"stream_threads (compact 1x2 local) on openmpi: {remark}"


def pingpong(value, stack, test, spread=0.01, version="1", operation=None, cpus=(0, 1), at=8, count=3, campaign="c"):
    """A record of ``test``: half a round trip of 8 B in us, in ``count`` launches."""
    params = {"operation": operation or {"imb_pair": "PingPong", "osu_pair": "latency"}.get(test, "tournament")}
    samples = [(1 + spread * (2 * number / (count - 1) - 1)) * value for number in range(count)]
    where = {"first_cpu": cpus[0], "second_cpu": cpus[1]} if test == "pairs_cores" else {"bytes": at}
    item = {"metric": "latency", "unit": "us", "better": "lower", "params": where}
    launches = [launch(n, 1.0, measurements=[{**item, "value": sample}]) for n, sample in enumerate(samples)]
    memory = {"policy": "none", "nodes": []}
    ranks = [{"local_rank": n, "cpus": [cpu], "places": [[cpu]], "mem": memory} for n, cpu in enumerate(cpus)]
    asked = variant(test=test, name=f"{test} %operation=x", params=params, arguments=["--bandwidth-bytes", "2M"])
    name = "class_latency" if test == "pairs_cores" else "time_8B"
    one = made(value, stack, "core", name=name, better="lower", variant=asked, launches=launches)
    figures, program = (
        [structs.replace(one.figures[0], samples=samples)],
        structs.replace(one.benchmark, version=version),
    )
    return structs.replace(one, campaign=campaign, plan=typed(plan(ranks=ranks)), figures=figures, benchmark=program)


@pytest.mark.parametrize("factor", [6.2, 1 / 6.2])
def test_two_tests_of_one_quantity_that_differ_are_said_and_not_compared(factor):
    records = [
        pingpong(0.23 * factor, "intelmpi", "pairs_cores"),
        pingpong(0.23, "intelmpi", "imb_pair"),
        pingpong(0.23 * 2, "mpich", "pairs_cores"),
        pingpong(0.23 * 2.1, "mpich", "imb_pair"),
    ]
    (text,) = said(findings.contradictions, *records)
    assert text.startswith("these two disagree: half a round trip of 8 B between CPUs 0 and 1 on intelmpi is ")
    assert f"{units.digits(0.23 * factor)} us by pairs_cores" in text
    assert "0.230 us by imb_pair" in text
    assert said(findings.stacks_apart, *records) == []
    table = pieces.text(findings.stacks(findings.Campaign([(record, 0) for record in records])))
    assert "tests that measure the same quantity disagree (2 lines): not compared" in table
    assert "★ " not in table


@pytest.mark.parametrize("factor", [1.0, 6.2])
def test_the_command_that_compares_heeds_it_too(factor, results, output_of):
    for stack, (kernel, imb) in {"intelmpi": (0.23 * factor, 0.23), "mpich": (1.0, 1.0)}.items():
        for value, test in ((kernel, "pairs_cores"), (imb, "imb_pair")):
            one = pingpong(value, stack, test, count=7)
            store.write(store.session_file(one.site, one.session), [one])
    lines = json.loads(output_of(0, "compare", "intelmpi", "mpich", "--json"))["lines"]
    assert [line["doubtful"] for line in lines] == [factor > 1] * 2
    assert [bool(line["best"]) for line in lines] == [factor == 1] * 2


def test_tests_whose_declared_steps_explain_the_difference_do_not_disagree():
    """IMB 3 and 4 print rates in steps of their own: two figures that are one step apart may be equal."""
    records = [pingpong(0.3, "intelmpi", "pairs_cores", 0.01), pingpong(0.4, "intelmpi", "imb_pair", 0.01)]
    assert len(said(findings.contradictions, *records)) == 1
    for measured in itertools.chain(*(entry.launches for entry in records)):
        measured.measurements = [structs.replace(item, step=0.1) for item in measured.measurements]
    assert said(findings.contradictions, *records) == []


def test_two_tests_that_agree_are_compared():
    records = [
        pingpong(value, stack, test, count=7)
        for stack, value in (("intelmpi", 0.23), ("mpich", 1.0))
        for test in ("pairs_cores", "imb_pair")
    ]
    assert said(findings.contradictions, *records) == []
    assert len(said(findings.stacks_apart, *records)) == 2


@pytest.mark.parametrize("other", [
    {"test": "imb_pair", "value": 0.26},  # less than a quarter apart
    {"test": "imb_pair", "spread": 0.9},  # launches overlap
    {"test": "imb_pair", "cpus": (0, 2)},
    {"test": "imb_pair", "operation": "PingPing"},
    {"test": "imb_pair", "at": 16},
    {"test": "osu_pair", "version": "mpi4py-4.1.2"},  # Python's own time is in it
    {"test": "imb_pair", "stack": "mpich"},
    {"test": "imb_pair", "campaign": "d"},  # the machine may have changed
    {"test": "pairs_cores", "operation": "serial"},  # the same test
], ids=str)  # fmt: skip
def test_what_is_another_quantity_or_within_the_errors_does_not_disagree(other):
    first = pingpong(0.23, "intelmpi", "pairs_cores")
    assert said(findings.contradictions, first, pingpong(**{"value": 0.69, "stack": "intelmpi", **other})) == []
    assert said(findings.contradictions, first, pingpong(0.69, "intelmpi", "osu_pair")) != []


def test_disturbed_launches_are_counted_by_cause():
    cause = "other processes used 12 % of CPUs 0-1 on n1"
    hit = {"disturbed": True, "disturbance": {"disturbed": True, "causes": [cause], "figures": {}}}
    launches = [launch(0, 1e4, **hit), launch(1, 1e4)]
    (text,) = said(findings.disturbed, made(launches=launches, variant=variant(launches=2)))
    assert text == "1 of 2 launches were disturbed: other processes on the planned CPUs (1)"
    (text,) = said(findings.disturbed, made(launches=launches[:1], variant=variant(launches=1)))
    assert text.endswith("; next: plumb campaign when nothing else runs; plumb doctor says what disturbs")
    assert said(findings.disturbed, made()) == []


def test_stacks_side_by_side_have_the_entry_of_each_cell():
    records = [(made(10000.0), 7), (made(30000.0, "mpich"), 3)]
    (shown,) = pieces.blocks(findings.stacks(findings.Campaign(records)), "table")
    assert [column["title"] for column in shown["columns"][5:]] == ["mpich", "openmpi"]
    (first, second) = shown["rows"][0][5:]
    assert [one["entry"] for one in pieces.blocks([first, second], "link")] == [3, 7]
    assert ["★" in pieces.text(one) for one in (first, second)] == [True, False]
    assert pieces.blocks(first, "small") == []
    assert pieces.text(pieces.blocks(second, "small")[0]).startswith("~0.333 [")
    assert "?" not in pieces.text(second)
    alone = findings.Campaign(records[:1])
    assert "two stacks" in pieces.text(findings.stacks(alone))
