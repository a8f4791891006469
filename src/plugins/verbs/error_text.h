// The sentence about the last thing that failed, as its user reads it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::verbs {

class Problem {
  public:
    [[gnu::format(printf, 2, 3), gnu::cold]] void say(const char* format, ...);
    /// That `bytes` could not be registered, with the limit and the cure if that is why. `error` is errno's value.
    [[gnu::cold]] void say_memory(const char* device, uint64_t bytes, int error);
    const char* text() const { return text_; }

  private:
    char text_[400] = {};
};

/// Why a device's file can't be opened, and what helps. At most `size` bytes.
void explain_open(char* out, size_t size, const char* file, int error);

}  // namespace starling::verbs
