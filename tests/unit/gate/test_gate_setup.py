"""What a live gate is made of before it measures: sides, variants, margins, options; and its page."""

import itertools
import json
import re
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pieces
import pytest
import samples
import stack_manifest
from gate_pairs import pairs_of
from msgspec.structs import replace

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.gate import page, rules, setup, sides, variants
from plumbline.judge import decide
from plumbline.judge.pairs import pairs_of_records
from plumbline.measure.reframe import settings
from plumbline.records import model
from plumbline.records.variant import checked
from plumbline.show.pages import render
from plumbline.stacks import manifest as manifests
from plumbline.stacks.manifest import Launcher
from plumbline.statistics.paired import PairedRule


def manifest(name, folder, **benchmarks):
    program = folder / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    made = {ident: manifests.benchmark(suite, "1", program, "by a test") for ident, suite in benchmarks.items()}
    return replace(
        stack_manifest.made(name),
        launcher=Launcher(family="hydra", command=str(program)),
        prefix=str(folder),
        benchmarks=made,
        loads=manifests.NOT_RECORDED,
    )


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with two commits of its kernels and one installed stack, ``mpich``."""
    root = tmp_path / "root"
    (root / "custom-kernels").mkdir(parents=True)
    git = ["git", "-C", str(root), "-c", "user.name=n", "-c", "user.email=n@n"]
    subprocess.run([*git, "init", "-q"], check=True)
    for text in ("one", "two"):
        (root / "custom-kernels" / "kernel.c").write_text(text)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", text], check=True)
    monkeypatch.setattr(paths, "root", lambda: root)
    for name in ("BUILD", "STACKS", "SITES"):
        monkeypatch.setenv(f"PLUMB_{name}", str(tmp_path / name.lower()))
    (tmp_path / "stacks" / "mpich").mkdir(parents=True)
    manifests.save(manifest("mpich", tmp_path, stream="stream", old_kernel="kernels"))
    return root


def test_a_side_is_a_stack_or_a_commit(checkout):
    assert sides.resolve("baseline", "mpich", None) == sides.Side("baseline", "mpich")
    side = sides.resolve("candidate", "HEAD~1", "mpich")
    assert re.fullmatch("[0-9a-f]{40}", side.commit)
    assert side.measured == f"mpich@{side.commit[:12]}"


@pytest.mark.parametrize(("given", "stack", "said"), [
    ("mpch", None, "'mpch' is neither an installed stack nor a commit (plumb gate --baseline): installed: mpich"),
    ("--all", "mpich", "'--all' is neither"),
    ("HEAD", None, "the stack to build it against is missing"),
    ("HEAD", "openmpi", "stack 'openmpi' is not installed"),
    ("placement:core", None, "'placement:core' does not say on which stack"),
    ("stack:mpich,placement:core,placement:numa", None, "has two values of placement"),
    ("stack:mpich,threads:0", None, "'0' is not a number of threads"),
    ("stack:mpich,setting:eager", None, "'eager' is not NAME=VALUE (plumb gate --baseline setting)"),
    ("stack:mpich,program:./a", None, "a program of your own needs a plumb.yaml"),
    (".", "mpich", "'.' is the state of an application, and there is no plumb.yaml here"),
])  # fmt: skip
def test_an_unknown_side_is_one_clear_line(checkout, given, stack, said):
    with pytest.raises(PlumbError) as caught:
        sides.resolve("baseline", given, stack)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_side_is_a_set_of_circumstances(checkout):
    given = "stack=mpich,placement:numa,threads=4,setting:btl=self,vader,variable:A=1,variable:B=x=y"
    side = sides.resolve("baseline", given, None)
    assert (side.stack, side.commit) == ("mpich", None)
    assert side.label == f"mpich ({given})"
    changed = side.changes.of(samples.asked(params={"placement": "core", "operation": "bw"}, environment={"A": "0"}))
    assert (changed.placement, changed.threads) == ("numa", 4)
    assert changed.params == {"placement": "numa", "operation": "bw", "threads": 4}
    assert changed.settings == {"btl": "self,vader"}
    assert changed.environment == {"A": "1", "B": "x=y"}


def test_a_setting_for_a_program_without_mpi_is_refused(checkout, monkeypatch, tmp_path):
    """Before the gate has a session, so also before a job is asked for."""
    both = [sides.resolve("candidate", text, None) for text in ("mpich", "stack:mpich,setting:eager=64")]
    found = variants.Listing({"mpich": {"a": samples.asked(name="a", stack="mpich")}})
    monkeypatch.setattr(variants, "list_variants", lambda *words: found)
    with pytest.raises(PlumbError, match=r"without MPI takes no setting of an MPI library: eager \(a\): leave"):
        setup.prepare(setup.GateRequest((both[0], both[1]), folder=tmp_path / "gate"), lambda line: None)
    assert not (tmp_path / "gate" / "state.json").exists()


def test_sides_that_differ_in_placement_are_paired_without_it(checkout):
    given = {"baseline": "mpich", "candidate": "placement:numa"}
    both = [sides.resolve(role, side, "mpich") for role, side in given.items()]
    every = {}
    for operation, placement in itertools.product(("bw", "latency"), ("core", "numa")):
        name, params = f"{operation} {placement}", {"placement": placement, "operation": operation}
        every[name] = samples.asked(test="t", name=name, params=params)
    couples, notes = setup.couple(*(setup.Offer(side, every, {}) for side in both), common=False)
    names = [[variant.name for variant in couple] for couple in couples]
    assert names == [["t %operation=bw"] * 2, ["t %operation=latency"] * 2]
    assert {couple[0].params["placement"] for couple in couples} == {"core"}
    assert {couple[1].placement for couple in couples} == {"numa"}
    assert notes == []


#: which place the programs of a plumb.yaml; taken before a test is in a checkout of its own
TOOLS = str(paths.tools())


def test_a_commit_of_an_application_is_one_of_its_repository(checkout, tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_TOOLS", TOOLS)
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "plumb.yaml").write_text("{application: a, programs: {a: {command: ./a, figures: {time: {wall: true}}}}}")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    side = sides.resolve("baseline", "HEAD", "mpich", folder / "plumb.yaml")
    assert side.commit is None
    assert side.measured == "mpich"
    assert len(side.code.commit) == 40
    assert side.label == f"HEAD ({side.code.commit[:12]} on mpich)"
    assert sides.resolve("candidate", ".", "mpich", folder / "plumb.yaml").code == side.code
    given = "build:CFLAGS=-O3 -g,build:LDFLAGS=-Wl,-O1,variable:X=1"
    built = sides.resolve("candidate", given, "mpich", folder / "plumb.yaml")
    assert built.code.variables == (("CFLAGS", "-O3 -g"), ("LDFLAGS", "-Wl,-O1"))
    assert built.changes.variables == {"X": "1"}
    assert built.code.identity == side.code.identity
    assert built.code.key != side.code.key
    with pytest.raises(PlumbError, match=r"variables of a build need a plumb.yaml"):
        sides.resolve("candidate", "build:CFLAGS=-O3", "mpich")
    with pytest.raises(PlumbError, match="'HEAD~1' is neither an installed stack nor a commit"):
        sides.resolve("candidate", "HEAD~1", "mpich", folder / "plumb.yaml")


def test_a_commits_kernels_are_built_once_and_anew_when_the_stack_changed(checkout, tmp_path):
    seen = []

    def build(base, source, prefix):
        seen.append((source / "kernel.c").read_text())
        assert prefix == tmp_path / "stacks" / side.measured / "kernels"
        assert prefix.parent.is_dir()
        return manifest("x", tmp_path, new_kernel="kernels").benchmarks

    side = sides.resolve("candidate", "HEAD~1", "mpich")
    made = sides.install_side(side, build)
    assert seen == ["one"]
    assert manifests.load(side.measured) == made
    assert set(made.benchmarks) == {"stream", "new_kernel"}
    assert sides.install_side(side, build) == made
    assert len(seen) == 1
    base = manifests.load("mpich")
    manifests.save(replace(base, mpi=replace(base.mpi, version="6")))
    assert sides.install_side(side, build).mpi.version == "6"
    assert len(seen) == 2
    assert sides.install_side(sides.resolve("baseline", "mpich", None), build) == manifests.load("mpich")


def test_a_commit_without_kernels_and_a_broken_checkout(checkout):
    side = sides.resolve("candidate", "HEAD", "mpich")
    with pytest.raises(PlumbError, match="has no kernels"):
        sides.install_side(side, lambda *_: {})
    assert side.measured not in manifests.names()
    with pytest.raises(PlumbError, match="git refuses: not a"):
        sides.checkout("0" * 40)
    assert not (paths.build() / "commits" / ("0" * 40)).exists()


def test_two_gates_that_install_the_same_commit_at_once_build_it_once(checkout, tmp_path):
    """The first build runs until the second gate has had time to interfere; its files must still be there."""
    side = sides.resolve("candidate", "HEAD", "mpich")
    builds, second_begins = [], threading.Event()

    def build(base, source, prefix):
        builds.append(prefix)
        if len(builds) > 1:
            second_begins.set()
            raise AssertionError("the second gate builds in the folder of the first")
        (prefix / "bin").mkdir(parents=True)
        other.start()
        second_begins.wait(0.5)
        assert (prefix / "bin").is_dir()
        return manifest("x", tmp_path, new_kernel="kernels").benchmarks

    with ThreadPoolExecutor(1) as pool:
        answers = []
        other = SimpleNamespace(start=lambda: answers.append(pool.submit(sides.install_side, side, build)))
        made = sides.install_side(side, build)
        assert answers[0].result(timeout=300) == made
    assert len(builds) == 1


OUTPUT = """
[----------] start processing checks
[ DRY      ] osu_pair %operation=latency %placement=pair:l3 /04b4ad98 @local:default+mpich
[ DRY      ] suite_integrity /29b0765b @local:default+mpich
[     SKIP ] ( 1/100) osu_pair %operation=bw %placement=pair:numa /493a440b @local:default+mpich [no two cores]
[     SKIP ] ( 2/100) imb_pair %placement=pair:l3 /493a440c @local:default+openmpi [stack openmpi has no imb-mpi1]
"""


def stage(folder, *found):
    for number, variant in enumerate(found):
        (folder / str(number)).mkdir(parents=True)
        (folder / str(number) / "variant.json").write_text(json.dumps(variant))
    return folder


def test_variants_and_skips_come_from_reframes_dry_run(tmp_path):
    found = variants.read(OUTPUT, stage(tmp_path, samples.variant(stack="mpich"), samples.variant()))
    assert set(found.variants) == {"mpich", "openmpi"}
    assert found.of("intelmpi") == {}
    assert found.skips == {
        "mpich": {"osu_pair %operation=bw %placement=pair:numa": "no two cores"},
        "openmpi": {"imb_pair %placement=pair:l3": "stack openmpi has no imb-mpi1"},
    }


def test_skips_of_a_tuned_stack_are_found_by_the_name_of_its_environment(tmp_path):
    stacks = {settings.environment_name(name): name for name in ("openmpi", "openmpi+tuned")}
    output = OUTPUT.replace("+openmpi [", "+openmpi_tuned [")
    found = variants.read(output, stage(tmp_path, samples.variant(stack="openmpi+tuned")), stacks)
    assert set(found.skips) == {"mpich", "openmpi+tuned"}
    assert set(found.variants) == {"openmpi+tuned"}


def test_a_damaged_variant_and_one_of_two_partitions(tmp_path):
    with pytest.raises(PlumbError, match="variant"):
        variants.read("", stage(tmp_path / "a", {**samples.variant(), "launches": 0}))
    with pytest.raises(PlumbError, match="is there twice"):
        variants.read("", stage(tmp_path / "b", samples.variant(), samples.variant(partition="other")))


def listing(*names, other=(), **changes):
    made = {name: samples.asked(name=name, **changes) for name in (*names, *other)}
    return variants.Listing({"old": {n: made[n] for n in names}, "new": {**made}})


BOTH = (sides.Side("baseline", "old"), sides.Side("candidate", "new"))
PI = stack_manifest.LEAST["benchmarks"]["pi"]
OFFERS = [stack_manifest.made(benchmarks={"stream": PI | {"suite": "stream"}, "pi": PI})] * 2


def pair_up(found, both, manifests_, common):
    return setup.pair_up(*map(setup.offer_of, [found] * 2, both, manifests_), common)


def test_variants_of_both_sides_are_paired(tmp_path):
    found = listing("a", "b", other=("c",))
    found.skips = {"old": {"d": "too few cores", "e": "too few cores"}, "new": {"d": "x", "e": "x"}}
    couples, notes = pair_up(found, BOTH, OFFERS, False)
    assert [[variant.stack for variant in couple] for couple in couples] == [["old", "new"], ["old", "new"]]
    assert notes == ["not compared: c (only new can run it)", "skipped   2 x too few cores"]


def test_what_the_candidate_lost_is_an_error_unless_it_is_said_to_be_known():
    found = listing("a", "b")
    del found.variants["new"]["b"]
    with pytest.raises(PlumbError, match="new cannot run 1 of the 2 variants of old, such as b"):
        pair_up(found, BOTH, OFFERS, False)
    couples, notes = pair_up(found, BOTH, OFFERS, True)
    assert len(couples) == 1
    assert notes == ["not compared: b (only old can run it)"]


def test_of_two_commits_only_the_kernels_are_compared():
    found = listing("a")
    found.variants["old"]["b"] = samples.asked(name="b", benchmark="pi")
    commits = tuple(sides.Side(side.role, "old", digit * 40) for side, digit in zip(BOTH, "12", strict=True))
    couples, notes = pair_up(found, commits, OFFERS, False)
    assert [[variant.stack for variant in couple] for couple in couples] == [["old@" + "1" * 12, "old@" + "2" * 12]]
    assert notes == ["not compared: 1 variants whose program is the stack's on both sides"]
    assert couples[0][0].name == "b"


def test_nothing_in_common_and_two_partitions_are_errors():
    with pytest.raises(PlumbError, match="0 variants"):
        pair_up(listing("a"), BOTH, [replace(stack_manifest.made(), benchmarks={})] * 2, True)
    found = listing("a", "b")
    found.variants["old"]["b"] = samples.asked(name="b", partition="other")
    with pytest.raises(PlumbError, match="--partition"):
        pair_up(found, BOTH, OFFERS, False)


def write_rules(folder, text):
    file = folder / "rules.yaml"
    file.write_text(text)
    return file


def margins(variant):
    return {figure.name: (figure.tolerance, figure.must_detect) for figure in variant.figures}


FIGURES = [{"name": name, "metric": name, "where": {}} for name in ("latency", "bandwidth")]


def test_rules_then_the_test_then_the_command_line(tmp_path):
    of_osu = "{test: osu_.*, figure: latency, tolerance: 0.02, must_detect: 0.1}"
    file = write_rules(tmp_path, f'schema: 1\nrules: [{of_osu}, {{variant: "=pair:l3", must_detect: 0.2}}]')
    entries, where = rules.load(file, "local")
    figures = [FIGURES[0], {**FIGURES[1], "tolerance": 0.03, "must_detect": 0.07}]
    osu = samples.asked(test="osu_pair", name="osu_pair %placement=pair:numa", figures=figures)
    found = rules.settle(osu, entries, where, PairedRule())
    assert margins(found) == {"latency": (0.02, 0.1), "bandwidth": (0.03, 0.07)}
    imb = samples.asked(test="imb_pair", name="imb_pair %placement=pair:l3", figures=figures)
    found = rules.settle(imb, entries, where, PairedRule(0.005, 0.5))
    assert margins(found) == {"latency": (0.005, 0.2), "bandwidth": (0.03, 0.2)}
    checked(model.document(found), "here")


def test_optional_figures_are_not_gated():
    figures = [FIGURES[0], {**FIGURES[1], "optional": True}]
    found = rules.settle(samples.asked(figures=figures), [], "", PairedRule())
    assert [figure.name for figure in found.figures] == ["latency"]
    sides = [samples.record(id=ident, variant=samples.variant(figures=figures)) for ident in ("a" * 12, "b" * 12)]
    assert [series.name.rpartition(": ")[2] for series in pairs_of_records(*map(model.convert, sides))] == ["latency"]


def test_the_sites_rules_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path))
    assert rules.load(None, "here") == ([], "")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "gate.yaml").write_text("schema: 1\nrules: [{must_detect: 0.1}]\n")
    assert rules.load(None, "here") == ([rules.Entry(must_detect=0.1)], str(tmp_path / "here" / "gate.yaml"))


@pytest.mark.parametrize(("text", "said"), [
    ("schema: 1\nrules: [{test: x, tolerence: 0.1}]", "tolerence"),
    ("schema: 1\nrules: [{test: x}]", "rule 1 has no margin"),
    ("schema: 1\nrules: [{test: '(', tolerance: 0.1}]", "rule 1: '(' is not a regular expression"),
    ("schema: 1\nrules: [{test: 'a{99999999999}', tolerance: 0.1}]", "is not a regular expression: the repetition"),
    ("schema: 1\nrules: [{tolerance: -1}]", "-1"),
    ("schema: 1\nrules: [{tolerance: null, must_detect: 0.1}]", "tolerance"),
    ("schema: 2\nrules: []", "schema"),
    ("- 1", "not a mapping"),
    ("a: [", "not YAML"),
])  # fmt: skip
def test_bad_rules(tmp_path, text, said):
    with pytest.raises(PlumbError) as caught:
        rules.load(write_rules(tmp_path, text), "local")
    assert said in str(caught.value)
    assert "rules.yaml" in str(caught.value)


def test_absent_rules_and_margins_that_contradict(tmp_path):
    with pytest.raises(PlumbError, match="does not exist"):
        rules.load(tmp_path / "absent.yaml", "local")
    with pytest.raises(PlumbError, match="latency: tolerance"):
        rules.settle(samples.asked(figures=FIGURES), [rules.Entry(tolerance=0.1)], "rules.yaml", PairedRule())


@pytest.mark.parametrize(("options", "said"), [
    ("", "nothing to judge"),
    ("--baseline a", "nothing to judge"),
    ("--candidate a", "--candidate needs both sides"),
    ("--test x", "--test needs both sides"),
    ("s.jsonl --candidate a --baseline b", "two ways at once"),
    ("s.jsonl --pairs f.csv", "two ways at once"),
    ("s.jsonl --better lower", "--better goes with --pairs"),
    ("--pairs f.csv", "--pairs without a direction"),
    ("--pairs f.csv --better lower --baseline a", "--baseline goes with"),
    ("--resume d --baseline a", "--resume continues a gate that was started"),
    ("--resume d --seed 1", "--resume continues a gate that was started"),
    ("--resume absent/folder", "no such folder"),
    ("--baseline no-such --candidate mpich", "'no-such' is neither"),
    ("--baseline a --candidate b --tolerance 0.1", "must-detect"),
])  # fmt: skip
def test_options_that_do_not_go_together(options, said, checkout, refused):
    err = refused(3, "gate", *options.split())
    assert err.startswith("plumb: ")
    assert said in err


def read_page(text):
    """The data that a page shows; all else in the file is the same for every page."""
    (found,) = re.findall('<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found, parse_constant=pytest.fail)


def test_the_page_shows_every_pair_and_escapes_names():
    values = [10.0 + place % 5 * 0.01 for place in range(20)]
    slower = [value * 1.1 for value in values]
    found = [
        pairs_of("fine", values, values[::-1], "lower", again=[(0, 10.0, 11.0), (7, 10.0, 9.0)]),
        pairs_of("<script>alert('x')</script> & \"", values, slower, "lower"),
        pairs_of("rates", values, values[::-1], "higher", rule=PairedRule(0.02, 0.1)),
        pairs_of("short", values[:5], values[:5], "lower"),
        pairs_of("wild", values, [1e-300, *values[1:-1], 1e300], "lower"),
    ]
    made = page.document(decide.decide(found, PairedRule()), PairedRule(), [("repeat", "plumb gate --test 'a<b'")])
    text = render(made)
    assert text.count("<script") == 3  # data, library, the page's own
    assert "alert('x')</script>" not in text
    shown = read_page(text)
    drawn = {chart["title"]: chart for chart in pieces.blocks(shown, "chart")}
    assert len(drawn) == 4
    dots = {title: chart["series"][0] for title, chart in drawn.items()}
    assert sum(len(one["points"]) - len(one["hollow"]) for one in dots.values()) == 80
    fine = dots["fine"]
    assert [fine["points"][row] for row in fine["hollow"]] == [[20, 0.6, 1.1], [21, 7.6, 0.9]]
    assert [drawn["fine"]["rows"][row][1] for row in fine["hollow"]] == ["1.100", "0.900"]
    rows = pieces.rows(pieces.section(shown, "series"))
    assert [row[5] for row in rows if row[0] == "fine"] == ["2"]
    assert "<script>alert('x')</script> & \"" in [row[0] for row in rows]
    assert [one["pieces"] for one in pieces.blocks(shown, "command")] == [["plumb gate --test 'a<b'"]]
    assert "5 pairs: 13 are needed" in [row[-1] for row in rows]
    assert "2.0 % tolerated, 10 % must be seen" in drawn["rates"]["about"]
    assert [row[1] for row in rows][:2] == ["INVALID", "FAIL"]


def test_the_page_of_many_series_stays_small():
    values = [10.0 + place % 7 * 0.01 for place in range(90)]
    found = [pairs_of(f"s{number}", values, values[::-1], "lower") for number in range(1000)]
    text = render(page.document(decide.decide(found, PairedRule()), PairedRule(), []))
    shown = read_page(text)
    assert len(pieces.blocks(shown, "chart")) == page.DRAWN
    assert len(pieces.rows(shown)) == 1000
    assert len(text) < 5_000_000


def test_one_variant_and_one_figure_may_be_asked_for(checkout):
    both = [sides.resolve(role, "mpich", None) for role in ("baseline", "candidate")]
    figures = [{"name": name, "metric": name, "where": {}, "must_detect": 0.2} for name in ("triad", "copy")]
    every = {name: samples.asked(name=name, figures=figures) for name in ("one", "two")}
    offers = [setup.Offer(both[0], every, {}), setup.Offer(both[1], {"one": every["one"]}, {"two": "no memory"})]
    couples, _ = setup.couple(*offers, common=False, variant="one")
    assert [variant.name for couple in couples for variant in couple] == ["one", "one"]
    with pytest.raises(sides.Unusable) as caught:
        setup.couple(*offers, common=False, variant="two")
    assert str(caught.value) == "candidate mpich: it cannot run two (no memory)"
    ((variant, _),) = setup._with_figure("copy", couples)
    assert [figure.name for figure in variant.figures] == ["copy"]
    with pytest.raises(PlumbError, match=r"no figure 'cpy'.*did you mean 'copy'"):
        setup._with_figure("cpy", couples)


def test_margins_may_be_imposed():
    figures = [
        {"name": "triad", "metric": "triad", "where": {}, "tolerance": 0.1, "must_detect": 0.2},
        {"name": "steps", "metric": "steps", "where": {}, "optional": True},
    ]
    rule = PairedRule(0.02, 0.03)
    (figure,) = rules.settle(samples.asked(figures=figures), *rules.imposed(rule), rule).figures
    assert (figure.name, figure.tolerance, figure.must_detect) == ("triad", 0.02, 0.03)


@pytest.mark.parametrize(("log", "message"), [
    ("plumbline.base.errors.PlumbError: stack x is damaged (there)\n", "no test ran: stack x is damaged"),
    (
        "  * Reason: plumb error: there is no program ./code (there): build it\n"
        "Traceback (most recent call last):\n"
        "plumbline.base.errors.PlumbError: there is no program ./code (there): build it\n",
        "no test ran: there is no program ./code (there): build it",
    ),
])  # fmt: skip
def test_why_no_test_ran_is_said_by_the_reason_of_a_test_or_the_last_line_of_a_traceback(tmp_path, log, message):
    (tmp_path / "reframe.out").write_text(f'Traceback (most recent call last):\n  File "settings.py", line 3\n{log}')
    with pytest.raises(PlumbError, match="^" + re.escape(message)):
        variants._require(variants.Listing(), "mpich", None, tmp_path / "reframe.out")
