#include "base/state.h"

// The linker defines these for every section whose name is an identifier.
extern std::byte starling_state_begin[] asm("__start_starling_state");
extern std::byte starling_state_end[] asm("__stop_starling_state");

namespace starling {

std::span<std::byte> runtime_state() { return {starling_state_begin, starling_state_end}; }

}  // namespace starling
