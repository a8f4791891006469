// Who was first: the sender of a synchronous message that cancels it, or its receiver that matches it. A word in the sender's region
// decides, so that neither waits for the other.
#pragma once

#include <atomic>
#include <cstdint>

namespace starling::shm {

/// Of as many messages at a time; a message has the word that its serial leads to, if that is free. `key | kOpen` from before its envelope
/// goes until one of both has been first, then 0 if that was the sender, and `key | kMatched` until the message has gone if it was the
/// receiver. Only the sender takes a word that is 0.
struct alignas(64) MatchOrCancelWords {
    static constexpr uint32_t kWords = 256;
    static constexpr uint64_t kOpen = 1, kMatched = 2;
    std::atomic<uint64_t> words[kWords];

    std::atomic<uint64_t>& word(uint32_t serial) { return words[serial % kWords]; }
};

/// Which message it is among all of its sender's: two to one receiver differ in their number, and two receivers of one job in their rank.
inline uint64_t verdict_key(uint64_t receivers_job, uint32_t receiver, uint32_t sequence) {
    constexpr uint64_t kReceivers = (uint64_t{1} << 30) - 1;
    return uint64_t{sequence} << 32 | ((receivers_job + receiver) & kReceivers) << 2;
}

/// The sender's, before the envelope goes; false if another message has the word.
inline bool open_verdict(std::atomic<uint64_t>& word, uint64_t key) {
    if (word.load(std::memory_order_relaxed) != 0) return false;
    word.store(key | MatchOrCancelWords::kOpen, std::memory_order_release);
    return true;
}

/// The sender's: true if it was first. The word is free then.
inline bool cancel_verdict(std::atomic<uint64_t>& word, uint64_t key) {
    uint64_t expected = key | MatchOrCancelWords::kOpen;
    return word.compare_exchange_strong(expected, 0, std::memory_order_acq_rel);
}

/// The receiver's: true if it was first, now or before.
inline bool match_verdict(std::atomic<uint64_t>& word, uint64_t key) {
    uint64_t expected = key | MatchOrCancelWords::kOpen;
    return word.compare_exchange_strong(expected, key | MatchOrCancelWords::kMatched, std::memory_order_acq_rel) ||
           expected == (key | MatchOrCancelWords::kMatched);
}

/// The receiver's: whether the sender was first.
inline bool was_cancelled(const std::atomic<uint64_t>& word, uint64_t key) {
    const uint64_t seen = word.load(std::memory_order_acquire);
    return seen != (key | MatchOrCancelWords::kOpen) && seen != (key | MatchOrCancelWords::kMatched);
}

/// The sender's, when the message has gone.
inline void close_verdict(std::atomic<uint64_t>& word) { word.store(0, std::memory_order_release); }

}  // namespace starling::shm
