"""What a launch prints is read up to a bound, and for a bounded time."""

import tracemalloc

import pytest

from plumbline import mpi
from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.launch import output, process
from plumbline.launch.output import Output, Written
from plumbline.parsers import application
from plumbline.parsers.measurement import ParseError

FAMILY = mpi.TABLE["openmpi"]
RULES = {"figures": {"time": {"pattern": "took ([0-9.]+)"}}}


def test_lines_end_in_one_way_and_bytes_that_are_no_text_are_replaced(tmp_path):
    (tmp_path / "x").write_bytes(b"a\r\nb\rc\n\0\xff")
    assert process.printed(tmp_path / "x") == "a\nb\nc\n\ufffd\ufffd"


def test_gigabytes_are_refused_and_only_their_end_is_read(tmp_path):
    (tmp_path / "output").mkdir()
    for rank in range(2):
        with (tmp_path / "output" / str(rank)).open("wb") as stream:
            stream.seek(1 << 40)
            stream.write(b"end")
    tracemalloc.start()
    kept = Output(tmp_path, FAMILY)
    assert [text[-3:] for text in kept.of_ranks()] == ["end", "end"]
    with pytest.raises(PlumbError, match="it printed 2048 GiB, more than the 128 MiB that are read"):
        kept.refuse_excess()
    assert tracemalloc.get_traced_memory()[1] < 8 * process.MOST_PRINTED
    tracemalloc.stop()


def test_a_file_of_gigabytes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(output, "MOST_PRINTED", 1000)
    rules = application.Rules(figures={"time": application.FigureRule(json="t", file="out")})
    files.make_anew(tmp_path / "launch")
    made = Written(tmp_path / "launch", rules)
    (tmp_path / "launch" / "out").write_text(" " * 1001)
    with pytest.raises(ParseError, match="it has 1001 B, more than the 1000 B that are read"):
        made.texts()


@pytest.mark.parametrize("rules", [
    {"figures": {"time": {"pattern": "took (?:([0-9]+)+)+$"}}},
    {**RULES, "checks": [{"pattern": "(a+)+$"}]},
])  # fmt: skip
def test_a_pattern_that_never_ends_is_named(rules, monkeypatch):
    monkeypatch.setattr(application, "MOST_S", 0.5)
    text = f"took 1.5\n{'a' * 64}!\ntook {'1' * 64}x\n"
    with pytest.raises(ParseError, match=r"more than 0\.5 s of CPU time") as error:
        application.parse(text, {"rules": rules})
    assert "as (a+)+ does" in str(error.value)


def test_honest_patterns_have_time_for_long_outputs():
    text = "step 1 energy -1.5e+3\n" * 200_000 + "took 1.5\n"
    (found,) = application.parse(text, {"rules": {**RULES, "checks": [{"pattern": "energy .*e.3$"}]}})
    assert found.value == 1.5
