// Initialization and finalization of the tool interface, and helpers of its other files.
#include <cstdio>
#include <cstring>

#include "base/state.h"
#include "mpi/tool/tool.h"
#include "mpi/tool/tool_common.h"
#include "runtime/runtime.h"

namespace starling::mpi {

namespace {

STARLING_STATE pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
STARLING_STATE int initialized = 0;  ///< number of MPI_T_init_thread calls minus number of MPI_T_finalize calls

}  // namespace

ToolScope::ToolScope() {
    pthread_mutex_lock(&mutex);
    usable_ = initialized > 0;
}

ToolScope::~ToolScope() { pthread_mutex_unlock(&mutex); }

int T_init_thread(int required, int* provided) {
    if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE) return MPI_T_ERR_INVALID;
    const ToolScope scope;
    // Settings are read before the first tool call, so that a tool sees and changes the values set by the environment.
    runtime::read_settings();
    ++initialized;
    store_out(provided, MPI_THREAD_MULTIPLE);
    return MPI_SUCCESS;
}

int T_finalize() {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    --initialized;
    return MPI_SUCCESS;
}

void return_string(const char* text, char* buffer, int* length) {
    if (!length) return;
    if (buffer && *length > 0) std::snprintf(buffer, static_cast<size_t>(*length), "%s", text);
    *length = static_cast<int>(std::strlen(text)) + 1;
}

}  // namespace starling::mpi
