// Events: the table of mpi/tool/events.def as tools see it, the registered callbacks, and the only source, the clock.
#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/no_destroy.h"
#include "base/pool.h"
#include "base/state.h"
#include "comm/info.h"
#include "mpi/common/check.h"
#include "mpi/tool/tool.h"
#include "mpi/tool/tool_common.h"
#include "mpi/tool/tool_events.h"

namespace starling::mpi {

STARLING_STATE std::atomic<bool> any_tool_listens{false};

namespace {

constexpr int kClock = 0, kSources = 1;
constexpr size_t kMostElements = 4;

struct EventRow {
    const char* name;
    CounterGroup group;
    const char* doc;
    std::array<const char*, kMostElements> elements;
    size_t count() const {
        return static_cast<size_t>(std::find(elements.begin(), elements.end(), nullptr) - elements.begin());
    }
};

constexpr EventRow kRows[] = {
#define EVENT(name, group, doc, ...) {#name, CounterGroup::group, doc, {__VA_ARGS__}},
#include "mpi/tool/events.def"
#undef EVENT
};

const EventRow* row_at(int index) {
    return index >= 0 && static_cast<size_t>(index) < std::size(kRows) ? kRows + index : nullptr;
}

/// An occurrence of an event, valid while its callbacks run.
struct Instance {
    static constexpr uint32_t kMagic = 0x6576696e;
    uint32_t magic = kMagic;
    const EventRow& row;
    uint64_t when;
    std::array<uint64_t, kMostElements> elements{};
};

constexpr MPI_T_cb_safety kSafeties[] = {MPI_T_CB_REQUIRE_NONE, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_T_CB_REQUIRE_THREAD_SAFE,
                                         MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE};

/// A tool's registration for an event. Callbacks run without the tool interface's mutex, so the tool may free the registration meanwhile;
/// the last callback to return then destroys it.
struct EventRegistration {
    static constexpr uint32_t kMagic = 0x65767265;
    uint32_t magic = 0;
    uint32_t pool_index = 0;
    const EventRow& row;
    struct EventCallback {
        MPI_T_event_cb_function* function = nullptr;
        void* user_data = nullptr;
    };
    std::array<EventCallback, std::size(kSafeties)> callbacks{};
    int running = 0;
    bool freed = false;
    MPI_T_event_free_cb_function* at_end = nullptr;
    void* end_data = nullptr;

    explicit EventRegistration(const EventRow& its) : row(its) {}
    /// Returns the callback for an event that occurs where callbacks may call MPI, so that every safety level is met: the registered
    /// callback with the lowest requirement.
    const EventCallback* callback() const {
        const auto found = std::find_if(callbacks.begin(), callbacks.end(), [](const EventCallback& c) { return c.function; });
        return found == callbacks.end() ? nullptr : &*found;
    }
};

STARLING_STATE NoDestroy<Pool<EventRegistration>> registrations_storage;
constinit auto& registrations = registrations_storage.value;
STARLING_STATE NoDestroy<std::vector<EventRegistration*>> listening_storage;
constinit auto& listening = listening_storage.value;

MPI_T_event_registration to_handle(EventRegistration& registration) {
    return reinterpret_cast<MPI_T_event_registration>(&registration);
}

EventRegistration* from_handle(MPI_T_event_registration handle) {
    auto* object = reinterpret_cast<EventRegistration*>(handle);
    return object && object->magic == EventRegistration::kMagic && !object->freed ? object : nullptr;
}

const Instance* from_handle(MPI_T_event_instance handle) {
    const auto* object = reinterpret_cast<const Instance*>(handle);
    return object && object->magic == Instance::kMagic ? object : nullptr;
}

/// Returns the index of `safety` among the callbacks; -1 if it is not a valid level.
int place_of(MPI_T_cb_safety safety) {
    const auto* const found = std::find(std::begin(kSafeties), std::end(kSafeties), safety);
    return found == std::end(kSafeties) ? -1 : static_cast<int>(found - kSafeties);
}

/// Destroys a registration; calls the tool's free function first, without the mutex.
void end(EventRegistration& registration) {
    const MPI_T_event_registration handle = to_handle(registration);
    MPI_T_event_free_cb_function* const function = registration.at_end;
    void* const data = registration.end_data;
    if (function) {
        const OutsideLibrary outside;
        function(handle, MPI_T_CB_REQUIRE_NONE, data);
    }
    const ToolScope scope;
    registrations.destroy(&registration);
}

void call(const Instance& instance, EventRegistration& registration) {
    EventRegistration::EventCallback callback;
    {
        const ToolScope scope;
        if (const auto* registered = registration.callback()) callback = *registered;
    }
    // The handle's type in the standard is not const, but nothing is ever written through the handle.
    const auto handle = reinterpret_cast<MPI_T_event_instance>(const_cast<Instance*>(&instance));
    if (!callback.function) return;
    const OutsideLibrary outside;
    callback.function(handle, to_handle(registration), MPI_T_CB_REQUIRE_NONE, callback.user_data);
}

/// Runs `body`, which returns an error class, on the registration behind a handle.
template <class F>
int with(MPI_T_event_registration handle, F&& body) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    EventRegistration* registration = from_handle(handle);
    return registration ? body(*registration) : MPI_T_ERR_INVALID_HANDLE;
}

template <class F>
int with(MPI_T_event_instance handle, F&& body) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    const Instance* instance = from_handle(handle);
    return instance ? body(*instance) : MPI_T_ERR_INVALID_HANDLE;
}

