// Random numbers that nobody guesses: keys, salts, identities.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling {

/// Fills memory from the kernel's generator. Ends the process if that gives none. Thread-safe.
void draw_random(void* bytes, size_t size);

/// A number other than 0.
uint64_t draw_random_number();

}  // namespace starling
