// A set of hosts as runs of consecutive numbers. Subtrees are started as runs, so a set of thousands of hosts usually has a few runs.
#pragma once

#include <cstdint>
#include <vector>

#include "base/wire.h"

namespace starling::launch {

using HostId = uint32_t;
inline constexpr HostId kMostHosts = 1u << 24;  ///< all host numbers are below this

class HostSet {
  public:
    struct Run {
        HostId first;
        HostId end;  ///< one past the last
        bool operator==(const Run&) const = default;
    };

    HostSet() = default;
    /// Returns the set of `hosts`, which may be in any order and repeated.
    static HostSet of(std::vector<HostId> hosts);
    static HostSet one(HostId host) { return HostSet({{host, host + 1}}); }
    static HostSet everyone() { return HostSet({{0, kMostHosts}}); }

    bool empty() const { return runs_.empty(); }
    size_t size() const;
    bool contains(HostId host) const;
    HostId front() const { return runs_.front().first; }

    void add(const HostSet& other);
    void add(HostId host) { add(one(host)); }
    void remove(const HostSet& other);
    void remove(HostId host) { remove(one(host)); }
    HostSet intersection(const HostSet& other) const;

    std::vector<HostId> list() const;
    const std::vector<Run>& runs() const { return runs_; }
    bool operator==(const HostSet&) const = default;

    void encode(Writer& out) const;
    /// Returns false if the bytes are not a valid set: a run is empty, out of order, touches another, or exceeds kMostHosts.
    static bool decode(Reader& in, HostSet& out);

  private:
    explicit HostSet(std::vector<Run> runs) : runs_(std::move(runs)) {}

    std::vector<Run> runs_;  ///< ascending, not empty, separated by gaps
};

}  // namespace starling::launch
