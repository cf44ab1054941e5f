// A C++ program whose threads nobody binds.
#include <chrono>
#include <cstdio>
#include <ctime>
#include <mpi.h>
#include <thread>
#include <unistd.h>
#include <vector>

static void work() {
    timespec now;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec + 1e-9 * now.tv_nsec < 0.15);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++)
        threads.emplace_back(work);
    for (auto &thread : threads)
        thread.join();
    if (rank == 0)
        std::printf("Rate: 10.%d GF/s\n", getpid());
    return MPI_Finalize();
}
