#include "shmem/settings.h"

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "mpi.h"

namespace starling::shmem {

namespace {

/// Default limit of the heap. It is the same on all hosts, whatever memory they have, because it only reserves address space.
constexpr uint64_t kUsualLimit = uint64_t{64} << 30;
/// Maximum size of the heap; a process has 2^47 bytes of address space.
constexpr double kMostBytes = 0x1p46;

/// Returns the value of SHMEM_<name>, or of its older name SMA_<name>.
const char* setting(const char* name) {
    char full[64];
    for (const char* prefix : {"SHMEM_", "SMA_"}) {
        std::snprintf(full, sizeof full, "%s%s", prefix, name);
        if (const char* value = std::getenv(full)) return value;
    }
    return nullptr;
}

}  // namespace

bool parse_size(const char* text, uint64_t& bytes) {
    if (!std::isdigit(static_cast<unsigned char>(*text)) && *text != '.') return false;
    char* end;
    const double number = std::strtod(text, &end);
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) return false;
    double factor = 1;
    if (*end) {
        const char* known = std::strchr("kmgt", std::tolower(static_cast<unsigned char>(*end)));
        if (!known) return false;
        for (const char* c = "kmgt"; c <= known && *c; ++c) {
            factor *= 1024;
            if (*c == *known) break;
        }
        if (*++end) return false;
    }
    const double value = std::ceil(number * factor);
    if (!(value >= 1) || value > kMostBytes) return false;
    bytes = static_cast<uint64_t>(value);
    return true;
}

int heap_limit(uint64_t& bytes) {
    bytes = kUsualLimit;
    const char* text = setting("SYMMETRIC_SIZE");
    if (!text || parse_size(text, bytes)) {
        bytes = (bytes + 4095) / 4096 * 4096;
        return MPI_SUCCESS;
    }
    return fail(MPI_ERR_ARG,
                "SHMEM_SYMMETRIC_SIZE=%s is not a valid size: use a positive number, with k, m, g or t after it if needed, of "
                "at most 64t",
                text);
}

void print_requested() {
    if (setting("VERSION")) std::printf("Starling " STARLING_VERSION ", OpenSHMEM 1.5\n");
    if (!setting("INFO")) return;
    std::printf(
        "SHMEM_SYMMETRIC_SIZE  bytes that a PE's symmetric heap may grow to, with k, m, g or t after it (64g); now %s\n"
        "SHMEM_VERSION         set: the version is printed\n"
        "SHMEM_INFO            set: this is printed\n"
        "SHMEM_DEBUG           set: as STARLING_VERBOSE=1\n"
        "`starling info --variables` lists the variables of the runtime\n",
        setting("SYMMETRIC_SIZE") ? setting("SYMMETRIC_SIZE") : "not set");
}

}  // namespace starling::shmem
