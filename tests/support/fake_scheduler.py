"""A scheduler that behaves like the real one where it hurts.

:func:`install` puts its programs first on PATH; ``case.json`` of the scheduler's folder in ``tests/data/schedulers``
says which there are and what they print. Jobs start without the submitter's variables, in another folder; login banners
with digits stand on stdout and stderr; what the scheduler writes about a job appears after the job's end.

Files of the state folder change what it does: ``refuse`` (no such queue), ``slow`` (it never gets to print an id),
``slow-but-done`` (the id comes at SIGTERM, the job has been made) and ``lose`` (the node of a job dies).
"""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "data" / "schedulers"
#: seconds after which what the scheduler writes about a job appears
LATE_S = 0.3


class Fake:
    """The test's side of an installed scheduler."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.state = folder / "scheduler"
        self.recorded = DATA / {"squeue": "slurm"}.get(name, name)
        self.case = json.loads((self.recorded / "case.json").read_text(encoding="utf-8"))

    @property
    def environment(self) -> dict[str, str]:
        """The variables that a job has beside PATH and HOME."""
        return {name: text.replace("{folder}", str(self.state)) for name, text in self.case["environment"].items()}

    @property
    def output(self) -> str:
        """What it prints when a job is submitted, banner first."""
        return (DATA / "banner.txt").read_text(encoding="utf-8") + next(iter(self.case["submitted"].values()))

    def have(self, name: str, text: str = "") -> None:
        """Make a file of the state folder."""
        (self.state / name).write_text(text)

    def words(self, name: str) -> list[str] | None:
        """The arguments of the last call of this kind (``submit``, ``cancel``, ``start``); None: there was none."""
        file = self.state / f"{name}.called"
        return json.loads(file.read_text()) if file.is_file() else None


def install(name: str, folder: Path, monkeypatch) -> Fake:
    """Put the programs of scheduler ``name`` first on PATH."""
    fake = Fake(name, folder)
    (fake.state / "home").mkdir(parents=True)
    for file, text in fake.case.get("files", {}).items():
        fake.have(file, text.replace("{folder}", str(fake.state)))
    programs = fake.state / "bin"
    programs.mkdir()
    for program in {words.split()[0] for words in fake.case["programs"]}:
        file = programs / program
        file.write_text(f'#!/bin/sh\nexec {sys.executable} -S {__file__} {name} {folder} {program} "$@"\n')
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    for variable in fake.case["environment"].keys() - {"PATH"}:
        monkeypatch.delenv(variable, raising=False)
    return fake


def job_environment(fake: Fake) -> dict[str, str]:
    """All variables of a job's processes."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(fake.state / "home"), **fake.environment}


def environment_of_many(fake: Fake, hosts: list[str]) -> dict[str, str]:
    """All variables of the processes of a job on ``hosts``, each with 64 slots, in the case's forms."""
    slots = 64
    fake.have("nodefile", "".join(f"{host}\n" * slots for host in hosts))
    fake.have("hostfile", "".join(f"{host} {slots} all.q@{host} <NULL>\n" for host in hosts))
    fake.have("host_list", f"{fold(hosts)}\n")
    found = job_environment(fake)
    forms = {"SLURM_JOB_NODELIST": fold(hosts), "LSB_MCPU_HOSTS": "".join(f"{host} {slots} " for host in hosts)}
    found.update({name: text for name, text in forms.items() if name in found})
    found.pop("LSB_HOSTS", None)  # LSF does not set it where it would have more than 4096 bytes
    return found


def fold(hosts: list[str]) -> str:
    """``hosts`` that end in consecutive numbers, from 1 on, as ``n[1-1000]``."""
    return f"{hosts[0].rstrip('0123456789')}[1-{len(hosts)}]"


