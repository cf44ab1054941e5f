"""libplumbwitness.so inside real programs: C, OpenMP, Python, forking, dying."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from witness_helper import MPI, PROGRAMS, compare, compile_c, cpus, library, node_plan, only, rank_plan, run, with_mpi

from plumbline.base import paths

MIB_PAGES = (1 << 20) // os.sysconf("SC_PAGESIZE")


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    return {
        "pthreads": compile_c(folder, "bound_threads.c", "-pthread", name="pthreads"),
        "openmp": compile_c(folder, "openmp_array.c", "-fopenmp", name="openmp"),
        "memory": compile_c(folder, "memory.c", "-fno-builtin-malloc", "-fno-builtin-realloc", name="memory"),
        "ends": compile_c(folder, "ends.c", "-pthread", "-fno-builtin-malloc", name="ends"),
    }


@pytest.fixture
def plan():
    return rank_plan([[cpus(1)[0]]])


def test_threads_with_their_names_and_places(tmp_path, programs):
    first, second = cpus(2)
    plan = rank_plan([[first], [second]])
    assert run(tmp_path / "w", plan, [programs["pthreads"], first, second]) == (7, "")
    seen = only(tmp_path / "w")
    assert [thread["affinity"] for thread in seen["threads"]] == [[first, second], [first], [second]]
    assert [thread["name"] for thread in seen["threads"]] == ["pthreads", "worker", "worker"]
    assert seen["start"]["affinity"] == [first, second]
    assert seen["started_at_once"] == 2
    assert seen["program"] == str(programs["pthreads"])
    assert seen["host"] == os.uname().nodename
    assert compare(node_plan(plan), [seen], 1) == []


def test_openmp_is_verified_on_its_places_with_its_memory(tmp_path, programs):
    plan = rank_plan([[cpu] for cpu in cpus(2)])
    status, _ = run(tmp_path / "w", plan, [programs["openmp"]])
    assert status == 0
    seen = only(tmp_path / "w")
    assert compare(node_plan(plan), [seen], 1) == []
    assert sum(seen["memory"]["nodes"].values()) >= 16 * MIB_PAGES
    assert 0 < seen["usage"]["wall_s"] < 60
    assert seen["usage"]["minor_faults"] > 0


def test_the_same_openmp_program_unbound_is_not_verified(tmp_path, programs):
    plan = rank_plan([[cpu] for cpu in cpus(2)])
    run(tmp_path / "w", plan, [programs["openmp"]], {"OMP_PROC_BIND": "false", "OMP_PLACES": ""})
    reasons = compare(node_plan(plan), [only(tmp_path / "w")], 1)
    assert any("no thread is bound there" in reason for reason in reasons), reasons


#: what counts at the end and what was given back, in MiB; the allocator's own pages may come to either
WAYS = {
    **dict.fromkeys(("free", "realloc", "munmap", "munmap-shared", "munmap-parts", "mremap"), (0, 8)),
    "half": (0, 4),  # only touched pages count
    **dict.fromkeys(("keep", "keep-shared"), (8, 0)),
    **dict.fromkeys(("segment", "segment-gone", "memfd-gone", "small"), (0, 0)),
}


def memory_of(tmp_path, programs, plan, way):
    name = f"/dev/shm/plumb-test-{os.getpid()}"
    assert run(tmp_path / "w", plan, [programs["memory"], way, name]) == (0, "")
    found = only(tmp_path / "w")["memory"]
    assert "unavailable" not in found
    return found


@pytest.mark.parametrize("way", WAYS)
def test_large_memory_counts_held_to_the_end_or_given_back_but_no_shared_segments(tmp_path, programs, plan, way):
    found = memory_of(tmp_path, programs, plan, way)
    for where, mib in zip(("nodes", "freed_nodes"), WAYS[way], strict=True):
        pages = sum(found[where].values())
        assert mib * MIB_PAGES <= pages <= mib * MIB_PAGES + 4 * bool(mib), where


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the test writes instructions of x86-64")
def test_memory_counts_where_a_library_watches_mappings_too(tmp_path, plan):
    """Both see the end of a mapping: the library that wrote over the function, and the witness."""
    assert run(tmp_path / "w", plan, [compile_c(tmp_path, "patches.c")]) == (0, "")
    assert sum(only(tmp_path / "w")["memory"]["freed_nodes"].values()) == 8 * MIB_PAGES


def test_a_segment_mapped_over_a_block_does_not_count(tmp_path, programs, plan):
    assert memory_of(tmp_path, programs, plan, "segment-over-block")["freed_nodes"] == {}


def test_a_program_that_frees_all_the_time_is_sampled_less(tmp_path, programs, plan):
    found = memory_of(tmp_path, programs, plan, "loop")
    assert found["freed_blocks"] + found["freed_blocks_skipped"] == 20000
    assert found["freed_blocks"] > 10
    assert found["freed_blocks_skipped"] > found["freed_blocks"]


def test_more_mappings_than_the_table_holds_are_said(tmp_path, programs, plan):
    found = memory_of(tmp_path, programs, plan, "many")
    assert found["untracked_mappings"] == 300 - 256
    assert found["freed_blocks"] + found["freed_blocks_skipped"] == 256


PYTHON_MMAP = """
import mmap, sys
block = mmap.mmap(-1, 8 << 20)
for at in range(0, 8 << 20, 4096):
    block[at] = 1
