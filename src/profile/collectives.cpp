#include "profile/collectives.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <unordered_map>

#include "base/current_function.h"
#include "base/lock.h"
#include "base/state.h"
#include "base/ticks.h"
#include "profile/call_site.h"
#include "profile/traffic.h"

namespace starling::profile {

STARLING_STATE bool watching = false;
constinit thread_local ProfiledCall* watched = nullptr;

namespace {

STARLING_STATE CollectiveListener collective_listeners[kCollectiveListeners] = {};
STARLING_STATE uint32_t collective_listener_count = 0;

struct CallKey {
    const void* site;
    uint64_t communicator;
    const char *function, *algorithm;
    uint8_t size_class;
    bool tried;
    bool operator==(const CallKey&) const = default;
};
struct CallKeyHash {
    size_t operator()(const CallKey& key) const {
        const auto mix = [](size_t sum, size_t part) { return (sum ^ part) * 0x9e3779b97f4a7c15u; };
        size_t sum = mix(key.size_class * 2u + key.tried, reinterpret_cast<size_t>(key.site));
        sum = mix(sum, key.communicator);
        return mix(mix(sum, reinterpret_cast<size_t>(key.function)), reinterpret_cast<size_t>(key.algorithm));
    }
};
struct CallRow {
    uint32_t size = 0;
    uint64_t calls = 0, bytes = 0, ticks = 0;
    double squares = 0;  ///< ticks²
};
using CallRows = std::unordered_map<CallKey, CallRow, CallKeyHash>;
STARLING_STATE Lazy<CallRows> rows;
STARLING_STATE Ticks ticks;

/// Recently counted rows, indexed by a hash of their call site. A call that repeats the last one at its site finds its row without hashing
/// its whole key.
using Recent = CallRows::value_type*;
constexpr size_t kRecent = 16;
STARLING_STATE Recent recent[kRecent] = {};

CallRow& row_of(const CallKey& key, uint32_t size) {
    const auto place = reinterpret_cast<uintptr_t>(key.site);
    Recent& last = recent[(place ^ place >> 4) % kRecent];
    if (!last || !(last->first == key)) [[unlikely]]
        last = &*rows.get().try_emplace(key, CallRow{size}).first;
    return last->second;
}

}  // namespace

void listen_to_collectives(CollectiveListener listener) {
    if (collective_listener_count < kCollectiveListeners) collective_listeners[collective_listener_count++] = listener;
    watching = true;
}

std::string name_of_site(uint64_t site) {
    const void* const address = reinterpret_cast<const void*>(site);
    if (is_label(address)) return static_cast<const char*>(address);
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

namespace {

/// Returns the kind of an OpenSHMEM collective, whose names differ from MPI's.
const char* kind_of_shmem(std::string_view function) {
    static constexpr const char* kKinds[][2] = {{"broadcast", "bcast"},  {"collect", "allgather"}, {"alltoall", "alltoall"},
                                                {"reduce", "allreduce"}, {"to_all", "allreduce"},  {"scan", "scan"},
                                                {"barrier", "barrier"},  {"sync", "barrier"}};
    for (const auto& [word, kind] : kKinds)
        if (function.find(word) != std::string_view::npos) return kind;
    return "other";
}

}  // namespace

const char* kind_of_function(std::string_view function) {
    if (function.starts_with("shmem_")) return kind_of_shmem(function);
    // The kinds of operations. A kind whose name is contained in another one ("ireduce" in "iallreduce") comes after it.
    static constexpr const char* kKinds[] = {"ineighbor", "ireduce_scatter", "iallreduce", "iallgather",
                                             "ialltoall", "ibarrier",        "ibcast",     "igather",
                                             "iscatter",  "iscan",           "ireduce"};
    std::string lower(function);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (const char* kind : kKinds)
        if (lower.find(kind + 1) != std::string::npos) return lower.starts_with("mpi_i") ? kind : kind + 1;
    return "other";
}

void begin_watched(uint64_t communicator, uint32_t size) {
    if (!watched) return;
    watched->communicator = communicator;
    watched->size = size;
    for (uint32_t i = 0; i < collective_listener_count; ++i)
        collective_listeners[i](reinterpret_cast<uint64_t>(watched->site), communicator, size, calling);
    if (counting()) watched->began = ticks.now();
}

void expect_choice() {
    if (!watched) return;
    watched->choosing = true;
    watched->algorithm = "none";
    watched->tried = false;
    watched->bytes = 0;
}

void note_choice(const char* algorithm, uint64_t bytes, bool tried) {
    if (!watched || !watched->choosing) return;
    watched->choosing = false;
    watched->algorithm = algorithm;
    watched->tried = tried;
    watched->bytes = bytes;
}

void end_watched(const ProfiledCall& call) {
    const uint64_t took = ticks.now() - call.began;
    Lock lock;
    CallRow& row =
        row_of({call.site, call.communicator, calling, call.algorithm, size_class_of(call.bytes), call.tried}, call.size);
    ++row.calls;
    row.bytes += call.bytes;
    row.ticks += took;
    row.squares += static_cast<double>(took) * static_cast<double>(took);
}

void each_collective(void (*visit)(const CollectiveSum& sum, void* argument), void* argument) {
    if (rows.get().empty()) return;
    const double tick = ticks.ns_per_tick();
    for (const auto& [key, row] : rows.get()) {
        visit({key.site, key.communicator, row.size, key.function, key.size_class, key.algorithm, key.tried, row.calls,
               row.bytes, static_cast<uint64_t>(static_cast<double>(row.ticks) * tick), row.squares * tick * tick},
              argument);
    }
}

void clear_collectives() {
    if (rows.get().empty()) return;
    std::fill_n(recent, kRecent, nullptr);
    rows.get().clear();
}

void start_collectives() {
    watching = true;
    ticks.start();
}

}  // namespace starling::profile
