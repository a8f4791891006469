// Unpredictable random numbers.
#pragma once

#include <sys/random.h>

#include <cstdint>

namespace starling::verbs {

inline uint32_t random_word() {
    uint32_t word = 0;
    while (getrandom(&word, sizeof word, 0) != sizeof word) {}
    return word;
}

}  // namespace starling::verbs
