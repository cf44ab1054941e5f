/* What halos of several layers gain between ranks: fewer messages, against more bytes and repeated work. A
 * model. */
#include "program.h"
#include "result.h"

#include <math.h>

enum { MOST_LAYERS = 32, BYTES = sizeof(double) };

static struct sizes edges = {6, {8, 16, 32, 64, 128, 256}};
static double latency_us = 2.0, bandwidth_mb = 3000.0, rate_mlup = 1000.0;

static const struct argument arguments[] = {
    {"--edges", ARGUMENT_SIZES, &edges, 1, 65536, NULL, "edges of the cubes of points that a rank has"},
    {"--latency", ARGUMENT_REAL, &latency_us, 0, 1e6, NULL, "of a message, in us"},
    {"--bandwidth", ARGUMENT_REAL, &bandwidth_mb, 1e-3, 1e9, NULL,
     "of a rank's link in each direction, in MB/s"},
    {"--rate", ARGUMENT_REAL, &rate_mlup, 1e-3, 1e9, NULL, "updates of points by a rank, in MLUP/s"},
    {.name = NULL},
};

static const struct program program = {
    .name = "halo_layers",
    .summary = "what halos of several layers gain in a stencil code: a model, nothing is measured",
    .method =
        "A rank has a cube of points and six neighbours. With h layers of halo it sweeps h times between\n"
        "two exchanges: sweep s of h updates a cube that is h - s points larger on each side, so that\n"
        "several ranks update the points near their borders.\n"
        "Assumptions: an exchange is made along x, then y, then z (no diagonal messages: Ding and He, SC\n"
        "2001); along one of them it costs the latency once, and the bytes for both neighbours over the\n"
        "bandwidth; sends do not slow receives, and nothing overlaps; copies into messages cost nothing; a\n"
        "point costs the same whatever h is, so what caches gain by several sweeps is not in it.\n"
        "Figures: gain: time of h sweeps with one layer, over that with h layers. gain_bandwidth: the same\n"
        "without any latency. repeated: updates of points of other ranks, as a share of own ones.\n"
        "After the model of multi-layer halos of RRZE's course (2010). Latency, bandwidth and rate are\n"
        "assumptions of this program: give your own.",
    .arguments = arguments,
};

/* The points that an exchange brings along x, y and z: what came along one of them goes with the next. */
static double received(double edge, double layers) {
    double whole = edge + 2 * layers;
    return 2 * layers * (edge * edge + edge * whole + whole * whole);
}

static double updates(double edge, long layers) {
    double sum = 0.0;
    for (long sweep = 1; sweep <= layers; sweep++)
        sum += pow(edge + 2.0 * (double)(layers - sweep), 3);
    return sum;
}

/* Seconds of one exchange and of the sweeps until the next one. */
static double period(double edge, long layers, double latency_s) {
    double exchange = 3 * latency_s + received(edge, (double)layers) * BYTES / (bandwidth_mb * 1e6);
    return exchange + updates(edge, layers) / (rate_mlup * 1e6);
}

static double gain(double edge, long layers, double latency_s) {
    return (double)layers * period(edge, 1, latency_s) / period(edge, layers, latency_s);
}

/* Returns by how much the points of the halo, counted in another way, differ; in points. */
static double report(struct result *result, double edge, long layers) {
    struct row *row = result_row(result);
    double own = (double)layers * pow(edge, 3);
    row_integer(row, "edge", (long long)edge);
    row_integer(row, "layers", layers);
    row_figure(row, "gain", "1", HIGHER_IS_BETTER, gain(edge, layers, latency_us / 1e6), 1);
    row_figure(row, "gain_bandwidth", "1", HIGHER_IS_BETTER, gain(edge, layers, 0.0), 1);
    row_figure(row, "repeated", "%", LOWER_IS_BETTER, 100.0 * (updates(edge, layers) - own) / own, 1);
    return fabs(received(edge, (double)layers) - (pow(edge + 2.0 * (double)layers, 3) - pow(edge, 3)));
}

int main(int argc, char **argv) {
    program_start(&program, argc, argv);
    struct result *result = result_new();
    double error = 0.0;
    for (int index = 0; index < edges.count; index++)
        for (long layers = 1; layers <= MOST_LAYERS && layers <= (long)edges.values[index]; layers *= 2)
            error = fmax(error, report(result, (double)edges.values[index], layers));
    result_model(result,
                 "latency %g us, %g MB/s in each direction, %g MLUP/s: assumptions, nothing is measured",
                 latency_us, bandwidth_mb, rate_mlup);
    result_check(result, error == 0.0, "points that the messages bring, against the volume of the halo",
                 error, 0);
    return result_finish(result);
}
