// A set of hosts as runs of consecutive numbers. Subtrees are started as runs, so a set of thousands of hosts usually has a few runs.
#pragma once

#include <cstdint>
#include <vector>

#include "base/wire.h"

namespace starling::launch {

/// Number of a host in its tree. The root is 0; Tree::grow() assigns numbers in order and never reuses them.
using TreeHostId = uint32_t;
inline constexpr TreeHostId kMostHosts = 1u << 24;  ///< limit of host numbers: all are smaller

class HostSet {
  public:
    struct HostRun {
        TreeHostId first;
        TreeHostId end;  ///< number after the run's last host
        bool operator==(const HostRun&) const = default;
    };

    HostSet() = default;
    /// Returns the set of `hosts`, which may be in any order and repeated.
    static HostSet of(std::vector<TreeHostId> hosts);
    static HostSet one(TreeHostId host) { return HostSet({{host, host + 1}}); }
    static HostSet everyone() { return HostSet({{0, kMostHosts}}); }

    bool empty() const { return runs_.empty(); }
    size_t size() const;
    bool contains(TreeHostId host) const;
    TreeHostId front() const { return runs_.front().first; }

    void add(const HostSet& other);
    void add(TreeHostId host) { add(one(host)); }
    void remove(const HostSet& other);
    void remove(TreeHostId host) { remove(one(host)); }
    HostSet intersection(const HostSet& other) const;

    std::vector<TreeHostId> list() const;
    const std::vector<HostRun>& runs() const { return runs_; }
    bool operator==(const HostSet&) const = default;

    void encode(Writer& out) const;
    /// Returns false if the bytes are not a valid set: a run is empty, out of order, touches another, or exceeds kMostHosts.
    static bool decode(Reader& in, HostSet& out);

  private:
    explicit HostSet(std::vector<HostRun> runs) : runs_(std::move(runs)) {}

    std::vector<HostRun> runs_;  ///< the set's runs, in ascending order: not empty, separated by gaps
};

}  // namespace starling::launch
