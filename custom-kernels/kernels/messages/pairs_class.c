#include "pairs_class.h"

#include "fail.h"
#include "hardware.h"
#include "program.h"

#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

/* The CPU of this process, if all that it may run on are hardware threads of one core. */
static bool own_cpu(const struct cpu_list *threads, struct cpu *own) {
    struct cpus allowed;
    bool one_core = cpus_allowed(&allowed);
    size_t found = 0;
    for (size_t index = 0; one_core && index < threads->count; index++) {
        const struct cpu *cpu = &threads->cpu[index];
        if (!cpus_have(&allowed, (int)cpu->os))
            continue;
        one_core = found == 0 || cpu->object[LEVEL_CORE] == own->object[LEVEL_CORE];
        *own = found == 0 ? *cpu : *own;
        found++;
    }
    return one_core && found > 0;
}

struct place *places_collect(void) {
    struct place own = {.node = program_rank()};
    gethostname(own.host, sizeof own.host - 1);
    MPI_Allreduce(MPI_IN_PLACE, &own.node, 1, MPI_INT, MPI_MIN, program_node());
    struct machine machine = load_whole_machine(NULL, 0);
    struct cpu_table table = read_cpu_table(&machine);
    own.bound = own_cpu(&table.threads, &own.cpu);
    free_cpu_table(&table);
    free_machine(&machine);
    struct place *places = allocate((size_t)program_ranks(), sizeof *places);
    MPI_Allgather(&own, sizeof own, MPI_BYTE, places, sizeof own, MPI_BYTE, MPI_COMM_WORLD);
    return places;
}

const char *class_of(const struct place *a, const struct place *b) {
    if (a->node != b->node)
        return "pair:node";
    if (!a->bound || !b->bound)
        return "unbound";
    if (a->cpu.os == b->cpu.os)
        return "same-cpu";
    return pair_class(smallest_common_level(&a->cpu, &b->cpu));
}
