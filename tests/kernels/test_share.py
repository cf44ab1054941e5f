"""``share_of``: shares of any work among any number of parts are whole, disjoint, ordered and fair."""

import ctypes
import itertools
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.base import paths

SOURCE = paths.root() / "custom-kernels" / "runtime" / "share.c"
Share = Callable[[int, int, int, int], tuple[int, int]]


class _Pair(ctypes.Structure):
    _fields_ = (("begin", ctypes.c_size_t), ("end", ctypes.c_size_t))


@pytest.fixture(scope="module")
def share_of(tmp_path_factory: pytest.TempPathFactory) -> Share:
    library = tmp_path_factory.mktemp("share") / "share.so"
    subprocess.run(["gcc", "-std=c17", "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True)
    function = ctypes.CDLL(str(library)).share_of
    function.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_int]
    function.restype = _Pair

    def call(total: int, unit: int, part: int, parts: int) -> tuple[int, int]:
        pair = function(total, unit, part, parts)
        return pair.begin, pair.end

    return call


@settings(max_examples=500)
@given(total=st.integers(0, 2**45), unit=st.sampled_from((1, 2, 8, 512, 4096)), parts=st.integers(1, 300))
def test_shares_are_the_whole_and_fair(share_of, total, unit, parts):
    shares = [share_of(total, unit, part, parts) for part in range(parts)]
    assert shares[0][0] == 0
    assert shares[-1][1] == total
    assert all(left[1] == right[0] for left, right in itertools.pairwise(shares))
    assert all(begin <= end for begin, end in shares)
    assert all(end % unit == 0 for _, end in shares if end < total)
    units = [-(-(end - begin) // unit) for begin, end in shares]
    assert max(units) - min(units) <= 1
