// The context ids that this process has retired. A message for one of them is dropped, because no communicator will receive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace starling::message {

/// A set of numbers, stored as at most kMost intervals. Context ids are drawn in ascending order, so few intervals remain however many were
/// created and freed. If there are too many, one is dropped; the only effect is that late messages for its contexts are kept as orphans.
class ClosedContexts {
  public:
    static constexpr size_t kMost = 4096;

    void add(uint64_t number);
    bool contains(uint64_t number) const;
    size_t stretches() const { return ends_.size(); }

  private:
    std::map<uint64_t, uint64_t> ends_;  ///< intervals that never adjoin: first number → one past the last
};

/// Declares that no communicator of this process will use this context id again, whatever its four lowest bits (the plane). Drops the
/// unreceived messages that have arrived for it, and all that arrive later.
void retire_context(uint64_t context);

}  // namespace starling::message
