"""Listings of nodes in the forms of several versions of the schedulers.

The forms are those of recorded answers, manuals and issue trackers; names, numbers and reasons are invented.
"""

import json

import fake_scheduler
import pytest

from plumbline import schedulers
from plumbline.base.errors import PlumbError
from plumbline.schedulers import flux, pbs, sge, slurm


def pbs_file(name):
    return (fake_scheduler.DATA / "pbs" / name).read_text(encoding="utf-8")


def pbs_text(version, **nodes):
    listed = {name: {"Mom": f"{name}.x", "ntype": "PBS", **node} for name, node in nodes.items()}
    return json.dumps({"timestamp": 1, "pbs_version": version, "pbs_server": "s", "nodes": listed}, indent=4)


def sge_text(begin, *hosts):
    value = "<queuevalue qname='main.q' name='state_string'>{}</queuevalue>"
    listed = [f"<host name='{name}'><queue name='main.q'>{value.format(state)}</queue></host>" for name, state in hosts]
    return f"<?xml version='1.0'?>\n<qhost {begin}>\n<host name='global'/>{''.join(listed)}</qhost>"


SCHEMA = "gridengine/source/dist/util/resources/schemas/qhost/qhost.xsd"
SHARED = {"sharing": "default_shared", "resv_enable": "True"}

LISTINGS = [
    # Slurm: `*` since 1.2, `~` and `#` since 2.0, `-` since 21.08, `planned` since 22.05, `inval` since 20.11
    ("slurm 14.11", "n1|idle|none\nn2|allocated+|none\nn3|down*|Not responding\n", {"n1", "n2"}),
    ("slurm 17.11", "n1|mixed|none\nn2|idle~|none\nn3|draining@|kernel\n", {"n1", "n2"}),
    ("slurm 19.05", "n1|completing|none\nn2|idle#|none\nn3|reboot^|asked by root\n", {"n1", "n2"}),
    ("slurm 21.08", "n1|mixed-|none\nn2|idle%|none\nn3|powering_down|none\n", {"n1"}),
    ("slurm 23.02", "n1|planned|none\nn2|inval|gres/gpu count reported lower\nn3|idle!|none\n", {"n1"}),
    ("slurm 24.05", "n1|idle|none\nn2|blocked|none\nn3|drained$|maintenance\n", {"n1"}),
    ("slurm clusters", "CLUSTER: east\nn1|idle|none\nn2|idle|none\n", {"n1", "n2"}),
    ("slurm clusters", "CLUSTER: east\nn1|idle|none\n\nCLUSTER: west-2\nw1|down*|CLUSTER: gone\n", {"n1"}),
    # PBS: texts as they are up to 19; `<various>` where the virtual nodes of a host differ
    ("pbs 14.1", pbs_text("14.1.0", n1={"state": "free"}, n2={"state": "state-unknown,down"}), {"n1"}),
    ("pbs 18.1", pbs_file("18.1-quotes.json"), {"n1"}),
    ("pbs 18.1", pbs_file("18.1-newline.json"), {"n1"}),
    ("pbs 18.1", pbs_file("18.1-escape.json"), {"n1"}),
    ("pbs 18.1", pbs_file("18.1-vnodes.json"), {"n1"}),
    ("pbs 19.2", pbs_text("19.2.6", n1={"state": "<various>"}, n2={"state": "offline,job-exclusive"}), {"n1"}),
    ("pbs 20.0", pbs_text("20.0.1", n1={**SHARED, "state": "job-busy"}, n2={"state": "stale"}), {"n1"}),
    ("pbs 2022.1", pbs_text("2022.1.5", n1={**SHARED, "state": "free"}, n2={"state": "maintenance"}), {"n1"}),
    ("pbs 2024.1", '{"pbs_version":"2024.1.2","nodes":{"n1":{"state":"free"},"n2":{"Error":"Unknown node "}}}', {"n1"}),
    # Flux: drained and offline in two rows, `drain` before 0.38, `*` since 0.47, `torpid` since 0.64
    ("flux 0.36", "avail|n[1-3]|\noffline|n4|\nexclude|n5|\ndrain|n3|disk\n", {"n1", "n2"}),
    ("flux 0.46", "avail|n[1-2]|\noffline|n[3-4]|\ndraining|n2|late\ndrained|n3|bad | worse\n", {"n1"}),
    ("flux 0.60", "avail|n[1-2]|\navail*|n3|\nexclude*|n4|\ndrained*|n5|fan\n", {"n1", "n2"}),
    ("flux 0.66", "avail|n1|\nallocated|n2|\nhousekeeping|n3|\ntorpid|n1|\n", {"n2", "n3"}),
    # Grid Engine: Sun's, Open Grid Scheduler, Son of Grid Engine, Univa (with a namespace in some builds)
    ("sge 6.2", sge_text(f'xmlns:xsd="http://{SCHEMA}"', ("n1", ""), ("n2.x", "au"), ("n3", "d")), {"n1"}),
    ("sge 2011.11", sge_text(f'xmlns:xsd="http://{SCHEMA}"', ("n1", "a"), ("n2", "E"), ("n3", "adu")), {"n1"}),
    ("sge 8.1.9", sge_text(f'xmlns:xsd="https://arc/{SCHEMA}"', ("n1", ""), ("n2", "-au"), ("n3", "S")), {"n1"}),
    ("sge 8.6", sge_text(f'xmlns="https://univa/{SCHEMA}"', ("n1", ""), ("n2", "P"), ("n3", "Co")), {"n1", "n2"}),
]
READERS = {
    "slurm": slurm.read_nodes,
    "pbs": lambda text: pbs.read_nodes(text, None),
    "flux": flux.read_nodes,
    "sge": lambda text: sge.read_nodes(text, "main.q"),
}


