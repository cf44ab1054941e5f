/* Whether a program's instructions are known to this node's processor. */
#ifndef PLUMB_PROCESSOR_H
#define PLUMB_PROCESSOR_H

/* Exits with status 2 where the processor lacks one of `needs`, flags of /proc/cpuinfo between commas. */
void refuse_processor(const char *needs);

#endif
