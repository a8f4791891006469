// Communicator numbers must work beyond 28 and 32 bits. When they are used up, creations must return MPI_ERR_OTHER on all members. The test
// advances the counter in the job's header to simulate many creations.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "../mpi/check.h"
#include "job/job_segment.h"

namespace {

using starling::job::JobHeader;

int rank, size;

JobHeader& header() {
    const char* const place = std::getenv("STARLING_JOB");
    int pid = 0, descriptor = 0;
    if (!place || std::sscanf(place, "%d:%d", &pid, &descriptor) != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, descriptor);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    void* const memory = mmap(nullptr, sizeof(JobHeader), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 3);
    close(file);
    return *static_cast<JobHeader*>(memory);
}

void move_on(JobHeader& job, uint64_t drawn) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) job.next_context.store(static_cast<decltype(job.next_context.load())>(drawn));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// Exchanges messages on duplicates and on MPI_COMM_WORLD: each must arrive on its own communicator.
void all_differ() {
    enum { kComms = 40 };
    MPI_Comm comms[kComms];
    int out[kComms], in = 0, to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Request sends[kComms];
    comms[0] = MPI_COMM_WORLD;
    for (int i = 1; i < kComms; ++i) OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    for (int i = kComms - 1; i >= 0; --i) {
        out[i] = i;
        OK(MPI_Isend(&out[i], 1, MPI_INT, to, 0, comms[i], &sends[i]));
    }
    for (int i = 0; i < kComms; ++i) {
        OK(MPI_Recv(&in, 1, MPI_INT, from, 0, comms[i], MPI_STATUS_IGNORE));
        EXPECT_INT(in, i);
    }
    OK(MPI_Waitall(kComms, sends, MPI_STATUSES_IGNORE));
    for (int i = 1; i < kComms; ++i) OK(MPI_Comm_free(&comms[i]));
}

int error_class(int error) {
    int result = MPI_SUCCESS;
    if (error) MPI_Error_class(error, &result);
    return result;
}

void none_left() {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_Comm made = MPI_COMM_NULL;
    EXPECT_INT(error_class(MPI_Comm_dup(MPI_COMM_WORLD, &made)), MPI_ERR_OTHER);
    EXPECT_INT(error_class(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &made)), MPI_ERR_OTHER);
    MPI_Group group;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    EXPECT_INT(error_class(MPI_Comm_create(MPI_COMM_WORLD, group, &made)), MPI_ERR_OTHER);
    EXPECT_INT(error_class(MPI_Comm_create_group(MPI_COMM_WORLD, group, 5, &made)), MPI_ERR_OTHER);
    MPI_Request request;
    int error = MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
    if (!error) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_INT(error_class(error), MPI_ERR_OTHER);
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    JobHeader& job = header();
    // Only increase the job's counter of context ids: packets for numbers that were freed are dropped.
    for (const uint64_t drawn : {(uint64_t{1} << 28) - 5, (uint64_t{1} << 28) + 100, (uint64_t{1} << 32) - 5}) {
        move_on(job, drawn);
        all_differ();
    }
    move_on(job, uint64_t{1} << 40);
    none_left();
    move_on(job, (uint64_t{1} << 32) + 1000);
    all_differ();
    OK(MPI_Finalize());
    return 0;
}
