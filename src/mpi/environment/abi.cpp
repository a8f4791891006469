#include "mpi/environment/abi.h"

#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/state.h"
#include "comm/info.h"
#include "mpi/common/check.h"

namespace starling::mpi {

namespace {

constexpr char kLibraryVersion[] = "Starling " STARLING_VERSION " (MPI 5.0, standard ABI 1.0)";

// Properties of the Fortran compiler as the application has set them; nullptr until it does. They and the booleans below have a separate
// mutex, because several threads may call their functions at any time, even before MPI_Init.
STARLING_STATE Mutex fortran_mutex;
STARLING_STATE comm::Info* fortran_info = nullptr;

// The values that the application has set for .TRUE. and .FALSE. of LOGICAL(1), (2), (4), (8) and (16).
struct Booleans {
    bool set;
    unsigned char yes[16], no[16];
};
STARLING_STATE Booleans booleans[5] = {};

Booleans* booleans_of(int size) {
    if (size < 1 || size > 16 || (size & (size - 1)) != 0) return nullptr;
    return &booleans[__builtin_ctz(static_cast<unsigned>(size))];
}

// The sizes that the datatypes MPI_LOGICAL, MPI_INTEGER, ... have in this library.
struct FortranSize {
    std::string_view key, bytes;
};
constexpr FortranSize kFortranSizes[] = {
    {"mpi_logical_size", "4"}, {"mpi_integer_size", "4"}, {"mpi_real_size", "4"}, {"mpi_double_precision_size", "8"}};

int check_fortran(const comm::Info& given) {
    for (const auto& [key, bytes] : kFortranSizes) {
        const std::string* value = given.find(key);
        if (value && *value != bytes)
            return fail(MPI_ERR_ABI, "the info value %s=%s does not fit this library, whose datatypes have %s bytes",
                        key.data(), value->c_str(), bytes.data());
    }
    for (const comm::Info::InfoEntry& entry : given.entries) {
        if (entry.key.ends_with("_supported") && entry.value != "true" && entry.value != "false")
            return fail(MPI_ERR_INFO_VALUE, "the info value of %s is neither true nor false", entry.key.c_str());
        const std::string* before = fortran_info ? fortran_info->find(entry.key) : nullptr;
        if (before && *before != entry.value)
            return fail(MPI_ERR_ABI, "the Fortran property %s was already set to %s", entry.key.c_str(), before->c_str());
    }
    return MPI_SUCCESS;
}

int bad_logical_size(int size) {
    return fail(MPI_ERR_ARG, "%d is not a valid size of a LOGICAL: use 1, 2, 4, 8 or 16 bytes", size);
}

int set_fortran(const comm::Info& given) {
    const MutexGuard guard(fortran_mutex);
    if (const int error = check_fortran(given)) return error;
    if (!fortran_info) fortran_info = comm::make_info();
    for (const comm::Info::InfoEntry& entry : given.entries) fortran_info->set(entry.key, entry.value);
    return MPI_SUCCESS;
}

int set_booleans(Booleans& values, int logical_size, const void* yes, const void* no) {
    const auto size = static_cast<size_t>(logical_size);
    const MutexGuard guard(fortran_mutex);
    if (values.set && (std::memcmp(values.yes, yes, size) != 0 || std::memcmp(values.no, no, size) != 0))
        return fail(MPI_ERR_ABI, "other values of true and false have already been set for LOGICAL(%d)", logical_size);
    std::memcpy(values.yes, yes, size);
    std::memcpy(values.no, no, size);
    values.set = true;
    return MPI_SUCCESS;
}

}  // namespace

int Get_version(int* version, int* subversion) {
    if (!version) return null_argument(nullptr, "version");
    if (!subversion) return null_argument(nullptr, "subversion");
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return MPI_SUCCESS;
}

int Get_library_version(char* version, int* resultlen) {
    static_assert(sizeof kLibraryVersion <= MPI_MAX_LIBRARY_VERSION_STRING);
    if (!version) return null_argument(nullptr, "version");
    if (!resultlen) return null_argument(nullptr, "resultlen");
    std::memcpy(version, kLibraryVersion, sizeof kLibraryVersion);
    *resultlen = sizeof kLibraryVersion - 1;
    return MPI_SUCCESS;
}

int Abi_get_version(int* abi_major, int* abi_minor) {
    if (!abi_major) return null_argument(nullptr, "abi_major");
    if (!abi_minor) return null_argument(nullptr, "abi_minor");
    *abi_major = MPI_ABI_VERSION;
    *abi_minor = MPI_ABI_SUBVERSION;
    return MPI_SUCCESS;
}

int Abi_get_info(MPI_Info* info) {
    if (!info) return null_argument(nullptr, "info");
    comm::Info* created = comm::make_info();
    created->set("mpi_aint_size", std::to_string(sizeof(MPI_Aint)));
    created->set("mpi_count_size", std::to_string(sizeof(MPI_Count)));
    created->set("mpi_offset_size", std::to_string(sizeof(MPI_Offset)));
    *info = comm::to_handle(created);
    return MPI_SUCCESS;
}

int Abi_get_fortran_info(MPI_Info* info) {
    if (!info) return null_argument(nullptr, "info");
    *info = MPI_INFO_NULL;
    const MutexGuard guard(fortran_mutex);
    if (!fortran_info) return MPI_SUCCESS;
    comm::Info* created = comm::make_info();
    created->entries = fortran_info->entries;
    *info = comm::to_handle(created);
    return MPI_SUCCESS;
}

int Abi_set_fortran_info(MPI_Info info) {
    comm::Info given;
    if (info == MPI_INFO_NULL || !comm::read_info(info, given)) return bad_handle(nullptr, MPI_ERR_INFO, "info object");
    const int error = set_fortran(given);
    return error ? raise(nullptr, error) : MPI_SUCCESS;
}

int Abi_get_fortran_booleans(int logical_size, void* logical_true, void* logical_false, int* is_set) {
    if (!is_set) return null_argument(nullptr, "is_set");
    const Booleans* values = booleans_of(logical_size);
    if (!values) return raise(nullptr, bad_logical_size(logical_size));
    Booleans now;
    {
        const MutexGuard guard(fortran_mutex);
        now = *values;
    }
    *is_set = now.set;
    if (!now.set) return MPI_SUCCESS;
    if (!logical_true) return null_argument(nullptr, "logical_true");
    if (!logical_false) return null_argument(nullptr, "logical_false");
    std::memcpy(logical_true, now.yes, static_cast<size_t>(logical_size));
    std::memcpy(logical_false, now.no, static_cast<size_t>(logical_size));
    return MPI_SUCCESS;
}

int Abi_set_fortran_booleans(int logical_size, void* logical_true, void* logical_false) {
    Booleans* values = booleans_of(logical_size);
    if (!values) return raise(nullptr, bad_logical_size(logical_size));
    if (!logical_true) return null_argument(nullptr, "logical_true");
    if (!logical_false) return null_argument(nullptr, "logical_false");
    const int error = set_booleans(*values, logical_size, logical_true, logical_false);
    return error ? raise(nullptr, error) : MPI_SUCCESS;
}

}  // namespace starling::mpi
