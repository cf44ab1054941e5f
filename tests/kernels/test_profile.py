"""libplumbprofile.so in front of every installed library: counts and bytes that are known by construction."""

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import samples
from kernel_stack import KernelStack
from processes import ended, succeeded

from plumbline.base import paths
from plumbline.launch import profile_files
from plumbline.launch.profiles import RankProfile
from plumbline.records import store
from plumbline.records.model import Record
from plumbline.stacks import kernels, manifest

SUPPORT = Path(__file__).parents[1] / "support"
#: calls that a program makes until something has happened: how often is not known
LOOPS = {"Iprobe", "Test", "Testall", "Testany", "Testsome", "Waitsome"}
#: calls whose bytes go to the peer when they are made
SENDING = {"Send", "Isend", "Bsend", "Ibsend", "Ssend", "Issend", "Rsend", "Sendrecv", "Sendrecv_replace"}
SENDING |= {"Put", "Rput", "Accumulate", "Raccumulate"}


def _build(stack: KernelStack, source: Path, folder: Path, *words: str) -> Path:
    program = folder / "program"
    command = [str(kernels.wrapper(stack.manifest)), "-O1", "-w", "-pthread", str(source), "-o", str(program), *words]
    environment = {**os.environ, **manifest.environment(stack.manifest, os.environ)}
    succeeded(ended(command, env=environment, timeout=600))
    return program


def _profiled(stack, folder, program, *arguments, ranks=2, env=None, killed=False):
    """How the program ended, and the profiles of its ranks."""
    (folder / "profile").mkdir()
    binder = [str(paths.binder()), "--placement", "none", "--profile", str(folder / "profile"), "--"]
    done = stack.mpirun(ranks, *binder, str(program), *arguments, env=env)
    found, faults = profile_files.ranks(folder / "profile")
    assert faults == [] or (killed and all("not written to its end" in fault for fault in faults))
    return done, found


def _totals(rank: RankProfile) -> dict[str, tuple[int, int]]:
    counts, sizes = Counter[str](), Counter[str]()
    for one in rank.communicators:
        for call in one.calls:
            counts[call.call] += sum(size.count for size in call.sizes)
            sizes[call.call] += sum(size.bytes for size in call.sizes)
    return {name: (counts[name], sizes[name]) for name in counts}


