"""What programs are compiled for where nodes are older than this host, and that none starts where it would die."""

import json
import socket

import pytest
import samples
import stack_manifest

from plumbline.base.errors import PlumbError
from plumbline.launch import prepare
from plumbline.records.variant import checked
from plumbline.stacks import instructions, manifest, stream

V4 = ["avx", "avx2", "avx512dq", "avx512f", "avx512vl", "fma", "sse2", "sse4_2"]
V3 = ["avx", "avx2", "fma", "sse2", "sse4_2"]
#: of gcc 12 -march=znver4 -dM -E, and of -mcpu=neoverse-v1, cut
HELP = """#define __AVX2__ 1
#define __AVX512F__ 1
#define __LZCNT__ 1
#define __SHA__ 1
#define __VERSION__ "12.2.0"
"""
ARM = """#define __ARM_FEATURE_SVE 1
#define __ARM_FEATURE_ATOMICS 1
#define __ARM_FEATURE_DOTPROD 1
#define __ARM_FEATURE_FMA 1
"""


@pytest.fixture
def host(monkeypatch, tmp_path):
    """A login host with these flags, and facts of nodes."""
    monkeypatch.setenv("PLUMB_BUILD", str(tmp_path))
    monkeypatch.delenv("PLUMB_CPU", raising=False)
    monkeypatch.setattr(instructions.platform, "machine", lambda: "x86_64")

    def made(flags=(*V4, "ht", "abm"), nodes=None):
        monkeypatch.setattr(instructions.Reader, "flags", lambda _: set(flags))
        for name, simd in (nodes or {}).items():
            file = tmp_path / "nodes" / "main" / f"{name}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(simd if isinstance(simd, str) else json.dumps({"cpu": {"simd": simd}}))

    return made


@pytest.mark.parametrize(("nodes", "target"), [
    ({}, ()),
    ({"n1": V4, "n2": V4}, ()),
    ({"n1": V4, "n2": V3}, ("-march=x86-64-v3",)),
    ({"n1": V3}, ("-march=x86-64-v3",)),
    ({"n1": V4, "n2": ["avx", "sse2", "sse4_2"]}, ("-march=x86-64-v2",)),
    ({"n1": ["sse2"], "n2": V3}, ("-march=x86-64",)),
    ({"n1": [*V4, "avx512_bf16"]}, ()),
    ({"n1": V4, "arm": ["asimd", "sve"], "job": "{}", "bad": "{"}, ()),
])  # fmt: skip
def test_programs_are_compiled_for_what_all_nodes_have(host, nodes, target):
    host(nodes=nodes)
    assert instructions.target() == target
    assert stream.Compiler.find().target == target


def test_a_login_host_newer_by_some_of_avx512_compiles_for_the_level_of_the_nodes(host):
    host(flags=[*V4, "avx512_vnni"], nodes={"n1": V4})
    assert instructions.target() == ("-march=x86-64-v4",)


def test_a_login_host_that_is_older_than_the_nodes_compiles_for_itself(host):
    host(flags=V3, nodes={"n1": V4})
    assert instructions.target() == ()


def test_facts_that_come_later_count(host):
    host(nodes={"n1": V4})
    assert instructions.target() == ()
    host(nodes={"n2": V3})
    assert instructions.target() == ("-march=x86-64-v3",)


@pytest.mark.parametrize(("named", "target"), [("haswell", ("-march=haswell",)), ("native", ()), ("", ())])
def test_a_person_says_the_processor(host, monkeypatch, named, target):
    host(nodes={"n1": V3} if named else {})
    monkeypatch.setenv("PLUMB_CPU", named)
    assert instructions.target() == target


def test_gcc_8_has_no_levels_but_processors(host, monkeypatch):
    host(nodes={"n1": V3})
    assert instructions.target("8.5.0") == ("-march=haswell",)
    monkeypatch.setenv("PLUMB_CPU", "x86-64-v4")
    assert instructions.target("10.2.1") == ("-march=skylake-avx512",)
    assert instructions.target("11.4.1") == ("-march=x86-64-v4",)