def submit(fake: Fake, words: list[str]) -> int:
    banner = (DATA / "banner.txt").read_text(encoding="utf-8")
    print(banner, end="", flush=True)
    print(banner, end="", file=sys.stderr, flush=True)
    if (fake.state / "refuse").exists():
        text, status = fake.case["refused"]
        print(text, end="", file=sys.stderr)
        return int(status)
    text = next(iter(fake.case["submitted"].values()))
    if (fake.state / "slow-but-done").exists():
        signal.signal(signal.SIGTERM, lambda *_: (print(text, end="", flush=True), os._exit(1)))
    called(fake, "submit", words)
    if (fake.state / "slow").exists() or (fake.state / "slow-but-done").exists():
        time.sleep(600)
    print(text, end="", flush=True)
    log = next((word[9:] for word in words if word.startswith("--output=")), None) or words[words.index("-o") + 1]
    runner = [sys.executable, "-S", __file__, fake.name, str(fake.folder), "--job", words[-1], log]
    subprocess.Popen(runner, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return 0 if "follow" in fake.case["programs"].values() else follow(fake)


def follow(fake: Fake) -> int:
    """Wait for the job's end and end with its status."""
    deadline = time.monotonic() + 600
    while not (fake.state / "ended").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return int((fake.state / "ended").read_text())


def run_job(fake: Fake, script: str, log: str) -> int:
    """The job itself; its output is copied to ``log`` when it has ended, and not at once."""
    spool = fake.state / "spool"
    with spool.open("w") as stream:
        job = subprocess.Popen(
            interpreter(fake, script), env=job_environment(fake), cwd=fake.state / "home", stdout=stream, stderr=stream,
            start_new_session=True,
        )  # fmt: skip
        replace(fake.state / "job.pid", str(job.pid))
        if (fake.state / "lose").exists():
            time.sleep(0.2)
            os.killpg(job.pid, signal.SIGKILL)
        status = job.wait()
    replace(fake.state / "ended", str(status if status >= 0 else 128 - status))
    time.sleep(LATE_S)
    text = fake.case["lost"] if (fake.state / "lose").exists() else ""
    replace(Path(log), spool.read_text() + text)
    return 0


def interpreter(fake: Fake, script: str) -> list[str]:
    """LSF makes a shell line of it, Slurm and Flux read its first line, PBS and Grid Engine ask a csh to."""
    if fake.name == "lsf":
        return ["/bin/sh", "-c", script]
    words = fake.words("submit") or []
    if fake.name in ("pbs", "sge") and "-S" not in words:
        return ["/bin/sh", "-c", "echo 'status=0: Command not found.'; exit 1"]
    return ["/bin/bash", script]


def cancel(fake: Fake, words: list[str]) -> int:
    called(fake, "cancel", words)
    if words not in fake.case["cancel"].values():
        text, status = fake.case["unknown_job"]
        print(text, end="", file=sys.stderr)
        return int(status)
    with contextlib.suppress(OSError):
        os.killpg(int((fake.state / "job.pid").read_text()), signal.SIGTERM)
    return 0


def start(fake: Fake, words: list[str]) -> int:
    """The command among ``words``, once on each of two nodes, or on one where one was asked for."""
    called(fake, "start", words)
    if fake.name == "pbs":  # its daemon starts the words themselves, and finds no program of its own on PATH
        return subprocess.run(
            words[words.index("--") + 1 :], env=job_environment(fake), cwd=fake.state / "home", check=False
        ).returncode
    command = words[next(place for place, word in enumerate(words) if word in (sys.executable, "/bin/sh")) :]
    if fake.name == "lsf":  # bsub makes one shell line of its words
        command = ["/bin/sh", "-c", " ".join(command)]
    both = {"--nodes=2", "blaunch"} & set(words) or ("-N", "2") in itertools.pairwise(words)
    asked = [word.removeprefix("--nodelist=") for word in words if word.startswith("--nodelist=")]
    for number in range(2 if both else 1):
        environment = job_environment(fake)
        if "SLURMD_NODENAME" in environment:
            environment["SLURMD_NODENAME"] = fake.case["hosts"][number] if both or not asked else asked[0]
        done = subprocess.run(command, env=environment, cwd=fake.state / "home", check=False)
        if done.returncode:
            return done.returncode
    return 0


def pbsdsh(fake: Fake, words: list[str]) -> int:
    """The words on both nodes; it ends with 0 whatever became of them."""
    for _ in range(2):
        subprocess.run(words[words.index("--") + 1 :], env=job_environment(fake), cwd=fake.state / "home", check=False)
    return 0


def ssh(fake: Fake, words: list[str]) -> int:
    """One host; the remote shell gets one line."""
    takes_a_word = {"-o", "-p", "-l"}
    while words[0].startswith("-"):
        words = words[2 if words[0] in takes_a_word else 1 :]
    host, *command = words
    if host == "n3":
        print("ssh: connect to host n3 port 22: No route to host", file=sys.stderr)
        return 255
    shell = ["/bin/sh", "-c", " ".join(command)]
    return subprocess.run(shell, env=job_environment(fake), cwd=fake.state / "home", check=False).returncode


def called(fake: Fake, what: str, words: list[str]) -> None:
    replace(fake.state / f"{what}.called", json.dumps(words))


def replace(file: Path, text: str) -> None:
    temporary = file.with_name(f".{file.name}")
    temporary.write_text(text)
    temporary.replace(file)


def main(name: str, folder: str, program: str, *words: str) -> int:
    fake = Fake(name, Path(folder))
    if program == "--job":
        return run_job(fake, *words)
    line = [program, *words]
    for known, role in fake.case["programs"].items():
        length = len(known.split())
        if line[:length] != known.split():
            continue
        rest = line[length:]
        if role == "nodes":
            print((fake.recorded / "nodes.out").read_text(encoding="utf-8"), end="")
            return 0
        if role == "hosts":
            many = fake.state / "host_list"
            print(many.read_text() if many.exists() else fake.case["host_list"], end="")
            return 0
        if role == "pbsdsh":
            return pbsdsh(fake, rest)
        if role == "start" or (sys.executable in rest and role == "submit"):
            return start(fake, rest)
        return {"submit": submit, "cancel": cancel, "ssh": ssh, "follow": lambda fake, _: follow(fake)}[role](
            fake, rest
        )
    print(f"{program}: unknown command {words}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
