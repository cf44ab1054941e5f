/* plumb-check: is this node as fast as its kind? One static program without a topology library, for nodes in
 * production. */
#include "check_options.h"
#include "child.h"
#include "class.h"
#include "facts.h"
#include "fail.h"
#include "gpus.h"
#include "jobs.h"
#include "judge.h"
#include "last.h"
#include "loops.h"
#include "others.h"
#include "outcome.h"
#include "quota.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* Of a budget: kept for the end, and the longest that a question to the scheduler may take. */
static const double end_s = 1.0, question_s = 5.0;

static struct options options;
static struct class class;
static struct facts facts;
static struct measured measured;

/* What is printed if all else hangs: the main process is only ever late if the system does not answer it. */
static char late[512];
static int late_status;

static void end_late(int signal) {
    (void)signal;
    if (write(STDOUT_FILENO, late, strlen(late)) < 0)
        late_status = 0;
    if (measured.process > 0)
        kill(measured.process, SIGKILL);
    _exit(late_status);
}

static void watch(double seconds) {
    static const char why[] = "the system did not answer within the time of the check";
    struct itimerval timer = {.it_value = {(time_t)seconds, 0}};
    if (options.form == NAGIOS)
        snprintf(late, sizeof late, "PLUMB WARNING - %s\n", why);
    else if (options.form == JSON)
        snprintf(late, sizeof late, "{\"schema\":1,\"age\":0,\"state\":\"doubt\",\"line\":\"%s\"}\n", why);
    else if (options.form == TEXT)
        snprintf(late, sizeof late, "doubt: %s\n", why);
    late_status = outcome_status(DOUBT, options.form);
    signal(SIGALRM, end_late);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static double deadline; /* of the check, less what its end takes */

static enum jobs ask(const char **said) {
    double left = deadline + end_s / 2 - clock_s(CLOCK_MONOTONIC);
    if (left <= 0.0) {
        *said = "no time is left to ask for jobs";
        return class.scheduler ? JOBS_UNKNOWN : NO_JOBS;
    }
    return jobs_ask(&class, options.node, left < question_s ? left : question_s, said);
}

/* Whether measuring goes on beside other work. */
static bool still_free(void *context) {
    (void)context;
    const char *said;
    return options.beside_jobs || ask(&said) != JOBS;
}

static void read_measured(int planned) {
    char line[4096];
    FILE *file = fopen(options.measured, "re");
    if (!file)
        fail("%s: %s", options.measured, strerror(errno));
    while (measured.count < planned && fgets(line, sizeof line, file)) {
        struct round *round = &measured.rounds[measured.count++];
        char *rest = line, *name;
        while ((name = strsep(&rest, " \n")) && *name) {
            char *word = strsep(&rest, " \n");
            double value = word ? strtod(word, NULL) : NAN;
            enum figure figure = figure_named(name);
            if (!isfinite(value) || (figure == FIGURES && strcmp(name, "others") != 0))
                fail("%s: '%s' is not a figure with a number behind it", options.measured, name);
            if (figure < FIGURES)
                round->of[figure] = (struct reading){true, value, {-1, -1}};
            else
                round->others = value;
        }
    }
    if (ferror(file))
        fail("%s: %s", options.measured, strerror(errno));
    fclose(file);
    if (measured.count < planned)
        measured.ended = text("there are %d of %d rounds", measured.count, planned);
}

/* Whether GPUs are measured: those that the class has limits of, and for a class all that have a driver. */
static bool with_gpus(const struct budget *budget) {
    bool limited = false;
    for (enum figure figure = GPU_IN; figure <= GPU_MEMORY; figure++)
        limited |= budget->limit[figure].given;
    return limited || (options.collect && gpus_driven());
}

/* Measure, where no job is on the node; false where nothing was to be measured. */
static bool measure(struct outcome *outcome) {
    struct verdict *verdict = &outcome->verdict;
    const char *said;
    enum jobs jobs = options.beside_jobs ? NO_JOBS : ask(&said);
    if (jobs == JOBS)
        verdict_busy(verdict,
                     text("a job is on the node: nothing was measured%s%s", *said ? ": " : "", said));
    if (jobs == JOBS_UNKNOWN)
        verdict_doubt(verdict, text("nobody can say whether jobs are on the node: %s", said));
    if (jobs != NO_JOBS)
        return false;
    if (quota_cpus() < (double)class.core_count) {
        verdict_doubt(verdict, text("this process may use %.3g CPUs of %zu: its control group has a quota",
                                    quota_cpus(), class.core_count));
        return false;
    }
    processes_begin();
    if (options.measured)
        read_measured(outcome->budget->rounds);
    else
        child_measure(&measured, &class, with_gpus(outcome->budget), outcome->budget->rounds, deadline,
                      still_free, NULL);
    return true;
}

/* What was said of measuring itself. */
static void tell(struct verdict *verdict) {
    if (measured.found)
        verdict_found(verdict, measured.found);
    if (measured.ended)
        verdict_doubt(verdict, measured.ended);
    if (measured.without_gpus)
        verdict_doubt(verdict, measured.without_gpus);
}

static void judge(struct outcome *outcome) {
    struct verdict *verdict = &outcome->verdict, without = *verdict;
    const char *said;
    tell(verdict);
    judge_rounds(verdict, &class, outcome->budget, measured.rounds, measured.count, outcome->member);
    /* A job that began meanwhile makes everything that was measured doubtful. */
    if (verdict->state == FOUND && without.state != FOUND && !options.beside_jobs && ask(&said) != NO_JOBS) {
        without.doubt_count = verdict->doubt_count;
        memcpy(without.doubts, verdict->doubts, sizeof without.doubts);
        memcpy(without.of, verdict->of, sizeof without.of);
        *verdict = without;
        verdict_doubt(verdict, text("slow, but a job may have begun: %s", said));
    }
    const char *other = processes_end(measured.process);
    if (other)
        (verdict->state < DOUBT ? verdict_remark : verdict_doubt)(verdict, text("other work: %s", other));
}

/* The values for a class: a limit that the class may have already judges none of them. */
static void take_in(struct outcome *outcome) {
    static const struct budget without;
    struct verdict scratch = {.state = FINE};
    judge_rounds(&scratch, &class, &without, measured.rounds, measured.count, true);
    memcpy(outcome->verdict.of, scratch.of, sizeof scratch.of);
    tell(&outcome->verdict);
}

static void check(struct outcome *outcome) {
    double begin = clock_s(CLOCK_MONOTONIC);
    *outcome =
        (struct outcome){.class = &class, .node = options.node, .facts = &facts, .rounds = measured.rounds};
    outcome->budget = class_budget(&class, options.seconds);
    outcome->member = class_has(&class, options.node);
    outcome->time = clock_s(CLOCK_REALTIME);
    deadline = begin + options.seconds - end_s;
    memset(&measured, 0, sizeof measured);
    facts_read(&facts, loops_here()->name);
    judge_facts(&outcome->verdict, &class, &facts);
    if (measure(outcome)) {
        judge_rooms(&outcome->verdict, &class);
        outcome->count = measured.count;
        if (options.collect)
            take_in(outcome);
        else
            judge(outcome);
    }
    outcome->seconds = clock_s(CLOCK_MONOTONIC) - begin;
}

static int put(const char *content, int status) {
    if (options.output) {
        const char *why = file_replace(options.output, content);
        if (why)
            fail("%s", why);
    } else if (fputs(content, stdout) == EOF || fflush(stdout) != 0)
        fail("the result cannot be written: %s", strerror(errno));
    return status;
}

static int check_once(void) {
    struct outcome outcome;
    watch(options.seconds);
    check(&outcome);
    /* What was found before a job came stays the last result. A file system may be read-only: the result is
     * then only printed. */
    const char *why =
        options.state && outcome.verdict.state != BUSY ? last_keep(options.state, &outcome) : NULL;
    if (why && options.detach)
        fail("%s: give --state", why);
    return put(outcome_text(&outcome, options.form, "0"),
               outcome_status(outcome.verdict.state, options.form));
}

static void add_line(const char *path, const char *line) {
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
    size_t length = strlen(line);
    if (file < 0 || write(file, line, length) != (ssize_t)length || close(file) != 0)
        fail("%s cannot be written: %s", path, strerror(errno));
}

static int collect(void) {
    const char *path = text("%s/%s.jsonl", options.collect, options.node);
    int status = 0;
    for (int number = 0; number < options.checks; number++) {
        struct outcome outcome;
        watch(options.seconds);
        check(&outcome);
        add_line(path, outcome_collected(&outcome));
        if (outcome.verdict.state != FINE)
            status = EXIT_FAILURE;
    }
    return status;
}

static int last(void) {
    int status;
    char *content = last_text(options.state, options.form, &status);
    if (content)
        return put(content, status);
    /* nothing to show is not a fault of the node */
    if (options.form == JSON)
        return put("{\"schema\":1,\"age\":0,\"state\":\"doubt\",\"line\":\"no check has ended yet\"}\n", 0);
    if (options.form == NAGIOS)
        return put("PLUMB WARNING - no check has ended yet\n", 1);
    return put(options.form == TEXT ? "doubt: no check has ended yet\n" : "", 0);
}

/* A check in the background, unless one runs. It has nothing of whoever started it: a scheduler waits for
 * open files. */
static void detach(void) {
    if (!last_lock(options.state)) /* the child keeps the lock; a folder that cannot be is an error here */
        return;
    pid_t child = fork();
    if (child < 0)
        fail("no process: %s", strerror(errno));
    if (child > 0)
        return;
    setsid();
    int nothing = open("/dev/null", O_RDWR);
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        dup2(nothing, file);
    options.output = NULL;
    exit(check_once());
}

static void number_or_none(double value, double scale) {
    if (isnan(value))
        printf(" %12s", "none");
    else
        printf(" %12.4g", scale * value);
}

static int plan(void) {
    printf("class %s, made %s, of %zu nodes; at most %g of the checks of a healthy node end as bad; "
           "slowdowns below "
           "%g %% never do\n",
           class.name, class.made, class.member_count, class.rate, 100 * class.tolerance);
    printf("%7s %6s %-14s %-8s %12s %12s %12s\n", "seconds", "rounds", "figure", "unit", "limit",
           "other nodes", "found from %");
    for (int index = 0; index < class.budget_count; index++)
        for (enum figure figure = 0; figure < FIGURES; figure++) {
            const struct budget *budget = &class.budgets[index];
            const struct limit *limit = &budget->limit[figure];
            if (!limit->given)
                continue;
            printf("%7g %6d %-14s %-8s", budget->seconds, budget->rounds, figure_facts[figure].name,
                   figure_facts[figure].unit);
            number_or_none(limit->member, 1.0);
            number_or_none(limit->other, 1.0);
            number_or_none(limit->found, 100.0);
            printf("\n");
        }
    for (size_t index = 0; index < class.fact_count; index++)
        printf("equal: %s %s\n", class.facts[index].name, class.facts[index].value);
    for (size_t index = 0; index < class.room_count; index++)
        printf("free: %s %.3g GiB\n", class.rooms[index].path, class.rooms[index].bytes / 0x1p30);
    return 0;
}

int main(int argc, char **argv) {
    setenv("LC_ALL", "C", 1); /* what the scheduler's programs print is read */
    options_read(&options, argc, argv);
    class_read(&class, options.class);
    if (options.plan)
        return plan();
    if (options.last)
        return last();
    class_budget(&class, options.seconds); /* ends the program where there is none, before anything begins */
    if (options.collect)
        return collect();
    if (!options.detach)
        return check_once();
    detach();
    return last();
}