/// Returns an empty info object: events have no hints, and unknown ones are ignored.
int ignore_hints(MPI_Info* info) {
    if (!info) return MPI_T_ERR_INVALID;
    *info = comm::to_handle(comm::make_info());
    return MPI_SUCCESS;
}

}  // namespace

int event_count() { return static_cast<int>(std::size(kRows)); }

CounterGroup event_group(int index) { return kRows[index].group; }

void notify_tools(ToolEvent event, std::initializer_list<uint64_t> elements) {
    std::vector<EventRegistration*> told;
    Instance instance{.row = kRows[static_cast<int>(event)], .when = now_ns()};
    std::copy(elements.begin(), elements.end(), instance.elements.begin());
    {
        const ToolScope scope;
        if (!scope) return;
        std::copy_if(listening.begin(), listening.end(), std::back_inserter(told),
                     [&](const EventRegistration* r) { return &r->row == &instance.row; });
        for (EventRegistration* registration : told) ++registration->running;
    }
    // Callbacks run without the library's lock and the tool interface's mutex, because they may call functions of both.
    for (EventRegistration* registration : told) {
        call(instance, *registration);
        bool over = false;
        {
            const ToolScope scope;
            over = --registration->running == 0 && registration->freed;
        }
        if (over) end(*registration);
    }
    instance.magic = 0;
}

int T_event_get_num(int* num_events) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (!num_events) return MPI_T_ERR_INVALID;
    *num_events = event_count();
    return MPI_SUCCESS;
}

int T_event_get_info(int event_index, char* name, int* name_len, int* verbosity, MPI_Datatype array_of_datatypes[],
                     MPI_Aint array_of_displacements[], int* num_elements, MPI_T_enum* enumtype, MPI_Info* info, char* desc,
                     int* desc_len, int* bind) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    const EventRow* row = row_at(event_index);
    if (!row) return MPI_T_ERR_INVALID_INDEX;
    const auto count = static_cast<int>(row->count());
    for (int i = 0; num_elements && i < std::min(count, *num_elements); ++i) {
        if (array_of_datatypes) array_of_datatypes[i] = MPI_UINT64_T;
        if (array_of_displacements) array_of_displacements[i] = i * static_cast<MPI_Aint>(sizeof(uint64_t));
    }
    store_out(num_elements, count);
    std::string text = std::string(row->doc) + " (";
    for (int i = 0; i < count; ++i) text += (i ? std::string(", ") : "") + row->elements[static_cast<size_t>(i)];
    return_string(row->name, name, name_len);
    return_string((text + ")").c_str(), desc, desc_len);
    store_out(verbosity, static_cast<int>(MPI_T_VERBOSITY_USER_DETAIL));
    store_out(enumtype, MPI_T_ENUM_NULL);
    store_out(bind, static_cast<int>(MPI_T_BIND_NO_OBJECT));
    return info ? ignore_hints(info) : MPI_SUCCESS;
}

int T_event_get_index(const char* name, int* event_index) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (!name || !event_index) return MPI_T_ERR_INVALID;
    for (int i = 0; i < event_count(); ++i) {
        if (std::strcmp(kRows[i].name, name) != 0) continue;
        *event_index = i;
        return MPI_SUCCESS;
    }
    return MPI_T_ERR_INVALID_NAME;
}

