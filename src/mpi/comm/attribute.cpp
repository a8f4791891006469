#include "mpi/comm/attribute.h"

#include <climits>

#include "base/error.h"
#include "base/state.h"
#include "comm/attribute.h"
#include "comm/comm.h"
#include "comm/error_codes.h"
#include "datatype/construct.h"
#include "datatype/datatype.h"
#include "mpi-ext.h"
#include "mpi/common/check.h"

namespace starling::mpi {

namespace {

using comm::AttributeHolder;
using comm::AttributeKind;
using comm::Keyval;

int bad_keyval(comm::Comm* comm, int keyval) {
    return raise(comm, fail(MPI_ERR_KEYVAL, "%d is not an attribute key of this kind of object", keyval));
}

int predefined_keyval(comm::Comm* comm) {
    return raise(comm, fail(MPI_ERR_KEYVAL, "predefined attributes can't be set or deleted"));
}

bool is_world_attribute(int keyval) { return keyval >= MPI_TAG_UB && keyval <= MPIX_FT; }

// Frees an attribute key; `kind` is the kind of object (communicator, datatype, window) whose attributes it names.
int free_key(AttributeKind kind, int* number) {
    Lock lock;
    if (!number) return null_argument(nullptr, "keyval");
    Keyval* keyval = comm::find_keyval(kind, *number);
    if (!keyval) return bad_keyval(nullptr, *number);
    // A key that was freed through another copy of its handle may still exist, because objects carry its attributes. Then only the handle
    // is reset.
    if (!keyval->freed) comm::free_keyval(keyval);
    *number = MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
}

// Returns the address of the int value of a predefined attribute; nullptr for other keys.
const int* predefined_attribute(int keyval) {
    STARLING_STATE static int tag_ub = INT_MAX, io = MPI_ANY_SOURCE, host = MPI_PROC_NULL, wtime_is_global = 1;
    STARLING_STATE static int appnum, last_used_code, universe_size, continues;
    const link::Process me = link::self();
    switch (keyval) {
        case MPI_TAG_UB:
            return &tag_ub;
        case MPI_IO:
            return &io;
        case MPI_HOST:
            return &host;
        case MPI_WTIME_IS_GLOBAL:
            return &wtime_is_global;
        case MPI_APPNUM:
            appnum = me.job->segment().cell(me.rank).appnum;
            return appnum >= 0 ? &appnum : nullptr;
        case MPI_LASTUSEDCODE:
            last_used_code = comm::last_used_code();
            return &last_used_code;
        case MPIX_FT:
            continues = me.job->segment().header().recovers != 0;
            return &continues;
        default:
            universe_size = static_cast<int>(me.job->segment().header().universe_size);
            return universe_size > 0 ? &universe_size : nullptr;
    }
}

int comm_set(MPI_Comm handle, int number, void* value) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (!comm) return bad_comm(handle);
    if (is_world_attribute(number)) return predefined_keyval(comm);
    Keyval* keyval = comm::find_keyval(AttributeKind::comm, number);
    if (!keyval) return bad_keyval(comm, number);
    const comm::ReferenceGuard kept(comm);
    const int error = comm->attributes.set(AttributeHolder(handle), keyval, value);
    return error ? raise(comm, error) : MPI_SUCCESS;
}

int comm_get(MPI_Comm handle, int number, void* value, int* flag) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (!comm) return bad_comm(handle);
    if (!value || !flag) return null_argument(comm, value ? "flag" : "attribute_val");
    auto* out = static_cast<void**>(value);
    if (is_world_attribute(number)) {
        const int* found = predefined_attribute(number);
        *flag = found != nullptr;
        if (found) *out = const_cast<int*>(found);
        return MPI_SUCCESS;
    }
    if (!comm::find_keyval(AttributeKind::comm, number)) return bad_keyval(comm, number);
    *flag = comm->attributes.get(number, out);
    return MPI_SUCCESS;
}

int comm_delete(MPI_Comm handle, int number) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (!comm) return bad_comm(handle);
    if (is_world_attribute(number)) return predefined_keyval(comm);
    if (!comm->attributes.get(number, nullptr)) return bad_keyval(comm, number);
    const comm::ReferenceGuard kept(comm);
    const int error = comm->attributes.remove(AttributeHolder(handle), number);
    return error ? raise(comm, error) : MPI_SUCCESS;
}

int bad_datatype(MPI_Datatype handle) { return phase == LibraryPhase::running ? bad_type(nullptr, handle) : not_running(); }

int make_key(AttributeKind kind, int* number, void* extra_state, Keyval*& keyval) {
    if (phase != LibraryPhase::running) return not_running();
    if (!number) return null_argument(nullptr, "keyval");
    keyval = comm::make_keyval(kind, extra_state);
    *number = keyval->number;
    return MPI_SUCCESS;
}

}  // namespace

