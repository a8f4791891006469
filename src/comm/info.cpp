#include "comm/info.h"

#include <algorithm>

#include "base/pool.h"

namespace starling::comm {

namespace {

SharedPool<Info>& pool() {
    static auto* infos = new SharedPool<Info>;
    return *infos;
}

const char* level_name(int thread_level) {
    switch (thread_level) {
        case MPI_THREAD_SINGLE:
            return "MPI_THREAD_SINGLE";
        case MPI_THREAD_FUNNELED:
            return "MPI_THREAD_FUNNELED";
        case MPI_THREAD_SERIALIZED:
            return "MPI_THREAD_SERIALIZED";
        default:
            return "MPI_THREAD_MULTIPLE";
    }
}

}  // namespace

constinit Mutex info_mutex;

const std::string* Info::find(std::string_view key) const {
    for (const Entry& entry : entries)
        if (entry.key == key) return &entry.value;
    return nullptr;
}

void Info::set(std::string_view key, std::string_view value) {
    for (Entry& entry : entries) {
        if (entry.key != key) continue;
        entry.value = value;
        return;
    }
    entries.push_back({std::string(key), std::string(value)});
}

bool Info::remove(std::string_view key) {
    return std::erase_if(entries, [key](const Entry& entry) { return entry.key == key; }) > 0;
}

Info* make_info() {
    return pool().create();
}

void destroy(Info* info) {
    pool().destroy(info);
}

Info* info_at(uint32_t pool_index) {
    return pool().at(pool_index);
}

Info* environment_info() {
    static Info* environment = make_info();
    return environment;
}

void set_environment_info(std::string_view command, std::string_view argv, int maxprocs,
                          std::string_view wdir, std::string_view host, int thread_level) {
    Info& info = *environment_info();
    const MutexGuard guard(info_mutex);
    const auto set = [&info](std::string_view key, std::string_view value) {
        if (!value.empty()) info.set(key, value);
    };
    set("command", command);
    set("argv", argv);
    if (maxprocs > 0) {
        set("maxprocs", std::to_string(maxprocs));
        set("soft", std::to_string(maxprocs));
        set("mpi_initial_size", std::to_string(maxprocs));
    }
    set("host", host);
#ifdef __x86_64__
    set("arch", "x86_64");
#elif defined __aarch64__
    set("arch", "aarch64");
#endif
    set("wdir", wdir);
    set("thread_level", level_name(thread_level));
}

Info* from_handle(MPI_Info handle) {
    if (handle == MPI_INFO_ENV) return environment_info();
    const auto word = reinterpret_cast<uintptr_t>(handle);
    if (word < 0x1000 || word % alignof(Info) != 0) return nullptr;
    auto* info = reinterpret_cast<Info*>(handle);
    return info->magic == Info::kMagic ? info : nullptr;
}

MPI_Info to_handle(Info* info) {
    if (!info) return MPI_INFO_NULL;
    return info == environment_info() ? MPI_INFO_ENV : reinterpret_cast<MPI_Info>(info);
}

bool read_info(MPI_Info handle, Info& copy) {
    const MutexGuard guard(info_mutex);
    const Info* info = from_handle(handle);
    if (info) copy.entries = info->entries;
    return info || handle == MPI_INFO_NULL;
}

}  // namespace starling::comm
