"""Kernels with a fault put into a source: the check fails, and says what is wrong."""

import broken_kernel
import pytest

from plumbline.stacks import blas

#: of barriers: those that come early do not wait; a wrong count could also leave one waiting for ever
BARRIERS = {
    "spin": ("await(&team->all.sense, sense, team->spins);", ";"),
    "hierarchical": ("await(&near->sense, sense, team->spins);", ""),
    "dissemination": ("(int round = 0; round < team->rounds;", "(int round = 1; round < team->rounds;"),
    "pthread": ("pthread_barrier_wait(&team->pthread);", ""),
    "openmp": ("#pragma omp barrier\n", ""),
}
ALLREDUCE = "MPI_Allreduce(give, get, count, type, MPI_SUM, all);"
ALLTOALLV = "MPI_Alltoallv(give, counts, at, type, get, counts, at, type, all);"
#: a call that also writes the element with this number
WRITES = ALLTOALLV + " call->receive[{}] = 0;"
ELEMENTS = "the answer is wrong: elements that are not the operation's"
PRODUCT = "dgemm: the answer is wrong: C x against A (B x)"
DAXPY = ("i < share.end; i++)\n        y[i] += a * x[i];", "i + 1 < share.end; i++)\n        y[i] += a * x[i];")
SEND = "MPI_Send(exchange->outgoing, {}, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);\n        MPI_Recv"
EXACT = "check: distance from the exact solution: WRONG"
BITS = "check: solutions that differ in a bit: WRONG"
TINY = {
    "barrier": "--samples 3 --iterations 3 --threads 3 --spins 50 --kernel",
    "collective": "--repetitions 6 --late 1e9 --bytes 8 --operation",
    "dgemm": "--size 150 --repetitions 2",
    "jacobi": "--size 13,17,11 --sweeps 3 --repetitions 1",
    "membw": "--size 64K --repetitions 3",
    "pairs": "--bandwidth-bytes 4K --latency-trips 2 --bandwidth-trips 1 --batches 2 --mode serial",
}
#: ranks, threads, kernel and options, source, the text there and what replaces it, what the kernel says
FAULTS = [
    *(
        (1, 1, f"barrier {kind}", "barrier_kinds.c", *fault, f"is wrong: {kind}, 3 threads: passed before all had come")
        for kind, fault in BARRIERS.items()
    ),
    (2, 1, "collective allreduce", "collective_call.c", ALLREDUCE, ALLREDUCE.replace("SUM", "MAX"), ELEMENTS),
    # a write behind the last block in each of 16 calls on both ranks, or in a gap in 7 samples
    (2, 1, "collective alltoallv", "collective_call.c", ALLTOALLV, WRITES.format("2 * call->elements"),
     f"{ELEMENTS}: error 32"),
    (2, 1, "collective alltoallv --protocol gaps", "collective_call.c", ALLTOALLV, WRITES.format("call->elements"),
     f"{ELEMENTS}: error 14"),
    *(
        (2, 1, f"collective allreduce --in-place {place} --protocol {protocol}", "collective_call.c", ALLREDUCE,
         ALLREDUCE.replace("SUM", "MAX"), ELEMENTS)
        for protocol in ("loop", "changing", "work") for place in ("no", "yes")
    ),
    (1, 2, "daxpy --size 10007 --repetitions 3", "daxpy.c", *DAXPY, "daxpy: the answer is wrong: y, touched by"),
    (1, 2, "daxpy --size 10007 --repetitions 3", "daxpy.c", "(vectors->y, vectors->x, 0.5,",
     "(vectors->y, vectors->x, 0.500001,", "daxpy: the answer is wrong: y, touched by"),
    (3, 1, "deadlock --repetitions 3", "deadlock.c", "got != value_of(left,", "got != value_of(right,",
     "the answer is wrong: values that are not the left neighbour's"),
    (1, 2, "dgemm", "dgemm.c", "if (m == 0 || n == 0)", "if (m == 0 || n == 0 || thread == 1)", PRODUCT),
    (1, 2, "dgemm", "dgemm.c", "    notes(result);\n", "    notes(result);\n    all.c[77] += 1e-6;\n", PRODUCT),
    (1, 2, "dgemm --depth 12", "dgemm.c", "all->products++;", "all->products = 1;", PRODUCT),
    (1, 2, "false_sharing --increments 2000 --repetitions 2", "false_sharing.c", "(size_t)thread * padding;",
     "(size_t)(thread / 2) * padding;", "the answer is wrong: plain counters"),
    (1, 2, "handover --repetitions 3", "handover.c", "batch < repetitions; batch++) {",
     "batch < repetitions - 1; batch++) {", "the answer is wrong: turns taken"),
    (2, 2, "jacobi", "jacobi_row.h", "one_sixth = 1.0 / 6.0", "one_sixth = 1.0 / 6.000000001", EXACT),
    (2, 2, "jacobi", "jacobi_halo.c", "if (halo->faces[d][side].in)\n                copy", "if (d && false)\n copy",
     EXACT),
    (2, 2, "jacobi", "jacobi_modes.c", "#pragma omp task\n        communicate", "if (!threads)\n communicate", BITS),
    (2, 2, "jacobi", "jacobi_modes.c", "num_threads(threads > 1 ? threads - 1 : 1)\n",
     "num_threads(1)\nif (threads < 2)\n", BITS),
    # a level reads what is not done yet; no corners; a level goes too far
    *(
        (2, 1, "jacobi_temporal --size 19,26,31 --sweeps 7 --repetitions 1 --depth 3", *fault, EXACT, BITS)
        for fault in (
            ("jacobi_pipeline.c", "shift = level - 1;", "shift = 0;"),
            ("jacobi_halo.c", "halo->ordered && other < d", "false && other < d"),
            ("jacobi_pipeline.c", "valid_box(pipeline->grid, levels - level)", "valid_box(pipeline->grid, 0)"),
        )
    ),
    (1, 2, "membw", "membw_kernels.c", "vector_fma(s, vector_load(c + i), vector_load(b + i))", "vector_load(b + i)",
     "membw: the answer is wrong: "),
    (1, 2, "membw", "membw_kernels.c", "i = begin; i < end; i += CHAINS", "i = begin + 64; i < end; i += CHAINS",
     "membw: the answer is wrong: "),
    (1, 2, "membw", "membw.c", "arrays, own.begin, own.end)",
     "arrays, own.begin, own.end - (own.end > 512 ? 512 : 0))", "membw: the answer is wrong: "),
    # each daxpy changes its array, so that the check counts sweeps
    (1, 2, "membw --kernels daxpy --sweeps 5", "membw.c", "sweep < sweeps; sweep++)\n            sum",
     "sweep < 1; sweep++)\n            sum", "membw: the answer is wrong: array d"),
    (2, 1, "overlap --bytes 8 --repetitions 2 --mode none", "overlap_transfer.c", "MPI_Isend(transfer->buffer, count,",
     "MPI_Isend(transfer->buffer, count - 1,", "the answer is wrong: messages that did not arrive as sent"),
    (2, 1, "overlap --bytes 8 --repetitions 2 --mode none", "overlap_work.c", "step < steps;", "step + 1 < steps;",
     "the answer is wrong: works with a wrong result"),
    (3, 1, "pairs", "pairs_exchange.c", SEND.format("bytes"), SEND.format("bytes - 1"),
     "the answer is wrong: ping-pongs whose message did not arrive"),
    (3, 1, "pairs", "pairs.c", "first < program_ranks(); first++)", "first < 1; first++)",
     "the answer is wrong: pairs without a time"),
    (1, 1, "pairs --plan 8", "pairs_plan.c", "partner = partner == rank ? last : partner;",
     "partner = partner == rank ? 0 : partner;", "the answer is wrong: pairs that do not meet exactly once"),
    *(
        (6, 1, "rank_ring --bytes 1K --repetitions 1 --iterations 2", "rank_ring.c", *fault,
         "every message and maximum is the expected one")
        for fault in (
            ("ring->data[index] * others[index];", "others[index];"),
            ("double most = ring->result[0];", "double most = 1e9;"),
        )
    ),
    (2, 1, "threaded_pingpong --bytes 2K --repetitions 3 --messages 4", "threaded_messages.c",
     "MPI_Send(out, count, MPI_DOUBLE, 1,", "MPI_Send(out, count - 1, MPI_DOUBLE, 1,",
     "the answer is wrong: messages that did not arrive as sent"),
]  # fmt: skip


#: relatives of "--protocol loop"
LONG = ("--protocol changing", "--protocol work")


@pytest.mark.parametrize(
    "fault", [pytest.param(one, id=one[2], marks=pytest.mark.long if one[2].endswith(LONG) else ()) for one in FAULTS]
)
def test_a_fault_is_found(one_stack, tmp_path, fault):
    ranks, threads, words, file, old, new, *said = fault
    kernel, *more = words.split()
    if not (one_stack.programs / kernel).exists():
        pytest.skip(f"{kernel} was not built")
    options = blas.options() if kernel == "dgemm" else ()
    program = broken_kernel.build(tmp_path, one_stack, kernel, file=file, old=old, new=new, options=options)
    around = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
    done = one_stack.mpirun(ranks, str(program), *TINY.get(kernel, "").split(), *more, env=around)
    assert done.returncode == 1, done.stdout + done.stderr
    assert all(text in done.stdout + done.stderr for text in said), done.stdout + done.stderr
