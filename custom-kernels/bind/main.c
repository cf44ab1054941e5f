/* plumb-bind: the only place where a placement becomes CPU numbers. */
#include "apply.h"
#include "devices.h"
#include "environment.h"
#include "fail.h"
#include "local_rank.h"
#include "meeting.h"
#include "options.h"
#include "processor.h"
#include "proxy.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void finish(struct json *out) {
    int error = json_finish(out);
    if (error)
        fail("the output cannot be written: %s", strerror(error));
}

static _Noreturn void run(const struct options *options, const struct plan *plan, unsigned rank,
                          const struct machine *machine) {
    if (!machine->is_this_host)
        fail("hwloc's environment variables name another machine: unset HWLOC_XMLFILE and HWLOC_SYNTHETIC");
    if (options->needs)
        refuse_processor(options->needs);
    if (options->profile)
        export_profile(options->profile);
    if (options->witness)
        export_witness(options->witness);
    if (options->output)
        redirect_output(options->output);
    if (options->output || options->input)
        redirect_input(options->input);
    export_plan(plan, rank);
    if (options->allowed)
        apply_allowed(machine);
    apply_affinity(plan, rank, machine);
    apply_memory(plan, rank, machine);
    if (options->barrier)
        meet(options->barrier);
    if (options->witness)
        export_own_time();
    become(options->program);
}

/* How many ranks to plan for: what the command line says, or the launcher. */
static void count_ranks(const struct options *options, struct local_rank *local, struct request *request) {
    request->ranks = options->ranks;
    request->ranks_known = true;
    if (options->print)
        return;
    *local = find_local_rank();
    request->ranks = local->size;
    request->ranks_known = local->size_known;
}

/* The placement and the memory policy that are asked for; exits where a name is not one. */
static struct memory read_names(const struct options *options, struct placement *placement) {
    *placement = parse_placement(options->placement);
    return parse_memory(options->memory ? options->memory : default_memory(placement));
}

static void resolve(const struct options *options) {
    if (!options->print)
        end_with_proxy();
    struct placement placement;
    struct memory memory = read_names(options, &placement);
    struct local_rank local = {0};
    struct request request = {.placement = &placement, .threads = options->threads};
    count_ranks(options, &local, &request);
    unsigned parts = parts_needed(&placement) | (memory.kind == MEMORY_REMOTE ? WITH_DISTANCES : 0);
    struct machine machine = load_machine(options->topology, options->machine, options->allowed, parts);
    struct cpu_table table = read_cpu_table(&machine);
    request.machine = &machine;
    request.table = &table;
    struct plan plan = make_plan(&request, &memory);
    if (!options->print)
        run(options, &plan, local.rank, &machine);
    struct json out;
    json_start(&out, STDOUT_FILENO);
    write_plan(&out, &plan);
    finish(&out);
    free_plan(&plan);
    free_cpu_table(&table);
    free_machine(&machine);
}

static void list_devices(const struct options *options) {
    struct machine machine = load_whole_machine(options->topology, WITH_DEVICES);
    struct json out;
    json_start(&out, STDOUT_FILENO);
    write_devices(&out, &machine);
    finish(&out);
    free_machine(&machine);
}

int main(int count, char **words) {
    struct options options = read_options(count, words);
    if (options.list) {
        struct json out;
        json_start(&out, STDOUT_FILENO);
        write_list(&out);
        finish(&out);
    } else if (options.devices)
        list_devices(&options);
    else if (options.check)
        read_names(&options, &(struct placement){0});
    else if (options.export_file)
        export_topology(options.topology, options.export_file);
    else
        resolve(&options);
    return EXIT_SUCCESS;
}
