#include "pci_link.h"

#include "procfile.h"

#include <stdio.h>
#include <stdlib.h>

/* The number at the begin of the device's file `name`: GT/s of a lane in current_link_speed; 0: none. */
static double number_of(const char *address, const char *name) {
    char path[256], text[64];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", address, name);
    double number = read_text(path, text, sizeof text) ? strtod(text, NULL) : 0;
    return number > 0 ? number : 0;
}

/* Bits of data in a transferred bit, by the generations' encodings (PCI Express Base Specification). */
static double share_of_data(double gts) {
    return gts < 8 ? 8.0 / 10 : gts < 64 ? 128.0 / 130 : 242.0 / 256;
}

double pci_link_mbyte_s(const char *address) {
    double gts = number_of(address, "current_link_speed"), lanes = number_of(address, "current_link_width");
    return gts * 1e3 / 8 * share_of_data(gts) * lanes;
}
