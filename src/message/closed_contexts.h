// Which context ids this process has done with: what comes for them is nobody's any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace starling::message {

/// A set of numbers, kept as stretches of neighbours: contexts are numbered in the order in which they are drawn, so
/// however many were made and freed, few stretches are left. At most kMost; beyond that one is forgotten, which
/// only means that late messages for it are kept as if it might still come.
class ClosedContexts {
  public:
    static constexpr size_t kMost = 4096;

    void add(uint64_t number);
    bool contains(uint64_t number) const;
    size_t stretches() const { return ends_.size(); }

  private:
    std::map<uint64_t, uint64_t> ends_;  ///< first → one past the last; never adjoining
};

/// No communicator of this process will have this context (of whatever plane) any more: messages that have come for it
/// without being received, and all that come later, are dropped.
void retire_context(uint64_t context);

}  // namespace starling::message
