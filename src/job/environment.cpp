#include "job/environment.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "mpi.h"

namespace starling::job {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads decimal digits up to `limit`; strtoul would also accept signs, blanks and overflow.
bool read_decimal(const char*& text, uint64_t limit, uint64_t& value) {
    if (!is_digit(*text)) return false;
    value = 0;
    for (; is_digit(*text); ++text) {
        value = value * 10 + static_cast<uint64_t>(*text - '0');
        if (value > limit) return false;
    }
    return true;
}

bool read_hex(const char*& text, uint64_t& value) {
    value = 0;
    int digits = 0;
    for (;; ++text, ++digits) {
        unsigned digit;
        if (is_digit(*text)) {
            digit = static_cast<unsigned>(*text - '0');
        } else if (*text >= 'a' && *text <= 'f') {
            digit = static_cast<unsigned>(*text - 'a') + 10;
        } else {
            return digits > 0;
        }
        if (digits == 16) return false;
        value = value << 4 | digit;
    }
}

}  // namespace

std::string to_string(const JobAddress& address) {
    char text[64];
    std::snprintf(text, sizeof text, "%" PRId32 ":%" PRId32 ":%" PRIx64, address.owner_pid, address.owner_fd, address.id);
    return text;
}

bool parse_address(const char* text, JobAddress& out) {
    uint64_t pid = 0, fd = 0, id = 0;
    if (!read_decimal(text, INT32_MAX, pid) || *text++ != ':') return false;
    if (!read_decimal(text, INT32_MAX, fd) || *text++ != ':') return false;
    if (!read_hex(text, id) || *text != '\0' || pid == 0 || id == 0) return false;
    out = {id, static_cast<int32_t>(pid), static_cast<int32_t>(fd)};
    return true;
}

bool has_pmi_manager() {
    const char* value = std::getenv(kPmiVariable);
    return value && *value && std::strcmp(value, kNoPmi) != 0 && std::strcmp(value, kAlonePmi) != 0;
}

int read_identity(ProcessIdentity& out) {
    out = {};
    const char* job = std::getenv(kJobVariable);
    const char* rank = std::getenv(kRankVariable);
    if (!job && !rank) return MPI_SUCCESS;
    if (!job || !rank) {
        return fail(MPI_ERR_OTHER, "%s is set but %s is not; start the program with mpiexec, or unset both",
                    job ? kJobVariable : kRankVariable, job ? kRankVariable : kJobVariable);
    }
    if (!parse_address(job, out.job)) {
        return fail(MPI_ERR_OTHER,
                    "%s='%s' is not '<pid>:<descriptor>:<job id>'; do not set it by hand, start the "
                    "program with mpiexec",
                    kJobVariable, job);
    }
    uint64_t value = 0;
    const char* digits = rank;
    if (!read_decimal(digits, INT32_MAX, value) || *digits != '\0') {
        return fail(MPI_ERR_OTHER, "%s='%s' is not a rank; do not set it by hand, start the program with mpiexec",
                    kRankVariable, rank);
    }
    out.rank = static_cast<uint32_t>(value);
    out.launched = true;
    return MPI_SUCCESS;
}

}  // namespace starling::job
