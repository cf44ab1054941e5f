"""plumb.yaml: the starter, what is refused, and the states of the code that are built."""

import dataclasses
import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import reframe
import samples
import stack_manifest
import yaml
from msgspec.structs import replace
from own_code import git

from plumbline.base import paths, schemas
from plumbline.base.errors import PlumbError
from plumbline.commands import cli, measure
from plumbline.judge import compare
from plumbline.launch.prepare import entry_of
from plumbline.measure.application import build, model
from plumbline.measure.reframe import campaign
from plumbline.parsers.application import CheckRule, FigureRule
from plumbline.records import model as model_of_records
from plumbline.records.variant import ApplicationState
from plumbline.show import record as show
from plumbline.stacks import abi, manifest
from plumbline.stacks.manifest import Manifest

GOOD = {
    "application": "heat",
    "build": ["echo built with $MARK > heat", "chmod +x heat"],
    "programs": {"heat": {"command": "./heat 10", "figures": {"rate": {"pattern": "([0-9]+)", "unit": "MLUP/s"}}}},
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """:data:`GOOD` with ``value`` in place of the member at ``path``."""
    document: Any = json.loads(json.dumps(GOOD))
    *steps, last = path.split(".")
    inner = document
    for step in steps:
        inner = inner[step]
    inner[last] = value
    return document


def written(folder: Path, document: Any) -> Path:
    file = folder / "plumb.yaml"
    file.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return file


@pytest.fixture
def repository(tmp_path) -> Path:
    """A repository with one commit."""
    folder = tmp_path / "heat"
    folder.mkdir()
    written(folder, GOOD)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (changed("application", "Heat"), "application: Expected `str` matching regex"),
        (changed("programs", {}), "programs: Expected `object` of length >= 1, not {}"),
        (
            changed("programs.heat", GOOD["programs"]["heat"] | {"binds": "itself", "placements": ["core", "none"]}),
            "programs.heat.binds: itself: placement none does not say where threads are to be bound",
        ),
        (
            {**changed("programs.heat.stdin", "in.txt"), "build": []},
            "programs.heat.stdin: there is no in.txt beside plumb.yaml",
        ),
        (
            changed("programs.heat", GOOD["programs"]["heat"] | {"inputs": ["a"], "copy": ["a/b"]}),
            "programs.heat.copy: 'a' and 'a/b' overlap: leave one out",
        ),
        (changed("programs.heat.colour", 1), "programs.heat.colour: there is no such key: known: command, figures, "),
        (changed("programs.heat.thread", 1), "programs.heat.thread: there is no such key: did you mean 'threads'?"),
        (changed("programs.heat.command", "./heat 'x"), "programs.heat.command: No closing quotation"),
        (changed("programs.heat.figures.rate", {"unit": "s"}), "wall says where it is found; none are"),
        (changed("programs.heat.figures.rate.wall", True), "wall says where it is found; pattern, wall"),
        (changed("programs.heat.figures.rate", {"pattern": "(a)"}), "programs.heat.figures.rate.unit: missing"),
        (changed("programs.heat.figures.time", {"wall": True, "unit": "ms"}), "unit: ms: wall is measured in s"),
        (changed("programs.heat.figures.rate.unit", "a b"), "heat.figures.rate.unit: Expected `str` matching"),
        (changed("programs.heat.figures.rate.pattern", "("), "pattern: not a regular expression: missing )"),
        (changed("programs.heat.figures.rate.pattern", "a"), "pattern: it has no group: put ( ) around"),
        (changed("programs.heat.figures.rate.pattern", "(a)(b)"), "pattern: it has several groups: name that of"),
        (changed("programs.heat.figures.rate.flops", 1e9), "rate.flops: MLUP/s is not a unit of time, in"),
        (changed("programs.heat.figures.time", {"wall": True, "flops": -1}), "time.flops: Expected `float` > 0.0"),
        (
            changed("programs.heat.figures", {
                "time": {"wall": True, "bytes": 1e9},
                "time_bandwidth": {"pattern": "(a)", "unit": "GB/s"},
            }),
            "figures.time.bytes: its rate is called time_bandwidth, as another figure",
        ),
        (changed("programs.heat.checks", [{"pattern": "a", "value": 1}]), "checks.0.pattern: it has no group"),
        (changed("programs.heat.inputs", ["../x"]), "programs.heat.inputs[0]: Expected `str` matching regex"),
        (
            {**changed("programs.heat.inputs", ["x"]), "build": []},
            "programs.heat.inputs: there is no x beside plumb.yaml",
        ),
        (changed("programs.heat.inputs", ["."]), "programs.heat.inputs: '.': name the files and folders"),
        (changed("programs.heat.inputs", ["output/x"]), "inputs: 'output/x': the name is that of a file of Plumbline"),
        (
            changed("programs.heat", {
                "command": "./heat",
                "inputs": ["plumb.yaml"],
                "figures": {"t": {"json": "t", "file": "plumb.yaml", "unit": "s"}},
            }),
            "inputs: plumb.yaml is read as what the program writes, and a launch may not change an input",
        ),
        (changed("programs.heat.placements", ["cores"]), "unknown placement 'cores' (did you mean 'core'?): known are"),
        (changed("programs.heat.placements", ["numa:x"]), "placements: placement numa:x: 'x' is not a whole number"),
        (changed("programs.heat.memory", "far"), "memory: unknown memory policy 'far': known are local, interleave,"),
        ("application: [", "plumb.yaml is not YAML: "),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(tmp_path, document, said):
    with pytest.raises(PlumbError) as raised:
        model.load(written(tmp_path, document))
    assert said in str(raised.value)
    assert str(tmp_path / "plumb.yaml") in str(raised.value)


@pytest.mark.parametrize(("changes", "faults"), [
    ({"inputs": ["witness"], "figures": {"rate": {"pattern": "a", "unit": "s"}}}, ["figures.rate.pattern", "inputs"]),
    ({"thread": 1, "time_limit_s": -5, "inputs": ["../x"]}, ["inputs[0]", "thread", "time_limit_s"]),
])  # fmt: skip
def test_check_says_all_faults(tmp_path, monkeypatch, output_of, changes, faults):
    file = written(tmp_path, changed("programs.heat", GOOD["programs"]["heat"] | changes))
    monkeypatch.chdir(tmp_path)
    said = output_of(1, "application", "check").splitlines()
    assert sorted(line.removeprefix(f"{file}: programs.heat.").split(":")[0] for line in said) == faults


def test_each_fault_of_the_form_is_named_once():
    """Keys that msgspec leaves open are named, and the removal of a faulty key is no fault of its own."""
    rate = {"pattern": "(a)"}
    programs = {
        "bare": {"command": "./a"},
        "empty": {"command": "", "figures": {"rate": {"pattern": 3}}},
        "Odd 2.1": {"command": "./a", "figures": {"rate": rate}},
        "odd": {"command": "./a", "figures": {"rate": {**rate, "unitt": "s"}}, "environment": {"A": "1", "B": 2}},
    }
    found = schemas.faults({"application": "heat\n", "programs": programs}, model.Application)
    assert [sentence.partition(": ")[0] for sentence in found] == [
        "application",
        "programs.Odd 2.1",
        "programs.bare",
        "programs.empty.command",
        "programs.empty.figures.rate.pattern",
        "programs.odd.environment.B",
        "programs.odd.figures.rate.unitt",
    ]
    assert found[2].endswith("Object missing required field `figures`")
    assert found[-1].endswith("there is no such key: did you mean 'unit'?")
    assert schemas.faults([], model.Application) == ["top level: Expected `object`, got `array`"]
    odd = changed("programs.heat.time_limit_s", float("nan"))
    assert [sentence.partition(": ")[0] for sentence in schemas.faults(odd, model.Application)] == [
        "programs.heat.time_limit_s",
        "top level",
    ]


@pytest.mark.parametrize(
    "inputs", [["data", "data/a"], ["data/a", "data"], ["data/a", "./data/a"], ["data/a", "data/ab", "data/a"]]
)
def test_inputs_that_overlap_are_named(tmp_path, inputs):
    """They would be links to the same place in the folder of a launch."""
    (tmp_path / "data").mkdir()
    for name in ("a", "ab"):
        (tmp_path / "data" / name).write_text("")
    with pytest.raises(PlumbError) as raised:
        model.load(written(tmp_path, changed("programs.heat.inputs", inputs)))
    assert f"programs.heat.inputs: '{inputs[0]}' and '{inputs[-1]}' overlap: leave one out" in str(raised.value)
    model.load(written(tmp_path, changed("programs.heat.inputs", ["data/a", "data/ab"])))


def test_the_starter_is_in_order(tmp_path, monkeypatch, refused, output_of):
    folder = tmp_path / "My Code-2"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert cli.main(["application", "init"]) == 0
    assert model.load(folder / "plumb.yaml").application == "my_code_2"
    assert output_of(0, "application", "check").splitlines()[-1] == f"{folder / 'plumb.yaml'}: in order"
    assert "there is a plumb.yaml already" in refused(2, "application", "init")


def test_the_nearest_file_above_is_found(repository):
    (repository / "a" / "b").mkdir(parents=True)
    assert model.find(repository / "a" / "b") == repository / "plumb.yaml"


class TestSource:
    def test_changes_that_are_not_committed_are_a_commit_of_their_own(self, repository):
        file = repository / "plumb.yaml"
        assert model.present_code(file) == model.code_of_commit(file, "HEAD")
        written(repository, {**GOOD, "build": ["false"]})
        found = model.present_code(file)
        assert found.changed
        assert found.commit != git(repository, "rev-parse", "HEAD")
        assert git(repository, "status", "--porcelain") == "M plumb.yaml"

    def test_the_same_changes_are_the_same_commit(self, repository, monkeypatch):
        file = repository / "plumb.yaml"
        written(repository, {**GOOD, "build": ["true"]})
        first = model.present_code(file)
        monkeypatch.setenv("GIT_COMMITTER_DATE", "2001-02-03T04:05:06")
        assert model.present_code(file) == first
        written(repository, {**GOOD, "build": ["false"]})
        assert model.present_code(file) != first

    def test_a_folder_without_git_is_its_files(self, tmp_path):
        first = model.present_code(written(tmp_path, GOOD))
        written(tmp_path, {**GOOD, "build": []})
        assert first.commit is None
        assert model.present_code(tmp_path / "plumb.yaml").digest != first.digest

    @pytest.mark.parametrize("name", ["nosuch", "--help"])
    def test_a_commit_that_is_not_there_is_refused(self, repository, name):
        with pytest.raises(PlumbError, match=f"'{name}' is not a commit"):
            model.code_of_commit(repository / "plumb.yaml", name)


class TestBuild:
    @pytest.fixture(autouse=True)
    def _own_build_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PLUMB_TOOLS", str(paths.tools()))
        monkeypatch.setenv("PLUMB_BUILD", str(tmp_path / "build"))

    @staticmethod
    def stack(tmp_path: Path) -> Manifest:
        prefix = tmp_path / "stack"
        (prefix / "bin").mkdir(parents=True, exist_ok=True)
        return replace(stack_manifest.made("s"), prefix=str(prefix), environment={"MARK": "s-mark"})

    def built(self, repository: Path, tmp_path: Path) -> tuple[build.Built, list[str]]:
        said: list[str] = []
        file = repository / "plumb.yaml"
        return build.build(file, model.present_code(file), self.stack(tmp_path), said.append), said

    def test_a_commit_is_built_once(self, repository, tmp_path):
        (repository / "untracked").write_text("")
        found, said = self.built(repository, tmp_path)
        assert [line.split(" ", 2)[1] for line in said] == ["building"]
        assert (found.folder / "heat").read_text() == "built with s-mark\n"
        assert not (found.folder / "untracked").exists()
        assert self.built(repository, tmp_path) == (found, [])
        assert build.executable("./heat", found.folder, self.stack(tmp_path)) == found.folder / "heat"

    @pytest.mark.parametrize("name", ["plumb.yaml", "heat", "input/a"])
    @pytest.mark.parametrize("gone", [False, True])
    def test_a_file_that_a_program_changed_is_made_again(self, repository, tmp_path, name, gone):
        (repository / "input").mkdir()
        (repository / "input" / "a").write_text("1 2 3\n")
        program = {**GOOD["programs"]["heat"], "inputs": ["input"]}
        written(repository, {**GOOD, "programs": {"heat": program}})
        git(repository, "add", ".")
        file = self.built(repository, tmp_path)[0].folder / name
        before = file.read_text()
        (file.unlink() if gone else file.write_text("changed"))
        _, said = self.built(repository, tmp_path)
        assert f": {name} of " in said[0]
        assert said[0].endswith("was changed since it was built: it is built again")
        assert file.read_text() == before
        assert self.built(repository, tmp_path)[1] == []

    def test_its_variables_reach_the_build_and_make_another_one(self, repository, tmp_path):
        file = repository / "plumb.yaml"
        state = model.present_code(file)
        builds = [
            build.build(file, dataclasses.replace(state, variables=given), self.stack(tmp_path), lambda _: None)
            for given in ((), (("MARK", "mine"),), (("MARK", "other"),))
        ]
        assert [(one.folder / "heat").read_text().split()[-1] for one in builds] == ["s-mark", "mine", "other"]
        assert builds[1].source.label == f"{state.identity[:12]}, MARK=mine"

    def test_a_hook_that_builds_does_not_name_its_repository(self, repository, tmp_path, monkeypatch):
        monkeypatch.setattr(build.surroundings, "of_user", lambda: {"GIT_DIR": "theirs", "THEIRS": "kept"})
        around = build.environment(self.stack(tmp_path))
        assert ("GIT_DIR" in around, around["THEIRS"]) == (False, "kept")

    def test_what_the_repository_has_is_not_touched(self, repository, tmp_path):
        self.built(repository, tmp_path)
        assert git(repository, "status", "--porcelain", "--ignored") == ""

    def test_a_build_that_fails_is_one_line_and_tried_again(self, repository, tmp_path):
        written(repository, {**GOOD, "build": ["echo 'heat.c:3: error: no such type'; false"]})
        for _ in range(2):
            with pytest.raises(PlumbError, match=r"fails with s: heat\.c:3: error: no such type"):
                self.built(repository, tmp_path)

    def test_the_build_may_make_what_launches_read_and_has_to(self, repository, tmp_path):
        program = {**GOOD["programs"]["heat"], "inputs": ["case"], "copy": ["state"], "stdin": "case/in"}
        written(repository, {**GOOD, "programs": {"heat": program}})
        with pytest.raises(PlumbError, match=r"programs\.heat\.inputs: there is no case after the build"):
            self.built(repository, tmp_path)
        made = ["mkdir case", "touch case/in state"]
        written(repository, {**GOOD, "build": GOOD["build"] + made, "programs": {"heat": program}})
        assert self.built(repository, tmp_path)[0].folder.joinpath("state").is_file()

    def test_a_pointer_of_git_lfs_is_no_input(self, repository, tmp_path):
        pointer = build.POINTER.decode() + "v1\noid sha256:1\nsize 9\n"
        (repository / "data").write_text(pointer)
        written(repository, {**GOOD, "programs": {"heat": {**GOOD["programs"]["heat"], "copy": ["data"]}}})
        git(repository, "add", ".")
        with pytest.raises(PlumbError, match=r"a pointer of Git LFS.*/data\): git lfs install, then git lfs pull"):
            self.built(repository, tmp_path)

    def test_what_was_written_into_the_build_makes_it_anew(self, repository, tmp_path):
        folder = self.built(repository, tmp_path)[0].folder
        (folder / "__pycache__").mkdir()
        (folder / "__pycache__" / "a.pyc").touch()
        assert self.built(repository, tmp_path)[1] == []
        (folder / "plan").touch()
        assert ": plan of " in self.built(repository, tmp_path)[1][0]
        assert not (folder / "plan").exists()

    def test_a_stack_that_cannot_build_it_does_not_end_the_others(self, repository, tmp_path, monkeypatch):
        written(repository, {**GOOD, "build": ['[ "$(mpicc)" = b ] && exit 1; cp plumb.yaml heat; chmod +x heat']})
        stacks = {}
        for name in "ab":
            (tmp_path / name / "bin").mkdir(parents=True)
            mpicc = tmp_path / name / "bin" / "mpicc"
            mpicc.write_text(f"#!/bin/sh\necho {name}; echo 'x.c:1:1: error: no {name}' >&2\n")
            mpicc.chmod(0o755)
            stacks[name] = replace(stack_manifest.made(name), prefix=str(tmp_path / name))
        monkeypatch.setattr(manifest, "load", stacks.get)
        monkeypatch.setattr(manifest, "load_all", lambda: list(stacks.values()))
        file, said = repository / "plumb.yaml", []
        tests = campaign.prepared(file, model.present_code(file), ["b", "a"], tmp_path / "list", said.append)
        assert tests.unbuilt == ["not built with b: x.c:1:1: error: no b"]
        assert "fails with b: x.c:1:1: error: no b" in said[-1]
        with pytest.raises(PlumbError, match="fails with b"):
            campaign.prepared(file, model.present_code(file), ["b"], tmp_path / "list", said.append)

    def test_a_program_that_the_build_did_not_make(self, repository, tmp_path):
        found, _ = self.built(repository, tmp_path)
        for word, cure in (("./cold", "build has to make it"), ("cold", "write ./cold if it is a file")):
            with pytest.raises(PlumbError, match=f"there is no program {word}.*{cure}"):
                build.executable(word, found.folder, self.stack(tmp_path))

    def test_the_standard_abi_is_one_build_for_all_stacks_that_have_it(self, repository, tmp_path, monkeypatch):
        lines = ["mpicc -show > heat", "mpicxx -show >> heat", "chmod +x heat"]
        written(repository, {**GOOD, "mpi_abi": "standard", "build": lines})
        every = []
        for name in ("a", "b", "none"):
            prefix = tmp_path / name
            (prefix / "lib").mkdir(parents=True)
            if name != "none":
                (prefix / "lib" / abi.LIBRARY).touch()
            every.append(replace(stack_manifest.made(name), prefix=str(prefix)))
        monkeypatch.setattr(manifest, "load_all", lambda: every)
        file = repository / "plumb.yaml"
        builds = [build.build(file, model.present_code(file), stack, lambda _: None) for stack in every[:2]]
        assert builds[0].folder == builds[1].folder
        of_c, of_cxx = (builds[0].folder / "heat").read_text().splitlines()
        first = tmp_path / "a"
        assert of_c.endswith(f"/gcc -DMPI_ABI -I{first / 'include'} -L{first / 'lib'} -lmpi_abi")
        assert of_cxx.endswith(f"/g++ -DMPI_ABI -I{first / 'include'} -L{first / 'lib'} -lmpi_abi")
        with pytest.raises(PlumbError, match=r"none does not have the standard MPI ABI.*stacks that have it: a, b$"):
            build.build(file, model.present_code(file), every[2], lambda _: None)

    @pytest.mark.parametrize("is_cloned", [True, False])
    def test_submodules_beside_the_origin_are_in_the_copy(self, repository, tmp_path, monkeypatch, is_cloned):
        asked = {"COUNT": "1", "KEY_0": "protocol.file.allow", "VALUE_0": "always"}  # git refuses files as submodules
        for name, value in asked.items():
            monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
        (tmp_path / "lib").mkdir()
        git(tmp_path / "lib", "init", "-q")
        git(tmp_path / "lib", "commit", "-q", "--allow-empty", "-m", "first")
        git(repository, "submodule", "--quiet", "add", "../lib", "lib")
        git(repository, "commit", "-qm", "with a library")
        checkout = repository
        if is_cloned:
            checkout = tmp_path / "user" / "heat"
            git(tmp_path, "clone", "-q", str(repository), str(checkout))
        found, _ = self.built(checkout, tmp_path)
        assert git(found.folder / "lib", "rev-parse", "HEAD") == git(tmp_path / "lib", "rev-parse", "HEAD")

    def test_a_subfolder_of_a_repository_may_have_the_file(self, tmp_path):
        folder = tmp_path / "all" / "heat"
        folder.mkdir(parents=True)
        written(folder, GOOD)
        git(tmp_path / "all", "init", "-q")
        git(tmp_path / "all", "add", "-A")
        git(tmp_path / "all", "commit", "-qm", "first")
        found, _ = self.built(folder, tmp_path)
        assert found.folder.name == "heat"
        assert self.built(folder, tmp_path)[0] == found


def test_the_files_in_the_documentation_are_in_order(tmp_path):
    page = (paths.root() / "docs" / "applications.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```yaml\n(application: .*?)^```", page, re.MULTILINE | re.DOTALL)
    assert examples
    for text in examples:
        file = written(tmp_path, text)
        for name in ("study.py", "data"):
            (tmp_path / name).write_text("")
        assert model.load(file).programs


def test_a_name_in_path_is_not_that_of_a_copy():
    program = model.Program(command="python", figures={}, copy=["python", "bin"])
    copied = [program.copies(word) for word in ("python", "./python", "bin/heat", "./binary/heat")]
    assert copied == [False, True, True, False]


def test_every_key_is_documented():
    page = (paths.root() / "docs" / "applications.md").read_text(encoding="utf-8")
    for kind in (model.Application, model.Program, FigureRule, CheckRule):
        for name in kind.__struct_fields__:
            assert f"`{name}`" in page, name


def test_a_program_that_is_gone_is_named_with_the_way_to_build_it_again():
    state = ApplicationState(name="heat", program="heat", commit="a" * 40)
    context = {"program": "/no/heat", "command": ["/no/heat"]}
    gone = samples.asked(benchmark="application", parser="application", context=context, application=state)
    with pytest.raises(PlumbError, match=f"not there any more .*plumb run --commit {'a' * 40} builds it again"):
        entry_of(gone, stack_manifest.made("s"))


def test_the_commit_of_a_record_is_that_of_the_application():
    state = ApplicationState(name="heat", program="heat", commit="abc" + "0" * 37)
    ours = model_of_records.convert(samples.record())
    theirs = replace(ours, variant=replace(ours.variant, application=state))
    has = compare.KINDS["commit"].has
    assert [has(theirs, "abc"), has(ours, "abc")] == [True, False]
    assert has(ours, ours.suite.commit)
    assert not has(theirs, ours.suite.commit)
    assert f"program    heat of heat, {state.commit[:12]}" in show.text(theirs)
    built = replace(theirs.variant, application=replace(state, build={"CFLAGS": "-O3"}))
    assert f"{state.commit[:12]}, CFLAGS=-O3" in show.text(replace(theirs, variant=built))


@pytest.mark.parametrize(("words", "said"), [
    (["--minutes", "1"], "--minutes goes with --any-mpi (plumb run): --launches N limits the launches"),
    (["--any-mpi", "--launches", "2"], "--any-mpi measures the files as they are now, until it is certain"),
    (["--any-mpi", "--commit", "HEAD"], "leave out --commit, --launches and -S"),
    (["--any-mpi", "--stack", "mpich"], "mpich alone is nothing to compare"),
    (["--any-mpi", "--application", "/nosuch/plumb.yaml", "--stack", "a", "--stack", "b"], "plumb.yaml"),
])  # fmt: skip
def test_options_of_run_that_do_not_go_together_are_one_line(repository, monkeypatch, refused, words, said):
    monkeypatch.chdir(repository)
    error = refused(3 if "--any-mpi" in words else 2, "run", *words)
    assert said in error


def test_run_measures_on_the_partition_that_is_named(repository, monkeypatch):
    asked: list[Any] = []
    tests = campaign.Tests([repository], "heat", [], {})
    monkeypatch.setattr(measure, "prepared", lambda *_: tests)
    monkeypatch.setattr(measure.campaign, "measure", lambda tests: asked.append(tests.options) or 0)
    monkeypatch.setattr(measure.fastest, "gates", lambda *told: asked.append(told[2]))
    monkeypatch.setattr(measure.fastest, "find", lambda stacks, compare: ({}, 0))
    builds = [SimpleNamespace(stack="a"), SimpleNamespace(stack="b")]
    monkeypatch.setattr(measure.campaign, "built", lambda *_: (builds, []))
    monkeypatch.chdir(repository)
    words = ["run", "--stack", "a", "--stack", "b", "--site", "here"]
    for more in ([], ["--partition", "cpu"], ["--any-mpi"], ["--any-mpi", "--partition", "cpu"]):
        assert cli.main([*words, *more]) == 0
    assert [asked[0][-1], asked[1][-1], *asked[2:]] == ["--system=here", "--system=here:cpu", "here", "here:cpu"]


def test_a_file_outside_of_the_repository_describes_commits_without_one(repository, tmp_path):
    git(repository, "rm", "-q", "plumb.yaml")
    (repository / "code.c").write_text("")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "without")
    file = written(tmp_path, {**GOOD, "code": "heat"})
    for source in (model.present_code(file), model.code_of_commit(file, "HEAD")):
        assert (source.folder, source.commit) == (repository, git(repository, "rev-parse", "HEAD"))
    file.write_text(yaml.safe_dump({**GOOD, "code": "nowhere"}))
    with pytest.raises(PlumbError, match="code: there is no folder"):
        model.load(file)


