"""The JSON writer of the C programs (custom-kernels/common/json.c), compiled into a program of its own."""

import json
import subprocess
from pathlib import Path

import pytest
from witness_helper import compile_c

from plumbline.base import paths

COMMON = paths.root() / "custom-kernels/common"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("json")
    return compile_c(folder, "writes_json.c", "-std=c17", f"-I{COMMON}", COMMON / "json.c")


def test_a_document_longer_than_the_buffer_is_whole_in_a_file_and_in_memory(program):
    in_file, in_memory = (
        subprocess.run([program, target], check=True, capture_output=True, text=True).stdout
        for target in ("file", "memory")
    )
    assert in_file == in_memory + "\n"
    expected = {"text": 'a "b" \\ \n \xff é', "fine": True, "numbers": list(range(-1, 4096))}
    assert json.loads(in_memory) == expected


def test_a_file_that_takes_nothing_is_an_error(program):
    with Path("/dev/full").open("w") as full:
        assert subprocess.run([program, "file"], stdout=full, check=False).returncode != 0
