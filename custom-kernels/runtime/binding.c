#include "binding.h"

#include "fail_together.h"
#include "hardware.h"
#include "program.h"

#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One list of CPUs per thread, separated by spaces. */
static char *own_cpus(int *threads) {
    int count = program_threads();
    char **lists = allocate((size_t)count, sizeof *lists);
#pragma omp parallel num_threads(count)
    lists[omp_get_thread_num()] = affinity_text();
    size_t room = 1;
    for (int thread = 0; thread < count; thread++)
        room += lists[thread] ? strlen(lists[thread]) + 1 : 0; /* NULL: OpenMP gave fewer threads */
    char *joined = allocate(room, 1), *end = joined;
    for (int thread = 0; thread < count && lists[thread]; thread++) {
        end = stpcpy(stpcpy(end, thread ? " " : ""), lists[thread]);
        free(lists[thread]);
    }
    free(lists);
    *threads = count;
    return joined;
}

static void receive(struct binding *binding, int rank) {
    int length;
    MPI_Recv(binding->host, MOST_HOST, MPI_CHAR, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&binding->threads, 1, MPI_INT, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&length, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    binding->cpus = allocate((size_t)length, 1);
    MPI_Recv(binding->cpus, length, MPI_CHAR, rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

struct binding *binding_collect(void) {
    struct binding own = {.host = ""};
    gethostname(own.host, MOST_HOST - 1);
    own.cpus = own_cpus(&own.threads);
    if (program_rank() != 0) {
        int length = (int)strlen(own.cpus) + 1;
        MPI_Send(own.host, MOST_HOST, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        MPI_Send(&own.threads, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        MPI_Send(&length, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
        MPI_Send(own.cpus, length, MPI_CHAR, 0, 4, MPI_COMM_WORLD);
        free(own.cpus);
        return NULL;
    }
    struct binding *bindings = allocate((size_t)program_ranks(), sizeof *bindings);
    bindings[0] = own;
    for (int rank = 1; rank < program_ranks(); rank++)
        receive(&bindings[rank], rank);
    return bindings;
}

void binding_free(struct binding *bindings) {
    if (!bindings)
        return;
    for (int rank = 0; rank < program_ranks(); rank++)
        free(bindings[rank].cpus);
    free(bindings);
}
