// The table that maps a context id to this process's MatchContext.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/no_destroy.h"
#include "message/channel.h"

namespace starling::message {

class ContextTable {
  public:
    void insert(MatchContext& channel);
    /// Removes a match context; returns how many slots it examined. Takes constant time on average, however many contexts there are.
    size_t remove(MatchContext& channel);
    /// Returns the match context with that id; nullptr if this process has none.
    MatchContext* find(uint64_t context) {
        if (last_ && last_->context() == context) [[likely]]
            return last_;
        return lookup(context);
    }
    /// Visits all match contexts; the visitor must not create or destroy any.
    template <class F>
    void each(F&& visit) {
        for (MatchContext* channel : slots_)
            if (channel) visit(*channel);
    }

  private:
    size_t hash(uint64_t context) const { return (context * 0x9e3779b97f4a7c15u >> 32) & (slots_.size() - 1); }
    MatchContext* lookup(uint64_t context);
    void put(MatchContext& channel);
    void grow();
    size_t next(size_t i) const { return (i + 1) & (slots_.size() - 1); }

    std::vector<MatchContext*> slots_;  ///< hash table whose size is a power of two; at most half of the slots are full
    size_t count_ = 0;
    MatchContext* last_ = nullptr;
};

extern NoDestroy<ContextTable> directory_storage;
inline constinit auto& directory = directory_storage.value;

}  // namespace starling::message
