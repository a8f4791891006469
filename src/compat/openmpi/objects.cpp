// The objects whose addresses are Open MPI's predefined handles; nothing is stored in them. If a program has a copy of an object in its own
// memory, this library's symbol refers to that copy too.
#include "objects.h"

#include <array>
#include <cstdint>

#include "compat/openmpi/abi.h"

#define OBJECT(symbol, bytes, here)                                           \
    extern "C" [[gnu::visibility("default")]] alignas(64) char symbol[bytes]; \
    alignas(64) char symbol[bytes] = {};
#define X OBJECT
COMPAT_OBJECTS(X)
#undef X

namespace starling::compat::abi {

namespace {

constexpr size_t kPlaces = 512;  // size of the hash table: over three entries per object
struct HandlePair {
    const void* there = nullptr;
    void* here = nullptr;
};
std::array<HandlePair, kPlaces> by_address;
constexpr uintptr_t kMostHere = 0x1000;  // limit of the library's predefined handles, which are small numbers
std::array<void*, 0x300> by_handle;

// Returns an object's index in the hash table. Objects are at least 256 bytes long, so the lower eight bits are dropped.
size_t place_of(const void* there) { return reinterpret_cast<uintptr_t>(there) / 256 % kPlaces; }

void add(const void* there, void* here) {
    size_t at = place_of(there);
    while (by_address[at].there) at = (at + 1) % kPlaces;
    by_address[at] = {there, here};
}

[[gnu::constructor(102)]] void fill() {
#define X(symbol, bytes, here) add(symbol, reinterpret_cast<void*>(here));
    COMPAT_OBJECTS(X)
#undef X
#define X(here, symbol) by_handle[here] = symbol;
    COMPAT_OBJECTS_BACK(X)
#undef X
}

}  // namespace

void* find_here(const void* there) {
    for (size_t at = place_of(there); by_address[at].there; at = (at + 1) % kPlaces)
        if (by_address[at].there == there) return by_address[at].here;
    // A small number is a predefined handle of the library, which the program cannot have.
    return reinterpret_cast<uintptr_t>(there) < kMostHere ? nullptr : const_cast<void*>(there);
}

void* find_there(const void* here) {
    const auto word = reinterpret_cast<uintptr_t>(here);
    return word < by_handle.size() ? by_handle[word] : const_cast<void*>(here);
}

}  // namespace starling::compat::abi
