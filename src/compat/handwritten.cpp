// Entry points that need more than a conversion of each argument: those with callbacks, with arrays whose meaning depends on another
// argument, or without a fixed list of parameters.
#include <type_traits>

#include "compat/callers.h"
#include "compat/convert.h"
#include "compat/deferred_handles.h"
#include "compat/entry.h"
#include "compat/type_contents.h"

namespace starling::compat {

namespace {

/// A program's callbacks of an attribute key, and their extra state. Never freed, because attributes outlive their key.
template <class Copy, class Delete>
struct CompatAttribute {
    Copy* copy;
    Delete* remove;
    void* extra_state;
};

template <class Handle, class Copy, class Delete>
int call_copy(Handle handle, int keyval, void* extra_state, void* value, void* out_value, int* flag) {
    const auto& attribute = *static_cast<const CompatAttribute<Copy, Delete>*>(extra_state);
    *flag = 0;
    if (!attribute.copy) return MPI_SUCCESS;
    return error_in(attribute.copy(out(handle), abi::keyval_out(keyval), attribute.extra_state, value, out_value, flag));
}
template <class Handle, class Copy, class Delete>
int call_delete(Handle handle, int keyval, void* value, void* extra_state) {
    const auto& attribute = *static_cast<const CompatAttribute<Copy, Delete>*>(extra_state);
    if (!attribute.remove) return MPI_SUCCESS;
    return error_in(attribute.remove(out(handle), abi::keyval_out(keyval), value, attribute.extra_state));
}

template <class Handle, class Copy, class Delete, class Create>
int create_keyval(Create* create, Copy* copy, Delete* remove, int* keyval, void* extra_state) {
    auto* attribute = new CompatAttribute<Copy, Delete>{copy, remove, extra_state};
    return error_out(
        create(call_copy<Handle, Copy, Delete>, call_delete<Handle, Copy, Delete>, keyval_changed(keyval), attribute));
}

/// Converts the value of a predefined attribute if it is a constant of the interface, such as a rank or an error code.
void convert_attribute(int keyval, void* value, const int* flag) {
    static thread_local int converted[4];
    if (!value || !flag || !*flag) return;
    int*& number = *static_cast<int**>(value);
    const auto give = [&](int place, int as) { number = &(converted[place] = as); };
    switch (keyval) {
        case MPI_HOST:
        case MPI_IO:
            return give(0, abi::rank_out(*number));
        case MPI_LASTUSEDCODE:
            return give(1, error_out(*number));
        case MPI_WIN_CREATE_FLAVOR:
            return give(2, abi::window_flavor_out(*number));
        case MPI_WIN_MODEL:
            return give(3, abi::window_model_out(*number));
        default:
            return;
    }
}

struct CompatGrequest {
    abi::Grequest_query_function* query;
    abi::Grequest_free_function* free;
    abi::Grequest_cancel_function* cancel;
    void* extra_state;
};
int call_query(void* extra_state, MPI_Status* status) {
    const auto& request = *static_cast<const CompatGrequest*>(extra_state);
    abi::Status theirs;
    abi::status_out(*status, theirs);
    const int error = request.query(request.extra_state, &theirs);
    *status = abi::status_in(theirs);
    return error_in(error);
}
int call_free(void* extra_state) {
    const std::unique_ptr<CompatGrequest> request(static_cast<CompatGrequest*>(extra_state));
    return error_in(request->free(request->extra_state));
}
int call_cancel(void* extra_state, int complete) {
    const auto& request = *static_cast<const CompatGrequest*>(extra_state);
    return error_in(request.cancel(request.extra_state, complete));
}

/// A program's functions of a data representation. Never freed, because representations last until the process ends.
template <class Conversion>
struct CompatRepresentation {
    Conversion* read;
    Conversion* write;
    abi::Datarep_extent_function* extent;
    void* extra_state;
};
template <class Conversion, class Count, auto kFunction>
int call_conversion(void* userbuf, MPI_Datatype type, Count count, void* filebuf, MPI_Offset position, void* extra_state) {
    const auto& representation = *static_cast<const CompatRepresentation<Conversion>*>(extra_state);
    return error_in(
        (representation.*kFunction)(userbuf, out(type), count, filebuf, position, representation.extra_state));
}
template <class Conversion>
int call_extent(MPI_Datatype type, MPI_Aint* extent, void* extra_state) {
    const auto& representation = *static_cast<const CompatRepresentation<Conversion>*>(extra_state);
    return error_in(representation.extent(out(type), extent, representation.extra_state));
}

/// Registers a data representation; null conversion functions do not convert.
template <class Count, class Conversion, class Register>
int register_datarep(Register* add, const char* name, const CompatRepresentation<Conversion>& functions) {
    using KeptFunctions = CompatRepresentation<Conversion>;
    auto kept = std::make_unique<KeptFunctions>(functions);
    const int error = add(name, kept->read ? call_conversion<Conversion, Count, &KeptFunctions::read> : nullptr,
                          kept->write ? call_conversion<Conversion, Count, &KeptFunctions::write> : nullptr,
                          kept->extent ? call_extent<Conversion> : nullptr, kept.get());
    if (error == MPI_SUCCESS) kept.release();
    return error_out(error);
}

template <auto kFortran, class Function, class Integer>
void call_operation(Function* function, void* in, void* inout, Integer* length, MPI_Datatype type) {
    if ((fortran_callers()->*kFortran)(function, in, inout, length, type)) return;
    abi::Datatype theirs = out(type);
    using Theirs = std::conditional_t<std::is_same_v<Integer, int>, abi::User_function, abi::User_function_c>;
    reinterpret_cast<Theirs*>(function)(in, inout, length, &theirs);
}
template <auto kFortran, class Theirs, class Function, class Handle>
void call_handler(Function* function, Handle handle, int* code) {
    if ((fortran_callers()->*kFortran)(function, handle, code)) return;
    There<Handle> theirs = out(handle);
    int error = error_out(*code);
    reinterpret_cast<Theirs*>(function)(&theirs, &error);
}

}  // namespace

const Foreign callers = {
    .operation = call_operation<&FortranCallers::operation, MPI_User_function, int>,
    .large_operation = call_operation<&FortranCallers::large_operation, MPI_User_function_c, MPI_Count>,
    .comm_error =
        call_handler<&FortranCallers::comm_error, abi::Comm_errhandler_function, MPI_Comm_errhandler_function, MPI_Comm>,
    .win_error = call_handler<&FortranCallers::win_error, abi::Win_errhandler_function, MPI_Win_errhandler_function, MPI_Win>,
    .file_error =
        call_handler<&FortranCallers::file_error, abi::File_errhandler_function, MPI_File_errhandler_function, MPI_File>,
    .comm_made = comm_made,
    .session_error = call_handler<&FortranCallers::session_error, abi::Session_errhandler_function,
                                  MPI_Session_errhandler_function, MPI_Session>,
    .error_code = error_out,
};

extern "C" {

COMPAT_ENTRY(int, Pcontrol, (const int level, ...)) { return error_out(library.Pcontrol(level)); }

COMPAT_ENTRY(int, Op_create, (abi::User_function * function, int commute, abi::Op* op)) {
    return error_out(library.Op_create(reinterpret_cast<MPI_User_function*>(function), commute, made<MPI_Op>(op)));
}
COMPAT_ENTRY(int, Op_create_c, (abi::User_function_c * function, int commute, abi::Op* op)) {
    return error_out(library.Op_create_c(reinterpret_cast<MPI_User_function_c*>(function), commute, made<MPI_Op>(op)));
}

#define ERRHANDLER(Kind)                                                                                                      \
    COMPAT_ENTRY(int, Kind##_create_errhandler, (abi::Kind##_errhandler_function * function, abi::Errhandler * errhandler)) { \
        return error_out(library.Kind##_create_errhandler(reinterpret_cast<MPI_##Kind##_errhandler_function*>(function),      \
                                                          made<MPI_Errhandler>(errhandler)));                                 \
    }
ERRHANDLER(Comm)
ERRHANDLER(Win)
ERRHANDLER(File)
ERRHANDLER(Session)

COMPAT_ENTRY(int, Comm_create_keyval,
             (abi::Comm_copy_attr_function * copy, abi::Comm_delete_attr_function* remove, int* keyval, void* extra_state)) {
    return create_keyval<MPI_Comm>(library.Comm_create_keyval, copy, remove, keyval, extra_state);
}
COMPAT_ENTRY(int, Keyval_create, (abi::Copy_function * copy, abi::Delete_function* remove, int* keyval, void* extra_state)) {
    return create_keyval<MPI_Comm>(library.Keyval_create, copy, remove, keyval, extra_state);
}
COMPAT_ENTRY(int, Type_create_keyval,
             (abi::Type_copy_attr_function * copy, abi::Type_delete_attr_function* remove, int* keyval, void* extra_state)) {
    return create_keyval<MPI_Datatype>(library.Type_create_keyval, copy, remove, keyval, extra_state);
}
COMPAT_ENTRY(int, Win_create_keyval,
             (abi::Win_copy_attr_function * copy, abi::Win_delete_attr_function* remove, int* keyval, void* extra_state)) {
    return create_keyval<MPI_Win>(library.Win_create_keyval, copy, remove, keyval, extra_state);
}

COMPAT_ENTRY(int, Comm_get_attr, (abi::Comm comm, int keyval, void* value, int* flag)) {
    const int error = library.Comm_get_attr(in<MPI_Comm>(comm), keyval_in(keyval), value, flag);
    if (error == MPI_SUCCESS) convert_attribute(keyval_in(keyval), value, flag);
    return error_out(error);
}
COMPAT_ENTRY(int, Attr_get, (abi::Comm comm, int keyval, void* value, int* flag)) {
    const int error = library.Attr_get(in<MPI_Comm>(comm), keyval_in(keyval), value, flag);
    if (error == MPI_SUCCESS) convert_attribute(keyval_in(keyval), value, flag);
    return error_out(error);
}
COMPAT_ENTRY(int, Win_get_attr, (abi::Win win, int keyval, void* value, int* flag)) {
    const int error = library.Win_get_attr(in<MPI_Win>(win), keyval_in(keyval), value, flag);
    if (error == MPI_SUCCESS) convert_attribute(keyval_in(keyval), value, flag);
    return error_out(error);
}
COMPAT_ENTRY(int, Type_get_attr, (abi::Datatype type, int keyval, void* value, int* flag)) {
    return error_out(library.Type_get_attr(in<MPI_Datatype>(type), keyval_in(keyval), value, flag));
}

COMPAT_ENTRY(int, Grequest_start,
             (abi::Grequest_query_function * query, abi::Grequest_free_function* free_function,
              abi::Grequest_cancel_function* cancel, void* extra_state, abi::Request* request)) {
    auto kept = std::make_unique<CompatGrequest>(CompatGrequest{query, free_function, cancel, extra_state});
    const int error = library.Grequest_start(call_query, call_free, call_cancel, kept.get(), made<MPI_Request>(request));
    if (error == MPI_SUCCESS) kept.release();
    return error_out(error);
}

COMPAT_ENTRY(int, Register_datarep,
             (const char* name, abi::Datarep_conversion_function* read, abi::Datarep_conversion_function* write,
              abi::Datarep_extent_function* extent, void* extra_state)) {
    return register_datarep<int, abi::Datarep_conversion_function>(library.Register_datarep, name,
                                                                   {read, write, extent, extra_state});
}
COMPAT_ENTRY(int, Register_datarep_c,
             (const char* name, abi::Datarep_conversion_function_c* read, abi::Datarep_conversion_function_c* write,
              abi::Datarep_extent_function* extent, void* extra_state)) {
    return register_datarep<MPI_Count, abi::Datarep_conversion_function_c>(library.Register_datarep_c, name,
                                                                           {read, write, extent, extra_state});
}

COMPAT_ENTRY(int, Type_get_contents,
             (abi::Datatype type, int most_integers, int most_addresses, int most_types, int* integers, MPI_Aint* addresses,
              abi::Datatype* types)) {
    const MPI_Datatype here = in<MPI_Datatype>(type);
    int count[3], combiner = 0;
    library.Type_get_envelope(here, &count[0], &count[1], &count[2], &combiner);
    Few<MPI_Datatype> made(static_cast<size_t>(std::max(most_types, 0)));
    const int error =
        library.Type_get_contents(here, most_integers, most_addresses, most_types, integers, addresses, made.data());
    if (error != MPI_SUCCESS) return error_out(error);
    for (int i = 0; i < count[2]; ++i) types[i] = out(made[static_cast<size_t>(i)]);
    convert_contents(combiner, integers);
    return MPI_SUCCESS;
}
COMPAT_ENTRY(int, Type_get_contents_c,
             (abi::Datatype type, MPI_Count most_integers, MPI_Count most_addresses, MPI_Count most_large, MPI_Count most_types,
              int* integers, MPI_Aint* addresses, MPI_Count* large, abi::Datatype* types)) {
    const MPI_Datatype here = in<MPI_Datatype>(type);
    MPI_Count count[4];
    int combiner = 0;
    library.Type_get_envelope_c(here, &count[0], &count[1], &count[2], &count[3], &combiner);
    Few<MPI_Datatype> made(static_cast<size_t>(std::max<MPI_Count>(most_types, 0)));
    const int error = library.Type_get_contents_c(here, most_integers, most_addresses, most_large, most_types, integers,
                                                  addresses, large, made.data());
    if (error != MPI_SUCCESS) return error_out(error);
    for (MPI_Count i = 0; i < count[3]; ++i) types[i] = out(made[static_cast<size_t>(i)]);
    if (count[2] == 0) convert_contents(combiner, integers);
    return MPI_SUCCESS;
}

COMPAT_ENTRY(int, Comm_idup, (abi::Comm comm, abi::Comm* made_comm, abi::Request* request)) {
    return error_out(library.Comm_idup(in<MPI_Comm>(comm), defer_handle(made_comm), made<MPI_Request>(request)));
}
COMPAT_ENTRY(int, Comm_idup_with_info, (abi::Comm comm, abi::Info info, abi::Comm* made_comm, abi::Request* request)) {
    return error_out(library.Comm_idup_with_info(in<MPI_Comm>(comm), in<MPI_Info>(info), defer_handle(made_comm),
                                                 made<MPI_Request>(request)));
}

COMPAT_EXTENSION(int, Comm_ishrink, (abi::Comm comm, abi::Comm* made_comm, abi::Request* request)) {
    return error_out(library.Comm_ishrink(in<MPI_Comm>(comm), defer_handle(made_comm), made<MPI_Request>(request)));
}

COMPAT_ENTRY(int, Comm_spawn,
             (const char* command, char** argv, int maxprocs, abi::Info info, int root, abi::Comm comm, abi::Comm* intercomm,
              int* codes)) {
    // The library converts the codes (Foreign::error_code): only the root's `maxprocs` is their number.
    return error_out(library.Comm_spawn(command, argv, maxprocs, in<MPI_Info>(info), root, in<MPI_Comm>(comm),
                                        made<MPI_Comm>(intercomm), codes));
}
COMPAT_ENTRY(int, Comm_spawn_multiple,
             (int count, char** commands, char*** argvs, const int* maxprocs, const abi::Info* infos, int root, abi::Comm comm,
              abi::Comm* intercomm, int* codes)) {
    int rank = -1;
    const MPI_Comm here = in<MPI_Comm>(comm);
    library.Comm_rank(here, &rank);
    const int mine = rank == root ? count : 0;  // arrays of the call are significant only at the root
    return error_out(library.Comm_spawn_multiple(count, commands, argvs, maxprocs, list<MPI_Info>(mine ? infos : nullptr, mine),
                                                 root, here, made<MPI_Comm>(intercomm), codes));
}

// Fortran's statuses are arrays of ints with the layout of the C structure.
COMPAT_ENTRY(int, Status_c2f, (const abi::Status* status, int* fortran)) {
    std::memcpy(fortran, status, sizeof *status);
    return MPI_SUCCESS;
}
COMPAT_ENTRY(int, Status_f2c, (const int* fortran, abi::Status* status)) {
    std::memcpy(status, fortran, sizeof *status);
    return MPI_SUCCESS;
}

}  // extern "C"

}  // namespace starling::compat