if sys.argv[1] == "close":
    block.close()
else:
    import os, atexit
    kept = memoryview(block)
"""


@pytest.mark.parametrize("way", ["close", "keep"])
def test_python_mmap_counts(tmp_path, plan, way):
    """The buffers of the OSU benchmarks in Python: anonymous, but MAP_SHARED."""
    own = {"PYTHONMALLOC": "malloc"}  # Python's own allocator may give back an arena of 1 MiB
    assert run(tmp_path / "w", plan, [sys.executable, "-c", PYTHON_MMAP, way], own) == (0, "")
    found = only(tmp_path / "w")["memory"]
    freed = sum(found["freed_nodes"].values())
    assert freed + sum(found["nodes"].values()) >= 8 * MIB_PAGES
    assert way == "keep" or freed == 8 * MIB_PAGES


@pytest.mark.parametrize(("way", "status", "handlers"), [
    ("return", 4, "handler ran\n"),
    ("thread", 5, "handler ran\n"),
    ("main-gone", 6, "handler ran\n"),
    ("exec", 4, "handler ran\n"),  # the program replaces itself
    ("_exit", 0, ""),
    ("_Exit", 0, ""),
])  # fmt: skip
def test_each_good_end_leaves_one_witness_and_status_and_handlers(tmp_path, programs, plan, way, status, handlers):
    assert run(tmp_path / "w", plan, [programs["ends"], way]) == (status, handlers)
    seen = only(tmp_path / "w")
    if way == "main-gone":
        assert sum(seen["memory"]["nodes"].values()) >= 4 * MIB_PAGES, "the main thread is a zombie by then"


def test_children_and_helper_programs_are_the_rank_s_others(tmp_path, programs, plan):
    assert run(tmp_path / "w", plan, [programs["ends"], "fork"])[0] == 0
    seen = only(tmp_path / "w")
    assert seen["root"] == seen["pid"]
    assert {(item["parent"], item["root"]) for item in seen["others"]} == {(seen["pid"], seen["pid"])}
    kinds = {(Path(item["program"]).name, item["forked"]) for item in seen["others"]}
    assert kinds == {("ends", True), ("true", False)}
    assert compare(node_plan(plan), [seen], 1) == []


def test_a_forked_child_has_transports_of_its_own(tmp_path, plan):
    compile_c(tmp_path, MPI, "-shared", "-fPIC", name="libmpi.so")
    program = compile_c(tmp_path, "forks_after_mpi.c", *with_mpi(tmp_path))
    assert run(tmp_path / "w", plan, [program]) == (0, "")
    seen = [json.loads(file.read_text()) for file in (tmp_path / "w").iterdir()]
    found = {item["forked"]: (item["transports"]["copies"], item["transports"]["shm_bytes"]) for item in seen}
    assert found == {False: (1, 1 << 20), True: (0, 0)}


def test_bytes_sent_by_tcp_and_refused_copies_are_counted(tmp_path, plan):
    status, _ = run(tmp_path / "w", plan, [compile_c(tmp_path, "sends_and_copies.c")])
    if status == 77:
        pytest.skip("this host refuses user namespaces")
    assert status == 0
    seen = only(tmp_path / "w")["transports"]
    assert (seen["copies"], seen["refused"]) == (0, 1)
    assert max(seen["tcp_sent"]) in (1000, 1001), "the kernel counts the opening of a connection as a byte"
    assert len(seen["tcp_sent"]) == len(seen["tcp"]) == 2
    assert seen["user_namespace"].startswith("user:[")
    assert seen["user_namespace"] != str(Path("/proc/self/ns/user").readlink())


def test_memory_in_huge_pages_is_told_from_other_memory(tmp_path, plan, monkeypatch):
    thp = Path("/sys/kernel/mm/transparent_hugepage")
    if not thp.exists() or "[never]" in (thp / "enabled").read_text():
        pytest.skip("this kernel gives no transparent huge pages")
    grain = int((thp / "hpage_pmd_size").read_text())
    program = compile_c(tmp_path, "touches_pages.c")
    huge, small = tmp_path / "huge", tmp_path / "small"
    monkeypatch.setenv("PLUMB_WITNESS_PAGES", "1")
    assert (run(huge, plan, [program])[0], run(small, plan, [program, "small"])[0]) == (0, 0)
    found = [only(folder)["transports"] for folder in (huge, small)]
    assert all(8 << 20 < one["present_bytes"] < 16 << 20 for one in found), found
    assert found[1]["huge_bytes"] == 0
    assert found[0]["huge_bytes"] % grain == 0
    assert 0 < found[0]["huge_bytes"] <= found[0]["present_bytes"], "none at all: is memory that fragmented?"


def test_pages_are_not_counted_for_nobody(tmp_path, plan):
    """The kernel walks all of them for it, at the end of each launch."""
    assert run(tmp_path / "witness", plan, [compile_c(tmp_path, "touches_pages.c")])[0] == 0
    found = only(tmp_path / "witness")["transports"]
    assert (found["present_bytes"], found["huge_bytes"]) == (0, 0)


@pytest.mark.parametrize("layer", ["PMPI", "MPI"])
@pytest.mark.parametrize(("suffix", "optional"), [("", "&error"), ("f08_", "NULL")])
@pytest.mark.parametrize(
    ("words", "status"), [([], {"&error": 0, "NULL": 255}), (["thread"], {"&error": 3, "NULL": 3})]
)
def test_a_fortran_program_moves_only_in_its_mpi_init(tmp_path, plan, layer, suffix, optional, words, status):
    """The functions of C are not called by name there: Open MPI's library goes from mpi_init_ to PMPI_Init."""
    names = [f"-DSUFFIX={suffix}", f"-DLAYER={layer}", f"-DOPTIONAL={optional}"]
    compile_c(tmp_path, MPI, PROGRAMS / "mpi_of_fortran.c", *names, "-shared", "-fPIC", name="libmpi.so")
    path = with_mpi(tmp_path)
    program = compile_c(tmp_path, "calls_as_fortran.c", *names, *path, name="fortran")
    assert run(tmp_path / "w", plan, [program, *words])[0] == status[optional]
    seen = only(tmp_path / "w")
    assert seen["mpi"]
    assert compare(node_plan(plan), [seen], 1) == []


