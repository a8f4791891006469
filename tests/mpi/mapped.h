// Measures how much of this process's memory other programs see: leak checkers and checkpointers read what is readable, and a core dump
// contains all mappings not excluded by MADV_DONTDUMP.
#pragma once

#include <stdio.h>
#include <string.h>

struct mapped {
    long readable, dumped, resident;  // sizes of shared mappings in MB
};

__attribute__((unused)) static struct mapped look_at_mappings(void) {
    struct mapped found = {0, 0, 0};
    char line[512], rights[8] = "";
    long kilobytes, size = 0;
    FILE* file = fopen("/proc/self/smaps", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%*x-%*x %7s", rights) == 1) continue;
        if (sscanf(line, "Size: %ld kB", &kilobytes) == 1) size = kilobytes;
        if (rights[3] != 's') continue;
        if (sscanf(line, "Rss: %ld kB", &kilobytes) == 1) found.resident += kilobytes;
        if (strncmp(line, "VmFlags:", 8) != 0) continue;
        if (rights[0] == 'r') found.readable += size;
        if (!strstr(line, " dd")) found.dumped += size;
    }
    if (file) fclose(file);
    found.readable /= 1024, found.dumped /= 1024, found.resident /= 1024;
    return found;
}
