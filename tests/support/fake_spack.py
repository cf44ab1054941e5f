"""A Spack that installs nothing real: it answers the commands that Plumbline gives, from a lock and a state folder.

``FAKE_SPACK`` names the folder: ``programs/`` (what is copied into prefixes), ``installed`` (hashes), ``calls`` (a
command a line); ``fail`` holds the output of an install that fails after its first package, ``slow`` the
seconds that one takes.
"""

import json
import os
import shutil
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
    "stream": {"bin/stream": "plain"},
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


def main(arguments):
    folder = Path(arguments[arguments.index("-e") + 1])
    command = arguments[arguments.index("-e") + 2 :]
    with (STATE / "calls").open("a") as stream:
        stream.write(" ".join(command) + "\n")
    if command[0] == "install":
        return install(folder)
    if command[0] == "find":
        for digest in installed():
            node = nodes(folder)[digest]
            line = command[-1].replace("{name}", node["name"]).replace("{version}", node["version"])
            print(line.replace("{hash}", digest).replace("{prefix}", str(prefix(node))))
    if command[0] == "uninstall":
        keep(installed() - {command[-1].lstrip("/")})
    if command[0] == "concretize":
        shutil.copy(STATE / "fresh.lock", folder / "spack.lock")
    if command[:2] == ["mirror", "create"]:
        target = Path(command[-1]) / "source"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("source\n")
        print(f"    {(STATE / 'unfetched').read_text() if (STATE / 'unfetched').exists() else 0}    failed to fetch.")
    if command[:2] == ["buildcache", "push"]:
        (Path(command[5]) / "blobs").mkdir(parents=True, exist_ok=True)
        (Path(command[5]) / "blobs" / "binary").write_text("binary\n")
    return 0


sys.exit(main(sys.argv[1:]))
