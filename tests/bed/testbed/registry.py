"""How this host reaches its registries, handed to the nodes at run time. Nothing of it is written in the project."""

import os
import re
import shutil
from pathlib import Path

from testbed.host import run

BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
HANDED = re.compile(
    r"(PIP|UV)_[A-Z_]+|(https?|no|all)_proxy|(HTTPS?|NO|ALL)_PROXY"
    r"|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|GIT_SSL_CAINFO"
)
ACQUIRE = re.compile(r"Acquire::(https?|Retries)\b")


def sources() -> list[str]:
    """The Debian archives that apt uses here, as lines of a sources.list."""
    fields = "$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
    listed = run(["apt-get", "indextargets", "--format", fields, "Created-By: Packages"]).stdout
    found = []
    for line in listed.splitlines():
        origin, uri, release, component = line.split("|")
        if origin == "Debian":
            found.append(f"deb {uri} {release} {component}")
    return sorted(set(found))


def variables(environment: dict[str, str]) -> dict[str, str]:
    """What of ``environment`` package tools need on a node. Of this host's paths only its CA bundle is there too."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if HANDED.fullmatch(name) and (not value.startswith("/") or value == str(BUNDLE)) and "\n" not in value
    }


def nameservers() -> str:
    """resolv.conf for a node: this host's own, or that behind its local stub resolver."""
    behind = Path("/run/systemd/resolve/resolv.conf")
    return (behind if behind.exists() else Path("/etc/resolv.conf")).read_text(encoding="utf-8")


def hand_over(root: Path) -> None:
    """Write CA bundle, name servers, settings of apt and pip into a node's root file system."""
    shutil.copyfile(BUNDLE, root / "etc/ssl/certs/ca-certificates.crt")
    (root / "etc/resolv.conf").write_text(nameservers(), encoding="utf-8")
    apt = root / "etc/apt"
    (apt / "sources.list").write_text("".join(f"{line}\n" for line in sources()), encoding="utf-8")
    lists = root / "var/lib/apt/lists"
    if not any(lists.glob("*Packages*")):
        # a new image has an empty folder for them, which Ansible's cache_valid_time would take for fresh lists
        os.utime(lists, (0, 0))
        for stale in (root / "var/cache/apt").glob("*.bin"):
            stale.unlink()
    dump = run(["apt-config", "dump"]).stdout.splitlines()
    settings = [line for line in dump if ACQUIRE.match(line) and not line.endswith('"";')]
    (apt / "apt.conf.d/90bed").write_text("".join(f"{line}\n" for line in settings), encoding="utf-8")
    if Path("/etc/pip.conf").exists():
        shutil.copyfile("/etc/pip.conf", root / "etc/pip.conf")
    # pam_env reads this file at every log-in, so that it reaches Ansible and plain SSH too
    lines = [f'{name}="{value}"\n' for name, value in variables(dict(os.environ)).items()]
    (root / "etc/environment").write_text("".join(lines), encoding="utf-8")
