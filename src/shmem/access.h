// Accesses of symmetric memory, for other files of src/shmem.
#pragma once

#include "shmem/team.h"

namespace starling::shmem {

/// Waits until all accesses of the context have completed.
void quiet(const ShmemContext& context);
/// Waits until all accesses of all contexts have completed.
void quiet_all();
/// Orders puts: at each PE, those before the call arrive before those after it.
void fence();

/// Updates one element. With `old` null, does not wait for the update.
void update(RemotePe& remote, const Spot& spot, Element element, Operator op, const void* operand, void* old);
void compare_swap(const ShmemContext& context, RemotePe& remote, const Spot& spot, Element element, const void* cond,
                  const void* value, void* old, bool nbi);

}  // namespace starling::shmem
