"""``plumb why`` on real launches of a program whose figure is a count, so that its causes are known."""

import datetime
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import own_code
import processes
import pytest
import yaml
from processes import ended
from witness_helper import PROGRAMS

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

PROGRAM = """#!/usr/bin/env python3
import os, random
steps = 1000.0
if os.environ.get("ALLOCATOR") == "slow":
    steps *= 1.25
if os.environ.get("MODE") == "safe" and os.environ.get("CHECKS") == "all":
    steps *= 1.4
if os.environ.get("NEVER") == "starts" and not os.environ.get("ALLOCATOR"):
    raise SystemExit("this never starts alone")
print(f"steps: {steps * (1 + 0.002 * random.random()):.3f}")
"""
SLOW = "stack:mpich,variable:ALLOCATOR=slow,variable:MODE=safe,variable:CHECKS=all,variable:COLOUR=red"
PLUMB = str(Path(sys.executable).parent / "plumb")


HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
JOURNAL = Path("/run/plumbline-host-settings.json")
#: its figure depends on a setting of the host; while there is a file HOLD, it says that it has seen it, and waits
OF_THE_HOST = f"""#!/usr/bin/env python3
import os, random, time
steps = 1250.0 if "[never]" in open("{HUGE_PAGES}").read() else 1000.0
if steps > 1000 and os.path.exists("HOLD"):
    os.rename("HOLD", "HOLD-seen")
    time.sleep(600)
print(f"steps: {{steps * (1 + 0.002 * random.random()):.3f}}")
"""


@pytest.fixture
def place(tmp_path) -> tuple[Path, dict[str, str]]:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "count").write_text(PROGRAM)
    (folder / "count").chmod(0o755)
    figures = {"steps": {"pattern": "steps: ([0-9.]+)", "unit": "steps", "better": "lower"}}
    program = {"command": "./count", "figures": figures, "ranks": 1, "mpi": False, "time_limit_s": 60}
    own_code.commit(folder, {"application": "toy", "programs": {"count": program}})
    return folder, own_code.variables(tmp_path)


def why(place, *words: object) -> subprocess.CompletedProcess[str]:
    folder, around = place
    return ended([PLUMB, "why", *words], env=around, cwd=folder, timeout=400)


