// Regions: memory of this process that others read, write and update. A region has a key, which its owner gives to those who may;
// what they show of it is checked at every access.
//
// All calls need the library's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "transport/transport.h"

namespace starling::rma {

/// What others need in order to reach a region. Means the same in every process, so it can be sent.
struct RegionKey {
    uint64_t secret = 0;  ///< random; an access that does not show it is refused
    uint64_t bytes = 0;   ///< accesses go to offsets below this
    uint32_t id = 0;
    uint32_t reserved = 0;
};

struct DeviceRegion;

/// Keeps updates apart (rma/update_lock.h).
class UpdateLock;

struct Region {
    struct Range {
        uint64_t offset, bytes;
    };
    std::byte* base = nullptr;              ///< offsets count from here; null where they are addresses
    RegionKey key;                          ///< secret 0: the place is free
    const UpdateLock* exclusion = nullptr;  ///< of updates; null: those who change the memory know of none
    std::vector<Range> ranges;              ///< what may be accessed, by offset
    std::vector<std::pair<transport::Transport*, void*>> loans = {};  ///< to devices of others, until it is withdrawn
    bool awaits_secret = false;  ///< others will know another one: until then what comes for it waits

    /// The memory of an access; null if any of it is not to be accessed.
    std::byte* at(uint64_t offset, uint64_t bytes) const;
};

/// Lets others reach `bytes` of memory at `base`, which must stay until withdraw(). Until open() the key is for this process's own use:
/// its secret is not drawn anew each time.
RegionKey expose(void* base, uint64_t bytes, const UpdateLock* exclusion = nullptr);
/// Regions that others know without having been told: of each place a process has one at most, under a secret that all who may
/// reach it can work out. What comes for one before it is exposed waits for that.
inline constexpr uint32_t kKnownRegions = 2, kFirstKnown = 0xffff0000;
/// The key of the one at `place` (below kKnownRegions).
inline RegionKey known_key(uint32_t place, uint64_t secret, uint64_t bytes) {
    return {secret | 1, bytes, kFirstKnown + place, 0};
}
void expose_known(const RegionKey& key, void* base, const UpdateLock* exclusion = nullptr);
/// Has what comes for the region wait until open(), which gives it a secret that those who may reach it know by then, and its new key. So
/// many regions have one secret, and nobody has to keep one of each.
void await_secret(const RegionKey& key);
RegionKey open(const RegionKey& key, uint64_t secret);
/// Whether the number is that of a known region which is not exposed, or of one that awaits its secret.
bool is_awaited(uint32_t id);
/// It is so long from now on.
void resize(const RegionKey& key, uint64_t bytes);

/// A region whose offsets are addresses of this process. Nothing can be reached before it is attached.
RegionKey expose_addresses();
/// Adds memory to a region of addresses. MPI_ERR_RMA_ATTACH with failure_text() if some of it is there already.
int attach(const RegionKey& key, const void* base, uint64_t bytes);
/// Takes away what was attached at `base`. MPI_ERR_RMA_ATTACH with failure_text() if nothing was.
int detach(const RegionKey& key, const void* base);
/// Accesses that come later are refused.
void withdraw(const RegionKey& key);
/// Lends the region to a peer's device, if there is one that reaches it and it is one stretch. False: not now.
bool register_memory(Region& region, transport::Path& to, DeviceRegion& out);

/// The region of that number if it is exposed and has that secret; null if not.
Region* find_region(uint32_t id, uint64_t secret);

}  // namespace starling::rma
