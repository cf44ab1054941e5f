/* Begin of every kernel: its command line, MPI at the thread level it needs, the timer. */
#ifndef PLUMB_KERNEL_PROGRAM_H
#define PLUMB_KERNEL_PROGRAM_H

#include "arguments.h"

#include <mpi.h>

struct program {
    const char *name;
    const char *summary; /* one line: what it measures */
    const char *method; /* how figures and model are defined, with sources; lines of at most 100 characters */
    const struct argument *arguments;
    int (*thread_level)(void); /* MPI_THREAD_... that the options ask for; NULL: MPI_THREAD_FUNNELED */
    bool work;                 /* it counts its work with work_begin and work_end */
    bool narrows_profile;      /* it calls MPI_Pcontrol: profilers count nothing but what it times */
};

/* Reads the options (adding --json and --help), starts MPI and the timer. Bad options, and a library that
 * does not give the thread level, end every rank with status 2 and one line. --help prints and exits with 0.
 */
void program_start(const struct program *program, int argc, char **argv);

const struct program *program_facts(void);
int program_rank(void);
int program_ranks(void);
int program_threads(void);       /* OpenMP threads of this rank: omp_get_max_threads() */
MPI_Comm program_node(void);     /* the ranks of this node */
double ranks_max(double value);  /* collective: over all ranks */
double ranks_sum(double value);  /* collective: over all ranks */
bool program_json(void);         /* --json was given */
const char *program_level(void); /* the thread level in words */

/* Collective: for threads that wait for each other, which would wait for ever for one that is missing. Every
 * team has the threads asked for from now on (omp_set_dynamic(0)); ends every rank with status 2 and one line
 * where the OpenMP library does not give `threads` all the same. */
void require_threads(int threads);

#endif