def test_a_program_with_a_tool_inside_moves_between_cpus_only_in_its_mpi_init(tmp_path, plan):
    compile_c(tmp_path, MPI, "-shared", "-fPIC", name="libmpi.so")
    program = compile_c(tmp_path, "tool_inside.c", *with_mpi(tmp_path), name="inside")
    assert run(tmp_path / "w", plan, [program]) == (0, "")
    assert compare(node_plan(plan), [only(tmp_path / "w")], 1) == []


def test_a_program_with_sessions_uses_mpi_while_it_has_one(tmp_path, plan):
    compile_c(tmp_path, MPI, PROGRAMS / "mpi_sessions.c", "-shared", "-fPIC", name="libmpi.so")
    program = compile_c(tmp_path, "opens_sessions.c", *with_mpi(tmp_path), name="sessions")
    assert run(tmp_path / "w", plan, [program]) == (0, "")
    seen = only(tmp_path / "w")
    assert seen["mpi"]
    assert 0.02 <= seen["window"]["wall_s"] <= seen["usage"]["wall_s"] - 0.04


def test_a_tool_between_program_and_library_is_not_the_library(tmp_path, plan):
    """Tools such as TALP, mpiP and IPM define MPI's functions too, call those of PMPI, and count: ours must not."""
    tool = "#include <unistd.h>\nint PMPI_Initialized(int *);\n"
    tool += 'int MPI_Initialized(int *flag) { write(2, "asked ", 6); return PMPI_Initialized(flag); }'
    main = "int MPI_Init(int *, char ***);\nint MPI_Initialized(int *);\n"
    main += "int main(void) { int flag; return MPI_Init(0, 0) + MPI_Initialized(&flag); }"
    path = [f"-L{tmp_path}", f"-Wl,-rpath,{tmp_path}"]
    compile_c(tmp_path, MPI, "-shared", "-fPIC", name="libmpi.so")
    compile_c(tmp_path, tool, "-shared", "-fPIC", *path, "-lmpi", name="libtalp.so")
    program = compile_c(tmp_path, main, *path, "-ltalp", "-lmpi", name="traced")
    assert run(tmp_path / "w", plan, [program]) == (0, "asked ")
    assert only(tmp_path / "w")["mpi_library"] == str(tmp_path / "libmpi.so")


