#include "mpi/info.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/info.h"
#include "mpi/check.h"
#include "mpi/handles.h"

namespace starling::mpi {

namespace {

int bad_info(const char* function = __builtin_FUNCTION()) {
    return bad_handle(nullptr, MPI_ERR_INFO, "info object", function);
}

// An info object that the application may change or free.
comm::Info* own_info(MPI_Info handle) {
    return handle == MPI_INFO_ENV ? nullptr : comm::from_handle(handle);
}

int check_key(const char* key) {
    if (!key) return fail(MPI_ERR_INFO_KEY, "the key is a null pointer");
    const size_t length = strnlen(key, MPI_MAX_INFO_KEY);
    if (length == 0) return fail(MPI_ERR_INFO_KEY, "the key is empty");
    if (length >= MPI_MAX_INFO_KEY)
        return fail(MPI_ERR_INFO_KEY, "the key is longer than %d characters", MPI_MAX_INFO_KEY - 1);
    return MPI_SUCCESS;
}

int check_value(const char* value) {
    if (!value) return fail(MPI_ERR_INFO_VALUE, "the value is a null pointer");
    const size_t length = strnlen(value, MPI_MAX_INFO_VAL);
    if (length >= MPI_MAX_INFO_VAL)
        return fail(MPI_ERR_INFO_VALUE, "the value is longer than %d characters", MPI_MAX_INFO_VAL - 1);
    return MPI_SUCCESS;
}

// Copies as much of `text` as fits into `room` bytes with a null at the end.
void copy_cut(char* target, const std::string& text, size_t room) {
    const size_t length = std::min(text.size(), room - 1);
    std::memcpy(target, text.data(), length);
    target[length] = '\0';
}

}  // namespace

int Info_create(MPI_Info* info) {
    Lock lock;
    if (!info) return null_argument(nullptr, "info");
    *info = comm::to_handle(comm::make_info());
    return MPI_SUCCESS;
}

int Info_create_env(int argc, char* argv[], MPI_Info* info) {
    Lock lock;
    if (!info) return null_argument(nullptr, "info");
    comm::Info* created = comm::make_info();
    created->entries = comm::environment_info()->entries;
    // Before MPI_Init the arguments are all that is known.
    if (argc > 0 && argv && argv[0] && !created->find("command")) created->set("command", argv[0]);
    *info = comm::to_handle(created);
    return MPI_SUCCESS;
}

int Info_dup(MPI_Info info, MPI_Info* newinfo) {
    Lock lock;
    const comm::Info* original = comm::from_handle(info);
    if (!original) return bad_info();
    if (!newinfo) return null_argument(nullptr, "newinfo");
    comm::Info* created = comm::make_info();
    created->entries = original->entries;
    *newinfo = comm::to_handle(created);
    return MPI_SUCCESS;
}

int Info_free(MPI_Info* info) {
    Lock lock;
    if (!info) return null_argument(nullptr, "info");
    comm::Info* object = own_info(*info);
    if (!object) return bad_info();
    comm::destroy(object);
    *info = MPI_INFO_NULL;
    return MPI_SUCCESS;
}

int Info_set(MPI_Info info, const char* key, const char* value) {
    Lock lock;
    comm::Info* object = own_info(info);
    if (!object) return bad_info();
    if (const int error = check_key(key)) return raise(nullptr, error);
    if (const int error = check_value(value)) return raise(nullptr, error);
    object->set(key, value);
    return MPI_SUCCESS;
}

int Info_get(MPI_Info info, const char* key, int valuelen, char* value, int* flag) {
    Lock lock;
    const comm::Info* object = comm::from_handle(info);
    if (!object) return bad_info();
    if (const int error = check_key(key)) return raise(nullptr, error);
    if (valuelen < 0) return raise(nullptr, fail(MPI_ERR_ARG, "the length %d is negative", valuelen));
    if (!flag) return null_argument(nullptr, "flag");
    const std::string* found = object->find(key);
    *flag = found != nullptr;
    if (!found) return MPI_SUCCESS;
    if (!value) return null_argument(nullptr, "value");
    // valuelen does not count the null character at the end.
    copy_cut(value, *found, static_cast<size_t>(valuelen) + 1);
    return MPI_SUCCESS;
}

int Info_get_string(MPI_Info info, const char* key, int* buflen, char* value, int* flag) {
    Lock lock;
    const comm::Info* object = comm::from_handle(info);
    if (!object) return bad_info();
    if (const int error = check_key(key)) return raise(nullptr, error);
    if (!buflen || !flag) return null_argument(nullptr, buflen ? "flag" : "buflen");
    if (*buflen < 0) return raise(nullptr, fail(MPI_ERR_ARG, "the length %d is negative", *buflen));
    const std::string* found = object->find(key);
    *flag = found != nullptr;
    if (!found) return MPI_SUCCESS;
    // Here the null character counts; a length of 0 only asks.
    if (*buflen > 0) {
        if (!value) return null_argument(nullptr, "value");
        copy_cut(value, *found, static_cast<size_t>(*buflen));
    }
    *buflen = static_cast<int>(found->size()) + 1;
    return MPI_SUCCESS;
}

int Info_get_valuelen(MPI_Info info, const char* key, int* valuelen, int* flag) {
    Lock lock;
    const comm::Info* object = comm::from_handle(info);
    if (!object) return bad_info();
    if (const int error = check_key(key)) return raise(nullptr, error);
    if (!valuelen || !flag) return null_argument(nullptr, valuelen ? "flag" : "valuelen");
    const std::string* found = object->find(key);
    *flag = found != nullptr;
    if (found) *valuelen = static_cast<int>(found->size());
    return MPI_SUCCESS;
}

int Info_get_nkeys(MPI_Info info, int* nkeys) {
    Lock lock;
    const comm::Info* object = comm::from_handle(info);
    if (!object) return bad_info();
    if (!nkeys) return null_argument(nullptr, "nkeys");
    *nkeys = static_cast<int>(object->entries.size());
    return MPI_SUCCESS;
}

int Info_get_nthkey(MPI_Info info, int n, char* key) {
    Lock lock;
    const comm::Info* object = comm::from_handle(info);
    if (!object) return bad_info();
    if (!key) return null_argument(nullptr, "key");
    const auto count = static_cast<int>(object->entries.size());
    if (n < 0 || n >= count)
        return raise(nullptr, fail(MPI_ERR_ARG, "there is no key %d among %d", n, count));
    copy_cut(key, object->entries[static_cast<size_t>(n)].key, MPI_MAX_INFO_KEY);
    return MPI_SUCCESS;
}

int Info_delete(MPI_Info info, const char* key) {
    Lock lock;
    comm::Info* object = own_info(info);
    if (!object) return bad_info();
    if (const int error = check_key(key)) return raise(nullptr, error);
    if (!object->remove(key)) return raise(nullptr, fail(MPI_ERR_INFO_NOKEY, "there is no key %s", key));
    return MPI_SUCCESS;
}

int Info_toint(MPI_Info info) {
    Lock lock;
    return to_int(info, comm::from_handle(info));
}

MPI_Info Info_fromint(int info) {
    Lock lock;
    return from_int<MPI_Info>(info, comm::info_at, MPI_INFO_NULL);
}

}  // namespace starling::mpi
