"""Variables of people, modules and schedulers that would do harm: a value for each name of the table."""

from pathlib import Path

from plumbline.base import paths
from plumbline.launch.environment import TABLE

ROWS = [(row, text) for row in TABLE for text in row.names]
#: what follows a prefix
UNKNOWN = "NOBODY_KNOWS_THIS"


def named(pattern: str) -> str:
    """A name that ``pattern`` has."""
    return (f"{pattern}*" if pattern.endswith("_") else pattern).replace("*", UNKNOWN)


def foreign(folder: Path) -> dict[str, str]:
    """What would do harm, a value for each name of the table, and what two known ones need."""
    machine = str(paths.root() / "tests/data/topologies/a64fx-4x12.xml")
    broken = folder / "python"
    for module in ("numpy", "msgspec", "reframe", "yaml"):
        (broken / module).mkdir(parents=True)
        (broken / module / "__init__.py").write_text("raise ImportError('of another Python')\n")
    (broken / "typing.py").write_text("raise ImportError('of another Python')\n")
    (folder / "pip.conf").write_text("[install]\nuser = true\ntarget = /nonexistent\n[global]\nretries = 9\n")
    taken = [named(text) for row, text in ROWS if row.programs == "removed" or row.launches == "named"]
    return {
        **dict.fromkeys(taken, "/nonexistent"),
        "PYTHONPATH": str(broken),
        "PYTHONHOME": str(folder),
        "PYTHONSTARTUP": "/nonexistent",
        "HWLOC_XMLFILE": machine,
        "HWLOC_THISSYSTEM": "1",
        "GIT_DIR": str(folder / "nothing.git"),
        "GIT_WORK_TREE": str(folder),
        "PIP_CONFIG_FILE": str(folder / "pip.conf"),
        "PIP_USER": "1",
        "TMPDIR": str(folder / "gone"),
        "LC_ALL": "nobody_SPEAKS.this",
        "CFLAGS": "-fno-such-option",
        "UCX_LOG_LEVEL": "trace",
        "OMP_DISPLAY_ENV": "verbose",
        "HOME": "/proc/nonexistent",
    }