def _plumb(results: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return ended([paths.program("plumb"), "--results", results, *words], timeout=300, cwd=paths.root())


def _own(stack: KernelStack, folder: Path, program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``plumb profile`` of a person's program on two ranks."""
    words = ["profile", "--stack", stack.name, "--placement", "core", "--threads", "1", "--ranks", "2"]
    return _plumb(folder / "results", *words, "--", str(program), *arguments)


@pytest.fixture
def every_call(each_stack, tmp_path):
    """What the program made, and the profiles of its two ranks."""
    program = _build(each_stack, SUPPORT / "every_call.c", tmp_path)
    done, found = _profiled(each_stack, tmp_path, program)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("made ")]
    return {name: (int(count), int(size)) for _, name, count, size in lines}, found


def test_every_call_is_counted_with_its_bytes(every_call):
    """The same on both ranks, whatever the library's handles are; nothing that the library calls itself is counted."""
    made, found = every_call
    assert len(made) > 80
    assert [rank.rank for rank in found] == [0, 1]
    for rank in found:
        got = _totals(rank)
        assert set(got) == set(made)
        assert {name: value for name, value in got.items() if name not in LOOPS} == {
            name: value for name, value in made.items() if name not in LOOPS
        }
        assert {name: got[name][1] for name in LOOPS} == dict.fromkeys(LOOPS, 0)


def test_peers_of_every_call(every_call):
    """By ranks of MPI_COMM_WORLD, also through a communicator of another order; started requests each time."""
    made, found = every_call
    times = made["Mrecv"][0]
    started = sum(made[name][1] for name in ("Send_init", "Bsend_init", "Ssend_init")) + times * 32  # one twice
    expected = sum(made[name][1] for name in SENDING if name in made) + started
    for rank in found:
        (peer,) = rank.peers
        assert (peer.rank, peer.sent_bytes) == (1 - rank.rank, expected)
        assert rank.lost.peers == times  # MPI_Mrecv does not say on which communicator
        assert rank.lost.communicators == rank.lost.members == rank.lost.requests == 0
        assert rank.off_ns == 0


def test_requests_are_followed_to_their_end(every_call):
    """Each non-blocking call completes once, each persistent one as often as it was started."""
    made, found = every_call
    for rank in found:
        calls = [call for one in rank.communicators for call in one.calls if call.request]
        done = Counter[str]()
        for call in calls:
            done[call.call] += sum(size.completed for size in call.sizes)
            assert all(size.completion_ns > 0 for size in call.sizes)
        twice = {name: made["Mrecv"][0] for name in ("Send_init", "Recv_init")}  # by MPI_Startall
        assert done == {name: made[name][0] + twice.get(name, 0) for name in done}


def test_a_program_with_sessions_alone(each_stack, tmp_path):
    """With ranks of the set that has all processes; MPICH alone lets a program have sessions again."""
    program = _build(each_stack, SUPPORT / "programs" / "sessions.c", tmp_path)
    rounds = 1 + (each_stack.name == "mpich")
    done, ranks = _profiled(each_stack, tmp_path, program, str(rounds))
    assert done.returncode == 0, done.stderr
    assert [(rank.rank, rank.size, rank.ended) for rank in ranks] == [(n, 2, "MPI_Finalize") for n in range(2)]
    for rank in ranks:
        totals, (peer,) = _totals(rank), rank.peers
        assert [totals[call] for call in ("Sendrecv", "Barrier", "Comm_free")] == [
            (rounds, 4 * rounds),
            (rounds, 0),
            (rounds, 0),
        ]
        assert (peer.rank, peer.sent_bytes, peer.received_messages) == (1 - rank.rank, 4 * rounds, rounds)
        assert (rank.lost.communicators, rank.lost.peers) == (0, 0)
    assert profile_files.shortfalls(ranks, 2) == []


def test_an_ignored_signal_stays_ignored_and_stacks_may_be_small(one_stack, tmp_path):
    done, found = _profiled(one_stack, tmp_path, _build(one_stack, SUPPORT / "profile_keeps_on.c", tmp_path))
    assert (done.returncode, [rank.ended for rank in found]) == (0, ["MPI_Finalize"] * 2)


@pytest.mark.parametrize("ending", [
    *(pytest.param(how, marks=pytest.mark.long) for how in ("exit", "SIGTERM")),
    "MPI_Abort",
    "SIGKILL",
    "MPI_Finalize",
])  # fmt: skip
def test_ends_of_a_program(each_stack, tmp_path, ending):
    """What there is is kept, and named as partial; of a rank that was killed what had been written before."""
    program = _build(each_stack, SUPPORT / "profile_endings.c", tmp_path)
    kept = str(tmp_path / "profile" / "*.partial.json")  # of both ranks, before one is killed
    _, found = _profiled(each_stack, tmp_path, program, ending, kept, killed=ending != "MPI_Finalize")
    whole = ending == "MPI_Finalize"
    files = sorted((tmp_path / "profile").iterdir())
    assert all(file.name.endswith(".partial.json") != whole for file in files if file.suffix == ".json")
    assert all((rank.ended == "MPI_Finalize") == whole for rank in found)
    if ending == "SIGKILL":
        assert [rank.rank for rank in found] == [0, 1]
        assert found[0].ended in ("killed", "SIGTERM")  # by the launcher
        assert found[1].ended == "killed"
        assert all(rank.calls > 0 for rank in found)  # how many had been written by then depends on the machine
        assert "partial profile" in " ".join(profile_files.shortfalls(found, 2))
        return
    first = found[0]
    assert first.rank == 0
    assert first.ended == ending
    assert _totals(first)["Barrier"][0] >= 1
    assert bool(profile_files.shortfalls(found, 2)) != whole


@pytest.mark.parametrize(("options", "said", "status"), [
    (["-static"], "no rank left a profile: the program is not an MPI program, is linked statically", 1),
    ([], "no rank called MPI_Init", 0),
], ids=["static", "without MPI"])  # fmt: skip
def test_programs_of_which_there_is_none(kernel_stack, tmp_path, options, said, status):
    """A clear line; without MPI there is the time of its processes."""
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text("int main(void) { return 0; }")
    made = ended(["gcc", *options, source, "-o", program])
    if made.returncode != 0:
        pytest.skip(f"not run: {made.stderr.splitlines()[0]}")
    done = _own(kernel_stack, tmp_path, program)
    assert done.returncode == status
    assert done.stdout.startswith(said)


@pytest.mark.parametrize(
    ("ending", "said"), [("SIGKILL", r"1\b.* w(as|ere) killed"), ("MPI_Abort", "called MPI_Abort")]
)
def test_a_run_that_did_not_end_is_shown_as_partial(kernel_stack, tmp_path, ending, said):
    """The tables of what there is, and which ranks are not whole."""
    done = _own(kernel_stack, tmp_path, _build(kernel_stack, SUPPORT / "profile_endings.c", tmp_path), ending)
    assert done.returncode == 1
    assert re.search(f"^partial profile: rank.* {said}", done.stdout, re.MULTILINE), done.stdout
    assert "MPI_Comm_rank" in done.stdout


def test_threads_that_meet(each_stack, tmp_path):
    """Four threads of each rank at once: no call is lost."""
    program = _build(each_stack, SUPPORT / "profile_threads.c", tmp_path)
    done, found = _profiled(each_stack, tmp_path, program)
    assert done.returncode == 0, done.stderr
    for rank in found:
        assert _totals(rank)["Sendrecv"] == (80000, 320000)
        assert (rank.multiple, rank.threads) == (True, 5)  # the first asked for its rank
        assert (rank.peers[0].sent_messages, rank.peers[0].received_messages) == (80000, 80000)


def test_a_program_switches_the_profile_off(each_stack, tmp_path):
    """Calls while it is off are not counted, nor one that it was off during, nor requests that begin or end then."""
    program = _build(each_stack, SUPPORT / "profile_control.c", tmp_path)
    done, found = _profiled(each_stack, tmp_path, program)
    assert done.returncode == 0, done.stderr
    for rank in found:
        once, twice = (1, 4), (2, 8)
        made = {"Start": (1, 0), "Wait": (3, 0), "Waitall": (1, 0), "Isend": once, "Irecv": twice, "Recv": twice}
        assert _totals(rank) == {**made, "Probe": (1, 0)}
        calls = {call.call: call.sizes[0] for one in rank.communicators for call in one.calls}
        assert [calls[name].completed for name in ("Isend", "Irecv")] == [1, 1]
        assert calls["Irecv"].completion_ns < 100_000_000 <= rank.off_ns - 50_000_000
        peers = {peer.rank: (peer.sent_messages, peer.received_messages) for peer in rank.peers}
        assert peers == {rank.rank: (0, 1), 1 - rank.rank: (2, 2)}
        assert (rank.ended, rank.lost.peers, rank.lost.requests) == ("MPI_Finalize", 0, 0)


def test_fortran(each_stack, tmp_path):
    """Arguments by reference, handles as integers, MPI_IN_PLACE a variable."""
    library = Path(each_stack.manifest.prefix) / "lib" / "libmpifort.so"
    if not library.exists():
        pytest.skip(f"{each_stack.name} has no Fortran library")
    program = _build(each_stack, SUPPORT / "profile_fortran.c", tmp_path, f"-L{library.parent}", "-lmpifort")
    done, found = _profiled(each_stack, tmp_path, program)
    assert done.returncode == 0, done.stderr
    for rank in found:
        made = {"Sendrecv": (1, 32), "Isend": (1, 32), "Recv": (1, 32), "Wait": (1, 0), "Allreduce": (1, 32)}
        made["Allgather"] = (1, 32)
        assert _totals(rank) == {**made, "Comm_rank": (1, 0)}
        (peer,) = rank.peers
        assert (peer.sent_messages, peer.sent_bytes) == (2, 64)
        assert (peer.received_messages, peer.received_bytes) == (2, 64)


def test_large_counts_are_refused_where_the_library_has_none(each_stack, tmp_path):
    """Neither lists of 64-bit counts nor any count that an int does not hold get to the plain functions."""
    program = _build(each_stack, SUPPORT / "profile_large_counts.c", tmp_path, "-ldl")
    done, _ = _profiled(each_stack, tmp_path, program, ranks=1)
    assert done.returncode == 0, done.stderr
    if not done.stdout:
        pytest.skip(f"{each_stack.name} has functions for large counts")
    faults = [line.split()[1] for line in done.stdout.splitlines()]
    assert len(faults) == 19
    assert set(faults) == {"1"}, done.stdout
    assert "plumbprofile: MPI_Gatherv_c, which the program calls, was not found in the MPI library\n" in done.stderr


def test_waiting_is_split_when_asked(one_stack, tmp_path):
    """A barrier before each collective call takes the waiting; without it there is none."""
    program = _build(one_stack, SUPPORT / "every_call.c", tmp_path)
    _, found = _profiled(one_stack, tmp_path, program, env={"PLUMB_PROFILE_WAIT": "1"})
    calls = {call.call: call for call in found[0].communicators[1].calls}
    assert found[0].waiting_split
    assert all(size.waited_ns > 0 for name in ("Bcast", "Allreduce", "Barrier") for size in calls[name].sizes)
    assert all(size.waited_ns == 0 for name in ("Ibcast", "Send", "Sendrecv") for size in calls[name].sizes)


@pytest.mark.parametrize(
    ("ranks", "kernel", "options", "expected"),
    [
        (
            32, "rank_ring", ("--iterations", "5", "--repetitions", "1", "--maps", "1", "--warm-ups", "0"),
            {("Sendrecv", 524288): 480, ("Allreduce", 8): 160},
        ),
        (3, "heat1d", ("--repetitions", "1"), {("Isend", 8): 12, ("Irecv", 8): 12, ("Waitall", 0): 9}),
    ],
)  # fmt: skip
def test_the_seeds_counts(one_stack, tmp_path, ranks, kernel, options, expected):
    """IPM's and mpiP's, and no call of the kernel around the experiment."""
    done, found = _profiled(one_stack, tmp_path, one_stack.programs / kernel, *options, ranks=ranks)
    assert done.returncode == 0, done.stderr
    assert len(found) == ranks
    counts = Counter[tuple[str, int]]()
    for rank in found:
        for call in (call for one in rank.communicators for call in one.calls):
            for size in call.sizes:
                counts[call.call, size.most_bytes] += size.count
    assert counts == expected


def test_a_test_of_the_suite(one_stack, tmp_path):
    """Selected by ReFrame's pattern, launched once; its record has neither measurement nor figure."""
    done = succeeded(_plumb(tmp_path, "profile", "heat1d_steps.*placement=core", "--stack", one_stack.name))
    assert done.stdout.splitlines()[-1].startswith("MPI: ")
    (session,) = tmp_path.glob("*/*.jsonl")
    (record,) = [one for one in store.read(session) if isinstance(one, Record)]
    assert (record.is_profiled, record.verified, record.is_valid, record.figures) == (True, True, False, [])
    assert [launch.measurements for launch in record.launches] == [[]]
    profile = profile_files.load(tmp_path / record.site / "profiles" / f"{record.id}.json")
    assert (profile.record, profile.missing) == (record.id, [])


def test_what_two_records_ran_is_profiled_and_compared(one_stack, tmp_path):
    """As a gate's closing lines name it: the records are measurements; each side is launched once more."""
    results = tmp_path / "results"
    (results / "local").mkdir(parents=True)
    heat = {"stack": one_stack.name, "benchmark": "heat1d", "parser": "kernel", "context": {"kernel": "heat1d"}}
    heat |= {"placement": "core", "threads": 1, "ranks_per_node": 2}
    for ident, repetitions in (("aaaaaaaaaaaa", 1), ("bbbbbbbbbbbb", 3)):
        variant = samples.variant(**heat, arguments=["--json", "--repetitions", str(repetitions)])
        document = samples.record(id=ident, variant=variant)
        (results / "local" / f"{ident}.jsonl").write_text(json.dumps(document) + "\n", encoding="utf-8")
    done = succeeded(_plumb(results, "profile", "--compare", "aaaa", "bbbb"))
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[2:4] for row in rows if row[:2] == ["MPI_Isend", "8"]] == [["6", "18"]]
    assert done.stdout.splitlines()[-1].startswith("other calls or sizes; MPI ")
    assert len(list((results / "local" / "profiles").iterdir())) == 2
