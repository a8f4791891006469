#include "rma/region.h"

#include <algorithm>

#include "base/error.h"
#include "base/no_destroy.h"
#include "base/random.h"
#include "base/state.h"
#include "mpi.h"
#include "rma/packets.h"
#include "rma/target_side.h"

namespace starling::rma {

namespace {

STARLING_STATE NoDestroy<std::vector<Region>> regions_storage;
constinit auto& regions = regions_storage.value;

STARLING_STATE Region known_regions[kKnownRegions];

/// The last provisional secret, for a region that other processes do not know yet; always odd.
STARLING_STATE uint64_t next_secret = 0;

constexpr uint64_t kAllAddresses = ~uint64_t{0};

Region& add(void* base, uint64_t bytes) {
    handle_accesses();
    const auto place = std::find_if(regions.begin(), regions.end(), [](const Region& r) { return r.key.secret == 0; });
    const auto id = static_cast<uint32_t>(place - regions.begin());
    Region& region = place == regions.end() ? regions.emplace_back() : *place;
    region = Region{};
    region.base = static_cast<std::byte*>(base);
    if (next_secret == 0) next_secret = draw_random_number() | 1;
    region.key = {next_secret += 2, bytes, id, 0};
    return region;
}

}  // namespace

std::byte* Region::at(uint64_t offset, uint64_t bytes) const {
    // Adjacent ranges may be accessed together. The loop visits each range at most once.
    uint64_t from = offset, missing = bytes;
    for (size_t passed = 0; passed < ranges.size(); ++passed) {
        const auto found = std::find_if(ranges.begin(), ranges.end(), [from, missing](const AttachedRange& range) {
            return from >= range.offset && from - range.offset < range.bytes + (missing == 0);
        });
        if (found == ranges.end()) return nullptr;
        const uint64_t there = found->bytes - (from - found->offset);
        if (missing <= there) return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(base) + offset);
        from += there;
        missing -= there;
    }
    return nullptr;
}

RegionKey expose(void* base, uint64_t bytes, const UpdateLock* exclusion) {
    Region& region = add(base, bytes);
    region.exclusion = exclusion;
    region.ranges.push_back({0, bytes});
    return region.key;
}

void expose_known(const RegionKey& key, void* base, const UpdateLock* exclusion) {
    handle_accesses();
    Region& region = known_regions[key.id - kFirstKnown];
    region = Region{static_cast<std::byte*>(base), key, exclusion, {{0, key.bytes}}};
    carry_out_stored(key.id);
}

bool is_awaited(uint32_t id) {
    if (id - kFirstKnown < kKnownRegions) return known_regions[id - kFirstKnown].key.secret == 0;
    return id < regions.size() && regions[id].awaits_secret;
}

void await_secret(const RegionKey& key) { find_region(key.id, key.secret)->awaits_secret = true; }

RegionKey open(const RegionKey& key, uint64_t secret) {
    Region& region = *find_region(key.id, key.secret);
    region.key.secret = secret;
    region.awaits_secret = false;
    const RegionKey opened = region.key;
    carry_out_stored(key.id);
    return opened;
}

void resize(const RegionKey& key, uint64_t bytes) {
    if (Region* region = find_region(key.id, key.secret)) region->ranges.assign(1, {0, bytes});
}

RegionKey expose_addresses() { return add(nullptr, kAllAddresses).key; }

int attach(const RegionKey& key, const void* base, uint64_t bytes) {
    Region* region = find_region(key.id, key.secret);
    const auto from = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(base));
    for (const Region::AttachedRange& range : region->ranges) {
        const bool apart = from + bytes <= range.offset || range.offset + range.bytes <= from;
        if (apart || bytes == 0 || range.bytes == 0) continue;
        return fail(MPI_ERR_RMA_ATTACH, "some of the %llu bytes at %p are attached already: detach them first",
                    static_cast<unsigned long long>(bytes), base);
    }
    region->ranges.push_back({from, bytes});
    return MPI_SUCCESS;
}

int detach(const RegionKey& key, const void* base) {
    Region* region = find_region(key.id, key.secret);
    const auto from = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(base));
    // If several ranges begin at this address, all but one are empty; this takes the last one.
    const auto found =
        std::find_if(region->ranges.rbegin(), region->ranges.rend(), [from](const auto& r) { return r.offset == from; });
    if (found == region->ranges.rend()) return fail(MPI_ERR_RMA_ATTACH, "no memory that begins at %p is attached", base);
    region->ranges.erase(std::prev(found.base()));
    return MPI_SUCCESS;
}

void withdraw(const RegionKey& key) {
    Region* region = find_region(key.id, key.secret);
    if (!region) return;
    const bool awaited = region->awaits_secret;
    for (auto [by, loan] : region->loans) by->deregister(loan, false);
    *region = Region{};
    if (awaited) carry_out_stored(key.id);
}

bool register_memory(Region& region, transport::Path& to, DeviceRegion& out) {
    if (region.ranges.size() != 1 || !region.base) return false;
    const Region::AttachedRange range = region.ranges[0];
    region.loans.reserve(region.loans.size() + 1);
    transport::RemoteMemory* const memory = to.by.remote_memory();
    void* const loan =
        memory ? memory->register_memory(to, region.base + range.offset, range.bytes, true, out.region) : nullptr;
    if (!loan) return false;
    region.loans.emplace_back(memory, loan);
    out.offset = range.offset;
    out.bytes = range.bytes;
    return true;
}

Region* find_region(uint32_t id, uint64_t secret) {
    if (id - kFirstKnown < kKnownRegions) {
        Region& region = known_regions[id - kFirstKnown];
        return secret != 0 && region.key.secret == secret ? &region : nullptr;
    }
    if (id >= regions.size() || secret == 0 || regions[id].key.secret != secret) return nullptr;
    return &regions[id];
}

}  // namespace starling::rma
