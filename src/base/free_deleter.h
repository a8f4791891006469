#pragma once

#include <cstdlib>

namespace starling {

/// A deleter for a std::unique_ptr to memory that comes from malloc() or calloc().
struct FreeDeleter {
    void operator()(void* memory) const { std::free(memory); }
};

}  // namespace starling