def test_handlers_of_a_python_program_can_be_restored(tmp_path, plan):
    code = """import signal
for number in signal.SIGTERM, signal.SIGRTMIN + 12:
    assert signal.signal(number, signal.SIG_IGN) == signal.SIG_DFL"""
    assert run(tmp_path / "w", plan, [os.path.realpath(sys.executable), "-c", code]) == (0, "")


def test_a_tool_behind_the_library_sees_the_exit_too(tmp_path, programs, plan):
    tool = compile_c(tmp_path, "tool_at_exit.c", "-shared", "-fPIC", name="libtool.so")
    assert run(tmp_path / "w", plan, [programs["ends"], "_exit"], (), f"{library()}:{tool}") == (0, "tool ")
    only(tmp_path / "w")


def test_nothing_is_allocated_at_the_end_of_a_program_without_mpi(tmp_path, plan):
    assert run(tmp_path / "w", plan, [compile_c(tmp_path, "ends_in_malloc.c", "-fno-builtin")]) == (0, "")
    only(tmp_path / "w")


def test_a_program_may_bind_itself_on_a_small_stack_and_name_too_large_a_mask(tmp_path, plan):
    assert run(tmp_path / "w", plan, [compile_c(tmp_path, "binds_itself.c", "-pthread")]) == (0, "")


def test_no_folder_is_read_by_functions_that_allocate():
    """They would run in a destructor, when the program's allocator may be gone."""
    names = subprocess.run(["nm", "-D", "--undefined-only", library()], capture_output=True, text=True, check=True)
    assert not {"opendir", "readdir", "fopen", "scandir"} & set(re.findall(r" U (\w+)", names.stdout))


def test_the_files_that_are_loaded_are_named(tmp_path, programs, plan):
    run(tmp_path / "w", plan, [programs["ends"], "return"])
    files = {Path(item["path"]).name: item for item in only(tmp_path / "w")["objects"]}
    own = programs["ends"].stat()
    assert (files["ends"]["bytes"], files["ends"]["modified_ns"]) == (own.st_size, own.st_mtime_ns)
    assert files["libplumbwitness.so"]["bytes"] == library().stat().st_size
    notes = subprocess.run(["readelf", "-n", programs["ends"]], capture_output=True, text=True, check=True).stdout
    assert files["ends"]["build_id"] == re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
    assert any(name.startswith("libc.so") for name in files)


@pytest.mark.parametrize("way", ["error", "call", "abort"])
def test_a_program_that_ends_without_its_handlers_leaves_no_witness(tmp_path, programs, plan, way):
    run(tmp_path / "w", plan, [programs["ends"], way])
    assert list((tmp_path / "w").iterdir()) == []


def test_a_relative_folder_survives_chdir(tmp_path, programs, plan):
    folder = tmp_path / "w"
    folder.mkdir()
    run(folder, plan, ["env", "PLUMB_WITNESS_DIR=w", programs["ends"], "chdir"], cwd=tmp_path)
    only(folder)


def test_the_environment_may_change_after_the_start(tmp_path, programs, plan):
    run(tmp_path / "w", plan, [programs["ends"], "environment"])
    seen = only(tmp_path / "w")
    assert seen["plan"] == plan
    assert seen["rank"] == 0