@pytest.mark.parametrize(("version", "text", "usable"), LISTINGS)
def test_a_listing_of_a_version_is_understood(version, text, usable):
    assert {node.name for node in READERS[version.split()[0]](text) if node.usable} == usable


@pytest.mark.parametrize(("name", "reason"), [
    ("18.1-quotes.json", 'CHECK: /var/spool/health/reboot "scratch hangs" (Sep 04 14:13)'),
    ("18.1-newline.json", "first second third"),
    ("18.1-escape.json", "ab,c 'x'"),
])  # fmt: skip
def test_a_comment_of_pbs_is_read_as_it_was_written(name, reason):
    assert {node.name: node.reason for node in pbs.read_nodes(pbs_file(name), None)} == {"n1": "", "n2": reason}


COMMENTS = ['he said "wait", "then" go', 'a brace "} here', 'x","state":"free","y":"z', "ends with \\", '"', '", ']


@pytest.mark.parametrize("comment", [*COMMENTS, "é\t\x01 \\u12 \\x", '{"Mom": 1}'])
def test_no_comment_of_pbs_stops_the_nodes_or_frees_one(comment):
    whole = pbs_text("18.1.4", n0={"state": "free"}, n1={"state": "offline", "comment": "HERE"}, n2={"state": "free"})
    for text in (whole, json.dumps(json.loads(whole))):
        states = {node.name: node for node in pbs.read_nodes(text.replace("HERE", comment), None)}
        assert {name for name, node in states.items() if node.usable} >= {"n0"}
        assert not states["n1"].usable
        assert "n2" in states
    default = {"Server": {"s": {"comment": "HERE", "default_queue": "workq"}}}
    if "{" not in comment and "}" not in comment and '", ' not in comment and not comment.endswith("\\"):
        assert pbs.read_default(json.dumps(default).replace("HERE", comment)) == "workq"


def virtual(host, number, state="free", **node):
    resources = {"host": host, "ncpus": 8, **node.pop("resources", {})}
    return f"{host}[{number}]", {"state": state, "resources_available": resources, **node}


def test_virtual_nodes_are_those_of_their_host():
    alone = {"a": {"state": "offline", "resources_available": {"host": "a", "ncpus": 0}}}
    parts = dict([virtual("a", 0), virtual("a", 1), virtual("b", 0), virtual("b", 1, "offline", comment="bad DIMM")])
    nodes = pbs.read_nodes(pbs_text("22.05", **alone, **parts), None)
    of_b = schedulers.Node("b", "offline", False, "b[1]: bad DIMM")
    assert nodes == [schedulers.Node("a", "free", True), of_b]
    silent = pbs_text("22.05", **{"execute-1": {"resources_available": {"host": "ip-0A"}}})
    assert pbs.read_nodes(silent, None) == [schedulers.Node("ip-0A", "state-unknown", False, "execute-1")]
    tied = dict([virtual("a", 0, queue="x"), virtual("a", 1, "down", resources={"Qlist": "y"})])
    listing = pbs_text("22.05", a={"state": "free", "resources_available": {"ncpus": 0}}, **tied)
    assert [node.usable for queue in ("x", "y") for node in pbs.read_nodes(listing, queue)] == [True, False]
    assert pbs.read_nodes(listing, "z") == []
    with pytest.raises(PlumbError, match="cannot be a host name"):
        pbs.read_nodes(pbs_text("22.05", **{"-oX[0]": {"state": "free"}}), None)


def test_the_time_limit_of_slurm_is_read_under_headings_of_clusters(tmp_path, monkeypatch):
    sinfo = tmp_path / "sinfo"
    sinfo.write_text("#!/bin/sh\nprintf 'CLUSTER: east\\n1:00:00\\n\\nCLUSTER: west\\n30:00\\n'\n")
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert schedulers.named("slurm").longest_job("main") == 1800
