"""The JSON writer of the C programs (custom-kernels/common/json.c), compiled into a program of its own."""

import json
import subprocess
from pathlib import Path

import pytest

from plumbline.base import paths

COMMON = paths.root() / "custom-kernels/common"
PROGRAM = r"""
#include "json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words) {
    struct json out;
    if (count > 1 && !strcmp(words[1], "memory"))
        json_start_string(&out);
    else
        json_start(&out, STDOUT_FILENO);
    json_open(&out, NULL, '{');
    json_text(&out, "text", "a \"b\" \\ \n \xff \xc3\xa9");
    json_bool(&out, "fine", true);
    json_open(&out, "numbers", '[');
    for (int i = -1; i < 4096; i++)
        json_int(&out, NULL, i);
    json_close(&out, ']');
    json_close(&out, '}');
    if (out.fd >= 0)
        return json_finish(&out);
    char *text = json_string(&out);
    fputs(text, stdout);
    free(text);
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("json")
    (folder / "program.c").write_text(PROGRAM)
    words = ["cc", "-std=c17", "-D_GNU_SOURCE", f"-I{COMMON}", "-o", folder / "program", folder / "program.c"]
    subprocess.run([*words, COMMON / "json.c"], check=True)
    return folder / "program"


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
