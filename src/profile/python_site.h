// The line of a Python program that is being executed, for calls through mpi4py. It is read by the functions that the interpreter in this
// process offers, so it needs neither Python's headers nor its libraries, and a process without Python has no such site.
#pragma once

#include <string_view>

namespace starling::profile {

/// Returns a text such as "work.py:12 (step)" for the innermost Python frame of this thread that is not part of mpi4py. Equal texts have
/// equal addresses, and stay valid. Returns null if this thread runs no Python code, or if its frames can't be read. mpi4py releases the
/// interpreter's lock (GIL) during its calls. If other Python threads exist, one of them may hold it; then the frames are read without the
/// lock, from memory, in versions of Python whose layout is known and was found right by an earlier call.
const char* python_site();

/// Returns whether a file belongs to mpi4py or shmem4py.
bool is_in_binding(std::string_view path);

/// Returns whether an address is that of a text from python_site().
bool is_python_site(const void* site);

}  // namespace starling::profile
