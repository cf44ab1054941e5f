#include "common_clock.h"

#include "clock_offset.h"
#include "fail_together.h"
#include "procfile.h"
#include "program.h"
#include "samples.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TRIPS = 64,    /* round trips of one offset: the shortest counts */
    FEW_TRIPS = 8, /* enough if they take longer than MOST_NS */
    MOST_NS = 50000000,
    READINGS = 501, /* for the cost of a reading */
    MOST_KEY = 256,
    MOST_LEVELS = 32,    /* of the tree of clocks: each level doubles them */
    APART_NS = 200000000 /* between the first two offsets, which show the drift */
};

/* The way from this rank's clock to rank 0's: one line for each level of the tree. */
struct way {
    struct line lines[MOST_LEVELS];
    int length;
};

static struct {
    MPI_Comm same, leaders; /* ranks with this rank's clock; the first rank of every clock (others: null) */
    int64_t begin;          /* CLOCK_MONOTONIC at the start, on the clock's first rank */
    int count;              /* clocks */
    double reading;
    struct offset earliest, newest; /* of this clock's line to the one above it */
    struct way predicted, between;
} self;

static int64_t monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

double clock_now(void) {
    return (double)(monotonic() - self.begin);
}

/* What ranks with the same clock have in common: the host, its boot, and the namespace that shifts the clock.
 */
static void clock_key(char *key) {
    char boot[64] = "", names[64] = "", host[65] = "";
    read_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    ssize_t length = readlink("/proc/self/ns/time", names, sizeof names - 1);
    names[length > 0 ? length : 0] = '\0';
    gethostname(host, sizeof host - 1);
    snprintf(key, MOST_KEY, "%s %s %s", host, boot, names);
}

/* The lowest rank with this rank's clock. */
static int first_with_this_clock(void) {
    char own[MOST_KEY] = "", (*all)[MOST_KEY] = allocate((size_t)program_ranks(), MOST_KEY);
    clock_key(own);
    MPI_Allgather(own, MOST_KEY, MPI_CHAR, all, MOST_KEY, MPI_CHAR, MPI_COMM_WORLD);
    int first = 0;
    while (strcmp(all[first], own) != 0)
        first++;
    free(all);
    return first;
}

/* Tags of a question: whether another one follows. */
enum { MORE, LAST };

/* Round trips to rank `other`; returns how many, at most TRIPS. */
static int ask(MPI_Comm comm, int other, struct round_trip *trips) {
    double begin = clock_now();
    int count = 0, tag = MORE;
    while (tag == MORE) {
        struct round_trip *trip = &trips[count++];
        trip->sent = clock_now();
        if (count == TRIPS || (count >= FEW_TRIPS && trip->sent - begin > MOST_NS))
            tag = LAST;
        MPI_Send(NULL, 0, MPI_DOUBLE, other, tag, comm);
        MPI_Recv(&trip->theirs, 1, MPI_DOUBLE, other, tag, comm, MPI_STATUS_IGNORE);
        trip->back = clock_now();
    }
    return count;
}

static void answer(MPI_Comm comm, int other) {
    MPI_Status asked = {.MPI_TAG = MORE};
    while (asked.MPI_TAG == MORE) {
        MPI_Recv(NULL, 0, MPI_DOUBLE, other, MPI_ANY_TAG, comm, &asked);
        double now = clock_now();
        MPI_Send(&now, 1, MPI_DOUBLE, other, asked.MPI_TAG, comm);
    }
}

/* Round trips of each rank of a clock, in turn, with the clock's first rank: no answer may have been read
 * outside of its round trip. Returns out_of_order of this rank's, in ns. */
static double disorder_of_same(void) {
    struct round_trip trips[TRIPS];
    int rank, ranks;
    double most = 0.0;
    MPI_Comm_rank(self.same, &rank);
    MPI_Comm_size(self.same, &ranks);
    for (int other = 1; other < ranks; other++)
        if (rank == 0)
            answer(self.same, other);
        else if (rank == other)
            most = out_of_order(trips, ask(self.same, 0, trips));
    return most;
}

/* The offset of every clock to the one above it. In each round the clocks that are synchronised already
 * answer one more each: clock r + 2^k asks clock r (the tree of Hunold and Carpen-Amarie's HCA3). Returns
 * this clock's. */
