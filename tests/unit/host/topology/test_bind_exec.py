"""plumb-bind for real on this host: binding, memory policy, environment, and every launcher's variables."""

import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import processes
import pytest
from kernel_stack import fake_cuda
from plans import resolve
from witness_helper import compare
from witnesses import read

from plumbline.base import paths
from plumbline.host.collector import Reader

REPORT = """
import json, os
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
maps = open("/proc/self/numa_maps").read() if os.path.exists("/proc/self/numa_maps") else ""
print(json.dumps({"affinity": sorted(os.sched_getaffinity(0)), "list": status["Cpus_allowed_list"].strip(),
                  "env": dict(os.environ), "pid": os.getpid(), "maps": maps}))
"""
CLEAN = {"PATH": os.environ["PATH"]}
CPUS = sorted(os.sched_getaffinity(0))
BARRIER = struct.Struct("=II")
needs_two = pytest.mark.skipif(len(CPUS) < 2, reason="this host leaves only one CPU to the test")


def start(*options: str, env: dict[str, str] | None = None, prefix: tuple[str, ...] = ()) -> Any:
    assert paths.binder().is_file(), "plumb-bind is not built: make setup"
    command = [*prefix, str(paths.binder()), *options, "--", sys.executable, "-c", REPORT]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=CLEAN | (env or {}), timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def refusal(*options: str, env: dict[str, str]) -> str:
    command = [str(paths.binder()), *options, "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=CLEAN | env, timeout=60)
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1
    return done.stderr.strip()


def local_rank(env: dict[str, str], placement: str = "none") -> int:
    plan = json.loads(start("--placement", placement, env=env)["env"]["PLUMB_PLAN"])
    return int(plan["local_rank"])


def test_affinity_and_environment_are_those_of_the_plan():
    plan = resolve("node")
    found = start("--placement", "node")
    (rank,) = plan["ranks"]
    assert found["affinity"] == rank["cpus"]
    assert json.loads(found["env"]["PLUMB_PLAN"]) == rank
    assert found["env"]["OMP_NUM_THREADS"] == str(plan["threads"])
    assert found["env"]["OMP_PLACES"] == ",".join(f"{{{place[0]}}}" for place in rank["places"])
    assert found["env"]["OMP_PROC_BIND"] == "close"


def test_the_first_rank_alone_reads_the_input(tmp_path):
    (tmp_path / "in.txt").write_text("a word\n")
    (tmp_path / "out").mkdir()
    command = [str(paths.binder()), "--placement", "none", "--output", "out", "--input", "in.txt", "--", "cat"]
    read = []
    for rank in ("0", "1"):
        env = CLEAN | {f"OMPI_COMM_WORLD_{name}": rank for name in ("RANK", "LOCAL_RANK")}
        env |= {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        given = {"stdin": subprocess.PIPE, "cwd": tmp_path, "env": env, "timeout": 60, "check": True}
        subprocess.run(command, **given)
        (file,) = (tmp_path / "out").iterdir()
        read.append(file.read_text())
        file.unlink()
    assert read == ["a word\n", ""]
    assert refusal("--placement", "none", "--input", "absent", env={}) == (
        "plumb-bind: standard input absent: No such file or directory"
    )


@needs_two
def test_each_rank_gets_its_own_core():
    plan = resolve("core", ranks=2)
    for number in (0, 1):
        env = {"OMPI_COMM_WORLD_LOCAL_RANK": str(number), "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        found = start("--placement", "core", env=env)
        assert found["affinity"] == plan["ranks"][number]["cpus"]
        assert found["list"] == str(plan["ranks"][number]["cpus"][0])
        assert json.loads(found["env"]["PLUMB_PLAN"]) == plan["ranks"][number]


@needs_two
def test_a_pair_of_threads_is_one_rank_on_both_cpus():
    last, first = CPUS[1], CPUS[0]
    found = start("--placement", f"pair:{last},{first}", "--threads", "2")
    assert found["affinity"] == [first, last]
    assert found["env"]["OMP_NUM_THREADS"] == "2"
    assert found["env"]["OMP_PLACES"] == f"{{{last}}},{{{first}}}"


GPU = """\
<object type="Bridge" gp_index="9{n}0" bridge_type="0-1" depth="0" bridge_pci="0000:[{n}0-{n}1]">
 <object type="PCIDev" gp_index="9{n}1" pci_busid="0000:{n}0:01.0"
         pci_type="0302 [{maker}:20b0] [0000:0000] 00" pci_link_speed="0"/>
</object>
"""


def with_gpus(folder: Path, *makers: str) -> dict[str, str]:
    """The environment in which hwloc finds GPUs on this host, each on a bus of its own."""
    xml = folder / "host.xml"
    subprocess.run([paths.binder(), "--export-topology", xml], check=True, timeout=60)
    gpus = "".join(GPU.format(n=number, maker=maker) for number, maker in enumerate(makers, 1))
    before, end, after = xml.read_text(encoding="utf-8").rpartition("</object>")
    xml.write_text(before + gpus + end + after, encoding="utf-8")
    return {"HWLOC_XMLFILE": str(xml), "HWLOC_THISSYSTEM": "1"}


def rank_of(number: int, size: int) -> dict[str, str]:
    return {"OMPI_COMM_WORLD_LOCAL_RANK": str(number), "OMPI_COMM_WORLD_LOCAL_SIZE": str(size)}


@needs_two
def test_a_rank_sees_its_gpu_alone(tmp_path):
    env = {
        **with_gpus(tmp_path, "10de", "10de"),
        **rank_of(1, 2),
        "CUDA_VISIBLE_DEVICES": "0,1",
        "CUDA_DEVICE_ORDER": "FASTEST_FIRST",
    }
    found = start("--placement", "gpu", env=env)
    assert {name: value for name, value in found["env"].items() if name.startswith("CUDA")} == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "1",
    }
    plan = json.loads(found["env"]["PLUMB_PLAN"])
    assert plan["devices"] == ["0000:20:01.0"]
    assert found["affinity"] == plan["cpus"] == [CPUS[len(CPUS) // 2]]


def test_variables_of_another_maker_do_not_hide_a_gpu(tmp_path):
    env = {**with_gpus(tmp_path, "1002"), **rank_of(0, 1), "HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "0"}
    found = start("--placement", "gpu", env=env)["env"]
    assert {name for name in found if "VISIBLE" in name} == {"ROCR_VISIBLE_DEVICES"}
    assert found["ROCR_VISIBLE_DEVICES"] == "0"


def test_the_lists_of_two_makers_name_the_gpus_of_each(tmp_path):
    env = {**with_gpus(tmp_path, "10de", "10de", "1002"), **rank_of(0, 1), "CUDA_VISIBLE_DEVICES": "0,1"}
    found = start("--placement", "gpu", env={**env, "ROCR_VISIBLE_DEVICES": "0"})["env"]
    assert {name: value for name, value in found.items() if "VISIBLE" in name} == {"CUDA_VISIBLE_DEVICES": "0"}
    assert refusal("--placement", "gpu", env={**env, "HIP_VISIBLE_DEVICES": "0,1"}).startswith(
        "plumb-bind: placement gpu: HIP_VISIBLE_DEVICES is '0,1' already, not all of this host's 1 GPUs"
    )


@pytest.mark.parametrize("given", ["1", "0", "1,0", "0,1,2", "0,1,", "", "GPU-8932f937"])
def test_a_part_of_the_gpus_is_refused(tmp_path, given):
    env = {**with_gpus(tmp_path, "10de", "10de"), **rank_of(0, 1), "CUDA_VISIBLE_DEVICES": given}
    assert refusal("--placement", "gpu", env=env) == (
        f"plumb-bind: placement gpu: CUDA_VISIBLE_DEVICES is '{given}' already, not all of this host's 2 GPUs: "
        "ask for whole nodes"
    )
    start("--placement", "core", env=env)  # no other placement minds


OTHER_GPU = "rank 0 on {host} had CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=7, planned for 0000:10:01.0: "


@pytest.mark.parametrize(("program", "reason"), [
    (("true",), ""),
    (("env", "CUDA_VISIBLE_DEVICES=7", "true"), OTHER_GPU),
    (("env", "HIP_VISIBLE_DEVICES=0", "true"), "rank 0 on {host} had CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE"),
    ((sys.executable, "-c", "import os; os.environ['CUDA_VISIBLE_DEVICES'] = '7'"), OTHER_GPU),
    ((sys.executable, "-c", "import os; os.environ.clear()"), ""),
])  # fmt: skip
def test_the_witness_sees_which_gpu_a_rank_was_left(tmp_path, program, reason):
    env = CLEAN | with_gpus(tmp_path, "10de") | rank_of(0, 1)
    folder = tmp_path / "witness"
    folder.mkdir()
    command = [paths.binder(), "--placement", "gpu", "--threads", "1", "--witness", folder, "--", *program]
    subprocess.run(command, check=True, env=env, timeout=60)
    plan = json.loads(next(folder.iterdir()).read_text(encoding="utf-8"))["plan"]
    found, faults = read(folder)
    reasons = compare({"ranks": [plan]}, found, 1)
    assert not faults
    assert [line.startswith(reason.format(host=socket.gethostname())) for line in reasons] == [True] * bool(reason)


USES_GPU = """
import ctypes, sys
if "open" in sys.argv:
    driver, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    assert driver.cuInit(0) == driver.cuDeviceGet(ctypes.byref(device), 0) == 0
if "compute" in sys.argv:
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == driver.cuCtxSetCurrent(context) == 0
ctypes.CDLL(None).MPI_Finalize()
"""


@pytest.mark.parametrize(("does", "address", "said"), [
    (("open", "compute"), "0000:10:01.0", []),
    (("open", "compute"), "0000:C1:00.0", ["rank 0 on {host} computed on the GPU 0000:c1:00.0, says its driver, "]),
    (("open",), "0000:C1:00.0", []),
    ((), "0000:C1:00.0", []),
])  # fmt: skip
def test_the_witness_asks_the_driver_which_gpu_was_used(tmp_path, does, address, said):
    env = CLEAN | with_gpus(tmp_path, "10de") | rank_of(0, 1) | fake_cuda(tmp_path) | {"FAKE_CUDA_ADDRESS": address}
    folder = tmp_path / "witness"
    folder.mkdir()
    program = (sys.executable, "-c", USES_GPU, *does)
    command = [paths.binder(), "--placement", "gpu", "--threads", "1", "--witness", folder, "--", *program]
    subprocess.run(command, check=True, env=env, timeout=60)
    (seen,), faults = read(folder)
    assert not faults
    assert seen.get("gpu_address") == (address.lower() if "compute" in does else None)
    reasons = compare({"ranks": [seen["plan"]]}, [seen], 1)
    assert [line.partition("planned")[0] for line in reasons] == [
        text.format(host=socket.gethostname()) for text in said
    ]


def test_the_number_of_ranks_must_be_known(tmp_path):
    env = {**with_gpus(tmp_path, "10de"), "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
    wanted = "the launcher reports the local rank but not the number of ranks, which decides the cores of each rank"
    assert refusal("--placement", "gpu", env=env) == f"plumb-bind: placement gpu: {wanted} on this host"


def test_memory_policy_is_inherited_by_the_program():
    def policies(*memory: str) -> set[str]:
        lines = start("--placement", "core", *memory)["maps"].splitlines()
        if not lines:
            pytest.skip("this kernel has no /proc/self/numa_maps")
        return {line.split()[1] for line in lines if "[heap]" in line or "anon" in line}

    assert policies("--memory", "local") == {"bind:0"}
    assert policies("--memory", "node:0") == {"bind:0"}
    assert policies("--memory", "firsttouch") == {"default"}
    assert {policy.partition(":")[0] for policy in policies("--memory", "interleave")} == {"interleave"}


def test_competing_variables_are_removed():
    competing = {
        "GOMP_CPU_AFFINITY": "0-63",
        "KMP_AFFINITY": "scatter",
        "KMP_HW_SUBSET": "1s",
        "OMP_PLACES": "sockets",
        "OMP_PROC_BIND": "false",
        "OMP_NUM_THREADS": "99",
        "OMP_THREAD_LIMIT": "1",
        "OMP_DYNAMIC": "true",
    }
    env = start("--placement", "core", env=competing)["env"]
    assert {name: env.get(name) for name in competing} == {
        **dict.fromkeys(competing),
        "OMP_PLACES": f"{{{resolve('core')['ranks'][0]['cpus'][0]}}}",
        "OMP_PROC_BIND": "close",
        "OMP_NUM_THREADS": "1",
    }


def test_none_leaves_everything_alone_but_the_number_of_threads():
    env = {"OMP_PLACES": "sockets", "KMP_AFFINITY": "scatter"}
    found = start("--placement", "none", "--threads", "3", env=env)
    assert found["affinity"] == CPUS
    assert found["env"]["OMP_NUM_THREADS"] == "3"
    assert found["env"]["OMP_PLACES"] == "sockets"
    assert found["env"]["KMP_AFFINITY"] == "scatter"
    assert "OMP_PROC_BIND" not in found["env"]
    plan = json.loads(found["env"]["PLUMB_PLAN"])
    assert plan == {"local_rank": 0, "cpus": CPUS, "places": [], "mem": {"policy": "none", "nodes": []}}


@needs_two
def test_affinity_on_entry_is_the_allowed_set():
    last = CPUS[-1]
    taskset = ("taskset", "-c", str(last))
    assert start("--placement", "core", prefix=taskset)["affinity"] == [last]
    assert start("--placement", "none", prefix=taskset)["affinity"] == [last]
    command = [*taskset, str(paths.binder()), "--placement", "core", "--ranks", "2", "--print"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2, done
    assert done.stderr.strip().endswith(f"2 ranks of 1 thread asked, 1 cores on this host with CPUs {last} allowed")


LAUNCHERS: dict[str, dict[str, str]] = {
    "open-mpi": {"OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_RANK": "7"},
    "mvapich2": {"MV2_COMM_WORLD_LOCAL_RANK": "1", "MV2_COMM_WORLD_LOCAL_SIZE": "2"},
    "mpich-hydra": {"MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2", "PMI_RANK": "7", "PMI_SIZE": "8"},
    "intel-mpi": {"MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2", "I_MPI_PIN": "0", "PMI_RANK": "1"},
    "cray-pmi": {"PMI_LOCAL_RANK": "1", "PMI_LOCAL_SIZE": "2", "PMI_RANK": "3"},
    "pals": {"PALS_LOCAL_RANKID": "1", "PALS_LOCAL_SIZE": "2"},
    "flux-one-node": {"FLUX_TASK_LOCAL_ID": "1", "FLUX_JOB_SIZE": "2", "FLUX_JOB_NNODES": "1"},
    "slurm-step": {"SLURM_LOCALID": "1", "SLURM_STEP_TASKS_PER_NODE": "1(x3),2", "SLURM_NODEID": "3"},
    "slurm-job": {"SLURM_LOCALID": "1", "SLURM_TASKS_PER_NODE": "2(x3),1", "SLURM_NODEID": "2"},
    "slurm-uniform": {"SLURM_LOCALID": "1", "SLURM_STEP_TASKS_PER_NODE": "2(x4)"},
    "slurm-pmix": {"SLURM_LOCALID": "1", "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_NODEID": "0", "PMIX_RANK": "1"},
    "open-mpi-in-slurm": {
        "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        "SLURM_LOCALID": "0",
        "SLURM_STEP_TASKS_PER_NODE": "1",
        "SLURM_NODEID": "0",
    },
}


@pytest.mark.parametrize("env", LAUNCHERS.values(), ids=LAUNCHERS)
def test_local_rank_of_every_launcher(env):
    assert local_rank(env) == 1


@needs_two
@pytest.mark.parametrize("env", LAUNCHERS.values(), ids=LAUNCHERS)
def test_local_size_of_every_launcher(env):
    """Seen from outside: a pair is refused unless there are two ranks, and one node cannot hold a third."""
    assert local_rank(env, f"pair:{CPUS[0]},{CPUS[1]}") == 1
    line = refusal("--placement", "numa:0", env=env)
    assert line == "plumb-bind: placement numa:0: 2 ranks asked, this placement has one on this host"


def test_without_a_launcher_it_is_rank_0_of_1():
    assert local_rank({}, "core") == 0
    line = refusal("--placement", f"pair:{CPUS[0]},{CPUS[-1] + 1}", env={})
    assert "1 rank asked, a pair has two" in line


def test_a_batch_script_is_not_a_task():
    """Slurm gives a batch script the variables of a task; what it starts itself is still alone."""
    env = {"ENVIRONMENT": "BATCH", "SLURM_LOCALID": "0", "SLURM_TASKS_PER_NODE": "4", "SLURM_NODEID": "0"}
    assert start("--placement", "numa:0", env=env)["affinity"]
    assert "4 ranks asked" in refusal("--placement", "numa:0", env=env | {"SLURM_STEP_TASKS_PER_NODE": "4"})


UNKNOWN_SIZE = {
    "flux-two-nodes": {"FLUX_TASK_LOCAL_ID": "0", "FLUX_JOB_SIZE": "5", "FLUX_JOB_NNODES": "2"},
    "pals": {"PALS_LOCAL_RANKID": "0"},
    "open-mpi": {"OMPI_COMM_WORLD_LOCAL_RANK": "0"},
    "slurm-uneven": {"SLURM_LOCALID": "0", "SLURM_STEP_TASKS_PER_NODE": "2,1"},
    "slurm-bare": {"SLURM_LOCALID": "0"},
}


@pytest.mark.parametrize("env", UNKNOWN_SIZE.values(), ids=UNKNOWN_SIZE)
def test_unknown_local_size_matters_only_where_the_placement_needs_it(env):
    assert local_rank(env, "core") == 0
    assert start("--placement", "numa", "--threads", "1", env=env)["env"]["OMP_NUM_THREADS"] == "1"
    line = refusal("--placement", "numa", env=env)
    assert line == (
        "plumb-bind: placement numa: the launcher reports the local rank but not the number of ranks, which the "
        "default number of threads depends on: give --threads on this host"
    )
    assert "the number of ranks, which the share of a rank depends on" in refusal("--placement", "spread", env=env)


@pytest.mark.parametrize(("env", "line"), [
    (
        {"PMIX_RANK": "3", "PMIX_NAMESPACE": "x"},
        "environment: a launcher set PMIX_RANK=3, but no variable reports the local rank on this node",
    ),
    (
        {"PMI_RANK": "0", "PMI_SIZE": "2"},
        "environment: a launcher set PMI_RANK=0, but no variable reports the local rank on this node",
    ),
    ({"MPI_LOCALRANKID": "x", "MPI_LOCALNRANKS": "2"}, "environment: MPI_LOCALRANKID='x' is not a number"),
    ({"MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "two"}, "environment: MPI_LOCALNRANKS='two' is not a number"),
    (
        {"MPI_LOCALRANKID": "2", "MPI_LOCALNRANKS": "2"},
        "environment: MPI_LOCALRANKID=2, but there are 2 ranks on this node",
    ),
    *(
        (
            {"SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_STEP_TASKS_PER_NODE": tasks},
            f"environment: SLURM_STEP_TASKS_PER_NODE='{tasks}' is not a list of tasks per node",
        )
        for tasks in ("", "two", "2(x", "2(x3", "2,", "2(x3)1", "2;1")
    ),
])  # fmt: skip
def test_an_environment_that_makes_no_sense(env, line):
    assert refusal("--placement", "core", env=env) == f"plumb-bind: {line}"


def test_one_rank_alone_under_plain_pmi():
    assert local_rank({"PMI_RANK": "0", "PMI_SIZE": "1"}, "core") == 0


def test_more_ranks_than_cores_is_an_error_in_every_rank():
    size = len(CPUS) + 1
    env = {"MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": str(size)}
    assert f"{size} ranks of 1 thread asked" in refusal("--placement", "compact", env=env)


def test_witness_is_announced_and_preloaded(tmp_path):
    library = tmp_path / "lib.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "/dev/null"], check=True)
    env = {"PLUMB_WITNESS_LIB": str(library)}
    found = start("--placement", "core", "--witness", str(tmp_path), env=env)
    assert found["env"]["PLUMB_WITNESS_DIR"] == str(tmp_path)
    assert found["env"]["PLUMB_WITNESS_PID"] == str(found["pid"])
    assert found["env"]["LD_PRELOAD"] == str(library)
    before = {"LD_PRELOAD": str(library)}
    found = start("--placement", "core", "--witness", str(tmp_path), env=env | before)
    assert found["env"]["LD_PRELOAD"] == f"{library}:{library}"


def test_hwloc_is_not_left_in_the_environment():
    assert not [name for name in start("--placement", "core")["env"] if name.startswith("HWLOC")]
    kept = start("--placement", "core", env={"HWLOC_PLUGINS_PATH": "/mine"})["env"]
    assert kept["HWLOC_PLUGINS_PATH"] == "/mine"


def test_another_machine_in_hwlocs_variables_is_refused():
    env = {"HWLOC_XMLFILE": str(paths.root() / "tests/data/topologies/ranger-4x4.xml")}
    assert "name another machine" in refusal("--placement", "core", env=env)


def test_exported_topology_can_be_planned_on(tmp_path):
    file = tmp_path / "host.xml"
    subprocess.run([paths.binder(), "--export-topology", file], check=True, timeout=60)
    assert resolve("core", topology=file)["ranks"] == resolve("core")["ranks"]


def test_the_exit_status_is_the_programs():
    command = [str(paths.binder()), "--placement", "core", "--", "sh", "-c", "exit 42"]
    assert subprocess.run(command, check=False, timeout=60).returncode == 42


PROXY = """
import ctypes, subprocess, sys
ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
rank = subprocess.Popen(sys.argv[2:])
print(rank.pid, flush=True)
rank.wait()
"""


@pytest.mark.parametrize(("name", "goes_on"), [("hydra_pmi_proxy", False), ("prted", True)])
def test_a_rank_ends_with_a_proxy_that_leaves_ranks_behind(name, goes_on):
    """The other launchers end their ranks, and have threads that end before them."""
    program = [str(paths.binder()), "--placement", "none", "--", "sleep", "600"]
    with subprocess.Popen([sys.executable, "-c", PROXY, name, *program], stdout=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout is not None
        rank = int(proxy.stdout.readline())
        ended = os.pidfd_open(rank)
        try:
            comm = Path(f"/proc/{rank}/comm")
            processes.wait_until(lambda: comm.read_text() == "sleep\n", comm.read_text, of=proxy)
            proxy.kill()
            proxy.wait()
            assert select.select([ended], [], [], 1 if goes_on else 120)[0] == ([] if goes_on else [ended])
        finally:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(ended, signal.SIGKILL)
            os.close(ended)


def test_ranks_at_a_barrier_begin_when_the_last_one_is_there(tmp_path):
    file = tmp_path / "barrier"
    file.write_bytes(BARRIER.pack(2, 0))
    words = [str(paths.binder()), "--placement", "none", "--barrier", str(file), "--", "echo", "here"]
    first = subprocess.Popen(words, stdout=subprocess.PIPE, env=CLEAN)
    while BARRIER.unpack(file.read_bytes())[1] < 1:
        assert first.poll() is None
    assert not select.select([first.stdout], [], [], 0.1)[0]
    assert subprocess.run(words, capture_output=True, env=CLEAN, check=True, timeout=60).stdout == b"here\n"
    assert first.communicate(timeout=60) == (b"here\n", None)


def test_a_barrier_that_is_none_is_refused(tmp_path):
    (tmp_path / "short").write_bytes(b"1")
    for name, why in (("none", "No such file or directory"), ("short", "not a file of 8 bytes")):
        words = [str(paths.binder()), "--placement", "none", "--barrier", str(tmp_path / name), "--", "true"]
        done = subprocess.run(words, capture_output=True, text=True, env=CLEAN, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (2, f"plumb-bind: barrier {tmp_path / name}: {why}\n")


def test_no_program_begins_on_a_processor_that_lacks_its_instructions():
    has = sorted(Reader().flags())
    known, more = ",".join(has), f"{has[-1]},{has[0]}x"
    assert start("--placement", "none", "--needs", known)["env"]
    lacking = f"the program was compiled for another processor: this node lacks {has[0]}x (PLUMB_CPU)"
    assert refusal("--placement", "core", "--needs", more, env={}) == f"plumb-bind: {socket.gethostname()}: {lacking}"


@pytest.mark.parametrize("placement", ["none", "core"])
def test_a_rank_that_no_parent_bound_is_bound_to_the_allowed_cpus(placement):
    assert start("--placement", placement, "--allowed", str(CPUS[-1]))["affinity"] == CPUS[-1:]
