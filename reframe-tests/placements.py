"""Placements that several tests run under; ``plumb-bind --list`` has all of them."""

#: distances of two ranks, near to far; a machine has some of them
PAIRS = ["pair:smt", "pair:l2", "pair:l3", "pair:numa", "pair:socket", "pair:xsocket", "pair:node"]
#: core 0 with those of the document of Ulysses that are not the nearest
PUBLISHED_PAIRS = [f"pair:0,{core}" for core in (5, 9, 11, 15, 17, 19)]
#: those of the quick campaign: all but hardware threads of one core and cores with one L2
QUICK_PAIRS = tuple(PAIRS[2:])
#: sizes of messages that a curve is drawn over
SIZES = tuple(1 << power for power in range(6, 23, 2))
#: two ranks with a GPU each, by the way between the GPUs, and one far from its CPUs
GPU_PAIRS = [*(f"pair:gpu:{way}" for way in ("self", "pix", "pxb", "phb", "node", "sys")), "gpu:far"]
#: those of Comet's document whose GPUs are not the first ones
PUBLISHED_GPU_PAIRS = ["pair:gpu:1,2", "pair:gpu:2,3"]
#: one rank per object, and the two orders; ``none`` is the control
GROUPS = ["none", "core", "l3", "numa", "socket", "scatter"]
