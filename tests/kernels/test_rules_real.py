"""Rules of collectives by size, as the installed libraries read them."""

import json
from pathlib import Path

import pytest
from kernel_stack import KernelStack

from plumbline import mpi
from plumbline.mpi.settings import Configuration, Rule

OPERATIONS = ("bcast", "reduce", "allreduce", "barrier")
OPTIONS = ("--bytes", "8,8K,64K", "--repetitions", "6", "--late", "1e9")


def _tree(folder: Path) -> dict[str, str]:
    """Without shared memory from 4 KiB on, for two ranks."""
    rules = tuple(Rule(name, "mpir", 4096, None, 2) for name in OPERATIONS[:-1])
    configuration = Configuration(rules=(*rules, Rule("barrier", "mpir", 0)))
    return {setting.name: setting.value for setting in mpi.TABLE["mpich"].settings_of(configuration, folder)}


@pytest.fixture(autouse=True)
def mpich(one_stack: KernelStack) -> None:
    """The tree of choices is MPICH's."""
    if one_stack.name != "mpich":
        pytest.skip("stack mpich is not installed")


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.long)])
def test_mpich_takes_its_tree_of_choices(one_stack, tmp_path, ranks):
    for operation in OPERATIONS:
        one_stack.json(ranks, "collective", "--operation", operation, *OPTIONS, env=_tree(tmp_path))


def test_mpich_reads_the_branch_that_a_rule_is_in(one_stack, tmp_path):
    """A name in that branch which it does not know ends the program: the file is read, and all of it."""
    environment = _tree(tmp_path)
    (file,) = tmp_path.glob("*.json")
    tree = json.loads(file.read_text(encoding="utf-8"))
    branch = tree["collective=reduce"]["comm_type=intra"]["is_multi_threaded=no"]["is_commutative=yes"]
    branch["comm_size<=2"]["avg_msg_size=any"] = {"algorithm=bogus": {}}
    file.write_text(json.dumps(tree), encoding="utf-8")
    # the launcher may end before it has passed on what a rank printed that aborts
    errors = tmp_path / "errors"
    words = ("-c", f'exec "$0" "$@" 2>>{errors}', str(one_stack.programs / "collective"), "--operation", "reduce")
    done = one_stack.mpirun(2, "/bin/sh", *words, *OPTIONS, env=environment)
    assert done.returncode != 0, done.stdout
    assert "unrecognized key algorithm=bogus" in errors.read_text(encoding="utf-8")