int Comm_create_keyval(MPI_Comm_copy_attr_function* comm_copy_attr_fn, MPI_Comm_delete_attr_function* comm_delete_attr_fn,
                       int* comm_keyval, void* extra_state) {
    Lock lock;
    Keyval* keyval = nullptr;
    if (const int error = make_key(AttributeKind::comm, comm_keyval, extra_state, keyval)) return error;
    keyval->comm_copy = comm_copy_attr_fn;
    keyval->comm_delete = comm_delete_attr_fn;
    return MPI_SUCCESS;
}

int Comm_free_keyval(int* comm_keyval) { return free_key(AttributeKind::comm, comm_keyval); }

int Comm_set_attr(MPI_Comm comm, int comm_keyval, void* attribute_val) { return comm_set(comm, comm_keyval, attribute_val); }

int Comm_get_attr(MPI_Comm comm, int comm_keyval, void* attribute_val, int* flag) {
    return comm_get(comm, comm_keyval, attribute_val, flag);
}

int Comm_delete_attr(MPI_Comm comm, int comm_keyval) { return comm_delete(comm, comm_keyval); }

int Type_create_keyval(MPI_Type_copy_attr_function* type_copy_attr_fn, MPI_Type_delete_attr_function* type_delete_attr_fn,
                       int* type_keyval, void* extra_state) {
    Lock lock;
    Keyval* keyval = nullptr;
    if (const int error = make_key(AttributeKind::type, type_keyval, extra_state, keyval)) return error;
    keyval->type_copy = type_copy_attr_fn;
    keyval->type_delete = type_delete_attr_fn;
    return MPI_SUCCESS;
}

int Type_free_keyval(int* type_keyval) { return free_key(AttributeKind::type, type_keyval); }

int Type_set_attr(MPI_Datatype datatype, int type_keyval, void* attribute_val) {
    Lock lock;
    datatype::Datatype* type = datatype::from_handle(datatype);
    if (!type || phase != LibraryPhase::running) return bad_datatype(datatype);
    Keyval* keyval = comm::find_keyval(AttributeKind::type, type_keyval);
    if (!keyval) return bad_keyval(nullptr, type_keyval);
    if (!type->attributes) type->attributes = new comm::AttributeSet;
    const auto kept = datatype::TypeRef::to(*type);
    const int error = type->attributes->set(AttributeHolder(datatype), keyval, attribute_val);
    return error ? raise(nullptr, error) : MPI_SUCCESS;
}

int Type_get_attr(MPI_Datatype datatype, int type_keyval, void* attribute_val, int* flag) {
    Lock lock;
    const datatype::Datatype* type = datatype::from_handle(datatype);
    if (!type || phase != LibraryPhase::running) return bad_datatype(datatype);
    if (!attribute_val || !flag) return null_argument(nullptr, attribute_val ? "flag" : "attribute_val");
    if (!comm::find_keyval(AttributeKind::type, type_keyval)) return bad_keyval(nullptr, type_keyval);
    *flag = type->attributes && type->attributes->get(type_keyval, static_cast<void**>(attribute_val));
    return MPI_SUCCESS;
}

int Type_delete_attr(MPI_Datatype datatype, int type_keyval) {
    Lock lock;
    datatype::Datatype* type = datatype::from_handle(datatype);
    if (!type || phase != LibraryPhase::running) return bad_datatype(datatype);
    if (!type->attributes || !type->attributes->get(type_keyval, nullptr)) return bad_keyval(nullptr, type_keyval);
    const auto kept = datatype::TypeRef::to(*type);
    const int error = type->attributes->remove(AttributeHolder(datatype), type_keyval);
    return error ? raise(nullptr, error) : MPI_SUCCESS;
}

int Win_create_keyval(MPI_Win_copy_attr_function* win_copy_attr_fn, MPI_Win_delete_attr_function* win_delete_attr_fn,
                      int* win_keyval, void* extra_state) {
    Lock lock;
    Keyval* keyval = nullptr;
    if (const int error = make_key(AttributeKind::win, win_keyval, extra_state, keyval)) return error;
    keyval->win_copy = win_copy_attr_fn;
    keyval->win_delete = win_delete_attr_fn;
    return MPI_SUCCESS;
}

int Win_free_keyval(int* win_keyval) { return free_key(AttributeKind::win, win_keyval); }

int Keyval_create(MPI_Copy_function* copy_fn, MPI_Delete_function* delete_fn, int* keyval, void* extra_state) {
    Lock lock;
    Keyval* made = nullptr;
    if (const int error = make_key(AttributeKind::comm, keyval, extra_state, made)) return error;
    made->comm_copy = copy_fn;
    made->comm_delete = delete_fn;
    return MPI_SUCCESS;
}

int Keyval_free(int* keyval) { return free_key(AttributeKind::comm, keyval); }

int Attr_put(MPI_Comm comm, int keyval, void* attribute_val) { return comm_set(comm, keyval, attribute_val); }

int Attr_get(MPI_Comm comm, int keyval, void* attribute_val, int* flag) { return comm_get(comm, keyval, attribute_val, flag); }

int Attr_delete(MPI_Comm comm, int keyval) { return comm_delete(comm, keyval); }

}  // namespace starling::mpi
