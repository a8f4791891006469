// Decides whether a synchronous message is cancelled by its sender or matched by its receiver. A compare-and-swap on a word in the sender's
// region decides, so that neither side waits for the other.
#pragma once

#include <atomic>
#include <cstdint>

namespace starling::shm {

/// A table of words, each for one message at a time. A message uses the word that its serial selects, if that is free. The word is `key |
/// kOpen` from before the envelope is sent until one side has decided. Then it is 0 if the sender has cancelled; if the receiver has
/// matched, it is `key | kMatched` until the message is complete. Only the sender sets a word that is 0.
struct alignas(64) MatchOrCancelWords {
    static constexpr uint32_t kWords = 256;
    static constexpr uint64_t kOpen = 1, kMatched = 2;
    std::atomic<uint64_t> words[kWords];

    std::atomic<uint64_t>& word(uint32_t serial) { return words[serial % kWords]; }
};

/// Returns the key of a message, which is unique among the sender's open messages. Two messages to one receiver differ in their sequence
/// numbers, and two receivers of one job in their ranks.
inline uint64_t verdict_key(uint64_t receivers_job, uint32_t receiver, uint32_t sequence) {
    constexpr uint64_t kReceivers = (uint64_t{1} << 30) - 1;
    return uint64_t{sequence} << 32 | ((receivers_job + receiver) & kReceivers) << 2;
}

/// Called by the sender before it sends the envelope: opens the message's word. Returns false if another message uses the word.
inline bool open_verdict(std::atomic<uint64_t>& word, uint64_t key) {
    if (word.load(std::memory_order_relaxed) != 0) return false;
    word.store(key | MatchOrCancelWords::kOpen, std::memory_order_release);
    return true;
}

/// Called by the sender: tries to cancel, and returns whether it succeeded. If so, the word is free.
inline bool cancel_verdict(std::atomic<uint64_t>& word, uint64_t key) {
    uint64_t expected = key | MatchOrCancelWords::kOpen;
    return word.compare_exchange_strong(expected, 0, std::memory_order_acq_rel);
}

/// Called by the receiver: tries to match; returns whether the message is matched, by this call or an earlier one.
inline bool match_verdict(std::atomic<uint64_t>& word, uint64_t key) {
    uint64_t expected = key | MatchOrCancelWords::kOpen;
    return word.compare_exchange_strong(expected, key | MatchOrCancelWords::kMatched, std::memory_order_acq_rel) ||
           expected == (key | MatchOrCancelWords::kMatched);
}

/// Called by the receiver: returns whether the sender has cancelled.
inline bool was_cancelled(const std::atomic<uint64_t>& word, uint64_t key) {
    const uint64_t seen = word.load(std::memory_order_acquire);
    return seen != (key | MatchOrCancelWords::kOpen) && seen != (key | MatchOrCancelWords::kMatched);
}

/// Called by the sender when the message is complete: frees the word.
inline void close_verdict(std::atomic<uint64_t>& word) { word.store(0, std::memory_order_release); }

}  // namespace starling::shm
