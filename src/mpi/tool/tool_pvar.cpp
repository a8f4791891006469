// Performance variables: the table of base/counters.def, as tools see it. Counters and timers always run. A handle shows only the increase
// while the handle was started, so tools do not disturb each other. Levels show their current value: they cannot be started, stopped or
// set.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/counters.h"
#include "base/no_destroy.h"
#include "base/pool.h"
#include "base/state.h"
#include "mpi/tool/tool.h"
#include "mpi/tool/tool_common.h"

namespace starling::mpi {

namespace {

struct PvarSession;

struct PerformanceHandle {
    static constexpr uint32_t kMagic = 0x70766172;
    uint32_t magic = 0;
    uint32_t pool_index = 0;
    const Counter& counter;
    PvarSession& session;
    bool started = false;
    uint64_t total = 0;  ///< increase of the counter while the handle was started, up to the last stop, reset or write
    uint64_t base = 0;   ///< counter value at the last start, reset or write

    PerformanceHandle(const Counter& its, PvarSession& owner) : counter(its), session(owner) {}
    bool is_level() const { return counter.kind == CounterKind::level; }

    uint64_t read(uint64_t now) const {
        if (is_level()) return now;
        return started ? total + (now - base) : total;
    }
    void set(uint64_t value, uint64_t now) {
        total = value;
        base = now;
    }
};

struct PvarSession {
    static constexpr uint32_t kMagic = 0x70736573;
    uint32_t magic = 0;
    uint32_t pool_index = 0;
    std::vector<PerformanceHandle*> handles;
};

STARLING_STATE NoDestroy<Pool<PvarSession>> sessions_storage;
constinit auto& sessions = sessions_storage.value;

STARLING_STATE NoDestroy<Pool<PerformanceHandle>> handles_storage;
constinit auto& handles = handles_storage.value;

PvarSession* from_handle(MPI_T_pvar_session handle) {
    auto* session = reinterpret_cast<PvarSession*>(handle);
    return session && session->magic == PvarSession::kMagic ? session : nullptr;
}

bool is_all(MPI_T_pvar_handle handle) { return handle == MPI_T_PVAR_ALL_HANDLES; }

/// Returns the object behind a handle if it belongs to the session.
PerformanceHandle* from_handle(const PvarSession& session, MPI_T_pvar_handle handle) {
    if (is_all(handle)) return nullptr;
    auto* object = reinterpret_cast<PerformanceHandle*>(handle);
    return object && object->magic == PerformanceHandle::kMagic && &object->session == &session ? object : nullptr;
}

const Counter* performance_variable(int index) {
    size_t count = 0;
    const Counter* rows = counter_table(count);
    return index >= 0 && static_cast<size_t>(index) < count ? rows + index : nullptr;
}

int class_of(const Counter& counter) {
    switch (counter.kind) {
        case CounterKind::counter:
            return MPI_T_PVAR_CLASS_COUNTER;
        case CounterKind::timer:
            return MPI_T_PVAR_CLASS_TIMER;
        case CounterKind::level:
            return MPI_T_PVAR_CLASS_LEVEL;
    }
    return MPI_T_PVAR_CLASS_GENERIC;
}

int start(PerformanceHandle& handle) {
    if (handle.is_level()) return MPI_T_ERR_PVAR_NO_STARTSTOP;
    if (!handle.started) handle.set(handle.total, counter_value(handle.counter));
    handle.started = true;
    return MPI_SUCCESS;
}

int stop(PerformanceHandle& handle) {
    if (handle.is_level()) return MPI_T_ERR_PVAR_NO_STARTSTOP;
    handle.total = handle.read(counter_value(handle.counter));
    handle.started = false;
    return MPI_SUCCESS;
}

int reset(PerformanceHandle& handle) {
    if (handle.is_level()) return MPI_T_ERR_PVAR_NO_WRITE;
    handle.set(0, counter_value(handle.counter));
    return MPI_SUCCESS;
}

/// Runs `action` for one handle, or for all handles of the session that are not levels.
int apply(MPI_T_pvar_session session_handle, MPI_T_pvar_handle handle, int (*action)(PerformanceHandle&)) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    const PvarSession* session = from_handle(session_handle);
    if (!session) return MPI_T_ERR_INVALID_SESSION;
    if (is_all(handle)) {
        for (PerformanceHandle* each : session->handles)
            if (!each->is_level()) action(*each);
        return MPI_SUCCESS;
    }
    PerformanceHandle* object = from_handle(*session, handle);
    return object ? action(*object) : MPI_T_ERR_INVALID_HANDLE;
}

/// Runs `action` for one handle and the caller's buffer.
template <class Buffer, class Action>
int exchange(MPI_T_pvar_session session_handle, MPI_T_pvar_handle handle, Buffer* buffer, Action action) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    const PvarSession* session = from_handle(session_handle);
    if (!session) return MPI_T_ERR_INVALID_SESSION;
    PerformanceHandle* object = from_handle(*session, handle);
    if (!object) return MPI_T_ERR_INVALID_HANDLE;
    if (!buffer) return MPI_T_ERR_INVALID;
    return action(*object, buffer);
}

}  // namespace