def answered(place, *words: object, status: int = 0) -> tuple[dict, str]:
    """What a search says as a document and as a text; skips where other programs disturbed it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answer.json"
        answer = why(place, *words, "--output", file)
        assert file.exists(), answer.stdout + answer.stderr
        document = json.loads(file.read_text())
    if is_disturbed(document):
        pytest.skip(f"other programs disturbed the launches: {document['line']}")
    assert answer.returncode == status, answer.stdout + answer.stderr
    return document, answer.stdout


def causes(document: dict) -> dict[str, float]:
    """What is named, with what it makes."""
    return {one["cause"]: one["ratio"] for one in document["causes"] if one["state"] == "FAIL"}


def is_disturbed(document: dict) -> bool:
    """Whether other programs disturbed so many launches that the gate refuses to say anything."""
    told = [document["ends"].get("reason") or "", *(one.get("reason", "") for one in document["causes"])]
    return any("disturbed" in one for one in told)


@pytest.mark.long
def test_causes_are_named_and_a_search_continues_after_an_interruption(place, tmp_path):
    folder, around = place
    work = tmp_path / "why"
    command = [PLUMB, "why", "stack:mpich", SLOW, "--work", str(work), "--seed", "1"]
    with subprocess.Popen(command, env=around, cwd=folder, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            if line.startswith(("round   2", "why: ")):
                break
        child.send_signal(signal.SIGINT)
        child.stdout.read()
    note, page = tmp_path / "answer.md", tmp_path / "answer.html"
    document, text = answered(place, "--resume", work, "--output", note, "--output", page)
    combined, single = pytest.approx(1.4, rel=0.01), pytest.approx(1.25, rel=0.01)
    assert causes(document) == {"variables MODE and CHECKS": combined, "variable ALLOCATOR": single}
    assert text.splitlines()[-1] == document["line"]
    assert "variable COLOUR" in note.read_text()
    assert '"bars":' in page.read_text().replace('"bars": ', '"bars":')
    again = why(place, "--resume", work, "--json")
    assert json.loads(again.stdout)["causes"] == document["causes"]
    assert json.loads(again.stdout)["launches"] == document["launches"]


def spans(work: Path) -> list[tuple[float, float]]:
    """When each launch of a search began and ended, in seconds."""
    records = [json.loads(line) for file in work.rglob("*.jsonl") for line in file.read_text().splitlines()]
    launches = [launch for record in records for launch in record["launches"]]
    starts = (datetime.datetime.fromisoformat(launch["start"].replace("Z", "+00:00")) for launch in launches)
    begins = [start.timestamp() for start in starts]
    return [(begin, begin + launch["wall_s"]) for begin, launch in zip(begins, launches, strict=True)]


@pytest.mark.long
def test_two_searches_at_once_take_turns(place, tmp_path):
    folder, around = place
    works = [tmp_path / name for name in ("one", "two")]
    found = [tmp_path / f"{work.name}.json" for work in works]
    side = "stack:mpich,variable:ALLOCATOR=slow,variable:COLOUR=red"
    children = [
        subprocess.Popen(
            [PLUMB, "why", "stack:mpich", side, "--work", str(work), "--output", str(file)],
            env=around, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for work, file in zip(works, found, strict=True)
    ]  # fmt: skip
    said = [child.communicate(timeout=400)[0] for child in children]
    for text, file in zip(said, found, strict=True):
        document = json.loads(file.read_text())
        named = causes(document)
        assert set(named) <= {"variable ALLOCATOR"}, text
        assert named or is_disturbed(document), text
    first, second = map(spans, works)
    assert min(len(first), len(second)) >= 26
    assert max(first)[0] > min(second)[0], "one began after the other had ended"
    together = sorted(first + second)
    # a start is known to the millisecond
    assert all(later[0] >= earlier[1] - 0.002 for earlier, later in itertools.pairwise(together))


def test_a_flag_of_the_compiler_is_named(place):
    folder, _ = place
    (folder / "count").unlink()
    shutil.copy(PROGRAMS / "depends_on_flags.c", folder / "count.c")
    document = yaml.safe_load((folder / "plumb.yaml").read_text())
    own_code.commit(folder, {**document, "build": ["gcc $CFLAGS -o count count.c"]}, "compiled")
    ends = ("build:CFLAGS=-O2 -g", "build:CFLAGS=-O0 -g,variable:COLOUR=red")
    document, text = answered(place, *ends, "--stack", "mpich")
    assert causes(document) == {"build variables": pytest.approx(1.25, rel=0.01)}
    assert "CFLAGS=-O0 -g" in text


@pytest.fixture
def huge_pages():
    """The setting of huge pages, which is as before in the end."""
    if not os.access(HUGE_PAGES, os.W_OK):
        pytest.skip(f"{HUGE_PAGES} cannot be written here")
    before = HUGE_PAGES.read_text().partition("[")[2].partition("]")[0]
    if before == "never":
        pytest.skip("huge pages are switched off here")
    yield before
    HUGE_PAGES.write_text(before)


@pytest.fixture
def killed(place, tmp_path, huge_pages) -> Path:
    """The folder of a search that was killed while the host had another setting."""
    folder, around = place
    hold = tmp_path / "hold"
    (folder / "count").write_text(OF_THE_HOST.replace("HOLD", str(hold)))
    own_code.git(folder, "commit", "-qam", "of the host")
    ids = []
    for setting in (huge_pages, "never"):
        HUGE_PAGES.write_text(setting)
        own_code.succeeds(folder, around, "run", "--stack", "mpich")
        ids.append(own_code.records(around)["count"]["id"])
    HUGE_PAGES.write_text(huge_pages)
    hold.touch()
    work = tmp_path / "why"
    command = [PLUMB, "why", *ids, "--root", "--work", str(work)]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=around, cwd=folder, **streams, start_new_session=True) as child:
        processes.wait_until(hold.with_name("hold-seen").exists, "a launch without huge pages", 600, of=child)
        os.killpg(child.pid, signal.SIGKILL)
    assert "[never]" in HUGE_PAGES.read_text()
    return work


def test_the_host_is_set_back_after_kill_9(place, huge_pages, killed):
    _, output = own_code.plumb(*place, "list")
    assert f"set back after a search that was killed: {HUGE_PAGES}" in output
    assert f"[{huge_pages}]" in HUGE_PAGES.read_text()
    assert not JOURNAL.exists()


@pytest.mark.long
def test_a_setting_of_the_host_is_named_by_a_search_that_was_killed(place, huge_pages, killed):
    document, _ = answered(place, "--resume", killed)
    assert f"[{huge_pages}]" in HUGE_PAGES.read_text()
    assert causes(document) == {"host setting thp": pytest.approx(1.25, rel=0.01)}


@pytest.mark.long
def test_a_factor_that_fails_alone_is_said(place, tmp_path):
    sides = ("stack:mpich", "stack:mpich,variable:ALLOCATOR=slow,variable:NEVER=starts")
    document, _ = answered(place, *sides, "--seed", "2", "--work", tmp_path / "why")
    assert document["failed"] == [next(one for one in document["failed"] if "A with variable NEVER" in one)]
    assert causes(document) == {"variable ALLOCATOR": pytest.approx(1.25, rel=0.01)}


@pytest.mark.long
def test_equal_ends_are_said_to_be_equal(place, tmp_path):
    sides = ("stack:mpich", "stack:mpich,variable:COLOUR=red,variable:SHAPE=round")
    document, _ = answered(place, *sides, "--work", tmp_path / "why", status=1)
    assert document["answer"] == "outside"
    assert "B is not slower than A when both run here and now" in document["line"]


def test_what_cannot_be_asked_is_one_line(place):
    answer = why(place, "stack:mpich", "stack:mpich,variable:X=1", "--figure", "speed")
    assert answer.returncode == 3, answer.stdout
    assert "'speed' is not a figure of toy_count" in answer.stderr
    assert answer.stderr.count("\n") == 1
