"""The real bisections of docs/bisect.md: what is called right, open and wrong, and what their histories are."""

import sys

import pytest

from plumbline.base import paths

sys.path.insert(0, str(paths.root() / "tests/rates"))
import histories as measured

LOSS_AND_GAIN = measured.Made({"loss": 10, "gain": -4}, frozenset())
LOSS = measured.Made({"loss": 10}, frozenset({"broken"}))


def document(*culprits):
    """The JSON of a bisection that names commits, joined by +, each with a state."""
    found = [{"candidates": names.split("+"), "verdict": state} for names, state in culprits]
    return {"culprits": found, "answer": "\N{HORIZONTAL ELLIPSIS}"}


@pytest.mark.parametrize(("culprits", "made", "answer"), [
    ([("loss", "FAIL")], LOSS, "right"),
    ([("broken+loss", "FAIL")], LOSS, "right"),
    ([("other+loss", "FAIL")], LOSS, "open"),
    ([("loss", "INCONCLUSIVE")], LOSS, "open"),
    ([("other", "INCONCLUSIVE")], LOSS, "open"),
    ([], LOSS, "open"),
    ([("loss", "FAIL"), ("other", "GAIN")], LOSS, "wrong"),
    ([("loss", "FAIL"), ("gain", "GAIN")], LOSS_AND_GAIN, "right"),
    ([("loss", "FAIL")], LOSS_AND_GAIN, "open"),
])  # fmt: skip
def test_an_answer_is_right_open_or_wrong(culprits, made, answer):
    assert measured.judged(document(*culprits), made).partition(":")[0] == answer


def test_a_history_has_what_it_says(tmp_path):
    made = measured.repository(tmp_path / "heat", measured.History(4, (10, -4), broken=True), 16, seed=1)
    commits = measured.git(tmp_path / "heat", "rev-list", "--reverse", "main").split()
    sources = [measured.git(tmp_path / "heat", "show", f"{commit}:heat.c") for commit in commits]
    work = [int(source.partition("#define MORE ")[2].split()[0]) for source in sources]
    assert {commits[i]: work[i] - work[i - 1] for i in range(1, 17) if work[i] != work[i - 1]} == made.changed
    assert {commit for commit, source in zip(commits, sources, strict=True) if "#error" in source} == made.broken
    assert (work[0], work[-1], len(made.broken)) == (4, 10, 2)
