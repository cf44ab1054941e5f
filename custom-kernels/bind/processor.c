#include "processor.h"

#include "fail.h"
#include "procfile.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void refuse_processor(const char *needs) {
    char text[8192], wanted[64], host[256] = "this host";
    if (!read_text("/proc/cpuinfo", text, sizeof text))
        return;
    char *flags = strstr(text, "\nflags\t"), *end;
    if (!flags && !(flags = strstr(text, "\nFeatures\t")))
        return; /* the kernel does not say */
    if (!(end = strchr(flags + 1, '\n')))
        return;
    memcpy(end, " ", 2); /* each flag is between blanks */
    gethostname(host, sizeof host - 1);
    for (size_t length; *needs; needs += length + (needs[length] == ',')) {
        length = strcspn(needs, ",");
        snprintf(wanted, sizeof wanted, " %.*s ", (int)length, needs);
        if (length > 0 && !strstr(flags, wanted))
            fail("%s: the program was compiled for another processor: this node lacks %.*s (PLUMB_CPU)", host,
                 (int)length, needs);
    }
}
