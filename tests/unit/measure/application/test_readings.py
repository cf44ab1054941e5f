"""Numbers with labels: outputs in the shapes that codes print, three runs of each."""

import re

import pytest

from plumbline.measure.application import readings

TIMES = (1.31, 1.27, 1.36)


def proposals(form: str, *, file: str | None = None) -> list[list[readings.Reading]]:
    """The figures of ``form``, in which ``{t}`` is a time and ``{r}`` the rate that belongs to it."""
    texts = [form.format(t=time, r=1234.5 / time, n=number) for number, time in enumerate(TIMES)]
    return readings.figures(readings.readings(texts, file, 2.0))


@pytest.mark.parametrize(
    ("form", "figure"),
    [
        ("Elapsed time = {t:8.4f} (s)\n", (r"^Elapsed +time += *(\S+)", "s", "lower")),
        ("FOM   =  {r:.5f} (z/s)\nElapsed time = {t:.1f} (s)\n", (r"^FOM += *(\S+)", "z/s", "higher")),
        ("Merit (a): 5\nFigure of Merit (m): {r:.6e}\n", (r"^Figure +of +Merit +\(m\): *(\S+)", "1/s", "higher")),
        ("m_Solve: n * i / Time: {r:.6e}\n", (r"^m_Solve: +n +\* +i +/ +Time: *(\S+)", "1/s", "higher")),
        ("    total time:     {t:.4f}s\n", ("^ *total +time: *([-+.0-9eEdD]+)s", "s", "lower")),
        (" events per second: {r:.2f}\n total time: {t:.4f}s\n", (r"^ *events +per +second: *(\S+)", "1/s", "higher")),
        ("S::is VALID with a GFLOP/s rating of={r:.6f}\nS::DOT={t:.5f}\n",
         (r"^S::is +VALID +with +a +GFLOP/s +rating +of= *(\S+)", "GFLOP/s", "higher")),
        ("    (ns/day)    (hour/ns)\nPerformance:  {r}  {t}\n", (r"^Performance: *(\S+)", "ns/day", "higher")),
        ("step\n Wall clock 0.4{n}\nstep\n Wall clock {t:.6f}\n", (r"^ *Wall +clock +(\S+)", "s", "lower")),
        ("Rate: 1,{n}34.5 MB/s\n", (r"^Rate: *(\S+)", "MB/s", "higher")),
        ("Rate: 1,{n}34.5MB/s\n", ("^Rate: *([-+.,0-9eEdD]+)MB/s", "MB/s", "higher")),
        ("total_time_min: {t}\ntotal_gflops: {r}\n", (r"^total_gflops: *(\S+)", "gflops", "higher")),
        ("Time:\n  Total : {t}\n  Dot: 0.{n}5\nMFLOPS:\n  Dot: 4.{n}5\n  Total : {r}\n",
         (r"^ *MFLOPS: *\n(?:\s.*\n)*?^ *Total +: *(\S+)", "MFLOPS", "higher")),
        ("load\r |x : 5 ->\r |x : 5 -> 2, {r:.1f} MB/s\n", (r" *\|x +: *\S+ *-> *\S+ *, *(\S+)", "MB/s", "higher")),
    ],
)  # fmt: skip
def test_the_likely_figure_comes_first(form, figure):
    best = proposals(form)[0][0]
    assert (best.rule["pattern"], best.unit, best.better) == figure


def test_the_name_of_this_host_is_any_word(monkeypatch):
    monkeypatch.setattr(readings.platform, "node", lambda: "n-1.hpc")
    (reading,) = proposals("2 ranks on n-1.hpc, solve time {t} s\n")[0]
    assert re.search(reading.rule["pattern"], "4 ranks on gpu7, solve time 1.5 s")[1] == "1.5"
    assert reading.name == "ranks_on_solve_time"


def test_a_figure_of_each_step_is_the_last():
    assert proposals("Wall clock 0.4\nWall clock {t}\n")[0][0].rule["take"] == "last"


