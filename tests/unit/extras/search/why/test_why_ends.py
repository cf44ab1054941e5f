"""Two ends: in what they differ, who can set that, and every mixture of them as a variant."""

import git_history
import msgspec
import pytest
import samples
import stack_manifest

from plumbline import site
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.extras.search.why import ends
from plumbline.extras.search.why import model as why_model
from plumbline.extras.search.why.model import Ends, Factor
from plumbline.gate import confirm
from plumbline.records import model, store
from plumbline.records.launch import LoadedFile
from plumbline.stacks import manifest as manifests


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    monkeypatch.setattr(site, "here", lambda: "local")
    for name in ("openmpi", "other"):
        (tmp_path / "stacks" / name).mkdir(parents=True)
        manifests.save(stack_manifest.made(name, "openmpi"))
    monkeypatch.setattr(confirm, "installed", lambda record, kernels=True: record.stack.name)


def record(number=1, stack="openmpi", host=None, **changes):
    made = samples.record(id=f"{number:012x}", variant=samples.variant(stack=stack, **changes))
    made["stack"]["name"] = stack
    made["host"] |= host or {}
    return model.convert(made)


def between(first, second, roots=False, trusted=False):
    return ends.of_records(first, second, roots, lambda line: None, trusted=trusted)


def test_each_member_that_differs_is_a_factor():
    one = record(placement="core", settings={"a": "1", "b": "2"}, environment={"X": "1", "Y": "2"})
    two = record(2, placement="numa", threads=4, settings={"a": "1", "b": "3"}, environment={"X": "1"})
    found = between(one, two)
    assert [(item.label, item.before, item.after) for item in found.factors] == [
        ("placement", "core", "numa"),
        ("threads", "2", "4"),
        ("setting b", "2", "3"),
        ("variable Y", "2", None),
    ]


def test_every_mixture_has_what_its_bits_say():
    one = record(placement="core", settings={"a": "1"}, environment={"KEPT": "1", "Y": "2"})
    two = record(2, stack="other", placement="numa", settings={"a": "2"}, environment={"KEPT": "1"})
    found = between(one, two)
    whole = (1 << len(found.factors)) - 1
    for configuration, end in ((0, one.variant), (whole, two.variant)):
        made = found.variant(configuration)
        assert msgspec.structs.replace(made, name="") == msgspec.structs.replace(end, name="")
    places = {item.label: place for place, item in enumerate(found.factors)}
    mixed = found.variant(1 << places["stack"] | 1 << places["setting a"])
    assert (mixed.stack, mixed.placement, mixed.settings) == ("other", "core", {"a": "2"})
    assert mixed.environment == {"KEPT": "1", "Y": "2"}
    assert found.mixture(1 << places["placement"]) == "A with placement"
    assert found.mixture(whole ^ 1 << places["placement"]) == "B without placement"
    assert mixed.name.endswith("A with stack, setting a")


def built_here():
    program = str(paths.build() / "applications/heat/0/source/heat")
    return {"benchmark": "application", "context": {"program": program, "command": [program]}}


def application(**build):
    return {"name": "heat", "program": "heat", "commit": "a" * 40, "build": build}


def test_variables_of_the_build_are_a_factor_beside_the_stack(monkeypatch):
    made = []

    def built(file, first, stack, commit, build):
        made.append((stack, commit[:2], dict(build)))
        return msgspec.structs.replace(first, stack=stack, context={"program": f"/{stack}/{dict(build)['CFLAGS']}"})

    monkeypatch.setattr(ends, "_built", built)
    one = record(**built_here(), application=application(CFLAGS="-O2"))
    two = record(2, stack="other", **built_here(), application=application(CFLAGS="-O3"))
    found = between(one, two)
    assert [(item.label, item.before, item.after) for item in found.factors] == [
        ("stack", "openmpi", "other"),
        ("build variables", "CFLAGS=-O2", "CFLAGS=-O3"),
    ]
    assert made == [("openmpi", "aa", {"CFLAGS": "-O3"}), ("other", "aa", {"CFLAGS": "-O2"})]
    assert found.variant(0b10).context == {"program": "/openmpi/-O3"}
    assert found.variant(0b01).context == {"program": "/other/-O2"}


