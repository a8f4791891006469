// Address handles, one for each port to which datagrams were sent. Each takes some 200 bytes of the device and of the kernel.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <unordered_map>

#include "plugins/verbs/core.h"

namespace starling::verbs {

class Addresses {
  public:
    explicit Addresses(VerbsCore& core) : core_(core) {}
    ~Addresses() { drop(); }

    /// Returns the handle of a port, or null with core.problem if the port is unreachable now. To create a handle, the kernel resolves the
    /// port's hardware address, which may take a second. After a failure, no handle is created for a while. `work`: position of the work
    /// request that uses the handle.
    ibv_ah* find(const uint8_t* gid, uint16_t lid, uint32_t work);
    /// Records that all work requests up to this position have completed.
    void ended(uint32_t work) { ended_ = work + 1; }
    void drop();
    size_t size() const { return handles_.size(); }

  private:
    static constexpr size_t kMost = 4096;
    /// Difference last_work - ended_ from which the work has completed: far more than a queue holds.
    static constexpr uint32_t kMostUnderWay = 1u << 24;
    /// Time after a failure until the next attempt to create the handle, ns.
    static constexpr uint64_t kAgain = 2'000'000'000;

    struct AddressKey {
        std::array<uint8_t, 16> gid;
        uint16_t lid;
        bool operator==(const AddressKey&) const = default;
    };
    struct AddressKeyHash {
        size_t operator()(const AddressKey& key) const {
            uint64_t halves[2];
            std::memcpy(halves, key.gid.data(), sizeof halves);
            return (halves[0] ^ halves[1] * 0x9e3779b97f4a7c15) + key.lid;
        }
    };
    struct AddressHandle {
        ibv_ah* handle = nullptr;
        uint32_t last_work = 0;
        uint64_t failed = 0;  ///< time of the failure, ns
    };
    bool make(const AddressKey& key, AddressHandle& handle);
    void make_room();

    VerbsCore& core_;
    std::unordered_map<AddressKey, AddressHandle, AddressKeyHash> handles_;
    AddressKey last_key_ = {};
    AddressHandle* last_ = nullptr;  ///< handle that belongs to last_key_
    uint32_t ended_ = 0;
};

}  // namespace starling::verbs
