/* Reading and writing files: collective access with the pieces of all processes in turn, independent access, the shared pointer, and the
 * time of opening and closing. `file [OPTIONS] FOLDER OPERATION...`; an operation is NAME:BYTES. The values are microseconds per call in the
 * slowest process; a call of write-shared is one of 1000 records per process. */
#include <stdio.h>
#include <unistd.h>

#include "common/bench.h"

enum { kMostRepeats = 99 };

static struct {
    int check;      /* -c: check the data */
    int repeats;    /* -r: calls per operation, whose median is reported; one more call comes first */
    long megabytes; /* -m: bytes of the file, in MB */
    int sync;       /* --sync: a write includes MPI_File_sync */
    int json;       /* --json: print one line of JSON instead of the table */
} options = {0, 5, 32, 0, 0};

static int rank, size;
static char name[4096];
static char* data;
static Report* report;

static void must(int error, const char* what) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (error == MPI_SUCCESS) return;
    MPI_Error_string(error, text, &length);
    fprintf(stderr, "file: %s: %s\n", what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_File open_file(int mode) {
    MPI_File file;
    must(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), "open");
    return file;
}

/* One operation: `call` is measured. */
typedef struct {
    const char* name;
    void (*prepare)(MPI_File* file, long piece);
    void (*call)(MPI_File* file, long piece);
    int writes, reads;
} Operation;

static long own_bytes(long piece) { return (options.megabytes * 1000000 / size / piece + 1) * piece; }

