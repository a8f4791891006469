#include "base/state.h"

// The linker defines these for every section whose name is an identifier. They are weak, since a program that links only a part of this room
// may have no such section. Both are null then.
[[gnu::weak]] extern std::byte starling_state_begin[] asm("__start_starling_state");
[[gnu::weak]] extern std::byte starling_state_end[] asm("__stop_starling_state");

namespace starling {

std::span<std::byte> runtime_state() { return {starling_state_begin, starling_state_end}; }

}  // namespace starling
