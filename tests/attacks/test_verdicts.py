"""Attacks on the gate's inputs: whatever happens to a slower candidate's session or table, it never becomes a PASS."""

import math
import random
import re

import pytest
import samples

from plumbline.base.errors import PlumbError
from plumbline.judge import from_csv
from plumbline.judge.decide import decide
from plumbline.judge.pairs import read_pairs
from plumbline.records import store
from plumbline.statistics.paired import PairedRule

SEED = 12


@pytest.fixture
def session(tmp_path):
    """A session of a live gate; the candidate's rate is 30 % lower."""
    draw = random.Random(SEED)  # noqa: S311 - not a secret
    both = []
    for side, (name, rate) in enumerate((("baseline", 13000), ("candidate", 10000))):
        launches = [samples.launch(2 * n + side, rate * math.exp(draw.gauss(0, 0.01)), index=n) for n in range(20)]
        both.append(samples.record(id=f"{side + 1}" * 12, side=name, launches=launches))
    file = tmp_path / "session.jsonl"
    store.write(file, both)
    return file


@pytest.fixture
def table(tmp_path):
    draw = random.Random(SEED)  # noqa: S311 - not a secret
    rows = [f"a,{10 * math.exp(draw.gauss(0, 0.01)):.4f},{13 * math.exp(draw.gauss(0, 0.01)):.4f}" for _ in range(40)]
    file = tmp_path / "pairs.csv"
    file.write_text("series,baseline,candidate\n" + "\n".join(rows) + "\n")
    return file


def flip(data, draw):
    place = draw.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << draw.randrange(8)]) + data[place + 1 :]


def cut(data, draw):
    return data[: draw.randrange(len(data))]


def drop(data, draw):
    start = draw.randrange(len(data))
    return data[:start] + data[start + draw.randrange(1, 40) :]


def insert(data, draw):
    place = draw.randrange(len(data))
    text = draw.choice([b"0", b"9", b"-", b"e9", b"\n", b"\0", b"NaN", b"null", b",", b"[", b'"'])
    return data[:place] + text + data[place:]


def number(data, draw):
    """Another value in place of a number."""
    found = draw.choice(list(re.finditer(rb"\d+\.\d+", data)))
    return data[: found.start()] + draw.choice([b"1.0", b"13000.0", b"-1.0", b"1e999", b"0.0"]) + data[found.end() :]


def lines(data, draw):
    """Lines in another order, one of them doubled or gone."""
    every = data.splitlines(keepends=True)
    draw.shuffle(every)
    return b"".join(draw.choice([every, every[1:], [*every, every[0]]]))


ATTACKS = (flip, cut, drop, insert, number, lines)


def verdicts(read):
    try:
        return {item.state for item in decide(read(), PairedRule())}
    except PlumbError:
        return {"refused"}


def attack(file, read):
    """What comes of the file under each attack, many times: the states that there were."""
    whole = file.read_bytes()
    assert verdicts(read) == {"FAIL"}
    draw = random.Random(SEED)  # noqa: S311 - not a secret
    found = set()
    for turn in range(3000):
        file.write_bytes(ATTACKS[turn % len(ATTACKS)](whole, draw))
        found |= verdicts(read)
    return found


def test_a_damaged_session_never_passes_and_is_never_judged(session):
    assert attack(session, lambda: read_pairs(session)) <= {"refused", "FAIL"}  # blanks at the end change nothing


def test_a_damaged_table_never_passes(table):
    assert attack(table, lambda: from_csv.pairs(table, "lower")) <= {"refused", "FAIL", "INCONCLUSIVE", "INVALID"}


@pytest.mark.parametrize("member", ["side", "launches", "figures", "variant", "seal"])
def test_a_session_without_a_member_is_refused_or_fails(session, member):
    text = session.read_text()
    session.write_text(text.replace(f'"{member}":', f'"{member}_":', 1))
    assert verdicts(lambda: read_pairs(session)) == {"refused"}
