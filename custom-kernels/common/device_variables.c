#include "device_variables.h"

#include <stddef.h>

const struct gpu_maker gpu_makers[GPU_MAKERS + 1] = {
    {0x10de, "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
    {0x1002, "ROCR_VISIBLE_DEVICES", NULL, NULL},
    {0, NULL, NULL, NULL},
};

const int device_list_maker[DEVICE_LISTS] = {0, 1, 1, 1};

/* The third and fourth choose among what ROCR_VISIBLE_DEVICES leaves. */
const char *const device_variables[DEVICE_VARIABLES + 1] = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                                            "HIP_VISIBLE_DEVICES",  "GPU_DEVICE_ORDINAL",
                                                            "CUDA_DEVICE_ORDER",    NULL};
