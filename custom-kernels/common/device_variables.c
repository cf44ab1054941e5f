#include "device_variables.h"

#include <stddef.h>

const struct gpu_maker gpu_makers[] = {
    {0x10de, "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
    {0x1002, "ROCR_VISIBLE_DEVICES", NULL, NULL},
    {0, NULL, NULL, NULL},
};

/* The third and fourth choose among what ROCR_VISIBLE_DEVICES leaves. */
const char *const device_variables[DEVICE_VARIABLES + 1] = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                                            "HIP_VISIBLE_DEVICES",  "GPU_DEVICE_ORDINAL",
                                                            "CUDA_DEVICE_ORDER",    NULL};
