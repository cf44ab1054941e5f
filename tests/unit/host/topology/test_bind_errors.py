"""Everything that plumb-bind refuses: one line that names the fault, exit status 2, nothing on stdout."""

import subprocess
from pathlib import Path

import pytest

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.host import binder
from plumbline.host.binder import resolve

RANGER = "tests/data/topologies/ranger-4x4.xml"
NEHALEM = "tests/data/topologies/rrze-nehalem.xml"
ONE = "tests/data/topologies/one-socket-2.xml"


def bind(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    assert paths.binder().is_file(), "plumb-bind is not built: make setup"
    command = [str(paths.binder()), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=paths.root(), env=env, timeout=60)


def refusal(*words: str, status: int = 2, env: dict[str, str] | None = None) -> str:
    done = bind(*words, env=env)
    assert done.returncode == status, done
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("plumb-bind: ")
    return done.stderr.removeprefix("plumb-bind: ").strip()


def on(topology: str, placement: str, *more: str) -> str:
    return refusal("--print", "--topology", topology, "--placement", placement, *more)


KNOWN = (
    "known are none, compact, scatter, spread, core, l3, numa, socket, node, smt, roundrobin, gpu, gpu:far, "
    "gpu:far:N, gpu:N, nic, numa:N, socket:N, ways:N, pair:smt, pair:l2, pair:l3, pair:numa, pair:socket, "
    "pair:xsocket, pair:node, pair:gpu:WAY|I,J, pair:nic:WAY|I,J, pair:I,J"
)


@pytest.mark.parametrize(("name", "hint"), [
    ("scater", " (did you mean 'scatter'?)"),
    ("sockets", " (did you mean 'socket'?)"),
    ("pair:L3", " (did you mean 'pair:l3'?)"),
    ("pair:xsoket", " (did you mean 'pair:xsocket'?)"),
    ("everywhere", ""),
    ("x" * 500, ""),
])  # fmt: skip
def test_unknown_placement_lists_the_known_ones(name, hint):
    assert on(ONE, name) == f"unknown placement '{name}'{hint}: {KNOWN}"


@pytest.mark.parametrize(("topology", "placement", "more", "missing"), [
    (RANGER, "numa", "--ranks 8", "8 ranks asked, 4 NUMA nodes with CPUs"),
    (RANGER, "socket", "--ranks 5", "5 ranks asked, 4 sockets"),
    (RANGER, "l3", "--ranks 5", "5 ranks asked, 4 L3 caches"),
    (RANGER, "core", "--ranks 17", "17 ranks of 1 thread asked, 16 cores"),
    (RANGER, "compact", "--ranks 6 --threads 3", "6 ranks of 3 threads asked, 16 cores"),
    (RANGER, "compact", "--threads 17", "1 rank of 17 threads asked, 16 cores"),
    (RANGER, "scatter", "--ranks 5 --threads 3", "5 ranks of 3 threads asked, room for 4"),
    (RANGER, "spread", "--ranks 5 --threads 3", "5 ranks of 3 threads asked, room for 4"),
    (RANGER, "scatter", "--threads 17", "17 threads a rank asked, 16 cores"),
    (RANGER, "numa", "--threads 5", "5 threads a rank asked, 4 cores in the smallest of the NUMA nodes with CPUs used"),
    (RANGER, "core", "--threads 2", "2 threads a rank asked, this placement has one"),
    (RANGER, "ways:17", "", "17 ranks asked, 16 cores"),
    (RANGER, "ways:4", "--ranks 5", "5 ranks asked, this placement has 4"),
    (RANGER, "ways:4", "--threads 5", "5 threads for each of 4 ranks asked, the evenly spread cores leave 4 to a rank"),
    (RANGER, "numa:9", "", "there is no NUMA node 9"),
    ("tests/data/topologies/memory-only-node.xml", "numa:2", "", "no core of NUMA node 2 may be used"),
    (RANGER, "socket:4", "", "no core of socket 4 may be used"),
    (RANGER, "numa:1", "--ranks 2", "2 ranks asked, this placement has one"),
    (RANGER, "numa:1", "--threads 5", "5 threads asked, 4 cores of NUMA node 1"),
    (RANGER, "pair:smt", "", "no core has two allowed hardware threads"),
    (RANGER, "pair:numa", "", "no two cores share a NUMA node and nothing smaller"),
    (RANGER, "pair:l2", "", "no two cores share an L2 cache"),
    (ONE, "pair:xsocket", "", "no second socket with allowed CPUs"),
    (RANGER, "pair:l3", "--ranks 3", "3 ranks asked, a pair has two"),
    (RANGER, "pair:l3", "--ranks 1", "1 rank asked, a pair has two"),
    (RANGER, "pair:l3", "--threads 3", "3 threads a rank asked, a pair holds two in all"),
    (RANGER, "pair:0,1", "--threads 2 --ranks 2", "2 ranks of 2 threads asked, a pair holds two threads in all"),
    (RANGER, "pair:3,16", "", "CPU 16 may not be used or does not exist"),
    (RANGER, "pair:node", "--ranks 2", "2 ranks asked, this placement has one on each of two nodes"),
    (NEHALEM, "core", "--ranks 3 --allowed 1,9,4", "3 ranks of 1 thread asked, 2 cores on {} with CPUs 1,4,9 allowed"),
    (NEHALEM, "pair:0,1", "--allowed 1-3", "CPU 0 may not be used or does not exist on {} with CPUs 1-3 allowed"),
    (NEHALEM, "pair:xsocket", "--allowed 0-3", "no second socket with allowed CPUs on {} with CPUs 0-3 allowed"),
    (
        NEHALEM,
        "ways:4",
        "--allowed 0-3,4",
        "1 thread for each of 4 ranks asked, the evenly spread cores leave 0 to a rank on {} with CPUs 0-4 allowed",
    ),
])  # fmt: skip
def test_shortage_names_placement_topology_and_what_is_missing(topology, placement, more, missing):
    line = (missing if "{}" in missing else f"{missing} on {{}}").format(topology)
    assert on(topology, placement, *more.split()) == f"placement {placement}: {line}"


@pytest.mark.parametrize(("topology", "memory", "line"), [
    (RANGER, "near", "unknown memory policy 'near': known are local, interleave, node:N, remote, firsttouch"),
    (RANGER, "node:x", "memory node:x: 'x' is not a whole number"),
    (RANGER, "node:4", f"memory node:4: there is no NUMA node 4 on {RANGER}"),
    (ONE, "remote", f"memory remote: only one NUMA node on {ONE}"),
    (
        "package:2 [numa] core:2 pu:1",
        "remote",
        "memory remote: no table of NUMA distances on package:2 [numa] core:2 pu:1: name the node with node:N",
    ),
    (
        "tests/data/topologies/numa-without-memory.xml",
        "node:1",
        "memory node:1: NUMA node 1 has no memory on tests/data/topologies/numa-without-memory.xml",
    ),
])  # fmt: skip
def test_memory_that_is_not_there(topology, memory, line):
    assert on(topology, "core", "--memory", memory) == line


def test_remote_for_a_rank_that_is_everywhere():
    line = "memory remote: the rank's CPUs are local to every one of the 4 NUMA nodes with memory on"
    assert on(RANGER, "node", "--memory", "remote") == f"{line} {RANGER}"


@pytest.mark.parametrize(("words", "line"), [
    (["--threads", "0"], "--threads: '0' is not a whole number from 1 to 1048576"),
    (["--threads", "two"], "--threads: 'two' is not a whole number from 1 to 1048576"),
    (["--ranks", "-1"], "--ranks: '-1' is not a whole number from 1 to 1048576"),
    (["--ranks", "4x"], "--ranks: '4x' is not a whole number from 1 to 1048576"),
    (["--ranks", "99999999999"], "--ranks: '99999999999' is not a whole number from 1 to 1048576"),
    (["--threads="], "--threads needs a value"),
    (["--allowed", "0-"], "--allowed: '0-' is not a CPU list such as 0-3,8"),
    (["--allowed", "3-1"], "--allowed: '3-1' is not a CPU list such as 0-3,8"),
    (["--allowed", "0,,1"], "--allowed: '0,,1' is not a CPU list such as 0-3,8"),
    (["--allowed", "0-99"], f"--allowed 0-99: CPU 16 is not usable on {RANGER}"),
    (["--placement", "ways:0"], "placement ways:0: the number of ranks must be at least 1"),
    (["--placement", "ways:many"], "placement ways:many: 'many' is not a whole number"),
    (["--placement", "ways:"], "placement ways:: '' is not a whole number"),
    (["--placement", "numa:-1"], "placement numa:-1: '-1' is not a whole number"),
    (["--placement", "pair:1,"], "placement pair:1,: '1,' is not two CPU numbers such as 0,4"),
    (["--placement", "pair:1,2,3"], "placement pair:1,2,3: '1,2,3' is not two CPU numbers such as 0,4"),
    (["--placement", "pair:2,2"], "placement pair:2,2: the two CPUs must differ"),
    (["--frobnicate"], "unknown option '--frobnicate' (see plumb-bind --help)"),
    (["true"], "unexpected word 'true': the program comes after --"),
    (["--", "true"], "--print runs nothing: leave out '-- true'"),
    (["--witness", "/tmp"], "--print runs nothing: leave out --witness"),
    (["--barrier", "/tmp"], "--print runs nothing: leave out --barrier"),
    (["--needs", "avx2"], "--print runs nothing: leave out --needs"),
    (["--memory"], "--memory needs a value"),
])  # fmt: skip
def test_bad_words_on_the_command_line(words, line):
    assert refusal("--print", "--topology", RANGER, "--placement", "core", *words) == line


@pytest.mark.parametrize(("words", "line"), [
    ("--print", "no --placement given (see plumb-bind --help)"),
    ("", "no --placement given (see plumb-bind --help)"),
    ("--placement core", "no program to run: write -- PROGRAM ARG... at the end, or --print"),
    ("--placement core --", "no program to run: write -- PROGRAM ARG... at the end, or --print"),
    (
        "--placement core --ranks 1 -- true",
        "--ranks goes with --print only: a real start uses this host and its launcher",
    ),
    (
        f"--placement core --topology {RANGER} -- true",
        "--topology goes with --print only: a real start uses this host and its launcher",
    ),
    ("--export-topology x.xml --print", "--export-topology goes with --topology only: leave out --print"),
    ("--export-topology x.xml --allowed 0", "--export-topology goes with --topology only: leave out --allowed"),
    ("--devices -- true", "--devices goes with --topology only: leave out the program"),
    ("--list --devices", "--list goes alone: leave out --devices"),
    ("--check", "no --placement given (see plumb-bind --help)"),
    ("--check --placement core --ranks 2", "--check goes with --placement and --memory only: leave out --ranks"),
    ("--check --placement ways:0", "placement ways:0: the number of ranks must be at least 1"),
    ("--check --placement core --memory node:x", "memory node:x: 'x' is not a whole number"),
    ("--export-topology /nowhere/x.xml", "topology cannot be written to /nowhere/x.xml: No such file or directory"),
    ("--placement core --witness /nowhere -- true", "witness folder /nowhere: No such file or directory"),
    ("--placement core --witness /etc/passwd -- true", "witness folder /etc/passwd: not a folder"),
])  # fmt: skip
def test_what_does_not_go_together(words, line):
    assert refusal(*words.split()) == line


@pytest.mark.parametrize(
    "option", ["memory", "threads", "ranks", "witness", "profile", "output", "machine", "topology"]
)
def test_options_that_would_be_ignored_are_refused(option):
    words = [f"--{option}", "1"]
    assert refusal("--list", *words) == f"--list goes alone: leave out --{option}"
    if option != "topology":
        refused = f" goes with --topology only: leave out --{option}"
        assert refusal("--devices", *words) == f"--devices{refused}"
        assert refusal("--export-topology", "/nowhere/x", *words) == f"--export-topology{refused}"


def test_missing_topology_file():
    assert on("nowhere/x.xml", "core") == "topology file nowhere/x.xml: No such file or directory"
    assert on("gibberish", "core") == "topology 'gibberish': no such file, and not an hwloc synthetic description"
    assert on("tests", "core") == "topology file tests: not a regular file"


@pytest.mark.parametrize(
    "content", ["", "not xml at all\n", "<topology>", '<?xml version="1.0"?>\n<topology version="2.0">']
)
def test_malformed_xml(tmp_path, content):
    file = tmp_path / "bad.xml"
    file.write_text(content)
    assert on(str(file), "core").startswith((f"topology file {file}: ", f"topology {file}: "))


def test_truncated_xml(tmp_path):
    whole = (paths.root() / RANGER).read_bytes()
    for share in (0.1, 0.5, 0.9, 0.99):
        file = tmp_path / "cut.xml"
        file.write_bytes(whole[: int(len(whole) * share)])
        assert str(file) in on(str(file), "core")


def test_program_that_is_not_there_or_not_a_program():
    words = ("--placement", "core", "--")
    assert refusal(*words, "/nowhere/stream", status=127) == "program '/nowhere/stream': No such file or directory"
    assert refusal(*words, "no-such-program-x", status=127).startswith("program 'no-such-program-x': ")
    assert refusal(*words, "/etc/passwd", status=126).startswith("program '/etc/passwd' cannot be executed: ")


def test_a_witness_library_that_is_missing_or_that_the_linker_could_not_preload(tmp_path):
    library = tmp_path / "with blank.so"
    library.touch()
    why = {
        Path("/nowhere/lib.so"): "No such file or directory",
        library: "the dynamic linker cannot preload from a path with a blank or a colon",
    }
    for file, fault in why.items():
        env = {"PATH": "/usr/bin:/bin", "PLUMB_WITNESS_LIB": str(file)}
        line = refusal("--placement", "core", "--witness", str(tmp_path), "--", "true", env=env)
        assert line == f"witness library {file}: {fault}"


def test_control_characters_stay_on_one_line():
    assert "unknown placement 'a?b?c'" in on(ONE, "a\nb\x1bc")


def test_python_passes_the_line_on(monkeypatch):
    monkeypatch.chdir(paths.root())
    with pytest.raises(PlumbError, match=r"^placement numa: 8 ranks asked, 4 NUMA nodes with CPUs on "):
        resolve("numa", ranks=8, topology=RANGER)


def test_errors_call_the_machine_by_the_name_given():
    shortage = "^placement numa: 8 ranks asked, 4 NUMA nodes with CPUs on partition normal$"
    with pytest.raises(PlumbError, match=shortage):
        resolve("numa", ranks=8, topology=paths.root() / RANGER, machine="partition normal")
    with pytest.raises(PlumbError, match=r"^placement core: .* on partition normal with CPUs 0-3 allowed$"):
        resolve("core", ranks=8, topology=paths.root() / RANGER, machine="partition normal", allowed="0-3")
    assert "--machine goes with --print only" in refusal("--placement", "core", "--machine", "x", "--", "true")


def test_python_says_when_the_binder_is_not_built(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_TOOLS", str(tmp_path))
    with pytest.raises(PlumbError, match="make setup"):
        resolve("core")


@pytest.mark.parametrize(("answer", "ask", "why"), [
    ("echo \"plumb-bind: unknown option '--list'\" >&2; exit 2", binder.placements, "unknown option '--list'"),
    ('echo \'{"placements": [{"name": "core"}]}\'', binder.placements, "argument"),
    ('echo \'{"placement": "core"}\'', lambda: resolve("core"), "missing required field"),
])  # fmt: skip
def test_a_binder_of_an_earlier_checkout_is_told_in_one_line(tmp_path, monkeypatch, answer, ask, why):
    old = tmp_path / "plumb-bind"
    old.write_text(f"#!/bin/sh\n{answer}\n")
    old.chmod(0o755)
    monkeypatch.setattr(paths, "binder", lambda: old)
    binder.placements.cache_clear()
    with pytest.raises(PlumbError, match=f"plumb-bind is older than this checkout: .*{why}") as error:
        ask()
    assert (error.value.where, error.value.cure) == (str(old), "make setup")
    binder.placements.cache_clear()