int T_event_handle_alloc(int event_index, void*, MPI_Info, MPI_T_event_registration* event_registration) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    const EventRow* row = row_at(event_index);
    if (!row) return MPI_T_ERR_INVALID_INDEX;
    if (!event_registration) return MPI_T_ERR_INVALID;
    EventRegistration* made = registrations.create(*row);
    listening.push_back(made);
    any_tool_listens.store(true, std::memory_order_relaxed);
    *event_registration = to_handle(*made);
    return MPI_SUCCESS;
}

int T_event_handle_set_info(MPI_T_event_registration event_registration, MPI_Info) {
    return with(event_registration, [](EventRegistration&) { return MPI_SUCCESS; });
}

int T_event_handle_get_info(MPI_T_event_registration event_registration, MPI_Info* info_used) {
    return with(event_registration, [=](EventRegistration&) { return ignore_hints(info_used); });
}

int T_event_register_callback(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, MPI_Info, void* user_data,
                              MPI_T_event_cb_function event_cb_function) {
    return with(event_registration, [=](EventRegistration& registration) {
        const int place = place_of(cb_safety);
        if (place < 0) return MPI_T_ERR_INVALID;
        registration.callbacks[static_cast<size_t>(place)] = {event_cb_function, user_data};
        return MPI_SUCCESS;
    });
}

int T_event_callback_set_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, MPI_Info) {
    return with(event_registration,
                [=](EventRegistration&) { return place_of(cb_safety) < 0 ? MPI_T_ERR_INVALID : MPI_SUCCESS; });
}

int T_event_callback_get_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, MPI_Info* info_used) {
    return with(event_registration,
                [=](EventRegistration&) { return place_of(cb_safety) < 0 ? MPI_T_ERR_INVALID : ignore_hints(info_used); });
}

int T_event_handle_free(MPI_T_event_registration event_registration, void* user_data,
                        MPI_T_event_free_cb_function free_cb_function) {
    EventRegistration* over = nullptr;
    const int error = with(event_registration, [&](EventRegistration& registration) {
        std::erase(listening, &registration);
        any_tool_listens.store(!listening.empty(), std::memory_order_relaxed);
        registration.freed = true;
        registration.at_end = free_cb_function;
        registration.end_data = user_data;
        if (registration.running == 0) over = &registration;
        return MPI_SUCCESS;
    });
    if (over) end(*over);
    return error;
}

// Callbacks run when the event happens, so no event is ever dropped and the handler is never called.
int T_event_set_dropped_handler(MPI_T_event_registration event_registration, MPI_T_event_dropped_cb_function) {
    return with(event_registration, [](EventRegistration&) { return MPI_SUCCESS; });
}

int T_event_read(MPI_T_event_instance event_instance, int element_index, void* buffer) {
    return with(event_instance, [=](const Instance& instance) {
        if (!buffer) return MPI_T_ERR_INVALID;
        if (element_index < 0 || static_cast<size_t>(element_index) >= instance.row.count()) return MPI_T_ERR_INVALID_INDEX;
        std::memcpy(buffer, &instance.elements[static_cast<size_t>(element_index)], sizeof(uint64_t));
        return MPI_SUCCESS;
    });
}

int T_event_copy(MPI_T_event_instance event_instance, void* buffer) {
    return with(event_instance, [=](const Instance& instance) {
        if (!buffer) return MPI_T_ERR_INVALID;
        std::memcpy(buffer, instance.elements.data(), instance.row.count() * sizeof(uint64_t));
        return MPI_SUCCESS;
    });
}

int T_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count* event_timestamp) {
    return with(event_instance, [=](const Instance& instance) {
        if (!event_timestamp) return MPI_T_ERR_INVALID;
        *event_timestamp = static_cast<MPI_Count>(instance.when);
        return MPI_SUCCESS;
    });
}

int T_event_get_source(MPI_T_event_instance event_instance, int* source_index) {
    return with(event_instance, [=](const Instance&) {
        if (!source_index) return MPI_T_ERR_INVALID;
        *source_index = kClock;
        return MPI_SUCCESS;
    });
}

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
    return_string("clock", name, name_len);
    return_string("the host's monotonic clock, as in MPI_Wtime", desc, desc_len);
    store_out(ordering, MPI_T_SOURCE_ORDERED);
    store_out(ticks_per_second, MPI_Count{1'000'000'000});
    store_out(max_ticks, MPI_Count{LLONG_MAX});
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
