"""Threads of Python that compute with numpy, MPI imported in a function."""

import os
import threading
import time


def work():
    end = time.thread_time() + 0.15
    while time.thread_time() < end:
        sum(range(10000))


def main():
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    work()
    if MPI.COMM_WORLD.rank == 0:
        print(f"Rate: 10.{os.getpid()} GF/s")


main()
