/* Which ranks meet in which round, so that every pair of ranks meets exactly once. */
#ifndef PLUMB_PAIRS_PLAN_H
#define PLUMB_PAIRS_PLAN_H

enum { NOBODY = -1 };

/* Rounds of a tournament of `ranks` ranks: one less than the ranks, or as many if they are odd. */
int tournament_rounds(int ranks);

/* The partner of `rank` in `round`; NOBODY if the number of ranks is odd and this rank has no partner in it.
 *
 * The circle method: all but the last player are in a circle that turns by one place each round. Written as
 * arithmetic (players a and b meet in round (a + b) mod (n - 1)), so that a rank needs no table: a plan for
 * 10,000 ranks takes each of them 9,999 additions. Source: Anderson, Combinatorial Designs and Tournaments,
 * 1997, chapter 2. */
int tournament_partner(int ranks, int round, int rank);

/* The totals of a whole tournament. `byes`: how often a rank has no partner. */
struct plan_count {
    long long rounds, meetings, byes;
    long long operations; /* calls of tournament_partner */
    long long faults;     /* pairs that do not meet exactly once, and meetings that only one side has */
};

/* Compute the whole tournament of `ranks` ranks and count; no message is sent. */
struct plan_count count_tournament(int ranks);

#endif
