// The error text of the last failure, in the form in which users read it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::verbs {

class Problem {
  public:
    [[gnu::format(printf, 2, 3), gnu::cold]] void describe(const char* format, ...);
    /// Stores the error text for `bytes` that could not be registered, with the memory limit and the remedy if that is the cause. `error`
    /// is errno's value.
    [[gnu::cold]] void describe_memory(const char* device, uint64_t bytes, int error);
    const char* text() const { return text_; }

  private:
    char text_[400] = {};
};

/// Writes why a device's file cannot be opened, and the remedy. At most `size` bytes.
void explain_open(char* out, size_t size, const char* file, int error);

}  // namespace starling::verbs
