// Events of the tool interface (MPI 5.0 section 15.3.8): what happens is told to the callbacks that tools have registered for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>

namespace starling::mpi {

enum class Event : int {
#define EVENT(name, ...) name,
#include "mpi/tool/events.def"
#undef EVENT
};

/// Whether any tool listens to anything. Tools change it under their own mutex, at any time.
extern std::atomic<bool> any_tool_listens;
inline bool tools_listen() { return any_tool_listens.load(std::memory_order_relaxed); }

/// Tells those who listen; the elements in the order of the event's row. Called at the end of an MPI function, with the library's
/// lock held, so callbacks may call MPI (MPI_T_CB_REQUIRE_NONE). Throws std::bad_alloc.
void tell_tools(Event event, std::initializer_list<uint64_t> elements);

}  // namespace starling::mpi
