/* What a kernel found: rows of parameters and figures, a model beside each figure, and whether the answer is
 * right.
 *
 * Every rank may call these functions; rank 0 prints, as a table or (--json) as one document of the schema
 * plumbline/base/schemas/kernel.json. Strings are copied. */
#ifndef PLUMB_KERNEL_RESULT_H
#define PLUMB_KERNEL_RESULT_H

#include <stdbool.h>

enum better { LOWER_IS_BETTER, HIGHER_IS_BETTER };

struct result;
struct row;

struct result *result_new(void);

/* What limits the figures, in one line: bytes or flops per unit of work and the rate they are divided by. */
void result_model(struct result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A line for people below the table, and an entry of "notes". */
void result_note(struct result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A note that records keep, an entry of "remarks" too: what a reader of the figures must know of this run.
 * One of the form NAME = VALUE is an answer, the same in every mode and for any number of ranks. */
void result_remark(struct result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A row: first its parameters, then its figures. */
struct row *result_row(struct result *result);
void row_integer(struct row *row, const char *name, long long value);
void row_text(struct row *row, const char *name, const char *value);

/* A figure of merit in one of the units us, ns, cycles, MB/s (10^6 bytes), GFlop/s, MLUP/s, %, bytes, 1
 * (ratio), from `samples` timings. */
void row_figure(struct row *row, const char *name, const char *unit, enum better better, double value,
                long samples);

/* The model's value for the row's newest figure, in its unit; the percentage reached is printed beside it. */
void row_limit(struct row *row, double limit);

/* The correctness of the answer: every check must pass, and there must be one. `error` and `tolerance` are
 * what was compared. */
void result_check(struct result *result, bool passed, const char *what, double error, double tolerance);

/* A check of the measurement, not of the answer: a launch that fails it was disturbed. */
void result_condition(struct result *result, bool passed, const char *what, double value, double most);

/* Print, free, finalize MPI. Collective. Returns the exit status: 1 if a check failed, there is no check or
 * no row, a figure is not finite, or the output cannot be written. The binding that the ranks report is
 * collected here. */
int result_finish(struct result *result);

#endif
