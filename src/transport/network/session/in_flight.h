// The records of data in flight: one per datagram that was sent and not acknowledged.
#pragma once

#include <cstdint>
#include <memory>

#include "base/counter_start.h"

namespace starling::network {

/// A datagram in flight, or a stretch of the stream in flight on a carrier.
struct Flown {
    uint64_t offset;
    uint64_t sent_at;  ///< ns
    uint64_t order;    ///< number of the datagram, counted per path
    uint32_t length;   ///< stream bytes; 0: a probe
    uint8_t via;       ///< index of the path, or kFirstCarrier + index of the carrier
    bool in_flight;    ///< whether the data is neither acknowledged nor abandoned
    bool repeat;       ///< whether the record's bytes were sent before
    uint8_t reserved;
    uint64_t end() const { return offset + length; }
};
inline constexpr uint8_t kFirstCarrier = 4;

/// The records in the order of sending, found by number. The table grows with the data in flight, up to kMost records, and shrinks
/// afterwards.
class Flight {
  public:
    static constexpr uint32_t kMost = 4096;

    explicit Flight(uint32_t first_number = kBeforeWrap ? kCounterStart : 1) : first_(first_number), next_(first_number) {}

    bool empty() const { return first_ == next_; }
    bool full() const { return next_ - first_ >= kMost - 1; }
    uint32_t first() const { return first_; }
    uint32_t next() const { return next_; }
    /// Returns the record of this number; nullptr if there is none or it was removed.
    Flown* find(uint32_t number) { return number - first_ < next_ - first_ ? &records_[number & mask_] : nullptr; }
    Flown& operator[](uint32_t number) { return records_[number & mask_]; }
    const Flown& operator[](uint32_t number) const { return records_[number & mask_]; }
    /// Returns a new record with the next number. Precondition: not full().
    Flown& add();
    /// Removes the newest record, whose datagram was not sent after all.
    void drop_last() { --next_; }
    /// Removes the oldest records until one is in flight.
    void trim();
    void clear();

  private:
    static constexpr uint32_t kLeastCapacity = 16, kKeptCapacity = 64;
    Flown& append();
    void resize(uint32_t capacity);

    std::unique_ptr<Flown[]> records_;
    uint32_t mask_ = 0;      ///< capacity - 1; unused if records_ is null
    uint32_t first_, next_;  ///< first number in use and the next one; they wrap around, and 0 is never used
};

}  // namespace starling::network
