#include "jacobi_serial.h"

#include "first_touch.h"

#include <math.h>

/* The whole grid with one layer of boundary around it. */
struct cube {
    long points[DIMENSIONS];
    bool periodic;
    struct field field;
    double *now, *next;
};

static size_t at(const struct cube *cube, long x, long y, long z) {
    const long *n = cube->points;
    if (cube->periodic) {
        x = (x + n[X]) % n[X];
        y = (y + n[Y]) % n[Y];
        z = (z + n[Z]) % n[Z];
    }
    return (size_t)(((z + 1) * (n[Y] + 2) + y + 1) * (n[X] + 2) + x + 1);
}

static double mean(const struct cube *cube, long x, long y, long z) {
    const double *u = cube->now;
    return (((u[at(cube, x - 1, y, z)] + u[at(cube, x + 1, y, z)]) +
             (u[at(cube, x, y - 1, z)] + u[at(cube, x, y + 1, z)])) +
            (u[at(cube, x, y, z - 1)] + u[at(cube, x, y, z + 1)])) *
           (1.0 / 6.0);
}

static void start(struct cube *cube) {
    const long *n = cube->points;
    for (long z = -1; z <= n[Z]; z++)
        for (long y = -1; y <= n[Y]; y++)
            for (long x = -1; x <= n[X]; x++) {
                size_t index = (size_t)(((z + 1) * (n[Y] + 2) + y + 1) * (n[X] + 2) + x + 1);
                cube->now[index] = cube->next[index] = field_value(&cube->field, x, y, z, 1.0);
            }
}

static void sweep_once(struct cube *cube) {
    const long *n = cube->points;
    for (long z = 0; z < n[Z]; z++)
        for (long y = 0; y < n[Y]; y++)
            for (long x = 0; x < n[X]; x++)
                cube->next[at(cube, x, y, z)] = mean(cube, x, y, z);
    double *done = cube->next;
    cube->next = cube->now;
    cube->now = done;
}

static struct findings judge(const struct cube *cube, double scale) {
    const long *n = cube->points;
    struct findings found = {0};
    for (long z = 0; z < n[Z]; z++)
        for (long y = 0; y < n[Y]; y++)
            for (long x = 0; x < n[X]; x++)
                findings_add(&found, (uint64_t)((z * n[Y] + y) * n[X] + x), cube->now[at(cube, x, y, z)],
                             mean(cube, x, y, z), field_value(&cube->field, x, y, z, scale));
    return found;
}

size_t serial_bytes(const long points[DIMENSIONS]) {
    return 2 * sizeof(double) * (size_t)((points[X] + 2) * (points[Y] + 2) * (points[Z] + 2));
}

struct findings serial_solve(const long points[DIMENSIONS], bool periodic, long sweeps) {
    struct cube cube = {.points = {points[X], points[Y], points[Z]}, .periodic = periodic};
    struct box outside;
    for (int d = 0; d < DIMENSIONS; d++)
        outside.range[d] = (struct range){-1, points[d] + 1};
    cube.field = field_make(points, periodic, &outside);
    double *memory = memory_take(serial_bytes(points));
    cube.now = memory;
    cube.next = memory + serial_bytes(points) / sizeof(double) / 2;
    start(&cube);
    for (long sweep = 0; sweep < sweeps; sweep++)
        sweep_once(&cube);
    struct findings found = judge(&cube, pow(cube.field.decay, (double)sweeps));
    memory_give_back(memory, serial_bytes(points));
    field_free(&cube.field);
    return found;
}
