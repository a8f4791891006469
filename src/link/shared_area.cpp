#include "link/shared_area.h"

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
    std::memset(area_of(self()) + piece.offset, 0, piece.bytes);
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
