"""Settings under the real libraries: what a launch asks for is read back inside the measured processes."""

import json

import pytest
import stack_manifest
from msgspec.structs import replace

from plumbline.extras.tune import knobs
from plumbline.extras.tune.command import emit
from plumbline.measure import driver
from plumbline.mpi.settings import Configuration, Rule, Setting
from plumbline.records import model
from plumbline.stacks import manifest, tuned

pytestmark = pytest.mark.e2e
#: for each library: a number, a word or a text, and a name with a letter too few
GOOD = {
    "openmpi": {"btl_sm_eager_limit": "65536", "smsc": "^cma", "coll_tuned_use_dynamic_rules": "true"},
    "mpich": {"MPIR_CVAR_CH4_CMA_ENABLE": "0", "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "ring"},
    "intelmpi": {"I_MPI_SHM_CELL_FWD_SIZE": "32768", "I_MPI_ADJUST_ALLREDUCE": "2:64-127"},
}
CELL = "MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE"
MISSPELT = {"openmpi": "btl_sm_eager_limt", "mpich": "MPIR_CVAR_CMA_ENABLE", "intelmpi": "I_MPI_ADJUST_ALLREDUC"}


def installed(bench, stack):
    """The manifest of an installed stack of the checkout."""
    return stack_manifest.typed(json.loads((bench.folder / "installed" / stack / "manifest.json").read_text()))


def launched(bench, stack, **changes):
    """The launch of the kernel pi on two ranks of an installed ``stack``; ``changes`` of its variant."""
    file = bench.folder / "stacks" / stack / "manifest.json"
    if not file.exists() or "manifest" in changes:
        file.parent.mkdir(parents=True, exist_ok=True)
        document = json.loads((bench.folder / "installed" / stack / "manifest.json").read_text())
        file.write_text(json.dumps(document | changes.pop("manifest", {})))
    variant = bench.variant(
        stack=stack,
        benchmark="pi",
        arguments=["--intervals", "100K", "--json"],
        parser="kernel",
        context={"kernel": "pi"},
        figures=[{"name": "time", "metric": "time", "where": {}}],
        ranks_per_node=2,
        **changes,
    )
    _, records = driver.run([variant], bench.folder / "work")
    return model.document(records[0])["launches"][0]


@pytest.mark.parametrize("stack", GOOD)
def test_what_the_library_has_is_seen(bench, stack):
    launch = launched(bench, stack, settings=GOOD[stack])
    assert launch["reasons"] == []
    assert launch["settings"] == {"asked": GOOD[stack], "seen": GOOD[stack]}


@pytest.mark.parametrize("stack", MISSPELT)
def test_a_misspelt_setting_is_not_verified(bench, stack):
    launch = launched(bench, stack, settings={MISSPELT[stack]: "1"})
    assert not launch["verified"]
    assert f"setting {MISSPELT[stack]}=1 was not taken: {stack} has no {MISSPELT[stack]}" in launch["reasons"]
    assert launch["settings"] == {"asked": {MISSPELT[stack]: "1"}, "seen": {}}


#: what a tuner may find
FOUND = {
    "openmpi": Configuration(
        (Setting("btl_sm_eager_limit", "65536"), Setting("smsc", "^cma")), (Rule("allreduce", "3", 64, 128, ranks=2),)
    ),
    "mpich": Configuration(
        (Setting("MPIR_CVAR_CH4_CMA_ENABLE", "0"), Setting(CELL, "65536")), (Rule("bcast", "mpir", 4096, None, 2),)
    ),
    "intelmpi": Configuration(rules=(Rule("allreduce", "2", 64, 128), Rule("allreduce", "1", 128, 256, ranks=2))),
}


@pytest.mark.parametrize("stack", FOUND)
def test_a_tuned_stack_has_its_settings(bench, stack):
    document = installed(bench, stack)
    where = tuned.fingerprint(document, 2, "compact")
    folder = emit(document, FOUND[stack], where, "a session")
    launch = launched(bench, f"{stack}+tuned")
    assert launch["reasons"] == []
    assert launch["settings"]["seen"] == launch["settings"]["asked"] == manifest.load(f"{stack}+tuned").settings
    assert len(launch["settings"]["seen"]) == {"openmpi": 4, "mpich": 4, "intelmpi": 1}[stack]
    assert [remark for remark in launch["remarks"] if not remark.startswith("pi = ")] == []
    assert "export " in (folder / "environment.sh").read_text()


def test_open_mpi_reads_the_file_of_parameters(bench):
    """As a person would use it: in the home of the user, without a variable."""
    document = installed(bench, "openmpi")
    folder = emit(document, FOUND["openmpi"], tuned.fingerprint(document, 2, "compact"), "a session")
    home = bench.folder / "home" / ".openmpi"
    home.mkdir(parents=True)
    (home / "mca-params.conf").write_text((folder / "mca-params.conf").read_text())
    found = knobs.inventory(replace(document, environment={**document.environment, "HOME": str(home.parent)}))
    settings = manifest.load("openmpi+tuned").settings
    assert {name: found.settings[name].now for name in settings} == settings


def test_a_file_that_mpich_does_not_read_is_not_verified(bench):
    """It tells the value of no text: only that the file is mapped in the process shows that it was taken."""
    file = bench.folder / "choices.json"
    file.write_text("{}")
    name = "MPIR_CVAR_NETLOC_NODE_FILE"
    launch = launched(bench, "mpich", settings={name: str(file)}, environment={})
    assert not launch["verified"]
    assert all(f"setting {name}={file} was not taken" in reason for reason in launch["reasons"])


def test_settings_of_the_stack_are_proven_too(bench):
    settings = {"btl_sm_eager_limit": "8192"}
    launch = launched(bench, "openmpi", manifest={"settings": settings}, environment={})
    assert launch["settings"]["seen"] == settings
    overruled = launched(
        bench, "openmpi", manifest={"settings": settings}, environment={"OMPI_MCA_btl_sm_eager_limit": "512"}
    )
    expected = [f"setting btl_sm_eager_limit=8192 was not taken: rank {rank} has 512" for rank in (0, 1)]
    assert overruled["reasons"] == expected


def test_an_algorithm_that_intel_mpi_does_not_have(bench):
    launch = launched(bench, "intelmpi", settings={"I_MPI_ADJUST_ALLREDUCE": "999"})
    assert launch["reasons"] == ["intelmpi reports: Incorrect algorithm: ALLREDUCE=999, will be ignored"]


def test_a_launch_that_asks_for_nothing_has_no_settings(bench):
    assert "settings" not in launched(bench, "mpich")