def test_the_types_have_every_member_of_the_file(tmp_path, programs, plan):
    run(tmp_path / "w", plan, [programs["memory"], "keep"])
    (file,) = (tmp_path / "w").glob("*.json")
    seen, written = only(tmp_path / "w"), json.loads(file.read_text())
    assert {"device_variables": {}, **seen} == {"others": [], **written}
    kept = ("memory", "usage")  # in records as they are
    assert json.dumps([seen[name] for name in kept]) == json.dumps([written[name] for name in kept])


def test_any_thread_name_is_valid_json(tmp_path, programs, plan):
    run(tmp_path / "w", plan, [programs["ends"], "name"])
    assert only(tmp_path / "w")["threads"][0]["name"] == 'a"b\\\n)é\xff('


def test_without_its_pid_the_library_is_silent(tmp_path, programs):
    around = {"LD_PRELOAD": str(library()), "PLUMB_WITNESS_DIR": str(tmp_path)}
    for pid in ("", "0", "-7", "nonsense"):
        assert subprocess.call([programs["ends"], "return"], env={**around, "PLUMB_WITNESS_PID": pid}) == 4
    assert [file.name for file in tmp_path.iterdir()] == []


def test_without_a_binder_each_process_writes_and_nothing_else_changes(tmp_path, programs):
    around = {"LD_PRELOAD": str(library()), "PATH": os.environ["PATH"]}
    shell = ["sh", "-c", f"{programs['ends']} return; {programs['ends']} return; trap", "sh"]
    for folder, documents in ((tmp_path / "w", 3), (tmp_path / "gone", 0)):
        if documents:
            folder.mkdir()
        done = subprocess.run(
            shell, env={**around, "PLUMB_WITNESS_DIR": str(folder)}, capture_output=True, text=True, check=True
        )
        assert "plumbwitness" not in done.stderr
        seen = [json.loads(file.read_text()) for file in folder.glob("*.json")]
        assert [document["root"] for document in seen] == [0] * documents
    caught = "import signal; print(signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGRTMIN + 12))"
    for folder in ("", str(tmp_path / "w")):
        around["PLUMB_WITNESS_DIR"] = folder
        assert subprocess.check_output([sys.executable, "-c", caught], env=around) == b"0 0\n"


def test_a_folder_that_is_gone_is_one_line_and_no_other_harm(tmp_path, programs, plan):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "gone", tmp_path / "file"):
        command = ["env", f"PLUMB_WITNESS_DIR={folder}", programs["ends"], "return"]
        status, stderr = run(tmp_path / "w", plan, command)
        assert status == 4
        lines = [line for line in stderr.splitlines() if line.startswith("plumbwitness: cannot write ")]
        assert len(lines) == 1
        assert lines[0].startswith(f"plumbwitness: cannot write {folder}/")
        assert stderr.count("\n") == 2, "the program's own line and this one"


def test_a_limit_on_the_size_of_files_is_one_line_and_no_other_harm(tmp_path, programs, plan):
    """Not SIGXFSZ, by which a program ends that wrote less than its limit itself."""
    command = ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", programs["ends"], "return"]
    status, stderr = run(tmp_path / "w", plan, command)
    assert status == 4
    ours, line, *rest = stderr.splitlines()
    assert (ours, rest) == ("handler ran", [])
    assert line.startswith(f"plumbwitness: cannot write {tmp_path}/w/")
    assert line.endswith(": File too large")
    assert list((tmp_path / "w").iterdir()) == []


def test_a_folder_without_permission_is_one_line_and_no_other_harm(programs, plan):
    with tempfile.TemporaryDirectory(prefix="plumb-") as name:  # open to others, as pytest's own folders are not
        folder = Path(name)
        folder.chmod(0o755)
        closed = folder / "w"
        copies = [Path(shutil.copy(file, folder)) for file in (library(), programs["ends"])]
        closed.mkdir()
        closed.chmod(0o555)
        drop = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
        around = {**os.environ, "PLUMB_WITNESS_DIR": str(closed), "LD_PRELOAD": str(copies[0])}
        command = [*drop, "sh", "-c", 'export PLUMB_WITNESS_PID=$$; exec "$@"', "sh", copies[1], "return"]
        done = subprocess.run(command, env=around, capture_output=True, text=True, check=False)
        assert done.returncode == 4
        assert "plumbwitness: cannot write" in done.stderr
        assert "Permission denied" in done.stderr
        assert list(closed.iterdir()) == []


