// Events, of which there are none yet, so no index, name or handle of one is valid; and their sources: the clock.
#include <climits>

#include "base/clock.h"
#include "comm/info.h"
#include "mpi/check.h"
#include "mpi/tool.h"
#include "mpi/tool_common.h"

namespace starling::mpi {

namespace {

constexpr int kClock = 0, kSources = 1;

/// The answer to what can only be wrong.
int wrong(int error) {
    const ToolScope scope;
    return scope ? error : MPI_T_ERR_NOT_INITIALIZED;
}

}  // namespace

int T_event_get_num(int* num_events) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (!num_events) return MPI_T_ERR_INVALID;
    *num_events = 0;
    return MPI_SUCCESS;
}

int T_event_get_info(int, char*, int*, int*, MPI_Datatype[], MPI_Aint[], int*, MPI_T_enum*, MPI_Info*, char*, int*, int*) {
    return wrong(MPI_T_ERR_INVALID_INDEX);
}

int T_event_get_index(const char*, int*) { return wrong(MPI_T_ERR_INVALID_NAME); }

int T_event_handle_alloc(int, void*, MPI_Info, MPI_T_event_registration*) { return wrong(MPI_T_ERR_INVALID_INDEX); }

int T_event_handle_set_info(MPI_T_event_registration, MPI_Info) { return wrong(MPI_T_ERR_INVALID_HANDLE); }

int T_event_handle_get_info(MPI_T_event_registration, MPI_Info*) { return wrong(MPI_T_ERR_INVALID_HANDLE); }

int T_event_register_callback(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info, void*, MPI_T_event_cb_function) {
    return wrong(MPI_T_ERR_INVALID_HANDLE);
}

int T_event_callback_set_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info) { return wrong(MPI_T_ERR_INVALID_HANDLE); }

int T_event_callback_get_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info*) { return wrong(MPI_T_ERR_INVALID_HANDLE); }

int T_event_handle_free(MPI_T_event_registration, void*, MPI_T_event_free_cb_function) {
    return wrong(MPI_T_ERR_INVALID_HANDLE);
}

int T_event_set_dropped_handler(MPI_T_event_registration, MPI_T_event_dropped_cb_function) {
    return wrong(MPI_T_ERR_INVALID_HANDLE);
}

int T_event_read(MPI_T_event_instance, int, void*) { return wrong(MPI_T_ERR_INVALID_HANDLE); }

int T_event_copy(MPI_T_event_instance, void*) { return wrong(MPI_T_ERR_INVALID_HANDLE); }

int T_event_get_timestamp(MPI_T_event_instance, MPI_Count*) { return wrong(MPI_T_ERR_INVALID_HANDLE); }

int T_event_get_source(MPI_T_event_instance, int*) { return wrong(MPI_T_ERR_INVALID_HANDLE); }

int T_source_get_num(int* num_sources) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (!num_sources) return MPI_T_ERR_INVALID;
    *num_sources = kSources;
    return MPI_SUCCESS;
}

int T_source_get_info(int source_index, char* name, int* name_len, char* desc, int* desc_len, MPI_T_source_order* ordering,
                      MPI_Count* ticks_per_second, MPI_Count* max_ticks, MPI_Info* info) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (source_index != kClock) return MPI_T_ERR_INVALID_INDEX;
    give_string("clock", name, name_len);
    give_string("the host's monotonic clock, as in MPI_Wtime", desc, desc_len);
    give(ordering, MPI_T_SOURCE_ORDERED);
    give(ticks_per_second, MPI_Count{1'000'000'000});
    give(max_ticks, MPI_Count{LLONG_MAX});
    if (info) *info = comm::to_handle(comm::make_info());
    return MPI_SUCCESS;
}

int T_source_get_timestamp(int source_index, MPI_Count* timestamp) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (source_index != kClock) return MPI_T_ERR_INVALID_INDEX;
    if (!timestamp) return MPI_T_ERR_INVALID;
    *timestamp = static_cast<MPI_Count>(now_ns());
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
