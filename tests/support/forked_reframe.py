"""ReFrame with our tests' base classes, loaded once in a process of its own and forked for each call.

A start of ReFrame loads for most of a second; a fork needs none of that. What it does is that of the program:
environment, arguments, output and status are those of the call.
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from plumbline.base import paths


def run(*words: str, environment: Mapping[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run ``reframe`` with these words and nothing but this environment; its output is kept in ``folder``."""
    output = folder / "reframe.out"
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps([list(words), dict(environment), str(output), str(Path.cwd())]) + "\n")
    server.stdin.flush()
    status = server.stdout.readline()
    assert status, "the process that forks ReFrame has ended"
    return subprocess.CompletedProcess(["reframe", *words], int(status), output.read_text(encoding="utf-8"))


_servers: dict[int, subprocess.Popen[str]] = {}


def _server() -> subprocess.Popen[str]:
    """The one of this process, started anew if it has ended: a launch ends all that runs below its process.

    It ends with its standard input.
    """
    server = _servers.get(os.getpid())
    if server is None or server.poll() is not None:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("RFM_", "PLUMB_"))}
        server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**clean, "PYTHONPATH": str(paths.root())},
        )  # fmt: skip
        _servers[os.getpid()] = server
    return server


def serve() -> None:
    """Fork for each line of standard input, and answer with the status."""
    import reframe.frontend.cli  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if not child:
            _call(*json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _call(words: list[str], environment: dict[str, str], output: str, folder: str) -> None:
    """Be ``reframe``, and end as it does."""
    from reframe.frontend.cli import main

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, file in ((1, output), (2, f"{output}.errors")):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
    sys.argv = [str(Path(sys.executable).with_name("reframe")), *words]
    status = 1
    try:
        status = main() or 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:  # the program would print it, too, and this process may not go on as the one that forks
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()