def test_an_arm_host_compiles_for_what_all_nodes_have(host, monkeypatch):
    host(flags=["asimd", "sve", "atomics"], nodes={"n1": ["asimd"]})
    monkeypatch.setattr(instructions.platform, "machine", lambda: "aarch64")
    assert instructions.target() == ("-mcpu=generic",)
    assert instructions.needed(ARM, ()) == "atomics sve"
    assert instructions.needed(ARM, ("-mcpu=neoverse-v1",)) == "asimddp atomics sve"


@pytest.mark.parametrize("named", ["-O0", "a b", "x86-64-v33", "x86-64-v3 -fplugin=/x.so", "haswell;-c", "$(id)"])
def test_what_the_compiler_does_not_know_is_no_processor(host, monkeypatch, named):
    host()
    monkeypatch.setenv("PLUMB_CPU", named)
    with pytest.raises(PlumbError, match="names no processor that gcc"):
        stream.Compiler.find()


def test_what_programs_need_is_what_the_compiler_uses_and_the_kernel_shows(host):
    host(flags=["avx2", "abm", "sha_ni"])
    assert instructions.needed(HELP, ()) == "abm avx2", "gcc knows more of this processor than its kernel shows"
    assert instructions.needed(HELP, ("-march=znver4",)) == "abm avx2 avx512f"
    assert instructions.needed("", ()) == ""


def test_no_launch_begins_on_a_node_that_lacks_instructions(host, monkeypatch):
    entry = stack_manifest.made().benchmarks["pi"]
    entry.facts["instructions"] = "abm avx2 avx512_bf16 avx512_vnni avx512f"
    monkeypatch.setattr(prepare, "entry_of", lambda *_: entry)
    monkeypatch.setattr(prepare.manifests, "load", lambda _: stack_manifest.made("one"))
    host(flags=V3)
    with pytest.raises(PlumbError) as refused:
        prepare.prepare(samples.variant(benchmark="pi", stack="one"), "session")
    shown = str(refused.value)
    assert "this node lacks avx512f, avx512_bf16 and 2 more" in shown
    assert shown.endswith(": PLUMB_CPU=x86-64-v3 plumb stack install one")
    assert len(shown) < 200, "the line of a failed case is cut"


def test_each_node_of_several_is_asked(monkeypatch):
    part = samples.partition(scheduler="ssh", hosts=[socket.gethostname(), "n2"])
    monkeypatch.setattr(prepare.site, "load", lambda _: None)
    monkeypatch.setattr(prepare.site, "partition", lambda *_: part)
    needs = manifest.load("openmpi").benchmarks["pi"].facts["instructions"].replace(" ", ",")
    for nodes, placement in ((1, "core"), (2, "roundrobin")):
        described = samples.variant(
            benchmark="pi", stack="openmpi", nodes=nodes, placement=placement, threads=1, ranks_per_node=1
        )
        command = prepare.prepare(checked(described, "variant"), "session").record.command
        assert (f"--needs {needs} " in " ".join(command)) == (nodes > 1)


@pytest.mark.parametrize("flags", [V4, ()])
def test_a_node_that_has_them_or_does_not_say_is_not_refused(host, flags):
    host(flags=flags)
    instructions.refuse({"instructions": "avx2 avx512f"}, "pi", "one")
    instructions.refuse({}, "pi", "one")


@pytest.mark.parametrize(
    ("recorded", "nodes", "again"),
    [("avx2 fma", {"n1": V3}, False), ("avx2 avx512f", {"n1": V3}, True), (None, {"n1": V3}, True), (None, {}, False)],
)
def test_a_stack_whose_stream_dies_on_a_node_is_made_again(host, monkeypatch, recorded, nodes, again):
    host(nodes=nodes)
    monkeypatch.setattr(stream.Compiler, "needed", lambda _: "abm avx2 fma")
    entry = stack_manifest.made().benchmarks["pi"]
    entry.facts.update({} if recorded is None else {"instructions": recorded})
    assert bool(stream.unfit(stack_manifest.made("one", benchmarks={"stream": entry}))) == again
