/* What other processes of the node use. */
#ifndef PLUMB_CHECK_OTHERS_H
#define PLUMB_CHECK_OTHERS_H

/* Begin to count, and the CPUs that others (processes, interrupts, the hypervisor) used on average since. */
void others_begin(void);
double others_end(void);

/* Remember what every process has used, and later: the one but process `except` that has used most since, as
 * "NAME (PID), X CPUs"; NULL if none used more than a tenth of a CPU. */
void processes_begin(void);
const char *processes_end(int except);

#endif
