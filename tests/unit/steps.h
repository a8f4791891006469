// Models of protocols that several threads or processes follow on shared words: every order of steps.
//
// A thread of the model is an operation that is run again from its start for every step: its accesses to
// shared memory give what they gave before, then one more is done for real, then it is left by an
// exception. So all of the state of a run is the shared words and what each operation has seen, which can
// be compared: orders that lead to the same state are tried once.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace starling::test {

struct Stop {};

struct Operation {
    std::vector<uint64_t> seen;  ///< what its accesses gave so far
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

/// Stands for std::atomic<uint64_t>, and for plain memory: every access is a step.
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

/// One step of `operation`; true if that was its last.
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

/// A string that tells states apart.
struct Key {
    std::string text;
    void put(uint64_t v) { text.append(reinterpret_cast<const char*>(&v), sizeof v); }
    void put(const Operation& operation) {
        put(operation.seen.size());
        for (const uint64_t v : operation.seen) put(v);
    }
};

}  // namespace starling::test
