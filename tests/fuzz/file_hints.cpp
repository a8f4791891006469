// Hints of files that users write: hints files, MPICH_MPIIO_HINTS, and the values themselves; layouts that Lustre returns. Every value that is
// taken is within its bounds.
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string>

#include "file/hint_text.h"
#include "file/hints.h"
#include "file/system/lock_scope.h"
#include "file/system/lustre_layout.h"
#include "mpi.h"

using namespace starling;
using namespace starling::file;

namespace {

void check(const comm::Info& info) {
    for (const auto& hint : info.entries) {
        if (hint.key.empty() || hint.key.size() > MPI_MAX_INFO_KEY) std::abort();
        if (hint.value.empty() || hint.value.size() > MPI_MAX_INFO_VAL) std::abort();
    }
    const FileHints hints = read_hints(info);
    if (hints.buffer_bytes < 8192 || hints.aggregators < 0 || hints.independent_bytes < 0) std::abort();
    if (hints.striping_unit < 0 || hints.striping_factor < 0 || hints.permissions < 0 || hints.permissions > 07777)
        std::abort();
    if (hints.given.entries != info.entries) std::abort();
}

}  // namespace

/// Returns well-formed inputs, which the replay driver mutates.
const std::string* fuzz_seeds(size_t& count) {
    static const std::string seeds[] = {
        "# comment\ncb_nodes 32\nstriping_factor\t4\ncb_config_list n01,n11:2\nfile_perm 0640\ncb_buffer_size 1\n",
        "file1:romio_cb_read=enable,*.nc:romio_cb_write=disable:cb_nodes=8,/scratch/[a-z]*/dump.?:ind_rd_buffer_size=100",
        "31 1 0:41 / /b rw,relatime - nfs s:/b rw,vers=3,nolock,local_lock=all\n32 1 0:42 / /c rw - nfs s:/c rw",
    };
    count = std::size(seeds);
    return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    comm::Info lines, patterns;
    read_hint_lines(text, lines);
    check(lines);
    read_hint_patterns(text, "/scratch/me/dump.1", patterns);
    check(patterns);
    locks_end_at_host(text, "0:41");
    const FileLayout layout = lustre_layout(std::as_bytes(std::span(text)));
    if (layout.unit < 0 || layout.units < 1) std::abort();
    return 0;
}
