#include "mpi/common/profiling.h"

#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/state.h"
#include "mpi/common/check.h"
#include "profile/phase.h"
#include "profile/record.h"

namespace starling::mpi {

namespace {

constexpr int kOff = 0, kNormal = 1, kFlush = 2, kFirstPhase = 3;
STARLING_STATE bool marks_count = true;

}  // namespace

int Pcontrol(int level) {
    if (phase != LibraryPhase::running) return MPI_SUCCESS;
    Lock lock;
    if (level == kOff || level == kNormal || level == kFlush) marks_count = level != kOff;
    if (level == kFlush) profile::flush();
    if (level < kFirstPhase || !marks_count) return MPI_SUCCESS;
    char name[32];
    std::snprintf(name, sizeof name, "pcontrol %d", level);
    profile::begin_phase(name, profile::PhaseMark::pcontrol);
    return MPI_SUCCESS;
}

int Phase_begin(MPI_Comm comm, const char* name) {
    Lock lock;
    comm::Comm* const c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!name) return null_argument(c, "name");
    const size_t length = strnlen(name, MPI_MAX_OBJECT_NAME);
    if (length == 0) return raise(c, fail(MPI_ERR_ARG, "the name of the phase is empty"));
    if (length == MPI_MAX_OBJECT_NAME)
        return raise(c, fail(MPI_ERR_ARG, "the name of the phase is longer than %d characters", MPI_MAX_OBJECT_NAME - 1));
    if (marks_count) profile::begin_phase({name, length});
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
