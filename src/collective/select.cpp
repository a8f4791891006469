#include "collective/select.h"

#include <algorithm>
#include <cstdio>

#include "base/config.h"
#include "base/error.h"
#include "collective/node_area.h"
#include "mpi.h"

namespace starling::collective {

namespace {

constexpr std::string_view kKindNames[kKinds] = {"barrier", "bcast",     "reduce",   "allreduce",      "gather",
                                                 "scatter", "allgather", "alltoall", "reduce_scatter", "scan"};
constexpr std::string_view kAlgorithmNames[kAlgorithms] = {"auto",           "linear",
                                                           "binomial",       "tree",
                                                           "dissemination",  "scatter_allgather",
                                                           "chain",          "recursive_doubling",
                                                           "rabenseifner",   "ring",
                                                           "reduce_bcast",   "bruck",
                                                           "pairwise",       "halving",
                                                           "reduce_scatter", "node",
                                                           "two_level"};

constexpr int kAny = 1 << 30;
constexpr uint64_t kAnySize = ~uint64_t{0};

/// The first row of the call's kind that has room for it and can serve it is taken; the last row of a kind
/// can serve every call.
struct Row {
    Kind kind;
    int up_to_ranks;
    uint64_t up_to_bytes;
    Algorithm algorithm;
    bool one_host = false;  ///< not for participants on different hosts
};

// On one machine every message costs the same and what counts is how often a rank has to wait for another:
// few rounds beat few messages until messages get many or large.
// The node stage comes first where the data fits into its slots.
constexpr Row kTable[] = {
    {Kind::barrier, kAny, kAnySize, Algorithm::node},
    {Kind::bcast, kAny, kAnySize, Algorithm::node},
    {Kind::reduce, kAny, kAnySize, Algorithm::node},
    {Kind::allreduce, kAny, kAnySize, Algorithm::node},
    {Kind::gather, kAny, kAnySize, Algorithm::node},
    {Kind::scatter, kAny, kAnySize, Algorithm::node},
    {Kind::allgather, kAny, kAnySize, Algorithm::node},
    {Kind::alltoall, kAny, kAnySize, Algorithm::node},
    {Kind::reduce_scatter, kAny, kAnySize, Algorithm::node},
    // What crosses the network once per host beats what crosses it once per process.
    {Kind::barrier, kAny, kAnySize, Algorithm::two_level},
    {Kind::bcast, kAny, kAnySize, Algorithm::two_level},
    {Kind::reduce, kAny, kAnySize, Algorithm::two_level},
    {Kind::allreduce, kAny, kAnySize, Algorithm::two_level},
    {Kind::allgather, kAny, 4 << 10, Algorithm::two_level},
    {Kind::barrier, kAny, kAnySize, Algorithm::dissemination},
    {Kind::bcast, 32, kAnySize, Algorithm::linear, true},
    {Kind::bcast, kAny, 128 << 10, Algorithm::binomial},
    {Kind::bcast, kAny, kAnySize, Algorithm::scatter_allgather},
    {Kind::reduce, 32, kAnySize, Algorithm::binomial},
    {Kind::reduce, kAny, 64 << 10, Algorithm::binomial},
    {Kind::reduce, kAny, kAnySize, Algorithm::rabenseifner},
    {Kind::reduce, kAny, kAnySize, Algorithm::binomial},
    {Kind::allreduce, 4, 16 << 10, Algorithm::recursive_doubling},
    {Kind::allreduce, kAny, 16 << 10, Algorithm::recursive_doubling},
    {Kind::allreduce, 2, kAnySize, Algorithm::reduce_bcast},
    {Kind::allreduce, 32, 256 << 10, Algorithm::reduce_bcast},
    {Kind::allreduce, kAny, 4 << 20, Algorithm::rabenseifner},
    {Kind::allreduce, kAny, kAnySize, Algorithm::ring},
    {Kind::allreduce, kAny, kAnySize, Algorithm::recursive_doubling},
    {Kind::gather, 64, kAnySize, Algorithm::linear},
    {Kind::gather, kAny, 2048, Algorithm::binomial},
    {Kind::gather, kAny, kAnySize, Algorithm::linear},
    {Kind::scatter, 64, kAnySize, Algorithm::linear},
    {Kind::scatter, kAny, 2048, Algorithm::binomial},
    {Kind::scatter, kAny, kAnySize, Algorithm::linear},
    {Kind::allgather, 32, kAnySize, Algorithm::linear, true},
    {Kind::allgather, kAny, 8 << 10, Algorithm::recursive_doubling},
    {Kind::allgather, kAny, 8 << 10, Algorithm::bruck},
    {Kind::allgather, kAny, kAnySize, Algorithm::ring},
    {Kind::alltoall, 32, 32 << 10, Algorithm::linear},
    {Kind::alltoall, kAny, 256, Algorithm::bruck},
    {Kind::alltoall, kAny, 32 << 10, Algorithm::linear},
    {Kind::alltoall, kAny, kAnySize, Algorithm::pairwise},
    {Kind::reduce_scatter, kAny, 64 << 10, Algorithm::halving},
    {Kind::reduce_scatter, kAny, kAnySize, Algorithm::pairwise},
    {Kind::reduce_scatter, kAny, kAnySize, Algorithm::reduce_scatter},
    {Kind::scan, kAny, kAnySize, Algorithm::recursive_doubling},
};

constinit Algorithm overrides[kKinds] = {};
constinit bool overrides_read = false;

bool exists(Kind kind, Algorithm algorithm) {
    using A = Algorithm;
    if (algorithm == A::node) return kind != Kind::scan;
    if (algorithm == A::two_level)
        return kind == Kind::barrier || kind == Kind::bcast || kind == Kind::reduce || kind == Kind::allreduce ||
               kind == Kind::allgather;
    switch (kind) {
        case Kind::barrier:
            return algorithm == A::dissemination || algorithm == A::tree;
        case Kind::bcast:
            return algorithm == A::linear || algorithm == A::binomial || algorithm == A::scatter_allgather ||
                   algorithm == A::chain;
        case Kind::reduce:
            return algorithm == A::linear || algorithm == A::binomial || algorithm == A::rabenseifner;
        case Kind::allreduce:
            return algorithm == A::recursive_doubling || algorithm == A::rabenseifner || algorithm == A::ring ||
                   algorithm == A::reduce_bcast || algorithm == A::linear;
        case Kind::gather:
        case Kind::scatter:
            return algorithm == A::linear || algorithm == A::binomial;
        case Kind::allgather:
            return algorithm == A::linear || algorithm == A::ring || algorithm == A::recursive_doubling ||
                   algorithm == A::bruck;
        case Kind::alltoall:
            return algorithm == A::linear || algorithm == A::pairwise || algorithm == A::bruck;
        case Kind::reduce_scatter:
            return algorithm == A::halving || algorithm == A::pairwise || algorithm == A::reduce_scatter;
        case Kind::scan:
            return algorithm == A::linear || algorithm == A::recursive_doubling;
    }
    return false;
}

/// Most bytes, counted as in Call, that the node stage takes: alone, or in pieces while that beats messages.
uint64_t node_limit(Kind kind, int n, bool pieces) {
    const auto ranks = static_cast<uint64_t>(n);
    const bool few = n <= NodeLayout::kFew;
    constexpr uint64_t kLong = 256 * 1024;
    switch (kind) {
        case Kind::allreduce:
            return pieces ? kAnySize : NodeLayout::slot_payload(n);
        case Kind::reduce_scatter:
            return pieces ? kAnySize : 0;
        case Kind::reduce:
            if (!pieces) return NodeLayout::slot_payload(n);
            return few && n > 2 ? kLong : kAnySize;
        case Kind::allgather:
            if (!pieces) return NodeLayout::slot_payload(n);
            return few ? kLong : kAnySize;
        case Kind::bcast:
            if (!pieces) return NodeLayout::kRingPayload;
            return n == 2 ? kAnySize : few ? kLong : std::max(NodeLayout::wide_payload(n), NodeLayout::kRingPayload);
        case Kind::scatter:
            return NodeLayout::kRingPayload / ranks;
        case Kind::alltoall:
            if (!pieces) return NodeLayout::slot_payload(n) / ranks;
            return n == 2 ? kLong : std::max(kLong / 4, uint64_t{NodeLayout::slot_payload(n)} / ranks);
        default:
            return NodeLayout::slot_payload(n);
    }
}

const char* variable_of(Kind kind) {
    static constexpr const char* kVariables[kKinds] = {
        "STARLING_COLL_BARRIER",        "STARLING_COLL_BCAST",   "STARLING_COLL_REDUCE",    "STARLING_COLL_ALLREDUCE",
        "STARLING_COLL_GATHER",         "STARLING_COLL_SCATTER", "STARLING_COLL_ALLGATHER", "STARLING_COLL_ALLTOALL",
        "STARLING_COLL_REDUCE_SCATTER", "STARLING_COLL_SCAN"};
    return kVariables[static_cast<int>(kind)];
}

std::string algorithms_of(Kind kind) {
    std::string list = "auto";
    for (int i = 1; i < kAlgorithms; ++i)
        if (exists(kind, static_cast<Algorithm>(i))) list.append(", ").append(kAlgorithmNames[i]);
    return list;
}

void append_limit(std::string& text, std::string_view what, uint64_t limit, bool any) {
    text.append(", ").append(what).append(any ? std::string(": any") : ": up to " + std::to_string(limit));
}

}  // namespace

bool can_serve(const Call& call, Algorithm algorithm) {
    if (!exists(call.kind, algorithm)) return false;
    switch (algorithm) {
        case Algorithm::node:
            return call.node && call.uniform && call.bytes <= node_limit(call.kind, call.n, call.pieces);
        case Algorithm::two_level:
            return call.two_levels && (call.commutative || call.consecutive);
        case Algorithm::rabenseifner:
        case Algorithm::halving:
            return call.commutative;
        case Algorithm::pairwise:
            return call.kind != Kind::reduce_scatter || call.commutative;
        case Algorithm::ring:
            return call.kind != Kind::allreduce || call.commutative;
        case Algorithm::bruck:
            return call.uniform;
        case Algorithm::binomial:
            return call.uniform || (call.kind != Kind::gather && call.kind != Kind::scatter);
        case Algorithm::recursive_doubling:
            return call.kind != Kind::allgather || (call.uniform && (call.n & (call.n - 1)) == 0);
        default:
            return true;
    }
}

Algorithm select(const Call& call) {
    if (!overrides_read) [[unlikely]]
        read_overrides();
    const Algorithm forced = overrides[static_cast<int>(call.kind)];
    if (forced != Algorithm::automatic && can_serve(call, forced)) return forced;
    for (const Row& row : kTable)
        if (row.kind == call.kind && call.n <= row.up_to_ranks && call.bytes <= row.up_to_bytes &&
            !(row.one_host && call.network) && can_serve(call, row.algorithm))
            return row.algorithm;
    panic("no algorithm for %s", kKindNames[static_cast<int>(call.kind)].data());
}

std::string_view name(Kind kind) { return kKindNames[static_cast<int>(kind)]; }
std::string_view name(Algorithm algorithm) { return kAlgorithmNames[static_cast<int>(algorithm)]; }

int set_override(Kind kind, std::string_view algorithm) {
    for (int i = 0; i < kAlgorithms; ++i) {
        if (kAlgorithmNames[i] != algorithm) continue;
        if (i != 0 && !exists(kind, static_cast<Algorithm>(i))) break;
        overrides[static_cast<int>(kind)] = static_cast<Algorithm>(i);
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
        const Kind kind = static_cast<Kind>(i);
        if (!values[i] || !*values[i] || set_override(kind, values[i]) == MPI_SUCCESS) continue;
        if (reports_settings())
            std::fprintf(stderr, "starling: %s: %s\n", variable_of(kind), std::string(failure_text()).c_str());
        clear_failure();
    }
}

std::string describe_selection() {
    std::string text;
    for (int i = 0; i < kKinds; ++i) {
        const Kind kind = static_cast<Kind>(i);
        text.append(name(kind)).append(" (").append(variable_of(kind)).append(": ").append(algorithms_of(kind));
        text.append(")\n");
        if (overrides[i] != Algorithm::automatic)
            text.append("    overridden: ").append(name(overrides[i])).append(" wherever it can serve the call\n");
        for (const Row& row : kTable) {
            if (row.kind != kind) continue;
            text.append("    ").append(name(row.algorithm));
            append_limit(text, "ranks", static_cast<uint64_t>(row.up_to_ranks), row.up_to_ranks == kAny);
            append_limit(text, "bytes", row.up_to_bytes, row.up_to_bytes == kAnySize);
            if (row.one_host) text.append(", on one host");
            text.append("\n");
        }
    }
    return text;
}

}  // namespace starling::collective
