#include "comm/error_codes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "comm/error_sentences.h"
#include "mpi-ext.h"

namespace starling::comm {

namespace {

struct Standard {
    int number;
    const char* name;
    const char* text;
};

constexpr Standard kStandard[] = {
    {MPI_SUCCESS, "MPI_SUCCESS", "No error"},
    {MPI_ERR_BUFFER, "MPI_ERR_BUFFER", "Invalid buffer pointer"},
    {MPI_ERR_COUNT, "MPI_ERR_COUNT", "Invalid count argument"},
    {MPI_ERR_TYPE, "MPI_ERR_TYPE", "Invalid datatype argument"},
    {MPI_ERR_TAG, "MPI_ERR_TAG", "Invalid tag argument"},
    {MPI_ERR_COMM, "MPI_ERR_COMM", "Invalid communicator"},
    {MPI_ERR_RANK, "MPI_ERR_RANK", "Invalid rank"},
    {MPI_ERR_REQUEST, "MPI_ERR_REQUEST", "Invalid request"},
    {MPI_ERR_ROOT, "MPI_ERR_ROOT", "Invalid root"},
    {MPI_ERR_GROUP, "MPI_ERR_GROUP", "Invalid group"},
    {MPI_ERR_OP, "MPI_ERR_OP", "Invalid reduction operation"},
    {MPI_ERR_TOPOLOGY, "MPI_ERR_TOPOLOGY", "Invalid topology"},
    {MPI_ERR_DIMS, "MPI_ERR_DIMS", "Invalid dimension argument"},
    {MPI_ERR_ARG, "MPI_ERR_ARG", "Invalid argument"},
    {MPI_ERR_UNKNOWN, "MPI_ERR_UNKNOWN", "Unknown error"},
    {MPI_ERR_TRUNCATE, "MPI_ERR_TRUNCATE", "Message longer than the receive buffer"},
    {MPI_ERR_OTHER, "MPI_ERR_OTHER", "Other error"},
    {MPI_ERR_INTERN, "MPI_ERR_INTERN", "Internal error of the MPI library"},
    {MPI_ERR_PENDING, "MPI_ERR_PENDING", "Operation neither failed nor completed"},
    {MPI_ERR_IN_STATUS, "MPI_ERR_IN_STATUS", "Error code is in the status"},
    {MPI_ERR_ACCESS, "MPI_ERR_ACCESS", "Permission denied"},
    {MPI_ERR_AMODE, "MPI_ERR_AMODE", "Invalid access mode of a file"},
    {MPI_ERR_ASSERT, "MPI_ERR_ASSERT", "Invalid assertion argument"},
    {MPI_ERR_BAD_FILE, "MPI_ERR_BAD_FILE", "Invalid file name"},
    {MPI_ERR_BASE, "MPI_ERR_BASE", "Invalid base address"},
    {MPI_ERR_CONVERSION, "MPI_ERR_CONVERSION", "Error in a data conversion function"},
    {MPI_ERR_DISP, "MPI_ERR_DISP", "Invalid displacement argument"},
    {MPI_ERR_DUP_DATAREP, "MPI_ERR_DUP_DATAREP", "Data representation already defined"},
    {MPI_ERR_FILE_EXISTS, "MPI_ERR_FILE_EXISTS", "File exists"},
    {MPI_ERR_FILE_IN_USE, "MPI_ERR_FILE_IN_USE", "File is in use"},
    {MPI_ERR_FILE, "MPI_ERR_FILE", "Invalid file handle"},
    {MPI_ERR_INFO_KEY, "MPI_ERR_INFO_KEY", "Invalid info key"},
    {MPI_ERR_INFO_NOKEY, "MPI_ERR_INFO_NOKEY", "Key is not in the info object"},
    {MPI_ERR_INFO_VALUE, "MPI_ERR_INFO_VALUE", "Invalid info value"},
    {MPI_ERR_INFO, "MPI_ERR_INFO", "Invalid info object"},
    {MPI_ERR_IO, "MPI_ERR_IO", "Input/output error"},
    {MPI_ERR_KEYVAL, "MPI_ERR_KEYVAL", "Invalid attribute key"},
    {MPI_ERR_LOCKTYPE, "MPI_ERR_LOCKTYPE", "Invalid lock type"},
    {MPI_ERR_NAME, "MPI_ERR_NAME", "Service name is not published"},
    {MPI_ERR_NO_MEM, "MPI_ERR_NO_MEM", "Out of memory"},
    {MPI_ERR_NOT_SAME, "MPI_ERR_NOT_SAME", "Collective argument differs between processes"},
    {MPI_ERR_NO_SPACE, "MPI_ERR_NO_SPACE", "No space left on device"},
    {MPI_ERR_NO_SUCH_FILE, "MPI_ERR_NO_SUCH_FILE", "No such file"},
    {MPI_ERR_PORT, "MPI_ERR_PORT", "Invalid or unreachable port"},
    {MPI_ERR_QUOTA, "MPI_ERR_QUOTA", "Quota exceeded"},
    {MPI_ERR_READ_ONLY, "MPI_ERR_READ_ONLY", "File or file system is read-only"},
    {MPI_ERR_RMA_ATTACH, "MPI_ERR_RMA_ATTACH", "Memory cannot be attached to the window"},
    {MPI_ERR_RMA_CONFLICT, "MPI_ERR_RMA_CONFLICT", "Conflicting accesses to a window"},
    {MPI_ERR_RMA_RANGE, "MPI_ERR_RMA_RANGE", "Target memory is not part of the window"},
    {MPI_ERR_RMA_SHARED, "MPI_ERR_RMA_SHARED", "Memory cannot be shared"},
    {MPI_ERR_RMA_SYNC, "MPI_ERR_RMA_SYNC", "Wrong synchronization of one-sided calls"},
    {MPI_ERR_SERVICE, "MPI_ERR_SERVICE", "Invalid service name"},
    {MPI_ERR_SIZE, "MPI_ERR_SIZE", "Invalid size argument"},
    {MPI_ERR_SPAWN, "MPI_ERR_SPAWN", "Processes cannot be spawned"},
    {MPI_ERR_UNSUPPORTED_DATAREP, "MPI_ERR_UNSUPPORTED_DATAREP", "Data representation is not supported"},
    {MPI_ERR_UNSUPPORTED_OPERATION, "MPI_ERR_UNSUPPORTED_OPERATION", "Operation is not supported"},
    {MPI_ERR_WIN, "MPI_ERR_WIN", "Invalid window"},
    {MPI_ERR_RMA_FLAVOR, "MPI_ERR_RMA_FLAVOR", "Wrong flavor of window"},
    {MPI_ERR_PROC_ABORTED, "MPI_ERR_PROC_ABORTED", "A peer process has aborted"},
    {MPI_ERR_VALUE_TOO_LARGE, "MPI_ERR_VALUE_TOO_LARGE", "Value is too large to be stored"},
    {MPI_ERR_SESSION, "MPI_ERR_SESSION", "Invalid session"},
    {MPI_ERR_ERRHANDLER, "MPI_ERR_ERRHANDLER", "Invalid error handler"},
    {MPI_ERR_ABI, "MPI_ERR_ABI", "Conflict with the application binary interface"},
    {MPIX_ERR_PROC_FAILED, "MPIX_ERR_PROC_FAILED", "A process that the operation needs has failed"},
    {MPIX_ERR_PROC_FAILED_PENDING, "MPIX_ERR_PROC_FAILED_PENDING", "A process that might have sent the message has failed"},
    {MPIX_ERR_REVOKED, "MPIX_ERR_REVOKED", "The communicator is revoked"},
    {MPI_ERR_LASTCODE, "MPI_ERR_LASTCODE", "Last error code of the standard"},
};

const Standard* find_standard(int code) {
    for (const Standard& entry : kStandard)
        if (entry.number == code) return &entry;
    return nullptr;
}

// A class or code that the application added; for a class, `of_class` is the class itself.
struct Added {
    int number;
    int of_class;
    std::string text;
};

// Guards the added codes, because programs may add and query codes at any time, in several threads.
STARLING_STATE Mutex added_mutex;

STARLING_STATE NoDestroy<std::vector<Added>> added_storage;
constinit auto& added = added_storage.value;

// Returns the added class or code; null if there is none. Callers of this function and of those below hold the mutex.
Added* find_added(int code) {
    for (Added& entry : added)
        if (entry.number == code) return &entry;
    return nullptr;
}

int not_added(int code) { return fail(MPI_ERR_ARG, "%d is not an error class or code that this program added", code); }

int remove(const Added& entry) {
    const int number = entry.number;
    if (!entry.text.empty())
        return fail(MPI_ERR_ARG,
                    "error code %d still has a string; remove the string first "
                    "(MPI_Remove_error_string)",
                    number);
    std::erase_if(added, [number](const Added& other) { return other.number == number; });
    return MPI_SUCCESS;
}

int last_number() {
    int last = MPI_ERR_LASTCODE;
    for (const Added& entry : added) last = std::max(last, entry.number);
    return last;
}

}  // namespace

const char* class_name(int error_class) {
    const Standard* entry = find_standard(error_class);
    return entry ? entry->name : "MPI_ERR_UNKNOWN";
}

bool is_error_code(int code) {
    if (find_standard(code) || has_kept_sentence(code)) return true;
    const MutexGuard guard(added_mutex);
    return find_added(code) != nullptr;
}

int class_of(int code) {
    if (find_standard(code)) return code;
    if (has_kept_sentence(code)) return class_of_sentence(code);
    const MutexGuard guard(added_mutex);
    const Added* entry = find_added(code);
    return entry ? entry->of_class : MPI_ERR_UNKNOWN;
}

bool is_process_failure(int error_class) {
    return error_class == MPI_ERR_PROC_ABORTED || error_class == MPIX_ERR_PROC_FAILED ||
           error_class == MPIX_ERR_PROC_FAILED_PENDING || error_class == MPIX_ERR_REVOKED;
}

std::string text_of(int code) {
    if (const auto call = failed_call(code)) return call->sentence;
    if (has_kept_sentence(code)) code = class_of_sentence(code);
    if (const Standard* entry = find_standard(code)) return entry->text;
    const MutexGuard guard(added_mutex);
    if (const Added* entry = find_added(code)) return entry->text;
    return "Unknown error code";
}

int last_used_code() {
    const MutexGuard guard(added_mutex);
    return last_number();
}

int without_text(int error) {
    clear_failure();
    return error;
}

int add_class() {
    const MutexGuard guard(added_mutex);
    const int number = last_number() + 1;
    added.push_back({number, number, {}});
    return number;
}

int add_code(int of_class) {
    const MutexGuard guard(added_mutex);
    const int number = last_number() + 1;
    added.push_back({number, of_class, {}});
    return number;
}

int set_text(int code, std::string_view text) {
    const MutexGuard guard(added_mutex);
    Added* entry = find_added(code);
    if (!entry) return not_added(code);
    entry->text = text;
    return MPI_SUCCESS;
}

int remove_text(int code) { return set_text(code, {}); }

int remove_class(int error_class) {
    const MutexGuard guard(added_mutex);
    const Added* entry = find_added(error_class);
    if (!entry || entry->of_class != error_class) return not_added(error_class);
    for (const Added& code : added)
        if (code.of_class == error_class && code.number != error_class)
            return fail(MPI_ERR_ARG,
                        "error class %d still has the error code %d; remove the code first (MPI_Remove_error_code)",
                        error_class, code.number);
    return remove(*entry);
}

int remove_code(int code) {
    const MutexGuard guard(added_mutex);
    const Added* entry = find_added(code);
    if (!entry || entry->of_class == code) return not_added(code);
    return remove(*entry);
}

}  // namespace starling::comm
