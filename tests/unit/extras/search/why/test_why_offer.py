"""Which command a gate that failed ends with."""

from pathlib import Path

import pytest
import samples
import stack_manifest
from msgspec.structs import replace

from plumbline.extras.search.why.command import cause_command
from plumbline.records import model
from plumbline.stacks import manifest as manifests


def record(number, stack="openmpi", commit=None, **changes):
    state = {"application": {"name": "toy", "program": "p", "commit": commit}} if commit else {}
    made = samples.record(id=f"{number:012x}", variant=samples.variant(**state, **changes))
    made["stack"]["name"] = stack
    return model.convert(made)


@pytest.mark.parametrize(("sha256", "said"), [("2", f"plumb bisect {'a' * 40} {'b' * 40} --stack"), ("1", None)])
def test_kernels_that_were_rebuilt_are_of_commits(sha256, said):
    made = []
    for commit, digest in (("a", "1"), ("b", sha256)):
        one = samples.record(suite={"version": "0.1.0", "commit": commit * 40, "dirty": False})
        one["benchmark"] |= {"suite": "kernels", "sha256": digest * 64}
        made.append(model.convert(one))
    found = cause_command(*made)
    assert found is None if said is None else found.startswith(said)


@pytest.mark.parametrize(("first", "second", "said"), [
    ({}, {"stack": "mpich"}, None),
    ({}, {"placement": "numa"}, None),
    ({}, {"stack": "mpich", "placement": "numa"}, "plumb why 000000000001 000000000002"),
    ({"settings": {"a": "1"}}, {"settings": {"a": "2", "b": "1"}}, "plumb why 000000000001 000000000002"),
    ({"commit": "1" * 40}, {"commit": "2" * 40},
     f"plumb bisect {'1' * 40} {'2' * 40} --stack openmpi --test 'stream_threads(%|$)'"),
    ({"stack": "m@123"}, {"stack": "m@456"}, "plumb bisect 123 456 --stack m --test 'stream_threads(%|$)'"),
    ({"commit": "1" * 40}, {"commit": "2" * 40, "threads": 1}, "plumb why 000000000001 000000000002"),
])  # fmt: skip
def test_the_command_fits_what_differs(first, second, said):
    assert cause_command(record(1, **first), record(2, **second)) == said


@pytest.mark.parametrize(("first", "second", "said"), [
    ({"commit": "1" * 40}, {"commit": "2" * 40}, "stream_threads(%|$)' --application 'a b/plumb.yaml'"),
    ({"commit": "1" * 40}, {"commit": "2" * 40, "threads": 1}, "000000000002 --application 'a b/plumb.yaml'"),
    ({"stack": "m@123"}, {"stack": "m@456"}, "stream_threads(%|$)'"),
])  # fmt: skip
def test_the_command_names_the_application_that_was_named(first, second, said):
    assert cause_command(record(1, **first), record(2, **second), Path("a b/plumb.yaml")).endswith(said)


@pytest.mark.parametrize(("digest", "said"), [("1", None), ("2", "plumb why 000000000001 000000000002")])
def test_two_stacks_whose_libraries_differ(digest, said, tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path))
    for name, own in (("openmpi", "1"), ("newer", digest)):
        files = {f"/{name}/libmpi.so.40": own * 64, f"/{name}/libucp.so.0": own * 64}
        loads = manifests.Loads(library=f"/{name}/libmpi.so.40", files=files)
        manifests.save(replace(stack_manifest.made(name, "openmpi"), loads=loads))
    assert cause_command(record(1), record(2, stack="newer")) == said
