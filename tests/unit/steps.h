// Models of protocols in which several threads or processes work on shared words: the tests try every order of steps.
//
// For every step, an operation of the model runs again from its start. Its earlier accesses to shared memory return their recorded values,
// the next one is executed, and an exception then leaves the operation. The state of a run is therefore the shared words and the recorded
// values. States can be compared, and orders that lead to equal states are tried once.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace starling::test {

struct Stop {};

struct Operation {
    std::vector<uint64_t> seen;  ///< values that the operation's accesses have returned so far
    size_t at = 0;
    bool stepped = false;

    template <class F>
    uint64_t access(F&& act) {
        if (at < seen.size()) return seen[at++];
        if (stepped) throw Stop{};
        stepped = true;
        ++at;
        return seen.emplace_back(act());
    }
};
inline Operation* running = nullptr;

/// Replaces std::atomic<uint64_t> and plain memory in a model: every access is a step.
struct Word {
    uint64_t value = 0;
    uint64_t load(std::memory_order = {}) {
        return running->access([&] { return value; });
    }
    void store(uint64_t to, std::memory_order = {}) {
        running->access([&] { return value = to; });
    }
    bool compare_exchange_strong(uint64_t& expected, uint64_t to, std::memory_order = {}) {
        const uint64_t was = running->access([&] {
            const uint64_t old = value;
            if (old == expected) value = to;
            return old;
        });
        const bool done = was == expected;
        expected = was;
        return done;
    }
};

/// Runs one step of `operation`; returns whether it was the last.
template <class F>
bool step(Operation& operation, F&& body) {
    operation.at = 0;
    operation.stepped = false;
    running = &operation;
    try {
        body();
    } catch (const Stop&) { return false; }
    operation.seen.clear();
    return true;
}

/// A string that distinguishes states.
struct Key {
    std::string text;
    void put(uint64_t v) { text.append(reinterpret_cast<const char*>(&v), sizeof v); }
    void put(const Operation& operation) {
        put(operation.seen.size());
        for (const uint64_t v : operation.seen) put(v);
    }
};

}  // namespace starling::test
