#include "transport/network/session/in_flight.h"

#include <algorithm>

namespace starling::network {

void Flight::resize(uint32_t capacity) {
    auto records = std::make_unique<Flown[]>(capacity);
    for (uint32_t n = first_; n != next_; ++n) records[n & (capacity - 1)] = records_[n & mask_];
    records_ = std::move(records);
    mask_ = capacity - 1;
}

Flown& Flight::append() {
    const uint32_t used = next_ - first_;
    if (!records_)
        resize(kLeastCapacity);
    else if (used > mask_)
        resize(2 * (mask_ + 1));
    return records_[next_++ & mask_] = {};
}

Flown& Flight::add() {
    if (next_ == 0) append();  // skip the number 0 by a record that is not in flight
    return append();
}

void Flight::trim() {
    while (first_ != next_ && !records_[first_ & mask_].in_flight) ++first_;
    if (empty() && mask_ >= kKeptCapacity) records_.reset();
}

void Flight::clear() {
    first_ = next_;
    records_.reset();
}

}  // namespace starling::network
