// System calls on files, which may take long: the library's lock is released meanwhile.
#pragma once

#include "base/lock.h"

namespace starling::file {

/// Returns what `call` returns, which runs without the library's lock. Objects that it uses must be kept alive by the caller.
template <class Call>
auto system_call(const Call& call) {
    step_out();
    auto result = call();
    step_in();
    return result;
}

}  // namespace starling::file
