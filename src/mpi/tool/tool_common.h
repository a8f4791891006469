// What the functions of the tool interface share.
#pragma once

#include <pthread.h>

#include "base/config.h"
#include "base/counters.h"
#include "mpi.h"

namespace starling::mpi {

/// Holds the tool interface's own mutex: a tool's threads need not make MPI itself thread-safe. False if the
/// interface is not initialized; the function returns MPI_T_ERR_NOT_INITIALIZED then.
class ToolScope {
  public:
    ToolScope();
    ~ToolScope();
    ToolScope(const ToolScope&) = delete;
    ToolScope& operator=(const ToolScope&) = delete;
    explicit operator bool() const { return usable_; }

  private:
    bool usable_;
};

/// Returns a string as section 15.3.3 wants it: cut to the caller's `*length`, which becomes what it takes whole.
void give_string(const char* text, char* buffer, int* length);

/// Stores to an optional OUT argument.
template <class T>
void give(T* place, T value) {
    if (place) *place = value;
}

/// The enumeration of a variable with names for values; MPI_T_ENUM_NULL for others.
MPI_T_enum enum_of(const Variable& variable);

/// Of events.def: how many events there are, and the category of each.
int event_count();
CounterGroup event_group(int index);

/// Control variables: the rows that are no reserved names. nullptr past the end.
const Variable* control_variable(int index);
int control_variable_count();

}  // namespace starling::mpi
