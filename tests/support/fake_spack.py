"""A Spack that installs nothing real: it answers the commands that Plumbline gives, from a lock and a state folder.

As a program it is a checkout's ``bin/spack``; :class:`Process` runs the same within a test, in place of a process.

``FAKE_SPACK`` names the folder: ``programs/`` (what is copied into prefixes), ``installed`` (hashes), ``calls`` (a
command a line); ``fail`` holds the output of an install that fails after its first package, and while ``hold`` is there
an install waits; ``recipes`` names packages whose recipe was changed; ``archives`` has lines PACKAGE SHA256 URL
of those with a source from elsewhere; ``refused`` names packages whose binaries are not taken.
"""

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

FILES = {
    "openmpi": {"bin/mpirun": "bench", "lib/libmpi.so.40": "libmpi.so.40"},
    "osu-micro-benchmarks": {
        "libexec/osu-micro-benchmarks/mpi/pt2pt/standard/osu_latency": "bench",
        "libexec/osu-micro-benchmarks/mpi/collective/blocking/osu_bcast": "bench",
    },
    "intel-mpi-benchmarks": {f"bin/IMB-{name}": "bench" for name in ("MPI1", "NBC", "RMA", "MT", "P2P")},
}


@functools.cache
def signed(text, home, key):
    """``text`` with the signature of ``key``."""
    command = ["gpg", "--homedir", home, "--batch", "--local-user", key, "--clearsign"]
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout


class Spack:
    """A run with these variables of the environment, and no others; :meth:`run` is the lines and the exit status."""

    def __init__(self, variables):
        self.variables = variables
        self.state = Path(variables["FAKE_SPACK"])

    def words(self, name):
        file = self.state / name
        return file.read_text().split() if file.exists() else []

    def keep(self, hashes):
        (self.state / "installed").write_text("\n".join(sorted(hashes)))

    def prefix(self, node):
        return Path("/usr") if "external" in node else self.state / "store" / node["name"]

    def install(self, nodes):
        while (self.state / "hold").exists():
            time.sleep(0.01)
        wanted = sorted(nodes.keys() - self.words("installed"))
        for number, digest in enumerate(wanted, 1):
            node = nodes[digest]
            if node["name"] in self.words("refused"):
                yield f"==> No binary for {node['name']}-{node['version']}-{digest} found: installing from source"
            yield f"==> Installing {node['name']}-{node['version']}-{digest} [{number}/{len(wanted)}]"
            for target, source in FILES.get(node["name"], {}).items():
                file = self.prefix(node) / target
                file.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.state / "programs" / source, file)
            self.keep({*self.words("installed"), digest})
            if (self.state / "fail").exists():
                yield from [*(self.state / "fail").read_text().splitlines(), ""]
                return 1
        return 0

    def rehash(self, lock):
        """What spack-env/rehash.py prints; hashes are not computed but looked up among the committed locks."""
        files = lock, self.state / "locks" / lock.parent.name / lock.name
        here, committed = (json.loads(file.read_text())["concrete_specs"] for file in files)
        file = self.state / "archives"
        archives = [line.split(" ", 1) for line in file.read_text().splitlines()] if file.exists() else []
        for digest, node in here.items():
            for text in (text for name, text in archives if name == node["name"]):
                yield f"archive {digest} {text}"
            if node != committed.get(digest):
                yield f"changed {digest}"
            if node["name"] in self.words("recipes"):
                yield f"recipe {digest}"
            if node["name"] in self.words("absent"):
                yield f"absent {digest} /usr"
        yield f"compared {len(here)}"

    def push(self, node, digest, cache, key):
        """A binary and its description, laid out and signed as Spack does."""
        content = f"binary of {node['name']}\n".encode()
        checksum = hashlib.sha256(content).hexdigest()
        blob = cache / "blobs" / "sha256" / checksum[:2] / checksum
        name = f"{node['name']}-{node['version']}-{digest}.spec.manifest.json"
        manifest = cache / "v3" / "manifests" / "spec" / node["name"] / name
        for file in (blob, manifest):
            file.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        text = json.dumps({"version": 3, "data": [{"checksumAlgorithm": "sha256", "checksum": checksum}]})
        manifest.write_text(signed(text, self.variables["SPACK_GNUPGHOME"], key) if key else text)

    def run(self, arguments):
        folder = Path(arguments[arguments.index("-e") + 1])
        command = arguments[arguments.index("-e") + 2 :]
        with (self.state / "calls").open("a") as stream:
            stream.write(" ".join(command) + "\n")
        lock = folder / "spack.lock"
        nodes = json.loads(lock.read_text())["concrete_specs"] if lock.exists() else {}
        if command[0] == "install":
            return (yield from self.install(nodes))
        if command[0] == "fetch":
            for digest in (word.lstrip("/") for word in command[1:]):
                node = nodes[digest]
                if node["name"] in self.words("unreachable"):
                    yield f"==> Error: All fetchers failed for spack-stage-{node['name']}-{node['version']}-{digest}"
                    return 1
        if command[0] == "find":
            for digest in {*self.words("installed"), *([] if "local" in command else self.words("upstream"))}:
                node = nodes[digest]
                line = command[-1].replace("{name}", node["name"]).replace("{version}", node["version"])
                yield line.replace("{hash}", digest).replace("{prefix}", str(self.prefix(node)))
        if command[0] == "uninstall":
            self.keep({*self.words("installed")} - {command[-1].lstrip("/")})
        if command[0] == "python":
            yield from self.rehash(Path(command[2]))
        if command[0] == "concretize":
            shutil.copy(folder / "spack.yaml", self.state / "concretized.yaml")
            shutil.copy(self.state / "fresh.lock", lock)
        if command[:2] == ["mirror", "create"]:
            target = Path(command[-1]) / "source"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("source\n")
            yield f"    {' '.join(self.words('unfetched')) or 0}    failed to fetch."
        if command[:2] == ["buildcache", "push"]:
            cache, *hashes = command[command.index("package") + 1 :]
            key = command[command.index("--key") + 1] if "--key" in command else None
            for digest in (word.lstrip("/") for word in hashes):
                self.push(nodes[digest], digest, Path(cache), key)
        if command[0] == "providers":
            home = Path(self.variables["SPACK_USER_CONFIG_PATH"]).parent
            file = home / "cache/providers/builtin-specfile_v5-index.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("the index of all packages\n")
        return 0


class Process:
    """In place of :func:`plumbline.extras.spack.runner.start`: the command does its work while its lines are read."""

    def __init__(self, command, variables):
        if not os.access(command[0], os.X_OK):
            raise FileNotFoundError(command[0])
        self.returncode = None
        self.stdout = (f"{line}\n" for line in self._lines(Spack(variables), command[1:]))

    def _lines(self, spack, arguments):
        self.returncode = yield from spack.run(arguments)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stdout.close()


def main():
    process = Process([__file__, *sys.argv[1:]], os.environ)
    for line in process.stdout:
        print(line, end="", file=sys.stderr if "Error" in line else sys.stdout, flush=True)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
