#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const char kUsage[] =
    "options (each program uses some of them):\n"
    "  -m MIN:MAX   message sizes in bytes         -i N   iterations per batch (default: as many as fill "
    "the time)\n"
    "  -s 8,1024    only these sizes\n"
    "  -x N         warm-up iterations             -t S   seconds per point\n"
    "  -b N         batches; the value is their median\n"
    "  -w N         messages in flight             -f     minimum, mean and maximum, too\n"
    "  -c           check the data received        -o A,B only these operations\n"
    "  -k 1,2,4     counts (of children, ...)      --both both directions at a time\n"
    "  --write      write each buffer before it is sent; that time does not count\n"
    "  --exchanged  messages are in memory of MPI_Alloc_mem\n"
    "  --compute U  microseconds of work at the same time, such as 0,100\n"
    "  --corners    blocks of a mesh exchange corners too      --every N  steps between changes of a mesh\n"
    "  --scatter    blocks of a mesh are dealt to processes without regard to neighbors\n"
    "  --spawn K    measure between the job and K spawned children\n"
    "  --json       one line of JSON instead of the table\n";

Options bench_defaults(void) {
    Options options = {0};
    options.max_bytes = 1 << 20;
    options.warm_up = 10;
    options.seconds = 0.2;
    options.batches = 10;
    options.window = 64;
    options.every = 8;
    return options;
}

static void refuse(const char* program, const char* message) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) fprintf(stderr, "%s: %s\n%s", program, message, kUsage);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static void read_sizes(const char* program, const char* text, Options* options) {
    char* end;
    const char* colon = strchr(text, ':');
    options->sizes = NULL;
    options->min_bytes = colon ? strtoul(text, &end, 10) : 0;
    options->max_bytes = strtoul(colon ? colon + 1 : text, &end, 10);
    if (*end || options->max_bytes < options->min_bytes) refuse(program, "-m takes MIN:MAX or MAX");
}

/* Returns `text` if it is a list of ascending numbers; otherwise ends the program. */
static const char* checked_list(const char* program, const char* text, const char* option) {
    char message[80];
    long last = -1;
    for (const char* p = text; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        char* end;
        long number = strtol(p, &end, 10);
        if (end == p || (*end && *end != ',') || number <= last) {
            snprintf(message, sizeof message, "%s takes numbers in ascending order, such as 8,1024", option);
            refuse(program, message);
        }
        last = number;
    }
    return text;
}

static void read_list(const char* program, const char* text, Options* options) {
    options->sizes = checked_list(program, text, "-s");
    for (long size = -1; (size = bench_next_of(text, size)) >= 0;) options->max_bytes = (size_t)size;
}

Options bench_options(int argc, char** argv, const char* about, Options options) {
    enum { kSpawn = 256, kJson, kBoth, kCompute, kWrite, kExchanged, kCorners, kScatter, kEvery, kHelp };
    const struct option table[] = {{"spawn", 1, NULL, kSpawn},
                                   {"json", 0, NULL, kJson},
                                   {"both", 0, NULL, kBoth},
                                   {"compute", 1, NULL, kCompute},
                                   {"write", 0, NULL, kWrite},
                                   {"exchanged", 0, NULL, kExchanged},
                                   {"corners", 0, NULL, kCorners},
                                   {"scatter", 0, NULL, kScatter},
                                   {"every", 1, NULL, kEvery},
                                   {"help", 0, NULL, kHelp},
                                   {NULL, 0, NULL, 0}};
    int key;
    opterr = 0;
    while ((key = getopt_long(argc, argv, "m:s:i:x:t:b:w:o:k:fc", table, NULL)) != -1) {
        switch (key) {
            case 'm':
                read_sizes(argv[0], optarg, &options);
                break;
            case 's':
                read_list(argv[0], optarg, &options);
                break;
            case 'i':
                options.iterations = atol(optarg);
                break;
            case 'x':
                options.warm_up = atoi(optarg);
                break;
            case 't':
                options.seconds = atof(optarg);
                break;
            case 'b':
                options.batches = atoi(optarg);
                break;
            case 'w':
                options.window = atoi(optarg);
                break;
            case 'o':
                options.operations = optarg;
                break;
            case 'k':
                options.counts = checked_list(argv[0], optarg, "-k");
                break;
            case 'f':
                options.full = 1;
                break;
            case 'c':
                options.check = 1;
                break;
            case kSpawn:
                options.children = atoi(optarg);
                break;
            case kJson:
                options.json = 1;
                break;
            case kBoth:
                options.both = 1;
                break;
            case kCompute:
                options.compute = checked_list(argv[0], optarg, "--compute");
                break;
            case kWrite:
                options.write = 1;
                break;
            case kExchanged:
                options.exchanged = 1;
                break;
            case kCorners:
                options.corners = 1;
                break;
            case kScatter:
                options.scatter = 1;
                break;
            case kEvery:
                options.every = atoi(optarg);
                break;
            case kHelp:
                refuse(argv[0], about);
                break;
            default:
                refuse(argv[0], "unknown option");
                break;
        }
    }
    if (optind < argc) refuse(argv[0], "unknown argument");
    if (options.batches < 1 || options.window < 1 || options.iterations < 0 || options.children < 0 || options.every < 1) {
        refuse(argv[0], "a number is out of range");
    }
    return options;
}

int bench_wanted(const Options* options, const char* name) {
    size_t length = strlen(name);
    const char* list = options->operations;
    while (list) {
        if (strncmp(list, name, length) == 0 && (list[length] == ',' || list[length] == '\0')) return 1;
        list = strchr(list, ',');
        if (list) ++list;
    }
    return options->operations == NULL;
}

long bench_next_size(const Options* options, long bytes) {
    if (options->sizes) return bench_next_of(options->sizes, bytes);
    long next = bytes < 0 ? (long)options->min_bytes : bytes == 0 ? 1 : bytes * 2;
    return next <= (long)options->max_bytes ? next : -1;
}
