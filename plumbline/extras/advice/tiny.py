"""A program of as many OpenMP threads as its launch line asks for, which work for some 0.3 s and do nothing."""

import ctypes
import ctypes.util
import hashlib
import os
import time


def _work(_: object) -> None:
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 20_000)  # without Python's lock


if __name__ == "__main__":
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_work)
    library = ctypes.util.find_library("gomp") or "libgomp.so.1"
    try:
        ctypes.CDLL(library).GOMP_parallel(call, None, int(os.environ.get("OMP_NUM_THREADS", "0").partition(",")[0]), 0)
    except OSError:  # no OpenMP here: one thread
        _work(None)
