"""The quick campaign as a newcomer runs it, but with one launch of each variant, and then every record it left.

`make test` takes a part of each suite; `make long` runs all of it.
"""

import os
import re
import sys
from pathlib import Path

import pytest
import schema_files
import small_caches
import stored
from processes import ended

from plumbline.base import paths

#: of each suite and each kind of placement
FEW = "(stream_threads.*placement=compact|imb_pair.*PingPong|osu_barrier|pi_sum.*build=stack)"
pytestmark = [pytest.mark.e2e, pytest.mark.alone]


@pytest.fixture(scope="module", params=[FEW, pytest.param("", marks=pytest.mark.long)], ids=["few", "all"])
def campaign(request, tmp_path_factory):
    """(exit status, output, records) of ``plumb campaign`` into an empty results folder."""
    folder = tmp_path_factory.mktemp("campaign")
    with pytest.MonkeyPatch.context() as patch:
        if request.param:  # beside small caches STREAM's arrays are small
            small_caches.pretend(tmp_path_factory.mktemp("small"), 1 << 20, patch)
        environment = {**os.environ, "PLUMB_RESULTS": str(folder)}
    command = [str(Path(sys.executable).parent / "plumb"), "campaign", "--profile", "quick", "--test", request.param]
    command += ["--", "-S", "launches=1"]
    answer = ended(command, env=environment, timeout=1500, cwd=paths.root())
    records = stored.sound(folder)
    return answer.returncode, answer.stdout + answer.stderr, records


def test_it_succeeds(campaign):
    status, output, _ = campaign
    assert status == 0, output[-4000:]


def test_the_suites_ran_on_three_stacks(campaign, request):
    seen = {(record["benchmark"]["suite"], record["stack"]["name"]) for record in campaign[2]}
    stacks = {"openmpi", "mpich", "intelmpi"}
    expected = {(suite, stack) for suite in ("osu", "kernels") for stack in stacks}
    # threads alone need no MPI library: the first stack's program is the one that is measured
    expected |= {("stream", stack) for stack in (stacks if "[all]" in request.node.name else {"openmpi"})}
    assert seen == expected | {("imb", "mpich"), ("imb", "intelmpi")}


def test_every_record_is_verified_complete_and_has_figures(campaign):
    for record in campaign[2]:
        schema_files.check("record", record)
        assert record["reasons"] == []
        assert record["verified"]
        assert record["state"] == "complete"
        assert len(record["launches"]) == 1
        assert record["figures"]
        for figure in record["figures"]:
            assert len(figure["samples"]) == 1
            assert figure["value"] > 0 or figure["unit"] == "%"  # nothing overlapped is a figure too


def test_placed_ranks_ran_where_the_plan_put_them(campaign):
    """Read the witnesses once more, without the code that judged them."""
    for record in campaign[2]:
        if record["placement"]["name"] == "none":
            continue
        planned = {rank["local_rank"]: rank for rank in record["plan"]["ranks"]}
        for launch in record["launches"]:
            assert len(launch["ranks"]) == len(planned)
            for rank in launch["ranks"]:
                places = [set(place) for place in planned[rank["local_rank"]]["places"]]
                bound = [set(thread["affinity"]) for thread in rank["threads"]]
                assert all(place in bound for place in places)
                assert set.union(*bound) <= set(planned[rank["local_rank"]]["cpus"])


def test_whole_curves_are_kept(campaign):
    for record in campaign[2]:
        if record["variant"]["params"].get("operation") == "PingPong":
            sizes = {item["params"]["bytes"] for item in record["launches"][0]["measurements"]}
            assert sizes == {0} | {1 << bit for bit in range(23)}


def test_iteration_counts_depend_on_the_size_only(campaign):
    for record in campaign[2]:
        if record["variant"]["params"].get("operation") == "PingPong":
            for launch in record["launches"]:
                for item in launch["measurements"]:
                    size = max(1, item["params"]["bytes"])
                    assert item["iterations"] == min(2000, 80 * 1024 * 1024 // size)


def test_the_table_has_a_line_for_every_record_and_then_come_the_count_and_the_next_step(campaign):
    _, output, records = campaign
    for record in records:
        assert len(re.findall(rf"^{record['id']} ", output, re.MULTILINE)) == 1
    lines = output.strip().splitlines()
    assert any(line.startswith(f"{len(records)} variants, {len(records)} verified, {len(records)} ") for line in lines)
    assert re.match("next: two more campaigns; then plumb calibrate |next: plumb campaign when nothing else", lines[-1])


def test_skips_are_counted_with_their_reasons(campaign):
    assert re.search(r"^skipped +\d+ x stack openmpi has no imb-mpi1$", campaign[1], re.MULTILINE)
