#include "profile/call_site.h"

#include <unwind.h>

#include <cstdint>

#include "profile/collectives.h"

// Begin and end in memory of the module (program or library) that contains this code, as the linker defines them.
extern "C" {
[[gnu::visibility("hidden")]] extern const char __ehdr_start;
[[gnu::visibility("hidden")]] extern const char _etext;
}

namespace starling::profile {

namespace {

_Unwind_Reason_Code look(_Unwind_Context* frame, void* found) {
    const auto address = _Unwind_GetIP(frame);
    if (address == 0) return _URC_END_OF_STACK;
    if (address >= reinterpret_cast<uintptr_t>(&__ehdr_start) && address <= reinterpret_cast<uintptr_t>(&_etext))
        return _URC_NO_REASON;
    *static_cast<const void**>(found) = reinterpret_cast<const void*>(address);
    return _URC_END_OF_STACK;
}

}  // namespace

const void* call_site() {
    if (watched) return watched->site;
    const void* found = nullptr;
    _Unwind_Backtrace(look, &found);
    return found;
}

}  // namespace starling::profile