def test_what_cannot_be_built_together_is_one_factor(monkeypatch):
    monkeypatch.setattr(ends, "_built", lambda *_: None)
    one = record(**built_here(), application=application())
    two = record(2, stack="other", **built_here(), application=application(CFLAGS="-O3"))
    (factor,) = between(one, two).factors
    assert (factor.label, factor.before, factor.after) == ("stack and build", "openmpi, –", "other, CFLAGS=-O3")


def test_mixtures_are_built_from_the_application_that_is_named(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(ends, "_built", lambda file, *_: asked.append(file))
    one = record(**built_here(), application=application())
    two = record(2, stack="other", **built_here(), application=application(CFLAGS="-O3"))
    ends.of_records(one, two, False, print, tmp_path / "plumb.yaml")
    assert asked == [tmp_path / "plumb.yaml"]


def stored_record(monkeypatch, tmp_path, *ids):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    store.write(store.session_file("local", "s"), [samples.record(id=f"{one:0<12}") for one in ids])


def test_short_commits_are_no_ids_of_records(tmp_path, monkeypatch):
    names = git_history.linear(tmp_path / "code", 1).names
    first, second = (commit[:7] for commit in names.values())
    file = tmp_path / "code" / "plumb.yaml"
    stored_record(monkeypatch, tmp_path, first, "cafe")
    assert ends.records_of(first, second, file) is None
    assert [one.id[:4] for one in ends.records_of("cafe", first, file)] == ["cafe", first[:4]]
    assert ends.records_of("cafe", "main", file) is None
    with pytest.raises(PlumbError, match=f"no record '{second}'"):
        ends.records_of("cafe", second, file)
    stored_record(monkeypatch, tmp_path, first, second)
    assert ends.records_of(first, second, tmp_path / "no repository" / "plumb.yaml")
    with pytest.raises(PlumbError, match=f"are records and commits .*: write commit:{first} commit:{second}"):
        ends.records_of(first, second, file)


def test_settings_of_a_tuned_stack_are_factors_of_mpi_programs():
    fingerprint = manifests.Fingerprint("x", "cpu", "6.1", 2, "core")
    tuned = manifests.Tuned("openmpi", "2026", "s", fingerprint, manifests.Configuration())
    base = stack_manifest.made("openmpi", "openmpi")
    made = msgspec.structs.replace(
        base, name="openmpi+tuned", settings={"one": "1", "two": "2"}, tuned=tuned,
        benchmarks=base.benchmarks | {"stream": msgspec.structs.replace(base.benchmarks["pi"], suite="stream")},
        loads=manifests.Loads(library=None, files={}),
    )  # fmt: skip
    manifests.path("openmpi+tuned").parent.mkdir()
    manifests.save(made)
    with pytest.raises(PlumbError, match="the ends do not differ in anything that can be set here"):
        between(record(), record(2, stack="openmpi+tuned"))
    found = between(record(benchmark="pi"), record(2, stack="openmpi+tuned", benchmark="pi"))
    assert [item.label for item in found.factors] == ["setting one", "setting two"]
    assert found.variant(1).stack == "openmpi"
    assert found.variant(1).settings == {"one": "1"}


def test_a_library_of_the_other_stack_is_preloaded(tmp_path):
    for name, digest in (("openmpi", "1" * 64), ("other", "2" * 64)):
        files = {f"/{name}/libmpi.so.40": digest, f"/{name}/libucp.so.0": digest, f"/{name}/mca_pml.so": digest}
        loads = manifests.Loads(library=f"/{name}/libmpi.so.40", files=files)
        manifests.save(msgspec.structs.replace(manifests.load(name), loads=loads))
    found = between(record(), record(2, stack="other", environment={"LD_PRELOAD": "/own.so"}), trusted=True)
    labels = [item.label for item in found.factors]
    assert labels == ["stack", "library libucp.so.0", "variable LD_PRELOAD"]
    assert found.variant(0b010).environment == {"LD_PRELOAD": "/other/libucp.so.0"}
    assert found.variant(0b101).environment == {"LD_PRELOAD": "/openmpi/libucp.so.0:/own.so"}
    assert found.variant(0b011).environment == {}


def packaged(with_zlib=False):
    """Give both stacks the packages zlib, ucx and openmpi, of two versions, with libraries; zlib has one if asked."""
    for name, digest, version in (("openmpi", "1", "1.17"), ("other", "2", "1.18")):
        store = {package: f"/store/{package}-{version}-{digest * 32}" for package in ("zlib", "ucx", "openmpi")}
        of = (
            ("openmpi", "libmpi.so.40"),
            ("openmpi", "libopen-pal.so.80"),
            ("ucx", "libucp.so.0"),
            ("ucx", "libucs.so.0"),
            *([("zlib", "libz.so.1")] if with_zlib else []),
        )
        files = {f"{store[package]}/lib/{file}": digest * 64 for package, file in of}
        loads = manifests.Loads(library=f"{store['openmpi']}/lib/libmpi.so.40", files=files)
        every = [manifests.Source(name=one, version=version, hash=f"spack:{digest * 32}") for one in store]
        manifests.save(msgspec.structs.replace(manifests.load(name), loads=loads, sources=every))


def test_packages_stand_behind_those_that_they_need():
    packaged(with_zlib=True)
    found = between(record(), record(2, stack="other"))
    assert [factor.label for factor in found.factors] == ["stack", "package zlib", "package ucx"]


def test_the_libraries_of_a_package_of_spack_are_one_factor():
    packaged()
    found = between(record(), record(2, stack="other"))
    (stack, package) = found.factors
    assert (stack.kind, package.label) == ("stack", "package ucx")
    assert (package.before, package.after) == ("1.17 1111111", "1.18 2222222")
    assert {one.key for one in found.fixed if one.why == "in the stack"} == {"package openmpi", "package zlib"}
    wanted = ":".join(f"/store/ucx-1.18-{'2' * 32}/lib/{file}" for file in ("libucp.so.0", "libucs.so.0"))
    assert found.variant(0b10).environment == {"LD_PRELOAD": wanted}
    assert found.variant(0b01).environment == {"LD_PRELOAD": wanted.replace("1.18", "1.17").replace("2" * 32, "1" * 32)}
    assert found.variant(0b11).environment == {}


def test_packages_that_differ_are_named_with_the_stack():
    for name, version in (("openmpi", "1.17"), ("other", "1.18")):
        source = manifests.Source(name="ucx", version=version, hash=version * 10)
        manifests.save(msgspec.structs.replace(manifests.load(name), sources=[source]))
    found = between(record(), record(2, stack="other"))
    assert [(one.key, one.before, one.after) for one in found.fixed if one.why == "in the stack"] == [
        ("package ucx", "1.17 1.171.1", "1.18 1.181.1")
    ]


def test_what_cannot_be_set_is_said_apart(monkeypatch):
    monkeypatch.setattr(why_model.change, "can_set", lambda name: name == "thp")
    one = record(placement="core", host={"thp": "always", "kernel": "6.1"})
    two = record(2, placement="numa", host={"thp": "never", "kernel": "6.2"})
    without = {item.key: item.why for item in between(one, two).fixed}
    assert without["host.thp"] == "root only"
    assert without["host.kernel"] == "no"
    assert not any(key.startswith(("placement", "variant", "plan")) for key in without)
    with_root = between(one, two, roots=True)
    assert Factor("host", "thp", "always", "never") in with_root.factors
    assert "host.thp" not in {item.key for item in with_root.fixed}
    place = with_root.factors.index(Factor("host", "thp", "always", "never"))
    assert with_root.host(1 << place) == {"thp": "never"}
    assert with_root.host(0) == {"thp": "always"}


@pytest.mark.parametrize(("changes", "said"), [
    ({}, "do not differ in anything that can be set here"),
    ({"test": "another"}, "do not measure the same"),
    ({"nodes": 2}, "do not measure the same"),
    ({"figures": [{"name": "triad", "metric": "copy", "where": {}}]}, "do not measure the same"),
    ({"profiled": True}, "is a profile"),
])  # fmt: skip
def test_what_is_no_pair_of_ends_is_one_line(changes, said):
    with pytest.raises(PlumbError, match=said):
        between(record(), record(2, **changes))


def test_records_of_another_site_and_programs_that_are_gone(monkeypatch):
    monkeypatch.setattr(site, "here", lambda: "elsewhere")
    with pytest.raises(PlumbError, match="this host belongs to elsewhere"):
        between(record(), record(2, threads=1))
    monkeypatch.setattr(site, "here", lambda: "local")
    monkeypatch.setattr(confirm, "installed", lambda record, kernels=True: None)
    with pytest.raises(PlumbError, match="not installed any more"):
        between(record(), record(2, threads=1))


def test_ends_are_kept_as_json():
    found = between(record(), record(2, threads=1))
    assert msgspec.json.decode(msgspec.json.encode(found), type=Ends) == found


def gate_session(name, slower):
    """A session of a gate whose candidate is ``slower``."""
    both = [
        samples.record(
            id=f"{place}" * 12, session=name, side=side,
            launches=[samples.launch(2 * n + place, (1e4 + n) / rate, index=n) for n in range(40)],
        )
        for place, (side, rate) in enumerate((("baseline", 1.0), ("candidate", slower)))
    ]  # fmt: skip
    store.write(store.session_file("local", name), both)


def test_the_newest_fail_is_found_behind_other_sessions(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(ends, "MOST_GATES", 2)
    gate_session("2026-01", 1.2)
    gate_session("2026-02", 1.0)
    for day in range(10, 20):
        store.write(store.session_file("local", f"2026-03-{day}"), [samples.record(id=f"{day:012x}")])
    (tmp_path / "results" / "local" / "2026-04.jsonl").write_text("spoilt\n")
    baseline, candidate, figure = ends.newest_fail(None)
    assert (baseline.session, baseline.side, candidate.side, figure) == ("2026-01", "baseline", "candidate", "triad")
    gate_session("2026-05", 1.0)
    with pytest.raises(PlumbError, match="no gate ended with FAIL here"):
        ends.newest_fail(None)


def test_libraries_of_the_system_that_were_updated_are_named():
    libc, own = "/lib/x86_64-linux-gnu/libc.so.6", "/opt/code/libown.so.1"
    made = []
    for number, build in ((1, "a"), (2, "b")):
        loaded = [LoadedFile(path=path, build_id=build * 40, bytes=10, modified_ns=1) for path in (libc, own)]
        made.append(msgspec.structs.replace(record(number), loaded=loaded))
    assert [(one.key, one.why) for one in why_model.fixed(*made)] == [("library libc.so.6", "no")]


def test_libraries_of_stacks_without_packages_that_cannot_be_varied_are_named():
    for name, digest, fabric in (("openmpi", "1", "1"), ("other", "2", "2")):
        files = {f"/{name}/libmpi.so.40": digest * 64, f"/{name}/libfabric.so.{fabric}": digest * 64}
        loads = manifests.Loads(library=f"/{name}/libmpi.so.40", files=files)
        manifests.save(msgspec.structs.replace(manifests.load(name), loads=loads, sources=[]))
    found = [one for one in between(record(), record(2, stack="other")).fixed if one.why == "in the stack"]
    assert [(one.key, one.before, one.after) for one in found] == [
        ("library libmpi.so.40", "/openmpi/libmpi.so.40", "/other/libmpi.so.40"),
        ("library libfabric.so.1", "/openmpi/libfabric.so.1", "absent"),
        ("library libfabric.so.2", "absent", "/other/libfabric.so.2"),
    ]


@pytest.mark.parametrize(("sides", "wrong"), [(("opnmpi", "other"), "A"), (("openmpi", "othr"), "B")])
def test_the_side_that_nobody_knows_is_named_as_it_was_given(sides, wrong, capsys):
    assert cli.main(["why", *sides, "--test", "x", "--dry-run"]) == 3
    assert f"is neither an installed stack nor a commit (plumb why {wrong})" in capsys.readouterr().err
