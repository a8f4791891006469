#include "collective/select.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "base/config.h"
#include "base/error.h"
#include "base/state.h"
#include "collective/algorithms.h"
#include "collective/shm/layout.h"
#include "mpi.h"

namespace starling::collective {

namespace {

constexpr std::string_view kKindNames[kKinds] = {"barrier", "bcast",     "reduce",   "allreduce",      "gather",
                                                 "scatter", "allgather", "alltoall", "reduce_scatter", "scan"};

constexpr CallRange up_to(int ranks, uint64_t bytes) { return {ranks, bytes}; }
constexpr CallRange up_to_on_one_host(int ranks, uint64_t bytes = kAnyBytes) { return {ranks, bytes, 0, 0, false, true}; }
/// Blocks or vectors that are so long that leaders multicast them in turns, where they can.
constexpr CallRange turns_above(uint64_t bytes) { return {kAnyRanks, kAnyBytes, 0, bytes, true}; }
constexpr CallRange longer_than(uint64_t bytes) { return {kAnyRanks, kAnyBytes, 0, bytes}; }
/// Sizes above `bytes`, up to `most_bytes`, of calls with few participants.
constexpr CallRange sizes_between(uint64_t bytes, uint64_t most_bytes, int ranks) { return {ranks, most_bytes, 0, bytes}; }
constexpr CallRange more_than(int ranks, int up_to_ranks, uint64_t bytes) { return {up_to_ranks, bytes, ranks}; }
constexpr CallRange always = up_to(kAnyRanks, kAnyBytes);

/// All algorithms, sorted by kind.
constexpr Algorithm kTable[] = {
#define ALGORITHM(kind, name, needs, ...) {CollectiveKind::kind, #name, kind##_##name, needs, {__VA_ARGS__}},
#define NODE(kind) {CollectiveKind::kind, "node", {}, kSharedMemory | kUniform, {always}},
#include "collective/algorithms.def"
#undef NODE
#undef ALGORITHM
};

struct AlgorithmRange {
    const Algorithm *first, *last;
    const Algorithm* begin() const { return first; }
    const Algorithm* end() const { return last; }
};
struct Ends {
    size_t end[kKinds] = {};
    constexpr Ends() {
        for (size_t i = 0; i < std::size(kTable); ++i) end[static_cast<size_t>(kTable[i].kind)] = i + 1;
    }
};
constexpr Ends kEnds;

AlgorithmRange rows(CollectiveKind kind) {
    const auto k = static_cast<size_t>(kind);
    return {kTable + (k == 0 ? 0 : kEnds.end[k - 1]), kTable + kEnds.end[k]};
}

STARLING_STATE const Algorithm* overrides[kKinds] = {};
STARLING_STATE bool overrides_read = false;

/// Returns the largest size, in bytes as counted in CallParameters, of the calls that the stage serves. Calls up to this size complete in
/// one step or, with `pieces`, are faster than by messages.
uint64_t node_limit(CollectiveKind kind, int n, bool pieces) {
    const auto ranks = static_cast<uint64_t>(n);
    const bool few = n <= NodeLayout::kFew;
    constexpr uint64_t kLong = 256 * 1024;
    switch (kind) {
        case CollectiveKind::allreduce:
            return pieces ? kAnyBytes : NodeLayout::slot_payload(n);
        case CollectiveKind::reduce_scatter:
            return pieces ? kAnyBytes : 0;
        case CollectiveKind::reduce:
            if (!pieces) return NodeLayout::slot_payload(n);
            return few && n > 2 ? kLong : kAnyBytes;
        case CollectiveKind::allgather:
            if (!pieces) return NodeLayout::slot_payload(n);
            return few ? kLong : kAnyBytes;
        case CollectiveKind::bcast:
            if (!pieces) return NodeLayout::kRingPayload;
            return n == 2 ? kAnyBytes : few ? kLong : std::max(NodeLayout::wide_payload(n), NodeLayout::kRingPayload);
        case CollectiveKind::gather:
            // Between two ranks, messages are as fast. Among many ranks, the blocks of all outgrow the caches.
            if (n == 2) return NodeLayout::slot_payload(n);
            return few ? kLong / 4 : std::max(kLong / ranks, uint64_t{NodeLayout::slot_payload(n)});
        case CollectiveKind::scatter:
            if (n == 2 || !pieces) return NodeLayout::kRingPayload / ranks;
            return few ? kLong / 4 : std::max(NodeLayout::wide_payload(n), NodeLayout::kRingPayload) / ranks;
        case CollectiveKind::alltoall:
            if (!pieces) return NodeLayout::slot_payload(n) / ranks;
            return n == 2 ? kLong : std::max(kLong / 4, uint64_t{NodeLayout::slot_payload(n)} / ranks);
        default:
            return NodeLayout::slot_payload(n);
    }
}

const char* variable_of(CollectiveKind kind) {
    static constexpr const char* kVariables[kKinds] = {
        "STARLING_COLL_BARRIER",        "STARLING_COLL_BCAST",   "STARLING_COLL_REDUCE",    "STARLING_COLL_ALLREDUCE",
        "STARLING_COLL_GATHER",         "STARLING_COLL_SCATTER", "STARLING_COLL_ALLGATHER", "STARLING_COLL_ALLTOALL",
        "STARLING_COLL_REDUCE_SCATTER", "STARLING_COLL_SCAN"};
    return kVariables[static_cast<int>(kind)];
}

std::string algorithms_of(CollectiveKind kind) {
    std::string list = "auto";
    for (const Algorithm& algorithm : rows(kind)) list.append(", ").append(algorithm.name);
    return list;
}

bool has_room(const CallRange& window, const CallParameters& call) {
    return call.n <= window.ranks && call.n > window.more_ranks_than && call.bytes <= window.bytes &&
           (call.bytes > window.more_bytes_than || window.more_bytes_than == 0) && !(window.turns && !call.turns) &&
           !(window.one_host && (call.network || call.two_levels));
}

void describe(std::string& text, const CallRange& window) {
    const auto limit = [&](std::string_view what, uint64_t most, bool any) {
        text.append(", ").append(what).append(any ? std::string(": any") : ": up to " + std::to_string(most));
    };
    limit("ranks", static_cast<uint64_t>(window.ranks), window.ranks == kAnyRanks);
    if (window.more_ranks_than) text.append(" but more than ").append(std::to_string(window.more_ranks_than));
    limit("bytes", window.bytes, window.bytes == kAnyBytes);
    if (window.more_bytes_than) text.append(" but more than ").append(std::to_string(window.more_bytes_than));
    if (window.turns) text.append(", if hosts can multicast in turns");
    if (window.one_host) text.append(", on one host");
}

}  // namespace

bool can_serve(const Algorithm& algorithm, const CallParameters& call) {
    const int needs = algorithm.needs;
    if (needs == kNothing) return true;
    if (needs & kSharedMemory && !(call.node && call.bytes <= node_limit(call.kind, call.n, call.pieces))) return false;
    if (needs & kHosts && !(call.two_levels && (call.commutative || call.consecutive))) return false;
    if (needs & kMulticast && !call.multicast) return false;
    if (needs & kTurns && !call.turns) return false;
    if (needs & kOwnHosts && !call.network) return false;
    if (needs & kCommutative && !call.commutative) return false;
    if (needs & kPowerOfTwo && (call.n & (call.n - 1)) != 0) return false;
    return !(needs & kUniform) || call.uniform;
}

const Algorithm& select(const CallParameters& call) {
    if (!overrides_read) [[unlikely]]
        read_overrides();
    const Algorithm* forced = overrides[static_cast<int>(call.kind)];
    if (forced && can_serve(*forced, call)) [[unlikely]]
        return *forced;
    const Algorithm* otherwise = nullptr;
    for (const Algorithm& algorithm : rows(call.kind)) {
        if (algorithm.windows[0].ranks == 0 || !can_serve(algorithm, call)) continue;
        if (has_room(algorithm.windows[0], call) || has_room(algorithm.windows[1], call)) return algorithm;
        if (!otherwise) otherwise = &algorithm;
    }
    if (!otherwise) panic("no algorithm of Starling can run this %s among %d ranks", name(call.kind).data(), call.n);
    return *otherwise;
}

std::string_view name(CollectiveKind kind) { return kKindNames[static_cast<int>(kind)]; }

std::optional<CollectiveKind> kind_named(std::string_view name) {
    for (int i = 0; i < kKinds; ++i)
        if (kKindNames[i] == name) return static_cast<CollectiveKind>(i);
    return std::nullopt;
}

bool has_override(CollectiveKind kind) {
    if (!overrides_read) [[unlikely]]
        read_overrides();
    return overrides[static_cast<int>(kind)] != nullptr;
}

const Algorithm* algorithm_of(CollectiveKind kind, int index) {
    const AlgorithmRange of_kind = rows(kind);
    return index < of_kind.end() - of_kind.begin() ? of_kind.begin() + index : nullptr;
}

int set_override(CollectiveKind kind, std::string_view algorithm) {
    const Algorithm*& place = overrides[static_cast<int>(kind)];
    if (algorithm == "auto") {
        place = nullptr;
        return MPI_SUCCESS;
    }
    for (const Algorithm& each : rows(kind)) {
        if (each.name != algorithm) continue;
        place = &each;
        return MPI_SUCCESS;
    }
    return fail(MPI_ERR_ARG, "there is no %s algorithm \"%.*s\"; choose one of %s", name(kind).data(),
                static_cast<int>(algorithm.size()), algorithm.data(), algorithms_of(kind).c_str());
}

void read_overrides() {
    overrides_read = true;
    const Config& c = config();
    const char* const values[kKinds] = {c.coll_barrier, c.coll_bcast,     c.coll_reduce,   c.coll_allreduce,      c.coll_gather,
                                        c.coll_scatter, c.coll_allgather, c.coll_alltoall, c.coll_reduce_scatter, c.coll_scan};
    for (int i = 0; i < kKinds; ++i) {
        const CollectiveKind kind = static_cast<CollectiveKind>(i);
        if (!values[i] || !*values[i] || set_override(kind, values[i]) == MPI_SUCCESS) continue;
        if (reports_settings())
            std::fprintf(stderr, "starling: %s: %s\n", variable_of(kind), std::string(failure_text()).c_str());
        clear_failure();
    }
}

std::string describe_selection() {
    std::string text;
    for (int i = 0; i < kKinds; ++i) {
        const CollectiveKind kind = static_cast<CollectiveKind>(i);
        text.append(name(kind)).append(" (").append(variable_of(kind)).append(": ").append(algorithms_of(kind));
        text.append(")\n");
        if (overrides[i])
            text.append("    overridden: ").append(overrides[i]->name).append(" wherever it can serve the call\n");
        for (const Algorithm& algorithm : rows(kind)) {
            for (const CallRange& window : algorithm.windows) {
                if (window.ranks == 0) continue;
                text.append("    ").append(algorithm.name);
                describe(text, window);
                text.append("\n");
            }
        }
    }
    return text;
}

}  // namespace starling::collective