@pytest.mark.parametrize(("variables", "expected"), [
    ({"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_SIZE": "8"}, (5, 1, 8)),
    ({"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "SLURM_PROCID": "0"}, (5, 1, 8)),
    ({"PMIX_RANK": "2", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "4"}, (2, 0, 4)),
    ({"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_NTASKS": "4"}, (3, 1, 4)),
    ({"FLUX_TASK_RANK": "3", "FLUX_TASK_LOCAL_ID": "1", "FLUX_JOB_SIZE": "4"}, (3, 1, 4)),
    ({"PALS_RANKID": "3", "PALS_LOCAL_RANKID": "1"}, (3, 1, -1)),
    ({"PMI_RANK": "", "SLURM_PROCID": "x7"}, (-1, -1, -1)),
])  # fmt: skip
def test_every_launcher_names_the_rank(tmp_path, programs, variables, expected):
    run(tmp_path / "w", None, [programs["ends"], "return"], {"PLUMB_PLAN": "nonsense", **variables})
    seen = only(tmp_path / "w")
    assert (seen["rank"], seen["local_rank"], seen["size"]) == expected
    assert seen["plan"] is None


MPI_MAIN = """
int MPI_Init(void), MPI_Finalize(void);
int main(void) { MPI_Init(); return MPI_Finalize(); }
"""


@pytest.mark.parametrize("how", ["linked", "loaded"])
def test_helper_threads_that_end_in_finalize_are_seen(tmp_path, plan, how):
    shared = ["-shared", "-fPIC", "-pthread", "-O2"]
    library_flags = with_mpi(tmp_path)
    compile_c(tmp_path, "mpi_with_helper.c", *shared, name="libmpi.so")
    if how == "linked":
        command = [compile_c(tmp_path, MPI_MAIN, *library_flags, name="main")]
    else:
        module = compile_c(tmp_path, "mpi_module.c", *shared, *library_flags, name="module.so")
        command = [compile_c(tmp_path, "loads_module.c", name="loader"), module]
    assert run(tmp_path / "w", plan, command) == (0, "")
    seen = only(tmp_path / "w")
    assert sorted(thread["name"] for thread in seen["threads"]) == sorted([command[0].name, "progress"])


# --- another machine's memory, shown to a library built for the test ----------------------------------------


SHARED = ("device_variables", "json", "next_function", "preload", "procfile", "rank_variables")


def variant(tmp_path, *definitions):
    """The library with other files in place of /proc."""
    home = paths.root() / "custom-kernels"
    shared = home / "common"
    sources = [*(home / "witness").glob("*.c"), *(shared / f"{name}.c" for name in SHARED)]
    output = tmp_path / "libvariant.so"
    flags = "-std=c17 -O1 -g -fPIC -shared -D_GNU_SOURCE -fvisibility=hidden -fno-builtin -ftls-model=initial-exec"
    checks = "-fsanitize=undefined -static-libubsan -fno-sanitize-recover=all"
    definitions = ['-DPRELOAD_LIBRARY="variant"', *definitions]
    command = ["gcc", *flags.split(), *checks.split(), *definitions, f"-I{shared}", *sources, "-o", output, "-ldl"]
    subprocess.run(command, check=True)
    return output


NUMA_MAPS = r"""
00400000 bind:0 file=/bin/stream mapped=900 mapmax=3 N0=900 kernelpagesize_kB=4
10000000 bind:0 anon=1000 dirty=1000 N0=600 N3=400 kernelpagesize_kB=4
20000000 bind:0 heap anon=255 dirty=255 N1=255 kernelpagesize_kB=4
30000000 bind:0 file=/anon_hugepage\040(deleted) huge anon=3 dirty=3 N2=3 kernelpagesize_kB=2048
40000000 bind:0 file=/dev/zero\040(deleted) dirty=300 active=0 N4=300 kernelpagesize_kB=4
50000000 bind:0 file=/dev/shm/mpi.seg\040(deleted) dirty=4000 N5=4000 kernelpagesize_kB=4
60000000 bind:0 file=/SYSV00000000\040(deleted) dirty=4000 N5=4000 kernelpagesize_kB=4
70000000 bind:0 file=/lib/written\040N7=5 anon=700 dirty=700 N6=700 kernelpagesize_kB=4
80000000 bind:0 file=/lib/mixed anon=300 dirty=300 N7=900 kernelpagesize_kB=4
90000000 prefer=N1 Nonsense= N=5 N9999=4000 N-1=4000 kernelpagesize_kB=x
a0000000 bind:0 file=LONG anon=512 dirty=512 N0=512 kernelpagesize_kB=4
b0000000 bind:0 stack:77 anon=256 N1023=256 kernelpagesize_kB=4""".replace("LONG", "/" + "x" * 16000)


def test_numa_maps_of_a_large_machine(tmp_path, programs, plan):
    (tmp_path / "numa_maps").write_text(NUMA_MAPS.lstrip())
    other = variant(tmp_path, f'-DWITNESS_NUMA_MAPS="{tmp_path}/numa_maps"')
    assert run(tmp_path / "w", plan, [programs["ends"], "return"], preload=other)[0] == 4
    found = only(tmp_path / "w")["memory"]
    huge = 3 * (2 << 20) // os.sysconf("SC_PAGESIZE")
    assert found["nodes"] == {"0": 600 + 512, "2": huge, "3": 400, "4": 300, "6": 700, "1023": 256}
    reasons = compare(node_plan(plan), [only(tmp_path / "w")], 1)
    assert f"400 of {600 + 512 + huge + 400 + 300 + 700 + 256} pages of rank 0" in reasons[1]


def test_without_numa_maps_the_kernel_is_asked(tmp_path, programs, plan):
    other = variant(tmp_path, '-DWITNESS_NUMA_MAPS="/proc/gone"')
    for way in ("keep", "keep-shared"):
        assert run(tmp_path / way, plan, [programs["memory"], way], preload=other) == (0, "")
        found = only(tmp_path / way)["memory"]
        assert found["source"] == "move_pages"
        assert "unavailable" not in found
        assert 8 * MIB_PAGES <= sum(found["nodes"].values()) <= 8 * MIB_PAGES + 4
    name = f"/dev/shm/plumb-test-{os.getpid()}"
    assert run(tmp_path / "segment", plan, [programs["memory"], "segment", name], preload=other) == (0, "")
    assert only(tmp_path / "segment")["memory"]["nodes"] == {}


@pytest.mark.parametrize(("file", "fault"), [("/proc/gone", "No such file or directory"), ("", "Is a directory")])
def test_memory_that_cannot_be_read_to_its_end_is_unproven(tmp_path, programs, plan, file, fault):
    """A folder can be opened, but not read."""
    file = file or tmp_path
    other = variant(tmp_path, f'-DWITNESS_NUMA_MAPS="{file}"', f'-DWITNESS_MAPS="{file}"')
    assert run(tmp_path / "w", plan, [programs["memory"], "keep"], preload=other) == (0, "")
    seen = only(tmp_path / "w")
    assert seen["memory"]["nodes"] == {}
    unknown = f"NUMA nodes of the memory are unknown: numa_maps: {fault}, move_pages: {fault}"
    assert seen["memory"]["unavailable"] == unknown
    (reason,) = compare(node_plan(plan), [seen], 1)
    assert reason.startswith("memory of rank 0 on")


def test_undefined_behaviour_is_none(tmp_path, programs):
    other = variant(tmp_path)
    plan = rank_plan([[cpu] for cpu in cpus(2)])
    assert run(tmp_path / "w", plan, [programs["openmp"]], preload=other) == (0, "")
    assert compare(node_plan(plan), [only(tmp_path / "w")], 1) == []
    for way in ("munmap-parts", "mremap", "many", "realloc"):
        assert run(tmp_path / way, plan, [programs["memory"], way], preload=other) == (0, "")


def test_the_document_is_one_line_of_json(tmp_path, programs, plan):
    run(tmp_path / "w", plan, [programs["ends"], "return"])
    (file,) = (tmp_path / "w").iterdir()
    assert file.name == f"{os.uname().nodename}.{only(tmp_path / 'w')['pid']}.json"
    assert file.read_text().count("\n") == 1
    assert json.loads(file.read_text())["plan"] == plan
