/* NVIDIA's management library without a GPU: four GPUs, of which it tells what FAKE_NVML says.
 *
 * "direct": 2 links between GPUs 0 and 1, one between 1 and 2, one of 0 and 3 that is down. "switches": each
 * GPU has 3 links to one switch and 2 to another, but the last only 1 to the second. "init", "handle",
 * "name", "energy": what fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FINE = 0, UNINITIALISED = 1, INVALID = 2, NOT_SUPPORTED = 3, GPUS = 4, LINKS = 6 };

struct pci {
    char legacy[16];
    unsigned domain, bus, device, ids, subsystem;
    char text[32];
};

static int initialised, gpus[GPUS];
static const unsigned buses[] = {0x03, 0x04, 0x83, 0xc1};

static int is(const char *what) {
    const char *said = getenv("FAKE_NVML");
    return said && !strcmp(said, what);
}

const char *nvmlErrorString(int status) {
    return status == UNINITIALISED   ? "Uninitialized"
           : status == NOT_SUPPORTED ? "Not Supported"
                                     : "Invalid Argument";
}

int nvmlInit_v2(void) {
    initialised = !is("init");
    return initialised ? FINE : UNINITIALISED;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = GPUS;
    return initialised ? FINE : UNINITIALISED;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    if (!initialised || index >= GPUS || is("handle"))
        return INVALID;
    *handle = &gpus[index];
    return FINE;
}

static int number_of(void *handle) {
    int *gpu = handle;
    return gpu >= gpus && gpu < gpus + GPUS ? (int)(gpu - gpus) : -1;
}

/* The bus's number is 0xff on purpose in what is only there for older programs. */
static void fill(struct pci *place, unsigned domain, unsigned bus) {
    memset(place, 0xff, sizeof *place);
    place->domain = domain;
    place->bus = bus;
    place->device = 0;
    snprintf(place->text, sizeof place->text, "%08X:%02X:00.0", domain, bus);
}

int nvmlDeviceGetPciInfo_v3(void *handle, struct pci *place) {
    int gpu = number_of(handle);
    if (gpu < 0)
        return INVALID;
    fill(place, gpu == 3 ? 1 : 0, buses[gpu]);
    return FINE;
}

int nvmlDeviceGetName(void *handle, char *name, unsigned size) {
    int gpu = number_of(handle);
    if (gpu < 0 || is("name"))
        return INVALID;
    snprintf(name, size, gpu == 3 ? "NVIDIA H200" : "Tesla K80");
    return FINE;
}

/* The other end of a link: a GPU's number, or 10 and 11 for the switches; -1: no such link. */
static int end_of(int gpu, unsigned link) {
    static const int direct[GPUS][LINKS] = {
        {1, 1, 3, -1, -1, -1}, {0, 0, 2, -1, -1, -1}, {1, -1, -1, -1, -1, -1}, {0, -1, -1, -1, -1, -1}};
    static const int switches[LINKS] = {10, 11, 10, 11, 10, -1};
    if (link >= LINKS)
        return -1;
    return is("direct") ? direct[gpu][link] : is("switches") && (gpu < 3 || link != 3) ? switches[link] : -1;
}

int nvmlDeviceGetNvLinkState(void *handle, unsigned link, int *state) {
    int gpu = number_of(handle), end = gpu < 0 ? -1 : end_of(gpu, link);
    int is_down = end + gpu == 3 && (gpu == 0 || end == 0); /* the one between 0 and 3 */
    *state = !is_down;
    return end < 0 ? NOT_SUPPORTED : FINE;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *handle, unsigned link, struct pci *place) {
    int gpu = number_of(handle), end = gpu < 0 ? -1 : end_of(gpu, link);
    if (end < 0)
        return INVALID;
    fill(place, end == 3 ? 1 : 0, end < GPUS ? buses[end] : 0xe0 + (unsigned)end);
    return FINE;
}

/* Each question finds a millijoule more. */
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *millijoules) {
    static unsigned long long count = 5000;
    if (number_of(handle) < 0 || is("energy"))
        return NOT_SUPPORTED;
    *millijoules = count++;
    return FINE;
}
