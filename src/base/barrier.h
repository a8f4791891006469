// A barrier that one process has others pass, at any instruction that they are at, so that what they do often needs none of its own. It
// costs a call of the kernel, which interrupts the cores on which such processes run: about a microsecond.
#pragma once

#include <cstdint>

namespace starling {

/// Whether this process may call barrier_everywhere().
bool can_have_barriers();

/// From now on barriers of others are this process's, too. False if the kernel does not do that. Next to nothing in a process of one thread,
/// where there are more it takes as long as a grace period of the kernel's, some 20 ms.
bool hear_barriers();
bool hears_barriers();
bool has_one_thread();

/// Whatever those who hear have stored before some moment in this call everybody sees behind it, and what they load after that moment shows what
/// this process has stored before the call.
void barrier_everywhere();

}  // namespace starling
