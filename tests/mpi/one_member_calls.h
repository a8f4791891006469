// What one_member_collectives.c and one_member_inter.c share: each operation in each form, of short and long blocks of two types, with each
// member as the victim whose allocation number 1, 2, ... is refused. The program that includes this file defines `enum operation`, whose
// last value is kOperations, and kCalls, the names of the operations, before it, and the functions declared here after it.
#pragma once

#include "check.h"
#include "refuse.h"

enum { kMost = 3, kForms = 3, kLong = 6000 };  // ranks, forms of each operation, elements of a long block
enum { kUntouched = -5, kAny = -1 };  // elements of an output that the call leaves unchanged, or undefined or unchanged
static const char* const kFormNames[kForms] = {"blocking", "non-blocking", "persistent"};

static int rank, size;
static MPI_Datatype spaced;  // one integer and a gap of the same size
// One block per rank; the elements of type `spaced` take two integers.
static int input[kMost * kLong * 2], output[kMost * kLong * 2];

/// The arguments of one call. Persistent and non-blocking operations read its arrays until they complete.
struct call {
    int operation, form, count, stride;  // stride: integers from one element to the next
    MPI_Datatype type;
    int counts[kMost], displacements[kMost], bytes[kMost], shares[kMost];
    MPI_Aint addresses[kMost];
    MPI_Datatype types[kMost];
};

/// Makes the call, or creates or starts its request. Returns the error.
static int begin(const struct call* c, MPI_Request* request);
static int is_reduction(int operation);
/// Sets those arrays of the call that this program's operations use.
static void set_arrays(struct call* c);
/// Sets the input and the output before a call.
static void fill(const struct call* c);
/// Returns what element `i` of output block `block` must be on this rank, or kUntouched or kAny.
static int wanted(const struct call* c, int block, int i);
/// Makes a call in which rank 0 needs memory and the others wait for it.
static void make_starving_call(void);

// Calls the form of an operation that `call` and `request` name.
#define FORM(blocking, starting, ...)                      \
    (c->form == 0   ? MPI_##blocking(__VA_ARGS__)          \
     : c->form == 1 ? MPI_##starting(__VA_ARGS__, request) \
                    : MPI_##blocking##_init(__VA_ARGS__, MPI_INFO_NULL, request))

/// Makes the call and waits for it. Starts a persistent operation twice. Returns the first error.
static int finish(const struct call* c) {
    MPI_Request request = MPI_REQUEST_NULL;
    int error = begin(c, &request);
    for (int starts = c->form == 2 ? 2 : c->form; starts > 0 && !error; starts--) {
        if (c->form == 2) error = MPI_Start(&request);
        if (!error) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (request != MPI_REQUEST_NULL) OK(MPI_Request_free(&request));
    return error;
}

/// Makes the call once, and refuses the victim its allocation number `which`. Returns false if the victim made fewer allocations.
static int try_once(const struct call* c, int which, int victim) {
    fill(c);
    if (rank == victim) refused_kind = kMalloc, refused_in = which;
    const int error = finish(c);
    int was_refused = rank == victim && refused_in == 0;
    refused_in = 0;
    CHECK(!error, "%s, %s, %d elements, allocation %d of rank %d refused: error class %d", kCalls[c->operation],
          kFormNames[c->form], c->count, which, victim, class_of(error));
    for (int block = 0; block < kMost; block++)
        for (int i = 0; i < c->count; i++) {
            const int right = wanted(c, block, i), is = output[(block * c->count + i) * c->stride];
            CHECK(right == kAny || is == right,
                  "%s, %s, %d elements, allocation %d of rank %d refused: element %d of block %d is %d, wanted %d",
                  kCalls[c->operation], kFormNames[c->form], c->count, which, victim, i, block, is, right);
        }
    OK(MPI_Bcast(&was_refused, 1, MPI_INT, victim, MPI_COMM_WORLD));
    return was_refused;
}

static void try_all(int operation, int form, int count, MPI_Datatype type) {
    struct call c = {.operation = operation, .form = form, .count = count, .stride = type == MPI_INT ? 1 : 2, .type = type};
    if (is_reduction(operation) && type != MPI_INT) return;  // MPI_SUM is not defined for derived types
    for (int i = 0; i < size; i++) c.counts[i] = count, c.displacements[i] = i * count;
    set_arrays(&c);
    // Persistent operations take long to create, so each has one victim.
    const int first = form == 2 ? operation % size : 0, last = form == 2 ? first : size - 1;
    for (int victim = first; victim <= last; victim++)
        for (int which = 1; try_once(&c, which, victim); which++) CHECK(which < 1000, "%s", kCalls[operation]);
}

static void try_sizes(int operation, int form) {
    const int counts[] = {3, kLong};
    for (int i = 0; i < 2; i++) {
        try_all(operation, form, counts[i], MPI_INT);
        if (operation != kBarrier) try_all(operation, form, counts[i], spaced);
    }
}

/// A process without any memory must end, and its job with it.
static void starve(void) {
    if (!kCanRefuse) return;
    refused_kind = kMalloc, refused_in = rank == 0, refused_for_ever = 1;
    make_starving_call();
    refused_in = 0;
}

/// Does what the program's arguments select: none: all; `starve`; or one operation and one form.
static void run(int argc, char** argv) {
    MPI_Datatype pair;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &pair));
    OK(MPI_Type_contiguous(1, pair, &spaced));
    OK(MPI_Type_commit(&spaced));
    if (argc == 2)
        starve();
    else
        for (int operation = 0; kCanRefuse && operation < kOperations; operation++)
            for (int form = 0; form < kForms; form++)
                if (argc < 3 || (operation == atoi(argv[1]) && form == atoi(argv[2]))) try_sizes(operation, form);
    OK(MPI_Type_free(&spaced));
    OK(MPI_Type_free(&pair));
}