static struct offset synchronise(void) {
    struct offset found = {0};
    if (self.leaders == MPI_COMM_NULL)
        return found;
    struct round_trip trips[TRIPS];
    int rank;
    MPI_Comm_rank(self.leaders, &rank);
    for (int distance = 1; distance < self.count; distance *= 2)
        if (rank < distance && rank + distance < self.count)
            answer(self.leaders, rank + distance);
        else if (rank >= distance && rank < 2 * distance)
            found = offset_of(trips, ask(self.leaders, rank - distance, trips));
    return found;
}

/* The whole way to rank 0's clock from this clock's own line: down the tree, then to all ranks of each clock.
 */
static struct way way_with(struct line own) {
    struct way way = {.length = 0};
    int rank;
    if (self.leaders != MPI_COMM_NULL) {
        MPI_Comm_rank(self.leaders, &rank);
        for (int distance = 1; distance < self.count; distance *= 2)
            if (rank < distance && rank + distance < self.count)
                MPI_Send(&way, sizeof way, MPI_BYTE, rank + distance, 0, self.leaders);
            else if (rank >= distance && rank < 2 * distance) {
                MPI_Recv(&way, sizeof way, MPI_BYTE, rank - distance, 0, self.leaders, MPI_STATUS_IGNORE);
                memmove(way.lines + 1, way.lines, (size_t)way.length * sizeof *way.lines);
                way.lines[0] = own;
                way.length++;
            }
    }
    MPI_Bcast(&way, sizeof way, MPI_BYTE, 0, self.same);
    return way;
}

static double along(const struct way *way, double time) {
    for (int index = 0; index < way->length; index++)
        time += line_at(&way->lines[index], time);
    return time;
}

static double cost_of_reading(void) {
    static double costs[READINGS];
    for (int index = 0; index < READINGS; index++) {
        double before = clock_now();
        costs[index] = clock_now() - before;
    }
    return summarize(costs, READINGS).median;
}

void clock_start(void) {
    int first = first_with_this_clock();
    MPI_Comm_split(MPI_COMM_WORLD, first, program_rank(), &self.same);
    MPI_Comm_split(MPI_COMM_WORLD, first == program_rank() ? 0 : MPI_UNDEFINED, program_rank(),
                   &self.leaders);
    if (self.leaders != MPI_COMM_NULL)
        MPI_Comm_size(self.leaders, &self.count);
    self.begin = monotonic();
    MPI_Bcast(&self.count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(&self.begin, 1, MPI_INT64_T, 0, self.same);
    self.reading = ranks_max(cost_of_reading());
    double disorder = disorder_of_same();
    require(disorder == 0.0,
            "rank %d and the first rank of its host read clocks that are at least %.3g ns apart: "
            "their CLOCK_MONOTONIC is not one clock",
            program_rank(), disorder);
    if (self.count == 1)
        return;
    self.earliest = synchronise();
    struct timespec apart = {.tv_nsec = APART_NS};
    nanosleep(&apart, NULL);
}

void clock_end(void) {
    MPI_Comm_free(&self.same);
    if (self.leaders != MPI_COMM_NULL)
        MPI_Comm_free(&self.leaders);
}

double clock_predicted(double own) {
    return along(&self.predicted, own);
}

double clock_common(double own) {
    return along(&self.between, own);
}

void clock_before(void) {
    if (self.count == 1)
        return;
    self.newest = synchronise();
    self.predicted = way_with(line_ahead(self.earliest, self.newest));
}

void clock_after(void) {
    if (self.count > 1)
        self.between = way_with((struct line){self.newest, synchronise()});
}

/* Two clocks may be off in opposite directions: the two largest errors count. */
double clock_error(void) {
    double own = 0.0, largest = 0.0, second = 0.0;
    for (int index = 0; index < self.between.length; index++)
        own += line_error(&self.between.lines[index]);
    if (self.leaders != MPI_COMM_NULL) {
        double *all = allocate((size_t)self.count, sizeof *all);
        MPI_Allgather(&own, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, self.leaders);
        for (int index = 0; index < self.count; index++)
            if (all[index] > largest) {
                second = largest;
                largest = all[index];
            } else
                second = fmax(second, all[index]);
        free(all);
    }
    double error = largest + second + self.reading;
    MPI_Bcast(&error, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return error;
}

int clock_count(void) {
    return self.count;
}

double clock_drift_ppm(void) {
    double most = 0.0;
    for (int index = 0; index < self.predicted.length; index++)
        most = fmax(most, fabs(line_drift_ppm(&self.predicted.lines[index])));
    return ranks_max(most);
}
