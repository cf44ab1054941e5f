"""``plumb gate``: files in, lines, files and exit status out; and pairs from records."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest
from gate_pairs import records_of

from plumbline.commands import cli
from plumbline.judge.decide import decide
from plumbline.judge.pairs import pairs_of_records, read_pairs
from plumbline.records import model
from plumbline.statistics.paired import PairedRule


@pytest.fixture
def gate(tmp_path, capsys):
    """Run ``plumb gate`` on a text; returns exit status, series and what was said on stderr."""

    def run(text, *options, better="lower"):
        file = tmp_path / "pairs.csv"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        direction = ["--better", better] if better else []
        status = cli.main(["gate", "--json", "--pairs", str(file), *direction, *map(str, options)])
        out, err = capsys.readouterr()
        return status, json.loads(out)["series"] if out else [], err

    return run


def rows(name, ratio=1.0, pairs=90, seed=0, noise=0.01):
    draw = np.random.default_rng(seed)
    values = 10 * np.exp(draw.normal(0, noise, (pairs, 2)))
    return [f"{name},{first:.6f},{second * ratio:.6f}" for first, second in values]


def table(*parts):
    return "\n".join(["series,baseline,candidate", *(row for part in parts for row in part)]) + "\n"


def test_a_fixed_text_is_no_measurement_but_few_digits_and_counts_may_repeat(gate):
    def repeated(number):
        draw = np.random.default_rng(1)
        return table([f"same,{number},{float(number) * draw.normal(1, 0.01):.6f}" for _ in range(90)])

    status, (line,), _ = gate(repeated("20123.47"))
    assert (status, line["verdict"]) == (3, "INVALID")
    assert line["reason"].endswith("all 90 values of the baseline are 20123.47: nothing was measured")
    for honest in ("10.0", "1000000"):
        assert "nothing was measured" not in gate(repeated(honest))[1][0].get("reason", "")


def test_exit_statuses(gate):
    assert gate(table(rows("a")))[0] == 0
    assert gate(table(rows("a", 1.05)))[0] == 1
    assert gate(table(rows("a", 1.02, pairs=20, noise=0.2)))[0] == 2
    assert gate(table(rows("a", pairs=5)))[0] == 3
    assert gate(table(rows("a", 1.05), rows("b", 1.02, pairs=20, seed=1, noise=0.2)))[0] == 1
    assert gate(table(rows("a", 1.05), rows("b", pairs=5)))[0] == 3


def test_rates_are_better_when_higher(gate):
    assert gate(table(rows("a", 0.95)), better="higher")[0] == 1
    assert gate(table(rows("a", 1.05)), better="higher")[0] == 0


def test_mixed_rows_and_other_columns_make_no_difference(gate):
    first, second = rows("a"), rows("b", 1.05, seed=1)
    plain = gate(table(first, second))[1]
    mixed = ["order, series ,candidate,baseline"]
    for number, pair in enumerate(zip(first, second, strict=True)):
        for row in pair:
            name, baseline, candidate = row.split(",")
            mixed.append(f"{number},{name},{candidate},{baseline}")
    assert gate("\r\n".join(mixed).encode("utf-8-sig"))[1] == plain


@pytest.mark.parametrize("cell", ["", "nan", "inf", "0", "-1", "abc", "1_0", "NA"])  # "" as in a truncated last row
def test_a_bad_cell_makes_its_series_invalid_and_names_the_line(gate, cell):
    spoiled = rows("bad", seed=1)
    spoiled[-1] = f"bad,1.0,{cell}"
    status, lines, _ = gate(table(rows("fine"), spoiled))
    assert status == 3
    assert [line["verdict"] for line in lines] == ["PASS", "INVALID"]
    assert "pairs.csv:181: the candidate is" in lines[1]["reason"]


@pytest.mark.parametrize(("text", "said"), [
    ("series,base,candidate\na,1,2\n", "columns series,base,candidate"),
    ("series,baseline,candidate\n", "the table has no rows"),
    ("series,baseline,candidate\n,1,2\n", "pairs.csv:2"),
])  # fmt: skip
def test_what_is_no_table_is_one_line_and_never_a_pass(gate, text, said):
    status, lines, err = gate(text)
    assert (status, lines) == (3, [])
    assert err.startswith("plumb: ")
    assert said in err
    assert err.count("\n") == 1


def test_a_report_inside_of_a_file_is_refused(gate, tmp_path):
    assert gate(table(rows("a")), "--output", tmp_path / "pairs.csv" / "in a file.json")[0] == 3


def test_names_of_series_are_escaped_in_files(gate, tmp_path):
    gate(table(rows("a|b <c>\x01 &")), "--output", tmp_path / "out.xml", "--output", tmp_path / "out.md")
    suite = ElementTree.fromstring((tmp_path / "out.xml").read_text())  # noqa: S314 - our own
    assert suite.get("tests") == "1"
    assert r"a\|b &lt;c>" in (tmp_path / "out.md").read_text()


def two_records(ratio=1.0):
    """What a session of two alternated variants records; STREAM triad, higher is better."""
    draw = np.random.default_rng(0)
    return records_of(*(10000 * level * np.exp(draw.normal(0, 0.01, 90)).round(6) for level in (1, ratio)))


def session(tmp_path, records):
    file = tmp_path / "session.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


def test_records_become_pairs(tmp_path):
    (series,) = read_pairs(session(tmp_path, two_records(0.95)))
    assert series.name == "stream_threads %placement=compact %threads=2: triad"
    assert series.better == "higher"
    assert decide([series], PairedRule())[0].state == "FAIL"
    (series,) = read_pairs(session(tmp_path, two_records(0.95)), "222")
    assert decide([series], PairedRule())[0].state == "PASS"


def pairs_of(*documents):
    return pairs_of_records(*map(model.convert, documents))


def in_turn(first, second):
    for position, launch in enumerate([*first["launches"], *second["launches"]]):
        launch["order"] = position


@pytest.mark.parametrize("spoil", [
    lambda first, second: second.update(verified=False, reasons=["launch 3: rank 0 elsewhere"]),
    lambda first, second: first["launches"][80].update(verified=False),
    lambda first, second: first.update(session="another"),
    in_turn,
    lambda first, second: first["launches"].pop(),
    lambda first, second: first["launches"][5].update(measurements=[]),
    lambda first, second: first["launches"][5]["measurements"][0].update(unit="us"),
    lambda first, second: first.update(verdict="invalid", reasons=["above the physical limit"]),
    lambda first, second: first.update(state="interrupted"),
    lambda first, second: second.update(id=first["id"]),
])  # fmt: skip
def test_records_that_prove_nothing_are_invalid(spoil):
    first, second = two_records()
    assert decide(pairs_of(first, second), PairedRule())[0].state == "PASS"
    spoil(first, second)
    found = decide(pairs_of(first, second), PairedRule())[0]
    assert found.state == "INVALID"
    assert found.reason


@pytest.mark.parametrize("count", [0, 1, 3])
def test_any_other_number_of_records_is_an_error(tmp_path, count, refused):
    file = session(tmp_path, (two_records() * 2)[:count])
    assert f"{count} records" in refused(3, "gate", str(file))


def test_a_gain_is_said_where_it_is_asked_for(gate):
    numbers = table(rows("fast", 0.7), rows("equal", seed=1))
    status, (fast, equal), err = gate(numbers, "--gain")
    assert (status, fast["verdict"], equal["verdict"]) == (0, "GAIN", "PASS")
    assert fast["interval"][1] < 1
    assert fast["reason"].startswith("faster by 30 % (30 % to 30 %)")
    assert err.splitlines()[-1].startswith("gate: PASS: 1 GAIN, 1 PASS; slowdowns of")
    status, lines, _ = gate(numbers)
    assert (status, [line["verdict"] for line in lines]) == (0, ["PASS", "PASS"])


def test_a_gain_that_does_not_last_is_inconclusive(gate):
    """Faster by 30 % in the first half, equal afterwards."""
    status, (line,), _ = gate(table(rows("half", 0.7, 60), rows("half", 1.0, 45, seed=1)), "--gain")
    assert (status, line["verdict"]) == (2, "INCONCLUSIVE")
    assert "something changed meanwhile" in line["reason"]
