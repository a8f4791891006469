// Reads the Python frames of the calling thread from the interpreter's memory, without its lock. The layout of frames differs between
// versions: those of 3.11 to 3.14 are known. A caller must compare one result with that of the interpreter's functions first.
#pragma once

#include <string>

namespace starling::profile {

constexpr int kMostPythonFrames = 64;  ///< limit of the frames of mpi4py that are stepped over

/// A frame's place in the program.
struct PythonPlace {
    std::string file, function;
    int line = 0;
    bool operator==(const PythonPlace&) const = default;
};

/// How memory is read: `checked` finds out whether an address is valid, for about 0.3 µs per read.
enum class MemoryAccess { checked, direct };

/// Returns the innermost place outside of mpi4py, or the innermost one of all; without a file if the interpreter's version is not known, or
/// something is not as expected. `thread_state`: the PyThreadState of the calling thread, which must not be executing Python code.
PythonPlace read_innermost_place(const void* thread_state, MemoryAccess access);

}  // namespace starling::profile
