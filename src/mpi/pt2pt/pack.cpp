#include "mpi/pt2pt/pack.h"

#include <cstring>

#include "base/error.h"
#include "datatype/external32.h"
#include "mpi/common/check.h"

namespace starling::mpi {

using comm::Comm;
using datatype::Datatype;

namespace {

/// The checked arguments of one call. `comm` is null in MPI_Pack_external and similar calls, which have no communicator.
struct PackCall {
    Comm* comm = nullptr;
    const Datatype* type = nullptr;
};

// The following checks report wrong arguments; they return MPI_SUCCESS or the code for the caller.
int check_comm(PackCall& call, MPI_Comm comm) {
    call.comm = comm::from_handle(comm);
    return call.comm ? MPI_SUCCESS : bad_comm(comm);
}

int check_elements(PackCall& call, MPI_Count count, MPI_Datatype datatype) {
    if (phase != LibraryPhase::running) return not_running();
    call.type = datatype::from_handle(datatype);
    if (!call.type || !call.type->committed) return bad_type(call.comm, datatype);
    if (count < 0 || !datatype::packed_size_fits(*call.type, count)) return bad_count(call.comm, count);
    return MPI_SUCCESS;
}

// A null address is MPI_BOTTOM, which is valid only with types that have absolute displacements.
int check_buffer(const PackCall& call, const void* buffer, MPI_Count count) {
    const bool missing = !buffer && count > 0 && call.type->predefined;
    return missing ? bad_buffer(call.comm) : MPI_SUCCESS;
}

int check_room(const PackCall& call, const void* packed, MPI_Count size, const MPI_Count* position, int64_t need) {
    if (!position) return null_argument(call.comm, "position");
    if (!packed && need > 0) return bad_buffer(call.comm);
    if (size < 0 || *position < 0 || *position > size)
        return raise(call.comm, fail(MPI_ERR_ARG, "position %lld is outside the buffer, which has %lld bytes",
                                     static_cast<long long>(*position), static_cast<long long>(size)));
    if (need > size - *position)
        return raise(call.comm,
                     fail(MPI_ERR_TRUNCATE, "%lld bytes from position %lld on do not fit in the buffer of %lld bytes",
                          static_cast<long long>(need), static_cast<long long>(*position), static_cast<long long>(size)));
    return MPI_SUCCESS;
}

int check_representation(const char* datarep) {
    if (!datarep) return null_argument(nullptr, "datarep");
    if (std::strcmp(datarep, "external32") == 0) return MPI_SUCCESS;
    return raise(nullptr,
                 fail(MPI_ERR_ARG, "the data representation \"%.40s\" is not valid; the only one is \"external32\"", datarep));
}

// Computes the size in external32 form; raises MPI_ERR_COUNT if it overflows.
int check_external_size(const PackCall& call, MPI_Count count, int64_t& bytes) {
    const int64_t each = datatype::external_size(*call.type);
    if (each < 0 || __builtin_mul_overflow(each, count, &bytes)) return bad_count(nullptr, count);
    return MPI_SUCCESS;
}

int pack(const void* inbuf, MPI_Count incount, MPI_Datatype datatype, void* outbuf, MPI_Count outsize, MPI_Count* position,
         MPI_Comm comm) {
    Lock lock;
    PackCall call;
    int error = check_comm(call, comm);
    if (!error) error = check_elements(call, incount, datatype);
    if (!error) error = check_buffer(call, inbuf, incount);
    if (error) return error;
    const uint64_t bytes = datatype::packed_size(*call.type, incount);
    if ((error = check_room(call, outbuf, outsize, position, static_cast<int64_t>(bytes)))) return error;
    datatype::pack(*call.type, incount, inbuf, 0, static_cast<std::byte*>(outbuf) + *position, bytes);
    *position += static_cast<int64_t>(bytes);
    return MPI_SUCCESS;
}

int unpack(const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf, MPI_Count outcount, MPI_Datatype datatype,
           MPI_Comm comm) {
    Lock lock;
    PackCall call;
    int error = check_comm(call, comm);
    if (!error) error = check_elements(call, outcount, datatype);
    if (!error) error = check_buffer(call, outbuf, outcount);
    if (error) return error;
    const uint64_t bytes = datatype::packed_size(*call.type, outcount);
    if ((error = check_room(call, inbuf, insize, position, static_cast<int64_t>(bytes)))) return error;
    datatype::unpack(*call.type, outcount, outbuf, 0, static_cast<const std::byte*>(inbuf) + *position, bytes);
    *position += static_cast<int64_t>(bytes);
    return MPI_SUCCESS;
}

}  // namespace

// The cast of `at` to int is safe: the position never exceeds outsize.
int Pack(const void* inbuf, int incount, MPI_Datatype datatype, void* outbuf, int outsize, int* position, MPI_Comm comm) {
    MPI_Count at = position ? *position : 0;
    const int error = pack(inbuf, incount, datatype, outbuf, outsize, position ? &at : nullptr, comm);
    if (!error) *position = static_cast<int>(at);
    return error;
}

int Pack_c(const void* inbuf, MPI_Count incount, MPI_Datatype datatype, void* outbuf, MPI_Count outsize, MPI_Count* position,
           MPI_Comm comm) {
    return pack(inbuf, incount, datatype, outbuf, outsize, position, comm);
}

int Unpack(const void* inbuf, int insize, int* position, void* outbuf, int outcount, MPI_Datatype datatype, MPI_Comm comm) {
    MPI_Count at = position ? *position : 0;
    const int error = unpack(inbuf, insize, position ? &at : nullptr, outbuf, outcount, datatype, comm);
    if (!error) *position = static_cast<int>(at);
    return error;
}

int Unpack_c(const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf, MPI_Count outcount, MPI_Datatype datatype,
             MPI_Comm comm) {
    return unpack(inbuf, insize, position, outbuf, outcount, datatype, comm);
}

int Pack_size(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, CountOut size) {
    PackCall call;
    int error = check_comm(call, comm);
    if (!error) error = check_elements(call, incount, datatype);
    if (error) return error;
    if (!size) return null_argument(call.comm, "size");
    size.set(static_cast<MPI_Count>(datatype::packed_size(*call.type, incount)));
    return MPI_SUCCESS;
}

int Pack_external(const char* datarep, const void* inbuf, MPI_Count incount, MPI_Datatype datatype, void* outbuf,
                  MPI_Count outsize, MPI_Count* position) {
    PackCall call;
    int64_t bytes = 0;
    int error = check_elements(call, incount, datatype);
    if (!error) error = check_representation(datarep);
    if (!error) error = check_buffer(call, inbuf, incount);
    if (!error) error = check_external_size(call, incount, bytes);
    if (!error) error = check_room(call, outbuf, outsize, position, bytes);
    if (error) return error;
    datatype::pack_external(*call.type, incount, inbuf, static_cast<std::byte*>(outbuf) + *position);
    *position += bytes;
    return MPI_SUCCESS;
}

int Unpack_external(const char* datarep, const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf,
                    MPI_Count outcount, MPI_Datatype datatype) {
    PackCall call;
    int64_t bytes = 0;
    int error = check_elements(call, outcount, datatype);
    if (!error) error = check_representation(datarep);
    if (!error) error = check_buffer(call, outbuf, outcount);
    if (!error) error = check_external_size(call, outcount, bytes);
    if (!error) error = check_room(call, inbuf, insize, position, bytes);
    if (error) return error;
    datatype::unpack_external(*call.type, outcount, outbuf, static_cast<const std::byte*>(inbuf) + *position);
    *position += bytes;
    return MPI_SUCCESS;
}

int Pack_external_size(const char* datarep, MPI_Count incount, MPI_Datatype datatype, MPI_Count* size) {
    PackCall call;
    int64_t bytes = 0;
    int error = check_elements(call, incount, datatype);
    if (!error) error = check_representation(datarep);
    if (!error && !size) error = null_argument(nullptr, "size");
    if (!error) error = check_external_size(call, incount, bytes);
    if (error) return error;
    *size = bytes;
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
