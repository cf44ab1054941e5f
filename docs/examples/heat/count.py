"""Prime numbers below a limit, counted by all ranks: a program in Python with mpi4py."""

import json
import sys
import time

from mpi4py import MPI


def is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


world = MPI.COMM_WORLD
limit = int(sys.argv[1])
world.Barrier()
begin = time.perf_counter()
found = world.reduce(sum(map(is_prime, range(world.rank, limit, world.size))))
if world.rank == 0:
    result = {"primes": found, "time": {"count": time.perf_counter() - begin}}
    with open("result.json", "w") as stream:
        json.dump(result, stream)
