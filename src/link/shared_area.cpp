#include "link/shared_area.h"

#include <sys/mman.h>

#include <cstring>
#include <map>

#include "base/error.h"
#include "transport/shm/region.h"

namespace starling::link {

namespace {

/// Free pieces of the own area, by offset, never adjoining.
std::map<uint64_t, uint64_t>* free_pieces = nullptr;

std::byte* area_of(const Process& process) {
    return shm::Region(process.job->segment().region(process.rank)).collective();
}

// Whole pages go back to the system, so that clearing does not touch what nobody did.
void clear(std::byte* begin, uint64_t bytes) {
    constexpr uintptr_t kPage = 4096;
    const auto first = reinterpret_cast<uintptr_t>(begin), last = first + bytes;
    const uintptr_t pages = (first + kPage - 1) & ~(kPage - 1), pages_end = last & ~(kPage - 1);
    if (pages >= pages_end || madvise(reinterpret_cast<void*>(pages), pages_end - pages, MADV_REMOVE) != 0) {
        std::memset(begin, 0, bytes);
        return;
    }
    std::memset(begin, 0, pages - first);
    std::memset(reinterpret_cast<void*>(pages_end), 0, last - pages_end);
}

}  // namespace

SharedPiece allocate_shared(uint64_t bytes) {
    if (!free_pieces) free_pieces = new std::map<uint64_t, uint64_t>{{0, shm::kCollectiveBytes}};
    bytes = (bytes + 63) & ~uint64_t{63};
    for (auto [offset, room] : *free_pieces) {
        if (room < bytes) continue;
        free_pieces->erase(offset);
        if (room > bytes) free_pieces->emplace(offset + bytes, room - bytes);
        return {offset, bytes};
    }
    return {};
}

void free_shared(const SharedPiece& piece) {
    if (piece.bytes == 0) return;
    clear(area_of(self()) + piece.offset, piece.bytes);
    auto [place, is_new] = free_pieces->emplace(piece.offset, piece.bytes);
    if (auto next = std::next(place); next != free_pieces->end() && place->first + place->second == next->first) {
        place->second += next->second;
        free_pieces->erase(next);
    }
    if (place == free_pieces->begin()) return;
    if (auto before = std::prev(place); before->first + before->second == place->first) {
        before->second += place->second;
        free_pieces->erase(place);
    }
}

std::byte* map_shared(const Process& owner, const SharedPiece& piece) {
    if (owner.job->map() != MPI_SUCCESS) return nullptr;
    if (owner.rank >= owner.job->segment().header().size || piece.offset > shm::kCollectiveBytes ||
        piece.bytes > shm::kCollectiveBytes - piece.offset) {
        fail(MPI_ERR_INTERN, "a shared piece of %llu bytes at %llu lies outside its owner's area",
             static_cast<unsigned long long>(piece.bytes), static_cast<unsigned long long>(piece.offset));
        return nullptr;
    }
    return area_of(owner) + piece.offset;
}

}  // namespace starling::link
