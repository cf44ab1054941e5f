"""Bridge, network namespaces, links, their shaping, and the way out."""

import json
from pathlib import Path

from testbed.host import BedError, run
from testbed.layout import BRIDGE, GATEWAY, NETWORK, PREFIX, RUN, Node, Settings, every

TABLE = "plumb_bed"
FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
BEFORE = RUN / "ip_forward"
NAMESPACES = Path("/run/netns")
#: there if this bed made the first network namespace of the host
OURS = RUN / "netns-mounted"

#: masquerading, and an MSS that fits the uplink
RULES = f"""
table ip {TABLE} {{
  chain leave {{ type nat hook postrouting priority 100;
    ip saddr {NETWORK}.0/{PREFIX} oifname != "{BRIDGE}" masquerade; }}
  chain through {{ type filter hook forward priority 0; policy accept;
    iifname "{BRIDGE}" oifname != "{BRIDGE}" tcp flags syn tcp option maxseg size set rt mtu; }}
}}
"""


def exists(link: str) -> bool:
    """Whether the host has the link."""
    return Path("/sys/class/net", link).exists()


def uplink_mtu() -> int:
    """MTU of the host's default route: packets of the nodes must fit. 1500 without one."""
    routes = json.loads(run(["ip", "-j", "-4", "route", "show", "default"]).stdout or "[]")
    for route in routes:
        mtu = Path("/sys/class/net", route["dev"], "mtu")
        if mtu.exists():
            return int(mtu.read_text(encoding="ascii"))
    return 1500


def raise_bridge() -> None:
    """The bridge with the host's address on it. Raises BedError if other links use the addresses."""
    for link in json.loads(run(["ip", "-j", "-4", "addr"]).stdout):
        for address in link["addr_info"]:
            if address["local"].startswith(f"{NETWORK}.") and link["ifname"] != BRIDGE:
                raise BedError(f"{link['ifname']} has {address['local']}, of the bed's network {NETWORK}.0/{PREFIX}")
    if not namespaces_mounted():
        OURS.touch()
    if not exists(BRIDGE):
        run(["ip", "link", "add", BRIDGE, "type", "bridge"])
    run(["ip", "addr", "replace", f"{GATEWAY}/{PREFIX}", "dev", BRIDGE])
    run(["ip", "link", "set", BRIDGE, "up"])


def open_way() -> None:
    """Let the nodes out by address translation; what ip_forward was is kept for `close_way`."""
    if not BEFORE.exists():
        BEFORE.write_text(FORWARD.read_text(encoding="ascii"), encoding="ascii")
    FORWARD.write_text("1", encoding="ascii")
    if run(["nft", "list", "table", "ip", TABLE], check=False).returncode != 0:
        run(["nft", "-f", "-"], stdin=RULES)


def close_way() -> None:
    """Undo `open_way`."""
    if run(["nft", "list", "table", "ip", TABLE], check=False).returncode == 0:
        run(["nft", "delete", "table", "ip", TABLE])
    if BEFORE.exists():
        FORWARD.write_text(BEFORE.read_text(encoding="ascii"), encoding="ascii")
        BEFORE.unlink()


def attach(node: Node, settings: Settings) -> None:
    """Namespace, link, address, route and rate of a node; what is there already is kept."""
    if node.netns not in namespaces():
        run(["ip", "netns", "add", node.netns])
    if not exists(node.link):
        run(["ip", "link", "add", node.link, "type", "veth", "peer", "name", "eth0", "netns", node.netns])
        run(["ip", "link", "set", node.link, "master", BRIDGE])
    inside = ["ip", "-n", node.netns]
    run([*inside, "link", "set", "lo", "up"])
    run([*inside, "addr", "replace", f"{node.address}/{PREFIX}", "dev", "eth0"])
    run([*inside, "link", "set", "eth0", "up"])
    plug(node, inserted=True)
    if settings.route:
        run([*inside, "route", "replace", "default", "via", GATEWAY, "mtu", str(uplink_mtu())])
    elif run([*inside, "route", "show", "default"]).stdout.strip():
        run([*inside, "route", "del", "default"])
    shape(node, settings.shape)


def plug(node: Node, *, inserted: bool) -> None:
    """The node's cable: out, nothing answers at its address."""
    run(["ip", "link", "set", node.link, "up" if inserted else "down"])


def shape(node: Node, rate: str) -> None:
    """Limit both directions of a node's link to ``rate``; empty: no limit."""
    for tc, link in ((["tc", "-n", node.netns], "eth0"), (["tc"], node.link)):
        if rate:
            limit = ["rate", rate, "burst", "256kb", "latency", "50ms"]
            run([*tc, "qdisc", "replace", "dev", link, "root", "tbf", *limit])
        elif "tbf" in run([*tc, "qdisc", "show", "dev", link]).stdout:
            run([*tc, "qdisc", "del", "dev", link, "root"])


def namespaces() -> list[str]:
    """Names of the host's network namespaces."""
    return [line.split()[0] for line in run(["ip", "netns", "list"]).stdout.splitlines() if line.strip()]


def detach(node: Node) -> None:
    """Remove link and namespace of a node, if they are there."""
    if exists(node.link):
        run(["ip", "link", "del", node.link])
    if node.netns in namespaces():
        run(["ip", "netns", "del", node.netns])


def namespaces_mounted() -> bool:
    """Whether /run/netns is a mount already, which the first namespace that iproute2 makes turns it into."""
    return any(line.split()[1] == str(NAMESPACES) for line in Path("/proc/self/mounts").read_text().splitlines())


def remove() -> None:
    """Remove everything of every node, the bridge and the way out."""
    for node in every():
        detach(node)
    close_way()
    if exists(BRIDGE):
        run(["ip", "link", "del", BRIDGE])
    if OURS.exists() and not namespaces():
        run(["umount", NAMESPACES], check=False)
        OURS.unlink()
