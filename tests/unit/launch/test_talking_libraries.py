"""What is said of an output that a library has printed into."""

from types import SimpleNamespace

import pytest

from plumbline import mpi
from plumbline.launch import pipeline


def unread(texts: list[str], variables: dict[str, str]) -> str:
    """Why the output of two ranks that printed ``texts`` with ``variables`` cannot be read."""
    job = SimpleNamespace(
        variant=SimpleNamespace(profiled=False, parser="kernel", context={}, benchmark="pairs"),
        record=SimpleNamespace(environment=variables),
        plan=SimpleNamespace(threads=1),
        ranks=SimpleNamespace(layout=SimpleNamespace(ranks=2)),
        remarks=[],
    )
    printed = SimpleNamespace(of_ranks=lambda: texts, refuse_excess=lambda: None)
    made = SimpleNamespace(measurements=[], remarks=[], work=None)
    run = SimpleNamespace(job=job, launch=made, output=printed, ended=SimpleNamespace(status="ok"), seen=[])
    pipeline.parse(run)
    (reason,) = run.unread
    return str(reason)


def test_ranks_that_all_print_are_counted():
    assert unread(["a\n", "b\n"], {}).endswith("; 2 of 2 ranks printed")
    assert "ranks printed" not in unread(["a\n", "\n"], {})


@pytest.mark.parametrize(("variables", "ending"), [
    ({"MPIR_CVAR_DEBUG_SUMMARY": "1", "UCX_TLS": "rc"}, "; MPIR_CVAR_DEBUG_SUMMARY may have made a library print"),
    ({"UCX_TLS": "rc", "PLUMB_DEBUG": "1"}, ""),
])  # fmt: skip
def test_garbled_output_names_the_variables_that_make_a_library_talk(variables, ending):
    reason = unread(["==== Various sizes and limits ====\n"], variables)
    assert reason.startswith("kernel: not one JSON document")
    assert (ending in reason) if ending else ("library" not in reason)


@pytest.mark.parametrize("name", ["I_MPI_DEBUG", "MV2_SHOW_ENV_INFO", "OMPI_MCA_btl_base_verbose", "UCX_PROTO_INFO"])
def test_variables_of_every_library_that_make_it_talk_are_known(name):
    assert mpi.talking([name, "UCX_LOG_FILE", "FI_PROVIDER"]) == [name]
