#include "compat/deferred_handles.h"

#include <mutex>
#include <unordered_map>
#include <utility>

namespace starling::compat {

namespace {

struct Later {
    std::unique_ptr<MPI_Comm> here;
    void* place;
    void (*write)(MPI_Comm comm, void* place);
};
std::mutex later_mutex;
std::unordered_map<MPI_Comm*, Later> later;

}  // namespace

MPI_Comm* defer_handle(void* place, void (*write)(MPI_Comm comm, void* place)) {
    const std::lock_guard guard(later_mutex);
    auto made = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
    MPI_Comm* const storage = made.get();
    later.emplace(storage, Later{std::move(made), place, write});
    return storage;
}

void comm_made(MPI_Comm* storage) {
    const std::lock_guard guard(later_mutex);
    const auto found = later.find(storage);
    if (found == later.end()) return;  // not a deferred handle: MPI_Comm_dup created it
    found->second.write(*storage, found->second.place);
    later.erase(found);
}

}  // namespace starling::compat
