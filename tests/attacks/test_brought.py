"""Files that are data: a record that anybody may have written never says what code is loaded, or which program runs."""

import contextlib

import pytest
import samples
import stack_manifest

from plumbline import site
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.extras.profiles import command
from plumbline.extras.search.why import ends
from plumbline.gate import confirm
from plumbline.launch.prepare import refuse_build, variant_again
from plumbline.measure import driver, jobs
from plumbline.mpi import TABLE, loading
from plumbline.records import model, store
from plumbline.records.variant import checked
from plumbline.stacks import manifest as manifests
from plumbline.statistics.paired import PairedRule

#: of the loader, C library, shells, interpreters, tools and every MPI library: they load, or start, what they name
LOADING = """
LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH GCONV_PATH PATH HOME BASH_ENV ENV SHELLOPTS BASH_FUNC_ls%% PYTHONPATH PYTHONHOME
PYTHONSTARTUP PYTHONWARNINGS PYTHONUSERBASE PERL5OPT NODE_OPTIONS JAVA_TOOL_OPTIONS MPI4PY_LIBMPI OMP_TOOL_LIBRARIES
ACC_PROFLIB CUDA_INJECTION64_PATH NVTX_INJECTION64_PATH HSA_TOOLS_LIB KOKKOS_TOOLS_LIBS NCCL_NET_PLUGIN OPENSSL_CONF
HWLOC_PLUGINS_PATH IBV_DRIVERS RDMAV_DRIVERS FI_PROVIDER_PATH UCX_MODULE_DIR OPAL_PREFIX OPAL_PKGLIBDIR PMIX_PREFIX
PMIX_PKGLIBDIR PRTE_PREFIX OMPI_MCA_mca_base_component_path OMPI_MCA_mca_component_path OMPI_MCA_mca_base_param_files
OMPI_MCA_mca_base_env_list PMIX_MCA_pmix_mca_base_component_path OMPI_MCA_plm_rsh_agent PRTE_MCA_plm_ssh_agent
PRTE_MCA_prte_launch_agent OMPI_MCA_orte_fork_agent PRTE_MCA_odls_base_exec_agent HYDRA_LAUNCHER_EXEC
HYDRA_LAUNCHER_EXTRA_ARGS I_MPI_HYDRA_BOOTSTRAP_EXEC I_MPI_ROOT I_MPI_GTOOL I_MPI_PMI_LIBRARY I_MPI_OFI_LIBRARY
I_MPI_OFFLOAD_TOPOLIB I_MPI_JOB_TRACE_LIBS MPIR_CVAR_PMI_LIBRARY DARSHAN_PRELOAD
"""
#: what people set to try it
HONEST = """
OMP_NUM_THREADS OMP_PLACES KMP_BLOCKTIME MALLOC_ARENA_MAX GLIBC_TUNABLES PYTHONHASHSEED UCX_TLS UCX_NET_DEVICES
FI_PROVIDER FI_TCP_IFACE I_MPI_PIN I_MPI_FABRICS I_MPI_SHM I_MPI_DEBUG I_MPI_LIBRARY_KIND OMPI_MCA_btl
OMPI_MCA_btl_tcp_if_include OMPI_MCA_btl_sm_backing_directory OMPI_MCA_coll_hcoll_enable PMIX_MCA_gds
MPIR_CVAR_CH4_OFI_ENABLE_HMEM NCCL_DEBUG
MKL_NUM_THREADS OPENBLAS_CORETYPE DATA_PATH USER_AGENT MY_STATE_DIR coll_tuned_dynamic_rules_filename
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    for name in ("results", "stacks", "build"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    monkeypatch.setattr(site, "here", lambda: "local")
    (tmp_path / "stacks" / "openmpi").mkdir()
    manifests.save(stack_manifest.made("openmpi", "openmpi"))


@pytest.fixture
def launched(monkeypatch):
    """The variants that were launched."""
    found = []

    def run(variants, *words, **more):
        found.extend(variants)
        raise PlumbError("launched", "test")

    monkeypatch.setattr(driver, "run", run)
    return found


def planted(number=1, **changes):
    """A record, properly sealed, in the results folder."""
    variant = samples.variant(benchmark="osu_latency", **changes)
    made = samples.record(id=f"{number:012x}", variant=variant)
    store.write(store.session_file("local", f"s{number}"), [made])
    return model.convert(made)


@pytest.mark.parametrize("name", LOADING.split())
def test_a_record_sets_no_variable_by_which_code_is_loaded(name, launched, refused):
    planted(environment={name: "/tmp/evil.so"})
    said = refused(2, "reproduce", "000000000001")
    assert f"a file may not say what code is loaded: {name}=/tmp/evil.so (record 000000000001): " in said
    assert said.endswith("add --trust\n")
    assert not launched


@pytest.mark.parametrize("name", ["LD_PRELOAD", "mca_base_component_path", "plm_ssh_agent", "I_MPI_OFI_LIBRARY"])
def test_nor_does_a_setting_of_its_mpi_library(name, launched):
    planted(settings={name: "/tmp/evil"})
    assert cli.main(["reproduce", "000000000001"]) == 2
    assert not launched


def test_what_people_try_is_no_code():
    assert [name for name in HONEST.split() if loading.loads(name)] == []
    knobs = [knob for family in TABLE.values() for knob in family.knobs]
    assert [knob.name for knob in knobs if loading.loads(knob.name)] == []


def test_the_person_may_trust_a_record(launched, monkeypatch, capsys):
    program = {"osu_latency": samples.record()["benchmark"]}
    monkeypatch.setattr(manifests, "load", lambda name: stack_manifest.made(name, "openmpi", benchmarks=program))
    planted(environment={"LD_PRELOAD": "/opt/known.so"})
    cli.main(["reproduce", "000000000001", "--trust"])
    assert [one.environment for one in launched] == [{"LD_PRELOAD": "/opt/known.so"}], capsys.readouterr().err


def test_a_known_allocator_may_be_named_and_is_looked_for_here(monkeypatch):
    monkeypatch.setattr(loading, "find_library", lambda name: {"jemalloc": "libjemalloc.so.2"}.get(name))
    good, *bad = (
        planted(number, environment={"LD_PRELOAD": value})
        for number, value in enumerate(
            ["libjemalloc.so.2", "libjemalloc.so.1", "libtcmalloc.so.4", "libm.so.6", "/usr/lib/libjemalloc.so.2", ""]
        )
    )
    assert variant_again(good) is good.variant
    for record in bad:
        with pytest.raises(PlumbError, match="what code is loaded: LD_PRELOAD="):
            variant_again(record)


@pytest.mark.parametrize("context", [
    {"program": "/bin/sh", "command": ["/bin/sh"]},
    {"program": "BUILD/applications/heat/x/source/heat", "command": ["/bin/sh"]},
    {"program": "BUILD/applications/../../evil", "command": ["BUILD/applications/../../evil"]},
    {"program": "/bin/sh", "command": ["env", "-C", "/", "/bin/sh"]},
])  # fmt: skip
@pytest.mark.parametrize("benchmark", ["own", "application"])
def test_a_record_names_no_program_but_our_own_builds(benchmark, context, tmp_path, launched, refused):
    def filled(text):
        return text.replace("BUILD", str(paths.build()))

    context = {"program": filled(context["program"]), "command": [filled(word) for word in context["command"]]}
    record = samples.record(variant=samples.variant(benchmark=benchmark, context=context, arguments=["-c", "id"]))
    store.write(store.session_file("local", "s1"), [record])
    assert "it runs a program that was not built here: " in refused(2, "reproduce", record["id"])
    assert not launched


def test_a_program_that_we_built_is_reproduced():
    program = str(paths.build() / "applications/heat/x/source/heat")
    variant = samples.variant(benchmark="application", context={"program": program, "command": [program]})
    record = model.convert(samples.record(variant=variant))
    assert variant_again(record) is record.variant


@pytest.mark.parametrize(("copies", "program", "command", "is_ours"), [
    ({"bin": "bin"}, "bin/heat", "./bin/heat", True),
    ({"heat": "heat"}, "heat", "./heat", True),
    ({"bin": "bin"}, "binary/heat", "./binary/heat", False),
    ({"bin": "bin"}, "bin/../heat", "./bin/../heat", False),
    ({}, "heat", "./heat", False),
])  # fmt: skip
def test_a_copy_of_a_program_is_run_only_where_it_is_one_of_our_build(copies, program, command, is_ours):
    source = paths.build() / "applications/heat/x/source"
    context = {"program": str(source / program), "command": [command]}
    context["copy"] = {name: str(source / file) for name, file in copies.items()}
    record = model.convert(samples.record(variant=samples.variant(benchmark="application", context=context)))
    if is_ours:
        assert variant_again(record) is record.variant
    else:
        with pytest.raises(PlumbError, match="was not built here"):
            variant_again(record)


def test_a_copy_is_not_written_through_a_link(tmp_path):
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "link").symlink_to("theirs")
    with pytest.raises(FileExistsError):
        files.copy(tmp_path / "theirs", tmp_path / "link")
    assert (tmp_path / "theirs").read_text() == "theirs"


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x"])
def test_inputs_stay_in_the_folder_of_a_launch(name):
    with pytest.raises(PlumbError, match="a file of inputs is outside the folder of the launch"):
        checked(samples.variant(context={"inputs": {name: "/etc/passwd"}}), "a record")


def test_every_command_that_runs_records_again_asks_the_same(monkeypatch):
    monkeypatch.setattr(confirm, "installed", lambda record, kernels=True: record.stack.name)
    monkeypatch.setattr(jobs, "refuse", lambda *words: None)
    monkeypatch.setattr(site, "partition", lambda *words: None)
    monkeypatch.setattr(site, "load", lambda *words: None)
    bad, good = planted(1, environment={"LD_PRELOAD": "/tmp/evil.so"}), planted(2, threads=1)
    with pytest.raises(PlumbError, match="a file may not say what code is loaded: LD_PRELOAD"):
        ends.of_records(good, bad, False, lambda line: None)
    with pytest.raises(PlumbError, match="a file may not say what code is loaded: LD_PRELOAD"):
        command.again(bad)
    calls = []
    asked = confirm.Confirmer(PairedRule(0.01, 0.05), lambda *words: calls.append(words), lambda *words: None)
    monkeypatch.setattr(confirm, "identity", lambda record: record.id)
    answer = asked.answer(good, bad, "triad")
    assert (answer.state, calls) == ("open", [])
    assert "a file may not say what code is loaded: LD_PRELOAD" in answer.text


@pytest.mark.parametrize(("build", "refused"), [
    ({"CFLAGS": "-O3 -march=native -DX=1"}, False),
    ({"CC": "gcc-13"}, False),
    ({"CC": "/tmp/evil"}, True),
    ({"CC": "sh -c id"}, True),
    ({"MAKEFLAGS": "--eval=$(shell id)"}, True),
    ({"CFLAGS": "-fplugin=/tmp/evil.so"}, True),
    ({"LD_PRELOAD": "libjemalloc.so.2"}, True),
])  # fmt: skip
def test_a_record_does_not_say_how_code_is_built(build, refused):
    state = {"name": "heat", "program": "heat", "commit": "a" * 40, "build": build}
    record = model.convert(samples.record(variant=samples.variant(application=state)))
    expected = pytest.raises(PlumbError, match="a file may not say what is run: build:")
    with expected if refused else contextlib.nullcontext():
        refuse_build(record)
    if refused:
        with expected:
            confirm.choose(record, record)
        with expected:
            variant_again(record)


def test_what_only_the_launches_of_a_record_had_is_not_set_either(monkeypatch):
    monkeypatch.setattr(confirm, "installed", lambda record, kernels=True: record.stack.name)
    both = [
        model.convert(samples.record(id=ident * 12, environment={"LD_AUDIT": value}))
        for ident, value in (("1", "/tmp/evil.so"), ("2", "/tmp/other.so"))
    ]
    with pytest.raises(PlumbError, match="a file may not say what code is loaded: LD_AUDIT"):
        ends.of_records(*both, False, lambda line: None)