@pytest.mark.parametrize(("pattern", "count"), [
    ("", 9),
    ("heat_a", 4),
    ("heat_a%placement=core", 2),
    (r".*threads=2$", 2),
    ("heat_b|heat_a.*=none", 3),
    ("no", 0),
])  # fmt: skip
def test_of_many_variants_reframe_makes_those_that_a_pattern_means(tmp_path, monkeypatch, pattern, count):
    """ReFrame selects by the names that it gives them, which those of all variants show."""
    figures = {"time": FigureRule(wall=True)}
    program = model.Program(command="a", figures=figures, placements=["core", "none"], threads=[1, 2])
    many = model.Program(command="a", figures=figures, placements=["core", "none", "node", "numa"])
    programs = {"a": program, "b": model.Program(command="b", figures=figures), "c": many}
    state = ApplicationState(name="heat", program="")
    listing = tmp_path / "list.json"
    listing.write_bytes(msgspec.json.encode(build.Runnable(code=state, programs=programs, stacks={})))
    monkeypatch.setenv(build.VARIABLE, str(listing))

    def names(pattern):
        monkeypatch.setenv(build.PATTERN, pattern)
        declared: list[Any] = []
        monkeypatch.setattr(reframe, "simple_test", declared.append)
        runpy.run_path(str(Path(campaign.__file__).with_name("applications.py")))
        for test in declared:
            for number in range(test.num_variants):
                params = test.get_variant_info(number)["params"]
                yield test.__name__ + "".join(f"%{name}={value}" for name, value in params.items())

    assert [*names(pattern)] == [name for name in names("") if re.match(pattern, name)]
    assert len([*names(pattern)]) == count


def test_builds_in_the_folder_of_the_code_are_no_part_of_it(tmp_path, monkeypatch):
    """Without git the folder itself is copied: its builds would go into themselves without end."""
    folder = tmp_path / "code"
    folder.mkdir()
    file = written(folder, GOOD)
    monkeypatch.setenv("PLUMB_BUILD", str(folder / "builds"))
    before = model.present_code(file)
    target = folder / "builds" / "applications" / "state"
    target.parent.mkdir(parents=True)
    (target.parent / "log").write_text("built")
    assert model.present_code(file).identity == before.identity
    model.check_out(before, target)
    assert sorted(path.name for path in target.iterdir()) == ["plumb.yaml"]
