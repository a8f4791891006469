// Calls of the program's Fortran procedures by the library. The procedures receive integers for handles, and all arguments by reference.
// Those that return an error code write it to their last argument. Reduction operations and error handlers have no extra state argument
// that would distinguish Fortran procedures from C functions, so the addresses of the Fortran procedures are recorded.
#include <mutex>
#include <shared_mutex>
#include <unordered_set>

#include "compat/callers.h"
#include "compat/deferred_handles.h"
#include "fortran/arguments.h"
#include "fortran/attribute_storage.h"
#include "fortran/entry.h"

namespace starling::compat {

namespace {

/// The recorded addresses of Fortran procedures. An address is never removed, because operations outlive their handles.
class Procedures {
  public:
    template <class Function>
    Function* add(Function* procedure) {
        const std::unique_lock guard(mutex_);
        known_.insert(reinterpret_cast<void*>(procedure));
        return procedure;
    }
    template <class Function>
    bool has(Function* procedure) {
        const std::shared_lock guard(mutex_);
        return known_.count(reinterpret_cast<void*>(procedure)) != 0;
    }

  private:
    std::shared_mutex mutex_;
    std::unordered_set<void*> known_;
};
Procedures& procedures() {
    static auto* const all = new Procedures;
    return *all;
}

template <class Function, class Integer>
bool call_operation(Function* function, void* in, void* inout, Integer* length, MPI_Datatype type) {
    if (!procedures().has(function)) return false;
    int number = 0;
    put(type, &number);
    reinterpret_cast<void (*)(void*, void*, Integer*, int*)>(function)(in, inout, length, &number);
    return true;
}
template <class Function, class Handle>
bool call_handler(Function* function, Handle handle, int* code) {
    if (!procedures().has(function)) return false;
    int number = 0, error = error_out(*code);
    put(handle, &number);
    reinterpret_cast<void (*)(int*, int*)>(function)(&number, &error);
    return true;
}

/// The callbacks and the extra state of an attribute key. `Value` is the type of an attribute in the interface that made the key: int in
/// MPI 1, otherwise MPI_Aint.
template <class Value>
struct FortranAttribute {
    using Copy = void(int* handle, int* keyval, Value* extra_state, Value* value, Value* copied, int* flag, int* ierror);
    using Delete = void(int* handle, int* keyval, Value* value, Value* extra_state, int* ierror);
    Copy* copy;
    Delete* remove;
    Value extra_state;
};

template <class Handle, class Value>
int call_copy(Handle handle, int keyval, void* extra_state, void* value, void* out_value, int* flag) {
    auto& attribute = *static_cast<FortranAttribute<Value>*>(extra_state);
    int number = 0, error = MPI_SUCCESS, copies = 0, key = abi::keyval_out(keyval);
    put(handle, &number);
    Value given = static_cast<Value>(attribute_unboxed(value, false)), copied = 0;
    attribute.copy(&number, &key, &attribute.extra_state, &given, &copied, &copies, &error);
    *flag = copies != 0;
    if (copies) *static_cast<void**>(out_value) = attribute_boxed(copied);
    return error_in(error);
}
template <class Handle, class Value>
int call_delete(Handle handle, int keyval, void* value, void* extra_state) {
    auto& attribute = *static_cast<FortranAttribute<Value>*>(extra_state);
    int number = 0, error = MPI_SUCCESS, key = abi::keyval_out(keyval);
    put(handle, &number);
    Value given = static_cast<Value>(attribute_unboxed(value, false));
    attribute.remove(&number, &key, &given, &attribute.extra_state, &error);
    if (error == MPI_SUCCESS) attribute_unboxed(value, true);
    return error_in(error);
}

/// Creates an attribute key. The callbacks and their extra state are never freed, because attributes outlive their key.
template <class Handle, class Value, class Create>
int create_keyval(Create* create, typename FortranAttribute<Value>::Copy* copy,
                  typename FortranAttribute<Value>::Delete* remove, int* keyval, Value extra_state) {
    return create(call_copy<Handle, Value>, call_delete<Handle, Value>, keyval_changed(keyval),
                  new FortranAttribute<Value>{copy, remove, extra_state});
}

/// The callbacks of a generalized request. They get the address of the program's own extra state variable, not of a copy: all
/// implementations do so, and programs change the variable in the callback.
struct FortranGrequest {
    void (*query)(MPI_Aint* extra_state, int* status, int* ierror);
    void (*free)(MPI_Aint* extra_state, int* ierror);
    void (*cancel)(MPI_Aint* extra_state, int* complete, int* ierror);
    MPI_Aint* extra_state;
};
int call_query(void* extra_state, MPI_Status* status) {
    auto& request = *static_cast<FortranGrequest*>(extra_state);
    int error = MPI_SUCCESS;
    abi::Status theirs;
    abi::status_out(*status, theirs);
    request.query(request.extra_state, reinterpret_cast<int*>(&theirs), &error);
    *status = abi::status_in(theirs);
    return error_in(error);
}
int call_free(void* extra_state) {
    const std::unique_ptr<FortranGrequest> request(static_cast<FortranGrequest*>(extra_state));
    int error = MPI_SUCCESS;
    request->free(request->extra_state, &error);
    return error_in(error);
}
int call_cancel(void* extra_state, int complete) {
    auto& request = *static_cast<FortranGrequest*>(extra_state);
    int error = MPI_SUCCESS;
    request.cancel(request.extra_state, &complete, &error);
    return error_in(error);
}

/// The procedures of a data representation. Never freed, because representations last until the process ends.
template <class Count>
using FortranConversion = void(void* userbuf, int* datatype, Count* count, void* filebuf, MPI_Offset* position,
                               MPI_Aint* extra_state, int* ierror);
using FortranExtent = void(int* datatype, MPI_Aint* extent, MPI_Aint* extra_state, int* ierror);
template <class Count>
struct FortranRepresentation {
    FortranConversion<Count>* read;
    FortranConversion<Count>* write;
    FortranExtent* extent;
    MPI_Aint extra_state;
};

template <class Count, auto kProcedure>
int call_conversion(void* userbuf, MPI_Datatype type, Count count, void* filebuf, MPI_Offset position, void* extra_state) {
    auto& representation = *static_cast<FortranRepresentation<Count>*>(extra_state);
    int number = 0, error = MPI_SUCCESS;
    put(type, &number);
    (representation.*kProcedure)(userbuf, &number, &count, filebuf, &position, &representation.extra_state, &error);
    return error_in(error);
}
template <class Count>
int call_extent(MPI_Datatype type, MPI_Aint* extent, void* extra_state) {
    auto& representation = *static_cast<FortranRepresentation<Count>*>(extra_state);
    int number = 0, error = MPI_SUCCESS;
    put(type, &number);
    representation.extent(&number, extent, &representation.extra_state, &error);
    return error_in(error);
}

/// Registers a data representation; null procedures do not convert.
template <class Count, class Register>
int register_datarep(Register* add, const char* name, const FortranRepresentation<Count>& procedures) {
    using KeptProcedures = FortranRepresentation<Count>;
    auto kept = std::make_unique<KeptProcedures>(procedures);
    const int error =
        add(name, kept->read ? call_conversion<Count, &KeptProcedures::read> : nullptr,
            kept->write ? call_conversion<Count, &KeptProcedures::write> : nullptr, call_extent<Count>, kept.get());
    if (error == MPI_SUCCESS) kept.release();
    return error;
}

}  // namespace

const FortranCallers* fortran_callers() {
    static constexpr FortranCallers callers = {
        .operation = call_operation<MPI_User_function, int>,
        .large_operation = call_operation<MPI_User_function_c, MPI_Count>,
        .comm_error = call_handler<MPI_Comm_errhandler_function, MPI_Comm>,
        .win_error = call_handler<MPI_Win_errhandler_function, MPI_Win>,
        .file_error = call_handler<MPI_File_errhandler_function, MPI_File>,
        .session_error = call_handler<MPI_Session_errhandler_function, MPI_Session>,
    };
    return &callers;
}

extern "C" {

FORTRAN_ENTRY(op_create, (MPI_User_function * procedure, const int* commute, int* op, int* ierror)) {
    give(ierror, library.Op_create(procedures().add(procedure), *commute != 0, made<MPI_Op>(op)));
}
FORTRAN_ENTRY(op_create_c, (MPI_User_function_c * procedure, const int* commute, int* op, int* ierror)) {
    give(ierror, library.Op_create_c(procedures().add(procedure), *commute != 0, made<MPI_Op>(op)));
}

#define ERRHANDLER(name, Kind)                                                                                           \
    FORTRAN_ENTRY(name##_create_errhandler, (MPI_##Kind##_errhandler_function * procedure, int* handler, int* ierror)) { \
        give(ierror, library.Kind##_create_errhandler(procedures().add(procedure), made<MPI_Errhandler>(handler)));      \
    }
ERRHANDLER(comm, Comm)
ERRHANDLER(win, Win)
ERRHANDLER(file, File)
ERRHANDLER(session, Session)
// MPI_ERRHANDLER_CREATE, which MPI 3.0 has removed.
FORTRAN_ENTRY(errhandler_create, (MPI_Comm_errhandler_function * procedure, int* handler, int* ierror)) {
    f_comm_create_errhandler(procedure, handler, ierror);
}

#define KEYVAL(name, Kind, Handle)                                                                                             \
    FORTRAN_ENTRY(name##_create_keyval, (FortranAttribute<MPI_Aint>::Copy * copy, FortranAttribute<MPI_Aint>::Delete * remove, \
                                         int* keyval, const MPI_Aint* extra_state, int* ierror)) {                             \
        give(ierror, create_keyval<Handle, MPI_Aint>(library.Kind##_create_keyval, copy, remove, keyval, *extra_state));       \
    }                                                                                                                          \
    FORTRAN_ONLY(mpi_##name##_null_copy_fn, (int*, int*, MPI_Aint*, MPI_Aint*, MPI_Aint*, int* flag, int* ierror)) {           \
        *flag = 0;                                                                                                             \
        *ierror = MPI_SUCCESS;                                                                                                 \
    }                                                                                                                          \
    FORTRAN_ONLY(mpi_##name##_dup_fn,                                                                                          \
                 (int*, int*, MPI_Aint*, const MPI_Aint* value, MPI_Aint* copied, int* flag, int* ierror)) {                   \
        *copied = *value;                                                                                                      \
        *flag = 1;                                                                                                             \
        *ierror = MPI_SUCCESS;                                                                                                 \
    }                                                                                                                          \
    FORTRAN_ONLY(mpi_##name##_null_delete_fn, (int*, int*, MPI_Aint*, MPI_Aint*, int* ierror)) { *ierror = MPI_SUCCESS; }
KEYVAL(comm, Comm, MPI_Comm)
KEYVAL(type, Type, MPI_Datatype)
KEYVAL(win, Win, MPI_Win)

// The attribute functions of MPI 1, whose attributes are integers.
FORTRAN_ENTRY(keyval_create, (FortranAttribute<int>::Copy * copy, FortranAttribute<int>::Delete* remove, int* keyval,
                              const int* extra_state, int* ierror)) {
    give(ierror, create_keyval<MPI_Comm, int>(library.Comm_create_keyval, copy, remove, keyval, *extra_state));
}
FORTRAN_ONLY(mpi_null_copy_fn, (int*, int*, int*, int*, int*, int* flag, int* ierror)) {
    *flag = 0;
    *ierror = MPI_SUCCESS;
}
FORTRAN_ONLY(mpi_dup_fn, (int*, int*, int*, const int* value, int* copied, int* flag, int* ierror)) {
    *copied = *value;
    *flag = 1;
    *ierror = MPI_SUCCESS;
}
FORTRAN_ONLY(mpi_null_delete_fn, (int*, int*, int*, int*, int* ierror)) { *ierror = MPI_SUCCESS; }

FORTRAN_ENTRY(grequest_start, (decltype(FortranGrequest::query) query, decltype(FortranGrequest::free) free_procedure,
                               decltype(FortranGrequest::cancel) cancel, MPI_Aint* extra_state, int* request, int* ierror)) {
    auto kept = std::make_unique<FortranGrequest>(FortranGrequest{query, free_procedure, cancel, extra_state});
    const int error = library.Grequest_start(call_query, call_free, call_cancel, kept.get(), made<MPI_Request>(request));
    if (error == MPI_SUCCESS) kept.release();
    give(ierror, error);
}

// Predefined conversion functions of data representations. A program passes them and never calls them.
FORTRAN_ONLY(mpi_conversion_fn_null, (void)) {}
FORTRAN_ONLY(mpi_conversion_fn_null_c, (void)) {}

#define REGISTER_DATAREP(name, Name, Count, null)                                                                            \
    FORTRAN_ENTRY(name, (const char* datarep, FortranConversion<Count>* read, FortranConversion<Count>* write,               \
                         FortranExtent* extent, const MPI_Aint* extra_state, int* ierror, size_t length)) {                  \
        const auto given = [](FortranConversion<Count>* procedure) {                                                         \
            return reinterpret_cast<void*>(procedure) == reinterpret_cast<void*>(f_##null) ? nullptr : procedure;            \
        };                                                                                                                   \
        give(ierror, register_datarep<Count>(library.Name, TextIn(datarep, length),                                          \
                                             {given(read), given(write), extent, *extra_state}));                            \
    }
REGISTER_DATAREP(register_datarep, Register_datarep, int, mpi_conversion_fn_null)
REGISTER_DATAREP(register_datarep_c, Register_datarep_c, MPI_Count, mpi_conversion_fn_null_c)

}  // extern "C"

}  // namespace starling::compat
