// Cryptographic random numbers: for keys, salts, identities.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling {

/// Fills memory from the kernel's generator. Ends the process if the kernel provides none. Thread-safe.
void draw_random(void* bytes, size_t size);

/// Returns a random number other than 0.
uint64_t draw_random_number();

}  // namespace starling
