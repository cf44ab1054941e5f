"""Processes of Python, forked, which end by _exit."""

import concurrent.futures
import multiprocessing
import os
import time


def work(_):
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass


if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(2, fork) as pool:
        list(pool.map(work, range(4)))
    print(f"Rate: 10.{os.getpid()} GF/s")
