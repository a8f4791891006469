#include "message/closed_contexts.h"

#include <iterator>

namespace starling::message {

void ClosedContexts::add(uint64_t number) {
    if (contains(number)) return;
    auto next = ends_.upper_bound(number);
    const bool joins_next = next != ends_.end() && next->first == number + 1;
    const auto before = next == ends_.begin() ? ends_.end() : std::prev(next);
    const bool joins_before = before != ends_.end() && before->second == number;
    const uint64_t end = joins_next ? next->second : number + 1;
    if (joins_next) next = ends_.erase(next);
    if (joins_before) {
        before->second = end;
        return;
    }
    if (ends_.size() == kMost) ends_.erase(ends_.begin());
    ends_.emplace(number, end);
}

bool ClosedContexts::contains(uint64_t number) const {
    const auto next = ends_.upper_bound(number);
    return next != ends_.begin() && number < std::prev(next)->second;
}

}  // namespace starling::message
