// Reads the processors of this machine through hwloc, for processes that are bound.
#pragma once

#include <string>

#include "launch/process/processor_map.h"

namespace starling::launch {

/// Reads the processors that this process may use. hwloc is loaded on demand only: starting it takes longer than starting a job. Returns an
/// empty string, or a sentence that describes the error.
std::string load_processors(ProcessorMap& out);

}  // namespace starling::launch
