"""Processes of Python's multiprocessing, which end by _exit."""

import multiprocessing
import os
import time


def work(_):
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(work, range(4))
    print(f"Rate: 10.{os.getpid()} GF/s")
