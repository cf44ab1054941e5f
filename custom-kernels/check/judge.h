/* From rounds to a verdict. The rule is fixed before anything is measured: a figure is slow if in more than
 * half of the planned rounds its value lies beyond the limit. Rounds beside other work count as beyond only
 * where that work cannot explain it; what is then not sure is a doubt, and a doubt never drains. */
#ifndef PLUMB_CHECK_JUDGE_H
#define PLUMB_CHECK_JUDGE_H

#include "class.h"
#include "facts.h"
#include "figures.h"

#include <stdbool.h>

/* BUSY: fine as far as can be seen beside a job, where nothing is measured. */
enum state { FINE, BUSY, DOUBT, FOUND };

/* What is said of one figure. `value`: median of its rounds; `limit`: by which it was judged, NAN without. */
struct judged {
    bool known;
    enum state state;
    double value, limit;
    int place[2]; /* most often the slowest, of the rounds beyond the limit */
    int rounds, beyond, beyond_disturbed;
};

enum { MOST_LINES = 64 };

/* What a check found. `lines` are reasons in words: first those found, then doubts; `remarks` change nothing.
 */
struct verdict {
    enum state state;
    struct judged of[FIGURES];
    const char *found[MOST_LINES], *doubts[MOST_LINES], *remarks[MOST_LINES];
    int found_count, doubt_count, remark_count;
};

void verdict_found(struct verdict *verdict, const char *line);
void verdict_doubt(struct verdict *verdict, const char *line);
void verdict_busy(struct verdict *verdict, const char *line);
void verdict_remark(struct verdict *verdict, const char *line);

/* Judge the figures of `count` rounds. */
void judge_rounds(struct verdict *verdict, const struct class *class, const struct budget *budget,
                  const struct round *rounds, int count, bool member);

/* Judge what has to be equal, and the room on file systems. */
void judge_facts(struct verdict *verdict, const struct class *class, const struct facts *facts);
void judge_rooms(struct verdict *verdict, const struct class *class);

/* As a word: ok, busy, doubt, bad. */
const char *state_word(enum state state);

/* A number with its unit, in few digits. Free it. */
char *value_text(enum figure figure, double value);

#endif
