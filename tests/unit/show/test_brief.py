"""The end of a campaign on a terminal fits on one screen, and names what is wrong first."""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from samples import launch, record, variant

from plumbline.base import terminal
from plumbline.measure.reframe import campaign, cases
from plumbline.records import store
from plumbline.records.model import Record, convert
from plumbline.show import brief

STACKS = ("intelmpi", "mpich", "openmpi")
_ids = itertools.count(1)


def made(
    test: str,
    placements: Iterable[str] = ("compact",),
    stacks: Iterable[str] = STACKS,
    operations: Sequence[str] = ("",),
    disturbed: bool = False,
    **changes: object,
) -> list[Record]:
    """Records of a test: its triad is 10 GB/s, and half as much with the second placement."""
    base, cause = record(), "other processes used 0.9 CPUs"
    return [
        convert(
            record(
                id=f"{next(_ids):012x}",
                campaign="c1",
                variant=variant(
                    test=test,
                    name=f"{test} %operation={operation} %placement={placement}",
                    stack=stack,
                    placement=placement,
                    params={**({"operation": operation} if operation else {}), "placement": placement},
                ),
                placement={**base["placement"], "name": placement},
                stack={**base["stack"], "name": stack},
                launches=[
                    launch(
                        order,
                        10_000 / place,
                        disturbed=disturbed,
                        disturbance={"disturbed": disturbed, "causes": [cause] * disturbed, "figures": {}},
                    )
                    for order in range(3)
                ],
                **changes,
            )
        )
        for operation in operations
        for place, placement in enumerate(placements, 1)
        for stack in stacks
    ]


def test_a_line_for_a_test_has_its_placements_and_stacks_side_by_side():
    records = [
        *made("stream_threads", ["compact", "none"], STACKS[1:]),
        *made("osu_pair", operations=["bw", "latency"]),
    ]
    text = brief.text(records, [], ["the end"])
    rows = [line.split() for line in text.splitlines()]
    assert rows[0] == ["test", "placement", "figure", *STACKS]
    assert rows[2] == ["stream_threads", "compact/none", "triad", "GB/s", "–", "10/5", "10/5"]
    assert rows[3] == ["osu_pair", "bw", "+1", "compact", "triad", "GB/s", "10", "10", "10"]
    assert text.splitlines()[-3:] == ["plumb list --all shows the whole table", "", "the end"]


@pytest.mark.parametrize("stacks", [STACKS, [f"a-stack-with-a-long-name-{number}" for number in range(6)]])
def test_it_fits_on_one_screen_whatever_there_is(stacks):
    tests = [f"a_test_with_a_long_name_{number}" for number in range(40)]
    records = [item for test in tests for item in made(test, ["pair:xsocket", "pair:numa", "none"], stacks, ["a", "b"])]
    lines = brief.text(
        records, ["a fault that has many words: " * 9] * 12, ["a sentence of the end " * 9] * 3
    ).splitlines()
    assert len(lines) <= brief.LINES - 1
    assert max(map(len, lines)) <= brief.WIDTH
    assert "!! and 7 more" in lines
    assert any(line.startswith("plumb list --all shows the whole table, 3") for line in lines)
    assert (" stacks more" in " ".join(lines)) == (len(stacks) > 3)


def test_placements_of_one_name_are_told_apart_by_ranks_and_threads():
    wide = {"name": "core", "memory": "local", "threads": 2, "ranks_per_node": 1, "nodes": 1}
    (first,), (second,) = (
        [convert({**record(), "placement": {**wide, "threads": threads}, "id": f"{threads:012x}"})]
        for threads in (1, 2)
    )
    (line,) = brief.lines([first, second])
    assert line.placed == "core 1x1/core 1x2"


@pytest.fixture
def screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("results", "build"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    (tmp_path / "build" / "reframe").mkdir(parents=True)
    (tmp_path / "build" / "reframe" / "campaign.out").write_text("", encoding="utf-8")
    monkeypatch.setattr(terminal, "width", lambda: 80)


def end_of(capsys: pytest.CaptureFixture[str], records: Sequence[Record], *ended: cases.Case) -> list[str]:
    store.write(store.session_file("local", "s1"), records)
    campaign._report("c1", "quick", 0, [cases.Case("OK", "a /1 @local:main+mpich"), *ended], 60.0, None)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= brief.LINES - 1
    return lines


def test_the_last_lines_say_whether_it_is_fine_where_to_look_and_what_to_do(screen, capsys):
    lines = end_of(capsys, made("stream_threads"), cases.Case("SKIP", "b /1 @local:main+mpich", "no second node"))
    text = " ".join(lines)
    assert lines[0].startswith("test ")
    assert "Is this machine fine? Yes: 3 of 3 figures are as expected." in text
    assert "plumb report makes a page" in text
    assert lines[-1] == "next: two more campaigns; then plumb calibrate makes references of all three"
    assert "1 skipped" in text
    assert "no second node" not in text  # the report has the reasons


def test_faults_come_first(screen, capsys):
    failed = cases.Case("FAIL", "osu_barrier /66dedcc7 @local:main+mpich")
    records = [*made("stream_threads"), *made("osu_pair", stacks=["mpich"], verified=False, reasons=["rank 1 strayed"])]
    lines = end_of(capsys, records, failed)
    assert lines[0] == "!! osu_barrier on mpich (main): ReFrame gives no reason"
    assert lines[1].startswith("!! osu_pair")
    assert lines[1].endswith("rank 1 strayed")
    assert "osu_pair" not in "".join(lines[2:-6])


def test_a_disturbed_campaign_says_that_as_the_reason(screen, capsys):
    lines = end_of(capsys, made("stream_threads", disturbed=True))
    assert "said: 9 of 9 launches were disturbed (other processes on the planned CPUs), so" in " ".join(lines)
    assert lines[-1] == "next: plumb campaign when nothing else runs; plumb doctor says what disturbs"
