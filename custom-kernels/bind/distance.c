#include "distance.h"

enum level smallest_common_level(const struct cpu *a, const struct cpu *b) {
    if (a->object[LEVEL_PACKAGE] != b->object[LEVEL_PACKAGE])
        return LEVEL_MACHINE;
    enum level best = LEVEL_PACKAGE;
    for (enum level level = LEVEL_PACKAGE; level-- > LEVEL_CORE;)
        if (a->object[level] != NO_OBJECT && a->object[level] == b->object[level] &&
            a->weight[level] <= a->weight[best])
            best = level;
    return best;
}

const char *pair_class(enum level level) {
    static const char *const names[LEVELS] = {"pair:smt",  "pair:l2",     "pair:l3",
                                              "pair:numa", "pair:socket", "pair:xsocket"};
    return names[level];
}
