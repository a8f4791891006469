// Events of the tool interface (MPI 5.0 section 15.3.8): lets MPI functions pass events to the callbacks that tools have registered.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>

namespace starling::mpi {

enum class ToolEvent : int {
#define EVENT(name, ...) name,
#include "mpi/tool/events.def"
#undef EVENT
};

/// Whether any tool has registered for any event. Tools change it under their own mutex, at any time.
extern std::atomic<bool> any_tool_listens;
inline bool tools_listen() { return any_tool_listens.load(std::memory_order_relaxed); }

/// Calls the callbacks registered for the event; the elements are in the order of the event's row. Must be called at the end of an MPI
/// function with the library's lock held, so that callbacks may call MPI (MPI_T_CB_REQUIRE_NONE). Throws std::bad_alloc.
void notify_tools(ToolEvent event, std::initializer_list<uint64_t> elements);

}  // namespace starling::mpi
