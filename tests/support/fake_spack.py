"""A Spack that installs nothing real: it answers the commands that Plumbline gives, from a lock and a state folder.

``FAKE_SPACK`` names the folder: ``programs/`` (what is copied into prefixes), ``installed`` (hashes), ``calls`` (a
command a line); ``fail`` holds the output of an install that fails after its first package, ``slow`` the
seconds that one takes; ``recipes`` names packages whose recipe was changed; ``archives`` has lines PACKAGE SHA256 URL
of those with a source from elsewhere; ``registry`` has the hashes that were pushed to one,
``refused`` what it says in place of a list.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

STATE = Path(os.environ["FAKE_SPACK"])
FILES = {
    "openmpi": {"bin/mpirun": "bench", "lib/libmpi.so.40": "libmpi.so.40"},
    "osu-micro-benchmarks": {
        "libexec/osu-micro-benchmarks/mpi/pt2pt/standard/osu_latency": "bench",
        "libexec/osu-micro-benchmarks/mpi/collective/blocking/osu_bcast": "bench",
    },
    "intel-mpi-benchmarks": {f"bin/IMB-{name}": "bench" for name in ("MPI1", "NBC", "RMA", "MT", "P2P")},
    "plumbline-kernels": {"bin/pi": "bench", "bin/heat1d": "bench"},
}


def installed():
    file = STATE / "installed"
    return set(file.read_text().split()) if file.exists() else set()


def keep(hashes):
    (STATE / "installed").write_text("\n".join(sorted(hashes)))


def prefix(node):
    return Path("/usr") if "external" in node else STATE / "store" / node["name"]


def nodes(folder):
    return json.loads((folder / "spack.lock").read_text())["concrete_specs"]


def install(folder):
    found, done = nodes(folder), installed()
    time.sleep(float((STATE / "slow").read_text()) if (STATE / "slow").exists() else 0)
    wanted = [digest for digest in sorted(found) if digest not in done]
    for number, digest in enumerate(wanted, 1):
        node = found[digest]
        print(f"==> Installing {node['name']}-{node['version']}-{digest} [{number}/{len(wanted)}]", flush=True)
        for target, source in FILES.get(node["name"], {}).items():
            file = prefix(node) / target
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(STATE / "programs" / source, file)
        keep(installed() | {digest})
        if (STATE / "fail").exists():
            print((STATE / "fail").read_text())
            return 1
    return 0


def rehash(lock):
    """What spack-env/rehash.py prints; hashes are not computed but looked up among the locks as they were committed."""
    here, committed = (json.loads(file.read_text())["concrete_specs"] for file in (lock, STATE / "locks" / lock.name))
    archives = [line.split(" ", 1) for line in (STATE / "archives").open()] if (STATE / "archives").exists() else []
    for digest, node in here.items():
        for text in (text for name, text in archives if name == node["name"]):
            print(f"archive {digest} {text.strip()}")
        if node != committed.get(digest):
            print(f"changed {digest}")
        if (STATE / "recipes").exists() and node["name"] in (STATE / "recipes").read_text().split():
            print(f"recipe {digest}")
        if (STATE / "absent").exists() and node["name"] in (STATE / "absent").read_text().split():
            print(f"absent {digest} /usr")
    print(f"compared {len(here)}")
    return 0


def push(node, digest, cache, key):
    """A binary and its description, laid out and signed as Spack does."""
    content = f"binary of {node['name']}\n".encode()
    checksum = hashlib.sha256(content).hexdigest()
    blob = cache / "blobs" / "sha256" / checksum[:2] / checksum
    name = f"{node['name']}-{node['version']}-{digest}.spec.manifest.json"
    manifest = cache / "v3" / "manifests" / "spec" / node["name"] / name
    for file in (blob, manifest):
        file.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content)
    manifest.write_text(json.dumps({"version": 3, "data": [{"checksumAlgorithm": "sha256", "checksum": checksum}]}))
    if key:
        command = ["gpg", "--homedir", os.environ["SPACK_GNUPGHOME"], "--batch", "--local-user", key, "--clearsign"]
        subprocess.run([*command, "--output", f"{manifest}.asc", str(manifest)], check=True)
        Path(f"{manifest}.asc").replace(manifest)


def main(arguments):
    folder = Path(arguments[arguments.index("-e") + 1])
    command = arguments[arguments.index("-e") + 2 :]
    with (STATE / "calls").open("a") as stream:
        stream.write(" ".join(command) + "\n")
    if command[0] == "install":
        return install(folder)
    if command[0] == "fetch":
        for digest in (word.lstrip("/") for word in command[1:]):
            node = nodes(folder)[digest]
            if node["name"] in (
                (STATE / "unreachable").read_text().split() if (STATE / "unreachable").exists() else ()
            ):
                print(f"==> Error: All fetchers failed for spack-stage-{node['name']}-{node['version']}-{digest}")
                return 1
    if command[0] == "find":
        upstream = set((STATE / "upstream").read_text().split()) if (STATE / "upstream").exists() else set()
        for digest in installed() if "local" in command else installed() | upstream:
            node = nodes(folder)[digest]
            line = command[-1].replace("{name}", node["name"]).replace("{version}", node["version"])
            print(line.replace("{hash}", digest).replace("{prefix}", str(prefix(node))))
    if command[0] == "uninstall":
        keep(installed() - {command[-1].lstrip("/")})
    if command[0] == "python":
        return rehash(Path(command[2]))
    if command[:2] == ["external", "find"]:
        file = folder / "spack.yaml"
        spec = f"{command[4]}@5.0.2+hydra netmod=ofi"
        packages = f"  packages:\n    {command[4]}:\n      externals:\n      - {{spec: {spec}, prefix: {command[3]}}}\n"
        file.write_text(file.read_text() + packages)
    if command[0] == "concretize":
        shutil.copy(folder / "spack.yaml", STATE / "concretized.yaml")
        shutil.copy(STATE / "fresh.lock", folder / "spack.lock")
    if command[:2] == ["mirror", "create"]:
        target = Path(command[-1]) / "source"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("source\n")
        print(f"    {(STATE / 'unfetched').read_text() if (STATE / 'unfetched').exists() else 0}    failed to fetch.")
    if command[:2] == ["buildcache", "push"]:
        cache, *hashes = command[command.index("package") + 1 :]
        key = command[command.index("--key") + 1] if "--key" in command else None
        if cache.startswith("oci://"):
            (STATE / "registry").write_text("\n".join(word.lstrip("/") for word in hashes))
            return 0
        for digest in (word.lstrip("/") for word in hashes):
            push(nodes(folder)[digest], digest, Path(cache), key)
    if command[:2] == ["buildcache", "list"]:
        if (STATE / "refused").exists():
            print((STATE / "refused").read_text())
            return 1
        held = (STATE / "registry").read_text().split() if (STATE / "registry").exists() else []
        print("-- linux-debian12-x86_64_v3 / no compilers --")
        for digest in held:
            print(f"{digest} {nodes(folder)[digest]['name']}@{nodes(folder)[digest]['version']}")
    if command[0] == "providers":
        file = Path(os.environ["PLUMB_SPACK_HOME"]) / "cache" / "providers" / "builtin-specfile_v5-index.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("the index of all packages\n")
    return 0


sys.exit(main(sys.argv[1:]))
