#include "collective/agree.h"

#include <cstdint>
#include <string>

#include "base/error.h"
#include "collective/comm_call.h"
#include "comm/error_codes.h"

namespace starling::collective {

int agree(comm::Comm& comm, int error, const char* what) {
    const std::string own(error ? failure_text() : std::string_view());
    // The lowest rank makes the largest number.
    const int64_t mine = error ? int64_t{comm.size - comm.rank} << 32 | error : 0;
    int64_t all = 0;
    CommCall call(comm, true);
    const int failed =
        run(call, allreduce(call, &mine, &all, 1, datatype::predefined(MPI_INT64_T), datatype::predefined(MPI_MAX)));
    if (error) return own.empty() ? error : fail(error, "%s", own.c_str());
    if (failed || all == 0) return failed;
    const auto first = static_cast<int>(all & 0xffffffff);
    const auto rank = comm.size - static_cast<int>(all >> 32);
    return fail(first, "rank %d has failed to make its part of the %s: %s", rank, what, comm::text_of(first).c_str());
}

}  // namespace starling::collective
