// Accesses as other parts of the room use them.
#pragma once

#include "shmem/team.h"

namespace starling::shmem {

/// All accesses of the context are carried out.
void quiet(const Context& context);
/// Those of all contexts.
void quiet_all();
/// What was put comes before what will be put, at each PE.
void fence();

/// One element; `old` may be null: then it is not waited for.
void update(Remote& remote, const Spot& spot, Element element, Operator op, const void* operand, void* old);
void compare_swap(const Context& context, Remote& remote, const Spot& spot, Element element, const void* cond,
                  const void* value, void* old, bool nbi);

}  // namespace starling::shmem
