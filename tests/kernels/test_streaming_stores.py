"""Kernels that say that they store past the cache do, whatever compiles them."""

import platform
import shutil

import pytest
from processes import ended, succeeded

from plumbline.base import paths

SOURCES = paths.root() / "custom-kernels"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have no such instruction")
@pytest.mark.parametrize("options", [["-mavx2", "-mfma"], ["-mavx512f"]], ids=["AVX2", "AVX-512"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(("file", "least"), [("node/membw_kernels.c", 14), ("grid/jacobi_sweep.c", 1)])
def test_streaming_stores_are_in_the_program(file, least, compiler, options):
    """clang made one regular store of both kinds, and figures of streaming stores were those of regular ones."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    folders = [f"-I{SOURCES / name}" for name in ("common", "runtime")]
    command = [compiler, "-std=c17", "-D_GNU_SOURCE", "-O3", "-Werror", "-fopenmp", *options, *folders, "-S", "-o-"]
    command.append(str(SOURCES / "kernels" / file))
    done = succeeded(ended(command, timeout=600))
    assert done.stdout.count("vmovntpd") >= least