int T_pvar_get_num(int* num_pvar) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (!num_pvar) return MPI_T_ERR_INVALID;
    size_t count = 0;
    counter_table(count);
    *num_pvar = static_cast<int>(count);
    return MPI_SUCCESS;
}

int T_pvar_get_info(int pvar_index, char* name, int* name_len, int* verbosity, int* var_class, MPI_Datatype* datatype,
                    MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind, int* readonly, int* continuous, int* atomic) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    const Counter* counter = performance_variable(pvar_index);
    if (!counter) return MPI_T_ERR_INVALID_INDEX;
    const int level = counter->kind == CounterKind::level;
    return_string(counter->name, name, name_len);
    store_out(verbosity, MPI_T_VERBOSITY_USER_BASIC);
    store_out(var_class, class_of(*counter));
    store_out(datatype, MPI_UNSIGNED_LONG_LONG);
    store_out(enumtype, MPI_T_ENUM_NULL);
    return_string(counter->doc, desc, desc_len);
    store_out(bind, MPI_T_BIND_NO_OBJECT);
    store_out(readonly, level);
    store_out(continuous, level);
    store_out(atomic, 1 - level);
    return MPI_SUCCESS;
}

int T_pvar_get_index(const char* name, int var_class, int* pvar_index) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (!name || !pvar_index) return MPI_T_ERR_INVALID;
    const Counter* counter = find_counter(name);
    if (!counter || class_of(*counter) != var_class) return MPI_T_ERR_INVALID_NAME;
    *pvar_index = static_cast<int>(counter - performance_variable(0));
    return MPI_SUCCESS;
}

int T_pvar_session_create(MPI_T_pvar_session* session) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (!session) return MPI_T_ERR_INVALID;
    *session = reinterpret_cast<MPI_T_pvar_session>(sessions.create());
    return MPI_SUCCESS;
}

int T_pvar_session_free(MPI_T_pvar_session* session) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    PvarSession* object = session ? from_handle(*session) : nullptr;
    if (!object) return MPI_T_ERR_INVALID_SESSION;
    for (PerformanceHandle* handle : object->handles) handles.destroy(handle);
    sessions.destroy(object);
    *session = MPI_T_PVAR_SESSION_NULL;
    return MPI_SUCCESS;
}

int T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void*, MPI_T_pvar_handle* handle, int* count) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    PvarSession* owner = from_handle(session);
    if (!owner) return MPI_T_ERR_INVALID_SESSION;
    const Counter* counter = performance_variable(pvar_index);
    if (!counter) return MPI_T_ERR_INVALID_INDEX;
    if (!handle) return MPI_T_ERR_INVALID;
    PerformanceHandle* object = handles.create(*counter, *owner);
    owner->handles.push_back(object);
    *handle = reinterpret_cast<MPI_T_pvar_handle>(object);
    store_out(count, 1);
    return MPI_SUCCESS;
}

int T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    PvarSession* owner = from_handle(session);
    if (!owner) return MPI_T_ERR_INVALID_SESSION;
    PerformanceHandle* object = handle ? from_handle(*owner, *handle) : nullptr;
    if (!object) return MPI_T_ERR_INVALID_HANDLE;
    std::erase(owner->handles, object);
    handles.destroy(object);
    *handle = MPI_T_PVAR_HANDLE_NULL;
    return MPI_SUCCESS;
}

int T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) { return apply(session, handle, start); }

int T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) { return apply(session, handle, stop); }

int T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) { return apply(session, handle, reset); }

int T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
    return exchange(session, handle, buf, [](PerformanceHandle& object, void* to) {
        const uint64_t value = object.read(counter_value(object.counter));
        std::memcpy(to, &value, sizeof value);
        return MPI_SUCCESS;
    });
}

int T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void* buf) {
    return exchange(session, handle, buf, [](PerformanceHandle& object, const void* from) {
        if (object.is_level()) return MPI_T_ERR_PVAR_NO_WRITE;
        uint64_t value = 0;
        std::memcpy(&value, from, sizeof value);
        object.set(value, counter_value(object.counter));
        return MPI_SUCCESS;
    });
}

int T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
    return exchange(session, handle, buf, [](PerformanceHandle& object, void* to) {
        if (object.is_level()) return MPI_T_ERR_PVAR_NO_ATOMIC;
        const uint64_t now = counter_value(object.counter), value = object.read(now);
        object.set(0, now);
        std::memcpy(to, &value, sizeof value);
        return MPI_SUCCESS;
    });
}

}  // namespace starling::mpi
