#include "plugins/verbs/addresses.h"

#include <arpa/inet.h>

#include <cerrno>
#include <new>

#include "plugins/verbs/clock.h"

namespace starling::verbs {

ibv_ah* Addresses::find(const uint8_t* gid, uint16_t lid, uint32_t work) {
    AddressKey key;
    std::memcpy(key.gid.data(), gid, key.gid.size());
    key.lid = lid;
    if (!last_ || key != last_key_) {
        if (handles_.size() >= kMost && !handles_.contains(key)) make_room();
        try {
            last_ = &handles_[key];
        } catch (const std::bad_alloc&) {
            core_.problem.describe("no memory for the address of another port");
            return nullptr;
        }
        last_key_ = key;
    }
    AddressHandle& handle = *last_;
    if (!handle.handle && !make(key, handle)) return nullptr;
    handle.last_work = work;
    return handle.handle;
}

bool Addresses::make(const AddressKey& key, AddressHandle& handle) {
    const uint64_t now = coarse_now();
    if (handle.failed && now - handle.failed < kAgain) return false;
    ibv_ah_attr attributes;
    core_.address_to(attributes, key.gid.data(), key.lid);
    errno = 0;
    handle.handle = ibv_create_ah(core_.domain, &attributes);
    handle.failed = handle.handle ? 0 : now;
    if (handle.handle) return true;
    char text[INET6_ADDRSTRLEN] = "?";
    inet_ntop(AF_INET6, key.gid.data(), text, sizeof text);
    core_.problem.describe("device %s does not reach %s: %s", core_.facts.device, text, strerror(errno ? errno : EIO));
    return false;
}

// Destroys all handles that no pending work uses.
void Addresses::make_room() {
    last_ = nullptr;
    std::erase_if(handles_, [&](const auto& entry) {
        const AddressHandle& handle = entry.second;
        if (handle.handle && handle.last_work - ended_ < kMostUnderWay) return false;
        if (handle.handle) ibv_destroy_ah(handle.handle);
        return true;
    });
}

void Addresses::drop() {
    for (const auto& [key, handle] : handles_)
        if (handle.handle) ibv_destroy_ah(handle.handle);
    handles_.clear();
    last_ = nullptr;
}

}  // namespace starling::verbs
