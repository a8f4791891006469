// Regions: memory of this process that other processes read, write and update. The owner passes a region's key to the processes that may
// access it; every access must show the key, which is checked.
//
// All calls need the library's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "transport/remote_memory.h"
#include "transport/transport.h"

namespace starling::rma {

/// The key by which other processes access a region. It means the same in every process, so it can be sent.
struct RegionKey {
    uint64_t secret = 0;  ///< random; an access without it is refused
    uint64_t bytes = 0;   ///< length; accesses must use offsets below this
    uint32_t id = 0;
    uint32_t reserved = 0;
};

struct DeviceRegion;

/// Lock that keeps concurrent updates of a region apart (rma/update_lock.h).
class UpdateLock;

struct Region {
    struct AttachedRange {
        uint64_t offset, bytes;
    };
    std::byte* base = nullptr;              ///< address of offset 0; null if offsets are addresses
    RegionKey key;                          ///< key of the region; with secret 0 this table entry is free
    const UpdateLock* exclusion = nullptr;  ///< update lock; null: all processes that change the memory do without one
    std::vector<AttachedRange> ranges;      ///< accessible ranges of memory, by offset
    std::vector<std::pair<transport::RemoteMemory*, void*>> loans = {};  ///< registrations with devices, until withdraw()
    bool awaits_secret = false;  ///< whether the region's secret is not final; accesses to the region wait until open()

    /// Returns the address of the memory of an access; null if any part of it is not accessible.
    std::byte* at(uint64_t offset, uint64_t bytes) const;
};

/// Exposes `bytes` of memory at `base`, which must stay valid until withdraw(). Until open() only this process may use the key, because its
/// provisional secret follows from earlier ones.
RegionKey expose(void* base, uint64_t bytes, const UpdateLock* exclusion = nullptr);
/// Known regions, whose keys need not be sent: every process that may access one can compute its secret. A process has at most
/// kKnownRegions of them, numbered by `place`. Accesses that arrive before the region is exposed wait for that.
inline constexpr uint32_t kKnownRegions = 2, kFirstKnown = 0xffff0000;
/// Returns the key of the known region at `place` (below kKnownRegions).
inline RegionKey known_key(uint32_t place, uint64_t secret, uint64_t bytes) {
    return {secret | 1, bytes, kFirstKnown + place, 0};
}
void expose_known(const RegionKey& key, void* base, const UpdateLock* exclusion = nullptr);
/// await_secret() makes accesses to the region wait until open(). open() sets a secret that the other processes know by then, and returns
/// the new key. Many regions can thus share one secret, and no process has to store one for each.
void await_secret(const RegionKey& key);
RegionKey open(const RegionKey& key, uint64_t secret);
/// Returns whether the number is that of a known region which is not exposed yet, or of a region that awaits its secret.
bool is_awaited(uint32_t id);
/// Changes the length of the region.
void resize(const RegionKey& key, uint64_t bytes);

/// Creates a region whose offsets are addresses of this process. No memory is accessible before it is attached.
RegionKey expose_addresses();
/// Adds memory to a region of addresses. Returns MPI_ERR_RMA_ATTACH with failure_text() if some of it is attached already.
int attach(const RegionKey& key, const void* base, uint64_t bytes);
/// Removes the memory that was attached at `base`. Returns MPI_ERR_RMA_ATTACH with failure_text() if none was.
int detach(const RegionKey& key, const void* base);
/// Removes the region; later accesses are refused.
void withdraw(const RegionKey& key);
/// Registers the region for a peer's device, if a device reaches the memory and the region is one range. Returns false if that is not
/// possible now.
bool register_memory(Region& region, transport::Path& to, DeviceRegion& out);

/// Returns the region of this number if it is exposed with this secret; null otherwise.
Region* find_region(uint32_t id, uint64_t secret);

}  // namespace starling::rma
