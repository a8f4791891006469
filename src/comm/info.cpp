#include "comm/info.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/handle.h"
#include "base/no_destroy.h"
#include "base/pool.h"
#include "base/state.h"
#include "comm/initial_errhandler.h"

namespace starling::comm {

namespace {

STARLING_STATE NoDestroy<SharedPool<Info>> info_pool_storage;
constinit auto& info_pool = info_pool_storage.value;

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

STARLING_STATE Mutex info_mutex;

const std::string* Info::find(std::string_view key) const {
    for (const InfoEntry& entry : entries)
        if (entry.key == key) return &entry.value;
    return nullptr;
}

void Info::set(std::string_view key, std::string_view value) {
    for (InfoEntry& entry : entries) {
        if (entry.key != key) continue;
        entry.value = value;
        return;
    }
    entries.push_back({std::string(key), std::string(value)});
}

bool Info::remove(std::string_view key) {
    return std::erase_if(entries, [key](const InfoEntry& entry) { return entry.key == key; }) > 0;
}

Info* make_info() { return info_pool.create(); }

void destroy(Info* info) { info_pool.destroy(info); }

Info* info_at(uint32_t pool_index) { return info_pool.at(pool_index); }

namespace {

void set_if_known(Info& info, std::string_view key, std::string_view value) {
    if (!value.empty()) info.set(key, value);
}

STARLING_STATE NoDestroy<Info> environment_storage;

/// Returns the facts about a process that do not depend on MPI's state. Determined once, so that they do not change later.
const Info& process_info() {
    STARLING_STATE static Lazy<Info> known;
    return known.get([] {
        auto* info = new Info;
        char directory[1024] = "", host[256] = "";
        if (!getcwd(directory, sizeof directory)) directory[0] = '\0';
        gethostname(host, sizeof host - 1);
        set_if_known(*info, "command", program_invocation_name);
        set_if_known(*info, "host", host);
#ifdef __x86_64__
        info->set("arch", "x86_64");
#elif defined __aarch64__
        info->set("arch", "aarch64");
#endif
        set_if_known(*info, "wdir", directory);
        if (const char* handler = initial_errhandler_name()) info->set("mpi_initial_errhandler", handler);
        return info;
    });
}

}  // namespace

Info* environment_info() { return &environment_storage.value; }

void read_process_info(Info& copy) { copy.entries = process_info().entries; }

void set_environment_info(int maxprocs, int thread_level) {
    Info& info = *environment_info();
    const MutexGuard guard(info_mutex);
    info.entries = process_info().entries;
    const std::string size = std::to_string(maxprocs);
    for (const char* key : {"maxprocs", "soft", "mpi_initial_size"}) info.set(key, size);
    info.set("thread_level", level_name(thread_level));
}

Info* from_handle(MPI_Info handle) { return handle == MPI_INFO_ENV ? environment_info() : object_behind<Info>(handle); }

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

uint64_t minimum_alignment(const Info& info) {
    constexpr uint64_t kCacheLine = 64;
    const std::string* text = info.find("mpi_minimum_memory_alignment");
    const unsigned long long wanted = text ? std::strtoull(text->c_str(), nullptr, 10) : 0;
    return wanted > kCacheLine && (wanted & (wanted - 1)) == 0 ? wanted : kCacheLine;
}

}  // namespace starling::comm