/* Each process's pieces are every size-th ones of the file. */
static void see_pieces_in_turn(MPI_File* file, long piece) {
    MPI_Datatype one, type;
    must(MPI_Type_contiguous((int)piece, MPI_BYTE, &one), "type");
    must(MPI_Type_create_resized(one, 0, piece * size, &type), "type");
    must(MPI_Type_commit(&type), "type");
    must(MPI_File_set_view(*file, rank * piece, MPI_BYTE, type, "native", MPI_INFO_NULL), "view");
    MPI_Type_free(&one);
    MPI_Type_free(&type);
}
static void see_own_part(MPI_File* file, long piece) {
    must(MPI_File_set_view(*file, rank * own_bytes(piece), MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "view");
}
static void see_all(MPI_File* file, long piece) {
    (void)piece;
    must(MPI_File_set_view(*file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "view");
}
static void see_nothing(MPI_File* file, long piece) { (void)file, (void)piece; }

static void sync_file(MPI_File file) {
    if (options.sync) must(MPI_File_sync(file), "sync");
}
static void write_all(MPI_File* file, long piece) {
    must(MPI_File_write_at_all(*file, 0, data, (int)own_bytes(piece), MPI_BYTE, MPI_STATUS_IGNORE), "write_all");
    sync_file(*file);
}
static void read_all(MPI_File* file, long piece) {
    must(MPI_File_read_at_all(*file, 0, data, (int)own_bytes(piece), MPI_BYTE, MPI_STATUS_IGNORE), "read_all");
}
static void write_own(MPI_File* file, long piece) {
    for (long at = 0; at < own_bytes(piece); at += piece)
        must(MPI_File_write_at(*file, at, data + at, (int)piece, MPI_BYTE, MPI_STATUS_IGNORE), "write");
    sync_file(*file);
}
static void read_own(MPI_File* file, long piece) {
    for (long at = 0; at < own_bytes(piece); at += piece)
        must(MPI_File_read_at(*file, at, data + at, (int)piece, MPI_BYTE, MPI_STATUS_IGNORE), "read");
}
static void write_pieces(MPI_File* file, long piece) {
    must(MPI_File_write_at(*file, 0, data, (int)own_bytes(piece), MPI_BYTE, MPI_STATUS_IGNORE), "write");
    sync_file(*file);
}
static void read_pieces(MPI_File* file, long piece) {
    must(MPI_File_read_at(*file, 0, data, (int)own_bytes(piece), MPI_BYTE, MPI_STATUS_IGNORE), "read");
}
enum { kRecords = 1000 };
static void write_shared(MPI_File* file, long piece) {
    for (int i = 0; i < kRecords; ++i)
        must(MPI_File_write_shared(*file, data, (int)piece, MPI_BYTE, MPI_STATUS_IGNORE), "write_shared");
}
static void open_and_close(MPI_File* file, long piece) {
    (void)piece, (void)file;
    MPI_File other = open_file(MPI_MODE_RDWR);
    must(MPI_File_close(&other), "close");
}

static const Operation operations[] = {
    {"write-all", see_pieces_in_turn, write_all, 1, 0},
    {"read-all", see_pieces_in_turn, read_all, 0, 1},
    {"write-pieces", see_pieces_in_turn, write_pieces, 1, 0},
    {"read-pieces", see_pieces_in_turn, read_pieces, 0, 1},
    {"write-own", see_own_part, write_own, 1, 0},
    {"read-own", see_own_part, read_own, 0, 1},
    {"write-shared", see_all, write_shared, 0, 0},
    {"open-close", see_nothing, open_and_close, 0, 0},
};

/* Returns the time of one call in the slowest process. */
static double measure(const Operation* operation, MPI_File* file, long piece) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = bench_now();
    operation->call(file, piece);
    double mine = bench_now() - began, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static void run(const Operation* operation, long piece) {
    double times[kMostRepeats];
    const size_t bytes = (size_t)own_bytes(piece);
    data = malloc(bytes);
    bench_require(data != NULL, "no memory");
    bench_fill(data, bytes, (unsigned)rank);
    MPI_File file = open_file(MPI_MODE_RDWR | MPI_MODE_CREATE);
    operation->prepare(&file, piece);
    if (operation->reads) {
        for (const Operation* writer = operations;; ++writer)
            if (writer->prepare == operation->prepare && writer->writes) {
                writer->call(&file, piece);
                break;
            }
        memset(data, 0, bytes);
    }
    measure(operation, &file, piece);
    for (int i = 0; i < options.repeats; ++i) times[i] = measure(operation, &file, piece);
    if (options.check && operation->writes) {
        memset(data, 0, bytes);
        MPI_File_sync(file);
        MPI_Barrier(MPI_COMM_WORLD);
        must(MPI_File_read_at(file, 0, data, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE), "read");
    }
    if (options.check && (operation->writes || operation->reads)) bench_verify(data, bytes, (unsigned)rank, operation->name);
    must(MPI_File_close(&file), "close");
    if (rank == 0) MPI_File_delete(name, MPI_INFO_NULL);
    free(data);
    bench_row(report, operation->name, piece, bench_scaled(bench_stats(times, options.repeats), 1e6));
}

static void run_named(const char* text) {
    const char* const colon = strchr(text, ':');
    const size_t length = colon ? (size_t)(colon - text) : strlen(text);
    const long piece = colon ? atol(colon + 1) : 1;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; ++i)
        if (strlen(operations[i].name) == length && memcmp(operations[i].name, text, length) == 0 && piece > 0)
            return run(&operations[i], piece);
    bench_require(0,
                  "unknown operation; they are write-all, read-all, write-pieces, read-pieces, write-own, read-own, "
                  "write-shared, open-close");
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; ++at) {
        if (strcmp(argv[at], "-c") == 0)
            options.check = 1;
        else if (strcmp(argv[at], "--sync") == 0)
            options.sync = 1;
        else if (strcmp(argv[at], "--json") == 0)
            options.json = 1;
        else if (strcmp(argv[at], "-r") == 0 && at + 1 < argc)
            options.repeats = atoi(argv[++at]);
        else if (strcmp(argv[at], "-m") == 0 && at + 1 < argc)
            options.megabytes = atol(argv[++at]);
        else
            bench_require(0, "unknown option");
    }
    bench_require(at + 1 < argc, "usage: file [-c] [--json] [--sync] [-r REPEATS] [-m MEGABYTES] FOLDER OPERATION:BYTES...");
    bench_require(options.repeats > 0 && options.repeats <= kMostRepeats && options.megabytes >= 0,
                  "a number is out of its range");
    long number = rank == 0 ? (long)getpid() : 0;
    MPI_Bcast(&number, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "%s/bench-file-%ld", argv[at], number);
    Options output = bench_defaults();
    output.json = options.json;
    report = bench_report("file", "us", &output);
    for (++at; at < argc; ++at) run_named(argv[at]);
    bench_print_world(report);
    MPI_Finalize();
    return 0;
}
