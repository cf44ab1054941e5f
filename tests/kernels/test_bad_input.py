"""What a kernel says of bad input: one line, on every rank's behalf, and status 2."""

import pytest
from kernel_stack import KernelStack

#: ranks, variables and command line, and a part of the line
BAD = [
    (2, "OMP_NUM_THREADS=1 barrier", "a barrier needs two"),
    (2, "barrier --threads 1", "--threads: '1' is not sizes"),
    (2, "OMP_THREAD_LIMIT=2 barrier --threads 4", "4 threads asked, the OpenMP library gives 2"),
    (2, "daxpy --size 900G", "GiB needed on a node"),
    (2, "daxpy --touch nobody", "--touch: 'nobody' is not one of both thread master"),
    (2, "OMP_NUM_THREADS=0 daxpy", "OMP_NUM_THREADS: '0' is not a whole number of at least 1"),
    (2, "OMP_NUM_THREADS=1 false_sharing", "one thread shares nothing"),
    (2, "OMP_NUM_THREADS=2 false_sharing --padding 12", "--padding 12 is not a multiple of 8"),
    (2, "false_sharing --padding 8K", "--padding: '8K' is not sizes"),
    (2, "membw --size 900G", "GiB needed on a node"),
    (2, "membw --repetitions 1", "--repetitions: '1' is not a whole number from 2 to 1000"),
    (2, "membw --alone", "--alone: daxpy changes what it reads: use --kernels triad"),
    (2, "membw --kernels quad", "--kernels: 'quad' is not one of all stream bounds copy"),
    (1, "collective", "1 rank has no collective"),
    (2, "collective --operation bcast --in-place yes", "--in-place: MPI has no bcast in place"),
    (2, "collective --operation barrier --in-place yes", "--in-place: MPI has no barrier in place"),
    (2, "collective --bytes 8,10", "--bytes: 10 is not a multiple of 4"),
    (2, "collective --bytes 0", "--bytes: '0' is not sizes"),
    (2, "collective --repetitions 5", "--repetitions: '5' is not a whole number from 6"),
    (2, "collective --race NO_SUCH=1", "--race: the MPI library has no whole number NO_SUCH"),
    (2, "collective --race NO_SUCH=1,", "--race: '1,' is not a list of whole numbers"),
    (2, "collective --race NO_SUCH", "--race: 'NO_SUCH' is not NAME=VALUE,VALUE"),
    (2, "collective --race", "--race: '' is not a text"),
    (2, "collective --operation bcast --protocol gaps", "--protocol: the blocks of bcast cannot lie apart"),
    (2, "collective --protocol fast", "--protocol: 'fast' is not one of start barrier loop"),
    (2, "collective --operation gossip", "--operation: 'gossip' is not one of bcast"),
    (1, "deadlock", "2 ranks needed, 1 given"),
    (2, "deadlock --mode hope", "--mode: 'hope' is not one of blocking ring fixed"),
    (5, "jacobi --size 4,1,1", "a grid of 4x1x1 points is smaller than its halo: 1 layers on 5 ranks"),
    (1, "jacobi --size 4,4", "--size: 2 sizes given, it takes one or three"),
    (2, "jacobi --size 0", "--size: '0' is not sizes"),
    (2, "jacobi --size 4000", "GiB needed on a node"),
    (2, "jacobi --size 900000", "does not fit any memory"),
    (2, "jacobi --mode serial", "--mode: 'serial' is not one of pure vector"),
    (4, "OMP_NUM_THREADS=1 jacobi_temporal --size 7 --depth 4",
     "7x7x7 points is smaller than its halo: 4 layers on 4"),
    (1, "OMP_NUM_THREADS=1 jacobi_temporal --size 9,9,3 --depth 4", "smaller than its halo: 4 layers on 1 ranks"),
    (2, "OMP_NUM_THREADS=3 jacobi_temporal --size 9 --depth 2", "3 threads are more than the 2 sweeps of a pass"),
    (2, "OMP_NUM_THREADS=1 jacobi_temporal --lower 3 --upper 2",
     "--upper 2 is below --lower 3"),
    (2, "OMP_NUM_THREADS=1 jacobi_temporal --lower 3,4 --upper 5", "--lower has 2 values and --upper 1"),
    (2, "OMP_NUM_THREADS=1 jacobi_temporal --scheme columns --sync barrier", "--scheme columns has no --sync barrier"),
    (2, "OMP_NUM_THREADS=1 jacobi_temporal --lower 0", "--lower: '0' is not sizes"),
    (2, "OMP_NUM_THREADS=1 jacobi_temporal --tile 8", "--tile: 1 sizes given, it takes two: rows and planes"),
    (2, "OMP_NUM_THREADS=1 jacobi_temporal --depth 0", "--depth: '0' is not a whole number from 1 to 64"),
    (1, "loop_schedule --chunks 0", "--chunks"),
    (1, "overlap", "2 ranks needed, 1 given"),
    (3, "overlap", "2 ranks needed, 3 given"),
    (2, "overlap --mode task", "--mode task: 2 threads needed, 1 given"),
    (2, "overlap --mode thread", "--mode thread: 2 threads needed, 1 given"),
    (2, "overlap --bytes 12", "--bytes: 12 is not a multiple of 8"),
    (2, "overlap --bytes 0", "--bytes: '0' is not sizes"),
    (2, "overlap --work 0", "--work: '0' is not sizes"),
    (2, "overlap --bytes 15G --repetitions 1", "GiB needed on a node"),
    (1, "pairs", "2 ranks needed, 1 given"),
    (1, "pairs --plan 1", "--plan: 1 rank has no partner"),
    (2, "pairs --latency-bytes 0", "--latency-bytes: '0' is not a size"),
    (2, "pairs --bandwidth-bytes 3G", "--bandwidth-bytes: '3G' is not a size"),
    (2, "pairs --mode knockout", "--mode: 'knockout' is not one of serial tournament"),
    (2, "OMP_NUM_THREADS=2 threaded_pingpong --level funneled --mode ordered",
     "ordered needs thread level serialized"),
    (2, "OMP_NUM_THREADS=2 threaded_pingpong --level serialized --mode concurrent",
     "needs thread level multiple"),
    (3, "OMP_NUM_THREADS=2 threaded_pingpong", "2 ranks needed, 3 given"),
    (1, "OMP_NUM_THREADS=2 threaded_pingpong", "2 ranks needed, 1 given"),
    (2, "OMP_NUM_THREADS=2 threaded_pingpong --first", "--first needs a --mode"),
    (2, "OMP_NUM_THREADS=2 threaded_pingpong --threads 0", "--threads: '0' is not sizes"),
    (2, "OMP_NUM_THREADS=2 threaded_pingpong --threads 3", "--threads: 3 wanted, 2 available"),
    (2, "OMP_NUM_THREADS=2 threaded_pingpong --bytes 1000", "--bytes: 1000 is not a multiple of 128"),
    (2, "pi --intervals 0", "pi: --intervals: '0' is not a size such as 4096 or 64M, from 1 to 1e+12"),
    *((2, f"pi --intervals {text}", f"'{text}' is not a size") for text in ("-5", "12X", "9" * 23)),
    (2, "pi --intervals 18446744073709551617", "is not a size"),  # 2^64 + 1: not 1
    (2, "pi --intervals 17179869185G", "is not a size"),  # (2^34 + 1) GiB: not 1 GiB
    (2, "pi --repetitions 2.5", "pi: --repetitions: '2.5' is not a whole number from 1 to 1000000"),
    (2, "pi --repetitions", "pi: --repetitions: '' is not a whole number"),
    (2, "pi --speed", "pi: unknown option '--speed': see --help"),
    (2, "dgemm --size 900000", "GiB needed on a node"),
    *((1, f"OMP_NUM_THREADS={count} handover", f"set OMP_NUM_THREADS to 2, not {count}") for count in (1, 3)),
    *((1, f"halo_layers {option} {value}", f"halo_layers: {option}")
      for option, value in (("--bandwidth", 0), ("--edges", 0), ("--latency", -1), ("--rate", "nan"))),
    (1, "rank_ring", "rank_ring: 1 rank has no ring: start at least 2"),
    (1, "rank_map --plan 8", "rank_map: --plan needs --ranks-per-node"),
    (1, "rank_map --dimensions 4", "--dimensions: '4' is not a whole number from 2 to 3"),
    (2, "rank_map --dimensions 2 --cells 16 --periodic --plan x", "--plan: 'x' is not"),
    (1, "saturation", "saturation: 1 rank has no partner: start at least 2"),
    (4, "saturation --ranks-per-node 3", "saturation: 4 ranks on 2 nodes: start as many on each"),
    (2, "saturation --by cores", "--by: 'cores' is not"),
    *((ranks, f"OMP_NUM_THREADS=2 OMP_THREAD_LIMIT=1 {words}", "2 threads asked, the OpenMP library gives 1: see OMP_")
      for ranks, words in (
          *((1, "false_sharing"), (1, "handover"), (1, "jacobi_temporal --size 16 --depth 2"), (1, "loop_schedule")),
          *((2, "overlap --mode task --bytes 8"), (2, "saturation --by threads --bytes 8")),
          (2, "threaded_pingpong --bytes 1K"),
      )),
]  # fmt: skip


def refused(stack: KernelStack, ranks: int, words: str, line: str) -> None:
    variables = dict(word.split("=") for word in words.split() if word.startswith("OMP_"))
    kernel, *options = words.split()[len(variables) :]
    if not (stack.programs / kernel).exists():
        pytest.skip(f"{kernel} was not built")
    done = stack.mpirun(ranks, kernel, *options, env=variables)
    lines = [text for text in done.stderr.splitlines() if text.startswith(f"{kernel}: ")]
    assert (done.returncode, len(lines), done.stdout) == (2, 1, ""), done
    assert line in lines[0]


@pytest.mark.parametrize(("ranks", "words", "line"), BAD)
def test_bad_input_is_one_line(one_stack, ranks, words, line):
    refused(one_stack, ranks, words, line)


@pytest.mark.parametrize(("ranks", "words", "line"), BAD[:2])
def test_it_is_one_line_on_every_library(each_stack, ranks, words, line):
    refused(each_stack, ranks, words, line)
