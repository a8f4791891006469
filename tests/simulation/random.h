// The random numbers of a simulation, all computed from its seed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::simulation {

constexpr uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

class Random {
  public:
    explicit Random(uint64_t seed) : state_(mix(seed + 0x9e3779b97f4a7c15ull)) {}
    uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15ull); }
    /// Returns a number from 0 to bound - 1.
    uint64_t below(uint64_t bound) {
        if (bound == 0) return 0;
        const uint64_t drawn = next();
        // A run draws for every simulated call, mostly below 2 or 8, and a mask costs a tenth of a division.
        return (bound & (bound - 1)) == 0 ? drawn & (bound - 1) : drawn % bound;
    }
    /// Returns a number from `least` to `most`, both included.
    uint64_t between(uint64_t least, uint64_t most) { return least + below(most - least + 1); }
    /// Returns true with probability 1 / times.
    bool one_in(uint64_t times) { return below(times) == 0; }
    bool with(double probability) { return probability > 0 && static_cast<double>(next() >> 11) * 0x1p-53 < probability; }
    template <class T, size_t n>
    const T& one_of(const T (&list)[n]) {
        return list[below(n)];
    }

  private:
    uint64_t state_;
};

}  // namespace starling::simulation
