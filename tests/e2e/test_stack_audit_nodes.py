"""The audit over two nodes on one machine: TCP by their interface, and a firewall between them."""

import json
import os
import shutil
from collections.abc import Iterator
from typing import Any

import own_site
import pytest
from two_nodes import YIELDING, Site, site_over

from plumbline.mpi import ways
from plumbline.stacks import manifest

pytestmark = pytest.mark.e2e
PORTS = {"OMPI_MCA_btl_tcp_port_min_v4": "21000", "OMPI_MCA_btl_tcp_port_range_v4": "900"}
#: messages are refused, while the launcher's connections pass: the kernel gives those ports from 32768 on
FIREWALL = "table inet audit {\n chain input {\n type filter hook input priority 0;\n tcp dport 21000-21999 {}\n}\n}"


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if "openmpi" not in manifest.names():
        pytest.skip("stack openmpi is not installed")
    with site_over(tmp_path_factory.mktemp("nodes")) as made:
        yield made


def audited(over: Site, environment: dict[str, str]) -> tuple[int, dict[tuple[str, str], dict[str, Any]]]:
    own_site.change(over.folder / "sites", environment={**YIELDING, **environment})
    done = over.plumb("stack", "check", "openmpi", "--run", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {(line["between"], line["name"]): line for line in lines}


def test_messages_go_by_the_interface_between_the_nodes(over):
    status, found = audited(over, {})
    assert status == 0, found
    tcp = found["nodes", ways.TCP]
    assert "by TCP, eth0" in tcp["seen"]
    assert found["ranks of a node", ways.CMA]["bad"] is False


def test_a_firewall_is_named(over):
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    if shutil.which("nft", path=path) is None:
        pytest.skip("no nft: package nftables")
    rules = FIREWALL.replace("{}", "reject with tcp reset")
    done = over.nodes.run(["nft", rules], {**os.environ, "PATH": path}, 30)
    if done.returncode != 0:
        pytest.skip(f"this kernel has no nftables: {done.stderr.strip()}")
    status, found = audited(over, PORTS)
    assert status == 1, found
    (why,) = found["nodes", "messages"]["why"]
    assert why["cause"] == "peer not reached: firewall or wrong interface"
    assert "Connection refused" in why["seen"]
    assert "OMPI_MCA_btl_tcp_if_include" in why["cure"]
