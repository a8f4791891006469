#include "profile/collectives.h"

#include <dlfcn.h>

#include <cctype>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <unordered_map>

#include "base/calling.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/state.h"
#include "profile/traffic.h"

namespace starling::profile {

STARLING_STATE bool watching = false;
constinit thread_local CollectiveCall* watched = nullptr;

namespace {

STARLING_STATE CollectiveListener listeners[kCollectiveListeners] = {};
STARLING_STATE uint32_t listening = 0;

struct Key {
    const void* site;
    uint64_t communicator;
    const char *function, *algorithm;
    uint8_t size_class;
    bool operator==(const Key&) const = default;
};
struct Hash {
    size_t operator()(const Key& key) const {
        const auto mix = [](size_t sum, size_t part) { return (sum ^ part) * 0x9e3779b97f4a7c15u; };
        size_t sum = mix(key.size_class, reinterpret_cast<size_t>(key.site));
        sum = mix(sum, key.communicator);
        return mix(mix(sum, reinterpret_cast<size_t>(key.function)), reinterpret_cast<size_t>(key.algorithm));
    }
};
STARLING_STATE Lazy<std::unordered_map<Key, CollectiveSum, Hash>> sums;

}  // namespace

void listen_to_collectives(CollectiveListener listener) {
    if (listening < kCollectiveListeners) listeners[listening++] = listener;
    watching = true;
}

std::string name_of_site(uint64_t site) {
    const void* const address = reinterpret_cast<const void*>(site);
    Dl_info info{};
    char text[32];
    if (dladdr(address, &info) == 0 || !info.dli_fname) {
        std::snprintf(text, sizeof text, "?+0x%llx", static_cast<unsigned long long>(site));
        return text;
    }
    const char* const slash = std::strrchr(info.dli_fname, '/');
    const auto offset = site - reinterpret_cast<uint64_t>(info.dli_fbase);
    std::snprintf(text, sizeof text, "+0x%llx", static_cast<unsigned long long>(offset));
    return std::string(slash ? slash + 1 : info.dli_fname) + text;
}

const char* kind_of_function(std::string_view function) {
    // Those that others' names end with come after these.
    static constexpr const char* kKinds[] = {"reduce_scatter", "allreduce", "allgather", "alltoall", "barrier",
                                             "bcast",          "gather",    "scatter",   "scan",     "reduce"};
    std::string lower(function);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (const char* kind : kKinds)
        if (lower.find(kind) != std::string::npos) return kind;
    return "other";
}

uint8_t size_class_of(uint64_t bytes) {
    uint8_t index = 0;
    while (bytes > kSizeClasses[index]) ++index;
    return index;
}

void begin_watched(uint64_t communicator, uint32_t size) {
    if (!watched) return;
    watched->communicator = communicator;
    watched->size = size;
    for (uint32_t i = 0; i < listening; ++i)
        listeners[i](reinterpret_cast<uint64_t>(watched->site), communicator, size, calling);
    if (counting()) watched->began = now_ns();
}

void expect_choice() {
    if (!watched) return;
    watched->choosing = true;
    watched->algorithm = "none";
    watched->bytes = 0;
}

void note_choice(const char* algorithm, uint64_t bytes) {
    if (!watched || !watched->choosing) return;
    watched->choosing = false;
    watched->algorithm = algorithm;
    watched->bytes = bytes;
}

void end_watched(const CollectiveCall& call) {
    const uint64_t ended = now_ns();
    const uint8_t size_class = size_class_of(call.bytes);
    Lock lock;
    const Key key{call.site, call.communicator, calling, call.algorithm, size_class};
    const CollectiveSum empty{call.site, call.communicator, call.size, calling, size_class, call.algorithm};
    CollectiveSum& sum = sums.get().try_emplace(key, empty).first->second;
    ++sum.calls;
    sum.bytes += call.bytes;
    sum.ns += ended - call.began;
}

void each_collective(void (*visit)(const CollectiveSum& sum, void* argument), void* argument) {
    for (const auto& [key, sum] : sums.get()) visit(sum, argument);
}

void clear_collectives() { sums.get().clear(); }

}  // namespace starling::profile
