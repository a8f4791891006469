#include "compat/later.h"

#include <mutex>
#include <unordered_map>
#include <utility>

namespace starling::compat {

namespace {

std::mutex later_mutex;
std::unordered_map<MPI_Comm*, std::pair<std::unique_ptr<MPI_Comm>, abi::Comm*>> later;

}  // namespace

MPI_Comm* make_later(abi::Comm* place) {
    if (!place) return nullptr;
    const std::lock_guard guard(later_mutex);
    auto made = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
    MPI_Comm* const storage = made.get();
    *place = out(*storage);
    later.emplace(storage, std::pair(std::move(made), place));
    return storage;
}
void comm_made(MPI_Comm* storage) {
    const std::lock_guard guard(later_mutex);
    const auto found = later.find(storage);
    if (found == later.end()) return;  // of MPI_Comm_dup
    *found->second.second = out(*storage);
    later.erase(found);
}

}  // namespace starling::compat
