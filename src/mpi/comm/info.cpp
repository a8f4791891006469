#include "mpi/comm/info.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/info.h"
#include "mpi/common/check.h"
#include "mpi/common/handles.h"

namespace starling::mpi {

namespace {

// Returns the info object behind a handle if the application may change or free it.
comm::Info* own_info(MPI_Info handle) { return handle == MPI_INFO_ENV ? nullptr : comm::from_handle(handle); }

// Runs `work` on the info object behind a handle, under the info mutex; raises the error that `work` returns.
template <class Work>
int with_info(comm::Info* (*find)(MPI_Info), MPI_Info handle, Work work) {
    int error = MPI_ERR_INFO;
    bool found;
    {
        const MutexGuard guard(comm::info_mutex);
        comm::Info* object = find(handle);
        found = object != nullptr;
        if (found) error = work(*object);
    }
    if (!found) return bad_handle(nullptr, MPI_ERR_INFO, "info object");
    return error ? raise(nullptr, error) : MPI_SUCCESS;
}

int check_key(const char* key) {
    if (!key) return fail(MPI_ERR_INFO_KEY, "the key is a null pointer");
    const size_t length = strnlen(key, MPI_MAX_INFO_KEY);
    if (length == 0) return fail(MPI_ERR_INFO_KEY, "the key is empty");
    if (length >= MPI_MAX_INFO_KEY) return fail(MPI_ERR_INFO_KEY, "the key is longer than %d characters", MPI_MAX_INFO_KEY - 1);
    return MPI_SUCCESS;
}

int check_value(const char* value) {
    if (!value) return fail(MPI_ERR_INFO_VALUE, "the value is a null pointer");
    const size_t length = strnlen(value, MPI_MAX_INFO_VAL);
    if (length >= MPI_MAX_INFO_VAL)
        return fail(MPI_ERR_INFO_VALUE, "the value is longer than %d characters", MPI_MAX_INFO_VAL - 1);
    return MPI_SUCCESS;
}

// Copies `text` with a terminating null into `room` bytes, and cuts it if it is longer.
void copy_cut(char* target, const std::string& text, size_t room) {
    const size_t length = std::min(text.size(), room - 1);
    std::memcpy(target, text.data(), length);
    target[length] = '\0';
}

}  // namespace

int Info_create(MPI_Info* info) {
    if (!info) return null_argument(nullptr, "info");
    *info = comm::to_handle(comm::make_info());
    return MPI_SUCCESS;
}

int Info_create_env(int argc, char* argv[], MPI_Info* info) {
    if (!info) return null_argument(nullptr, "info");
    comm::Info* created = comm::make_info();
    comm::read_process_info(*created);
    if (argc > 0 && argv && argv[0] && !created->find("command")) created->set("command", argv[0]);
    *info = comm::to_handle(created);
    return MPI_SUCCESS;
}

int Info_dup(MPI_Info info, MPI_Info* newinfo) {
    comm::Info entries;
    if (info == MPI_INFO_NULL || !comm::read_info(info, entries)) return bad_handle(nullptr, MPI_ERR_INFO, "info object");
    if (!newinfo) return null_argument(nullptr, "newinfo");
    comm::Info* created = comm::make_info();
    created->entries = std::move(entries.entries);
    *newinfo = comm::to_handle(created);
    return MPI_SUCCESS;
}

int Info_free(MPI_Info* info) {
    if (!info) return null_argument(nullptr, "info");
    const int error = with_info(own_info, *info, [](comm::Info& object) {
        comm::destroy(&object);
        return MPI_SUCCESS;
    });
    if (!error) *info = MPI_INFO_NULL;
    return error;
}

int Info_set(MPI_Info info, const char* key, const char* value) {
    return with_info(own_info, info, [&](comm::Info& object) {
        if (const int error = check_key(key)) return error;
        if (const int error = check_value(value)) return error;
        object.set(key, value);
        return MPI_SUCCESS;
    });
}

int Info_get(MPI_Info info, const char* key, int valuelen, char* value, int* flag) {
    return with_info(comm::from_handle, info, [&](const comm::Info& object) {
        if (const int error = check_key(key)) return error;
        if (valuelen < 0) return fail(MPI_ERR_ARG, "the length of the value's buffer, %d, is negative", valuelen);
        if (!flag) return null_pointer("flag");
        const std::string* found = object.find(key);
        *flag = found != nullptr;
        if (!found) return MPI_SUCCESS;
        if (!value) return null_pointer("value");
        // `valuelen` does not count the terminating null, but copy_cut()'s size does.
        copy_cut(value, *found, static_cast<size_t>(valuelen) + 1);
        return MPI_SUCCESS;
    });
}

int Info_get_string(MPI_Info info, const char* key, int* buflen, char* value, int* flag) {
    return with_info(comm::from_handle, info, [&](const comm::Info& object) {
        if (const int error = check_key(key)) return error;
        if (!buflen || !flag) return null_pointer(buflen ? "flag" : "buflen");
        if (*buflen < 0) return fail(MPI_ERR_ARG, "the length of the value's buffer, %d, is negative", *buflen);
        const std::string* found = object.find(key);
        *flag = found != nullptr;
        if (!found) return MPI_SUCCESS;
        // Here `buflen` includes the terminating null. A call with *buflen = 0 only queries the length.
        if (*buflen > 0) {
            if (!value) return null_pointer("value");
            copy_cut(value, *found, static_cast<size_t>(*buflen));
        }
        *buflen = static_cast<int>(found->size()) + 1;
        return MPI_SUCCESS;
    });
}

int Info_get_valuelen(MPI_Info info, const char* key, int* valuelen, int* flag) {
    return with_info(comm::from_handle, info, [&](const comm::Info& object) {
        if (const int error = check_key(key)) return error;
        if (!valuelen || !flag) return null_pointer(valuelen ? "flag" : "valuelen");
        const std::string* found = object.find(key);
        *flag = found != nullptr;
        if (found) *valuelen = static_cast<int>(found->size());
        return MPI_SUCCESS;
    });
}

int Info_get_nkeys(MPI_Info info, int* nkeys) {
    return with_info(comm::from_handle, info, [&](const comm::Info& object) {
        if (!nkeys) return null_pointer("nkeys");
        *nkeys = static_cast<int>(object.entries.size());
        return MPI_SUCCESS;
    });
}

int Info_get_nthkey(MPI_Info info, int n, char* key) {
    return with_info(comm::from_handle, info, [&](const comm::Info& object) {
        if (!key) return null_pointer("key");
        const auto count = static_cast<int>(object.entries.size());
        if (n < 0 || n >= count) return fail(MPI_ERR_ARG, "there is no key number %d: the info object has %d keys", n, count);
        copy_cut(key, object.entries[static_cast<size_t>(n)].key, MPI_MAX_INFO_KEY);
        return MPI_SUCCESS;
    });
}

int Info_delete(MPI_Info info, const char* key) {
    return with_info(own_info, info, [&](comm::Info& object) {
        if (const int error = check_key(key)) return error;
        return object.remove(key) ? MPI_SUCCESS : fail(MPI_ERR_INFO_NOKEY, "the info object has no key %s", key);
    });
}

int Info_toint(MPI_Info info) {
    const MutexGuard guard(comm::info_mutex);
    return to_int(info, comm::from_handle(info));
}

MPI_Info Info_fromint(int info) { return from_int<MPI_Info>(info, comm::info_at, MPI_INFO_NULL); }

}  // namespace starling::mpi