def test_a_number_behind_another_has_its_own_label():
    (rate,), (time,) = proposals("Rate (MB/s):  {r} MB/s, Solve time (s):  {t}\n")
    assert [(each.name, each.unit) for each in (rate, time)] == [("rate", "MB/s"), ("solve_time", "s")]


def test_rows_of_a_table_are_one_proposal_for_each_column():
    rows = "Kernel    MB/s      Min (sec)   Max\n" + "".join(
        f"{name}  {{r:.3f}}{n}  {{t}}{n}  1.4{{n}}\n" for n, name in enumerate(("Copy", "Add"), 1)
    )
    first, second, *_ = proposals(rows)
    assert [(each.name, each.unit) for each in first] == [("copy", "MB/s"), ("add", "MB/s")]
    assert [(each.unit, each.better) for each in second] == [("sec", "lower")] * 2


def test_json_and_csv_are_read_by_their_names():
    of_json, *_ = proposals('{{"runs": [{{"seconds": {t}, "n": 5}}]}}', file="a.json")[0]
    assert of_json.rule == {"json": "runs.0.seconds", "file": "a.json"}
    of_csv, *_ = proposals("name,GB/s\n1,{r}\n", file="a.csv")[0]
    assert of_csv.rule == {"csv": "GB/s", "take": "median", "file": "a.csv"}


@pytest.mark.parametrize("form", [
    "pid {n}\n",  # no unit
    "memory {t} MB\n",  # an amount
    "time 3.5 s\n",  # always the same
    "2026-11-29 10:0{n}:01\n",  # a date
    "epoch time 1764452{n}00.5 s\n",  # longer than the run
    "energy 1.2345678{n}\n",  # rounding
    "rate 1,23{n} MB/s\n",  # thousands, or two numbers
    "time -{t} s\n",
])  # fmt: skip
def test_what_is_no_figure(form):
    assert proposals(form) == []


def test_a_number_without_a_unit_is_for_a_person():
    known = readings.readings([f"hash   {100 + n}.5k\n" for n in range(3)], None, 2.0)
    assert [each.tokens[0] for each in readings.unknown(known)] == ["100.5"]


def test_equal_numbers_and_words_check_the_answer():
    form = "built 20261129\nflop 1234567\nSolution validates\nFinal energy = 2.025075e+05\nresidual 3.1e-12\nsteps 12\n"
    form += "iterations 12\nn {}\n"
    texts = [form.format(number) for number in range(3)]
    rules = readings.checks(readings.readings(texts, None, 1.0), {None: texts})
    assert [(rule.pattern, rule.value, rule.tolerance) for rule in rules] == [
        ("^Solution +validates", None, 0.0),
        (r"^Final +energy += *(\S+)", 202507.5, 1e-07),
        (r"^iterations +(\S+)", 12.0, 0.0),
    ]


@pytest.mark.parametrize("line", ["Test NOT PASSED", "tests pass if residuals are small", "0 errors, verified"])
def test_words_that_say_nothing_are_no_check(line):
    assert readings.checks([], {None: [line] * 3}) == []


def test_sums_in_another_order_are_checked_with_their_spread():
    texts = [f"Total sum: 1.23456789{n}\n" for n in range(3)]
    (rule,) = readings.checks(readings.readings(texts, None, 1.0), {None: texts})
    assert 1e-9 < rule.tolerance < 1e-7


def test_a_negative_answer_is_checked():
    texts = [f"Energy: -12.345678 eV, drift -0.{n}\n" for n in range(3)]
    known = readings.readings(texts, None, 2.0)
    assert [check.value for check in readings.checks(known, {None: texts})] == [-12.345678]
    assert readings.unknown(known) == []


def test_deep_json_is_no_crash():
    assert readings.readings(["[" * 100_000] * 3, None, 1.0) == []
    assert readings.readings(["[]"] * 3, None, 1.0) == []
