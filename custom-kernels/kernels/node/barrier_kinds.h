/* Five barriers for one team of OpenMP threads. */
#ifndef PLUMB_BARRIER_KINDS_H
#define PLUMB_BARRIER_KINDS_H

enum kind { PTHREAD, OPENMP, SPIN, DISSEMINATION, HIERARCHICAL, KINDS };

extern const char *const kind_names[KINDS + 1];

struct team;

/* Barriers for `threads` threads; group[t] is any number that the threads near thread t share. A thread that
 * has looked `spins` times in vain yields its CPU. Free with team_free. */
struct team *team_new(int threads, const int *group, long spins);
void team_free(struct team *team);

/* Returns when all threads of the team have called it with the same kind, from inside one parallel region of
 * exactly `threads` threads. */
void team_wait(struct team *team, enum kind kind, int thread);

#endif
