#include "mpi/datatypes/datatype.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/error.h"
#include "datatype/construct.h"
#include "message/status.h"
#include "mpi/common/check.h"

namespace starling::mpi {

using datatype::Datatype;

namespace {

int bad_type_handle(MPI_Datatype handle) {
    if (phase != LibraryPhase::running) return not_running();
    const char* what =
        handle == MPI_DATATYPE_NULL ? "the datatype is MPI_DATATYPE_NULL" : "the datatype is not valid; was it freed?";
    return raise(nullptr, fail(MPI_ERR_TYPE, "%s", what));
}

int two_numbers(MPI_Datatype handle, int64_t Datatype::*first, int64_t Datatype::*second, MPI_Count* first_out,
                MPI_Count* second_out) {
    const Datatype* type = datatype::from_handle(handle);
    if (!type || phase != LibraryPhase::running) return bad_type_handle(handle);
    if (!first_out || !second_out) return null_argument(nullptr, first_out ? "extent" : "lb");
    *first_out = type->*first;
    *second_out = type->*second;
    return MPI_SUCCESS;
}

int set_elements(MPI_Status* status, MPI_Datatype datatype, MPI_Count count) {
    const Datatype* type = datatype::from_handle(datatype);
    if (!type || phase != LibraryPhase::running) return bad_type_handle(datatype);
    if (!status) return null_argument(nullptr, "status");
    if (count < 0) return bad_count(nullptr, count);
    message::set_status_bytes(*status, datatype::bytes_of_elements(count, *type));
    return MPI_SUCCESS;
}

int elements(const MPI_Status* status, MPI_Datatype datatype, CountOut count) {
    const Datatype* type = datatype::from_handle(datatype);
    if (!type || phase != LibraryPhase::running) return bad_type_handle(datatype);
    if (!status || !count) return null_argument(nullptr, status ? "count" : "status");
    count.set(datatype::get_elements(message::status_bytes(*status), *type));
    return MPI_SUCCESS;
}

}  // namespace

int Type_commit(MPI_Datatype* datatype) {
    Lock lock;
    if (!datatype) return null_argument(nullptr, "datatype");
    Datatype* type = datatype::from_handle(*datatype);
    if (!type || phase != LibraryPhase::running) return bad_type_handle(*datatype);
    if (!type->committed) datatype::commit(*type);
    return MPI_SUCCESS;
}

int Type_free(MPI_Datatype* datatype) {
    Lock lock;
    if (!datatype) return null_argument(nullptr, "datatype");
    Datatype* type = datatype::from_handle(*datatype);
    if (!type || phase != LibraryPhase::running) return bad_type_handle(*datatype);
    if (type->permanent) return raise(nullptr, fail(MPI_ERR_TYPE, "a predefined datatype can't be freed"));
    if (type->handles == 0) return raise(nullptr, fail(MPI_ERR_TYPE, "the datatype has been freed already"));
    const auto kept = datatype::TypeRef::to(*type);
    if (type->handles == 1 && type->attributes) {
        if (const int error = type->attributes->clear(comm::AttributeHolder(*datatype))) return raise(nullptr, error);
        delete type->attributes;
        type->attributes = nullptr;
    }
    --type->handles;
    datatype::release(*type);
    *datatype = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

int Type_size(MPI_Datatype datatype, CountOut size) {
    const Datatype* type = datatype::from_handle(datatype);
    if (!type || phase != LibraryPhase::running) return bad_type_handle(datatype);
    if (!size) return null_argument(nullptr, "size");
    size.set(type->size);
    return MPI_SUCCESS;
}

int Type_size_x(MPI_Datatype datatype, MPI_Count* size) {
    const Datatype* type = datatype::from_handle(datatype);
    if (!type || phase != LibraryPhase::running) return bad_type_handle(datatype);
    if (!size) return null_argument(nullptr, "size");
    *size = type->size;
    return MPI_SUCCESS;
}

int Type_get_extent(MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent) {
    return two_numbers(datatype, &Datatype::lb, &Datatype::extent, lb, extent);
}
int Type_get_extent_x(MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent) {
    return two_numbers(datatype, &Datatype::lb, &Datatype::extent, lb, extent);
}
int Type_get_true_extent(MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
    return two_numbers(datatype, &Datatype::true_lb, &Datatype::true_extent, true_lb, true_extent);
}
int Type_get_true_extent_x(MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
    return two_numbers(datatype, &Datatype::true_lb, &Datatype::true_extent, true_lb, true_extent);
}

int Type_set_name(MPI_Datatype datatype, const char* type_name) {
    Lock lock;
    Datatype* type = datatype::from_handle(datatype);
    if (!type || phase != LibraryPhase::running) return bad_type_handle(datatype);
    if (!type_name) return null_argument(nullptr, "type_name");
    const size_t length = strnlen(type_name, MPI_MAX_OBJECT_NAME - 1);
    char* name = static_cast<char*>(std::malloc(length + 1));
    if (!name) throw std::bad_alloc();
    std::memcpy(name, type_name, length);
    name[length] = '\0';
    std::free(type->name);
    type->name = name;
    return MPI_SUCCESS;
}

int Type_get_name(MPI_Datatype datatype, char* type_name, int* resultlen) {
    Lock lock;
    const Datatype* type = datatype::from_handle(datatype);
    const bool null = datatype == MPI_DATATYPE_NULL;  // MPI_DATATYPE_NULL has a name, though it is not a type
    if ((!type && !null) || phase != LibraryPhase::running) return bad_type_handle(datatype);
    if (!type_name || !resultlen) return null_argument(nullptr, type_name ? "resultlen" : "type_name");
    const char* name = null ? "MPI_DATATYPE_NULL" : type->name ? type->name : datatype::default_name(*type);
    const size_t length = std::min<size_t>(std::strlen(name), MPI_MAX_OBJECT_NAME - 1);
    std::memcpy(type_name, name, length);
    type_name[length] = '\0';
    *resultlen = static_cast<int>(length);
    return MPI_SUCCESS;
}

int Type_toint(MPI_Datatype datatype) { return datatype::to_int(datatype::from_handle(datatype)); }

MPI_Datatype Type_fromint(int datatype) { return datatype::to_handle(datatype::from_int(datatype)); }

int Get_elements(const MPI_Status* status, MPI_Datatype datatype, CountOut count) { return elements(status, datatype, count); }
int Get_elements_x(const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count) {
    return elements(status, datatype, count);
}

int Status_set_elements(MPI_Status* status, MPI_Datatype datatype, MPI_Count count) {
    return set_elements(status, datatype, count);
}
int Status_set_elements_x(MPI_Status* status, MPI_Datatype datatype, MPI_Count count) {
    return set_elements(status, datatype, count);
}

int Get_address(const void* location, MPI_Aint* address) {
    if (!address) return null_argument(nullptr, "address");
    *address = reinterpret_cast<MPI_Aint>(location);
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
