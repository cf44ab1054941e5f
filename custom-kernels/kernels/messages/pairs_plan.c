#include "pairs_plan.h"

#include "fail_together.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Players: the ranks, and one that does not exist if they are odd. */
static int players(int ranks) {
    return ranks + ranks % 2;
}

int tournament_rounds(int ranks) {
    return players(ranks) - 1;
}

int tournament_partner(int ranks, int round, int rank) {
    int last = players(ranks) - 1, partner;
    if (rank == last) /* meets the one that would meet itself: 2 x partner = round (mod last), last is odd */
        partner = round % 2 ? (round + last) / 2 : round / 2;
    else {
        partner = round - rank < 0 ? round - rank + last : round - rank;
        partner = partner == rank ? last : partner;
    }
    return partner < ranks ? partner : NOBODY;
}

/* The bit of the pair a < b. Returns whether it was set already. */
static bool meet(unsigned char *met, int ranks, int a, int b) {
    size_t bit = (size_t)a * (size_t)ranks + (size_t)b;
    bool before = met[bit / 8] >> (bit % 8) & 1;
    met[bit / 8] |= (unsigned char)(1u << (bit % 8));
    return before;
}

struct plan_count count_tournament(int ranks) {
    struct plan_count count = {.rounds = tournament_rounds(ranks)};
    unsigned char *met = allocate(((size_t)ranks * (size_t)ranks + 7) / 8, 1);
    for (int round = 0; round < count.rounds; round++)
        for (int rank = 0; rank < ranks; rank++) {
            int partner = tournament_partner(ranks, round, rank);
            count.operations++;
            count.byes += partner == NOBODY;
            if (partner <= rank) /* counted from its other side, which meet() has noted */
                count.faults += partner == rank || (partner != NOBODY && !meet(met, ranks, partner, rank));
            else {
                count.meetings++;
                count.faults += meet(met, ranks, rank, partner);
            }
        }
    count.faults += llabs((long long)ranks * (ranks - 1) / 2 - count.meetings);
    free(met);
    return count;
}
