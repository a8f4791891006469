// Helpers that the functions of the tool interface share.
#pragma once

#include <pthread.h>

#include "base/config.h"
#include "base/counters.h"
#include "mpi.h"

namespace starling::mpi {

/// Holds the tool interface's own mutex: a tool's threads thus do not require that MPI itself is thread-safe. False if the interface is not
/// initialized; the function must then return MPI_T_ERR_NOT_INITIALIZED.
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

/// Returns a string as section 15.3.3 requires: cut to the caller's `*length`, which is set to the length of the whole string with its
/// terminator.
void return_string(const char* text, char* buffer, int* length);

/// Stores the value unless `place`, an optional OUT argument, is null.
template <class T>
void store_out(T* place, T value) {
    if (place) *place = value;
}

/// Returns the enumeration of a variable whose values have names; MPI_T_ENUM_NULL for other variables.
MPI_T_enum enum_of(const Variable& variable);

/// Return the number of events in events.def, and the category of an event.
int event_count();
CounterGroup event_group(int index);

/// Returns a control variable: a row of base/variables.def, without reserved names. Returns nullptr if `index` is past the end.
const Variable* control_variable(int index);
int control_variable_count();

}  // namespace starling::mpi
