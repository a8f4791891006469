// Entry points whose arguments do not correspond to those of C one by one: initialization, attributes, infos, spawning, contents of types,
// detached buffers.
#include <vector>

#include "compat/deferred_handles.h"
#include "compat/type_contents.h"
#include "fortran/arguments.h"
#include "fortran/attribute_storage.h"
#include "fortran/entry.h"

namespace starling::compat {

namespace {

/// Returns the value of an attribute as Fortran gets it. In C, predefined attributes are addresses of numbers (MPI 5.0 section 19.3.7).
MPI_Aint value_of(int keyval, void* value) {
    switch (keyval) {
        case MPI_TAG_UB:
        case MPI_WTIME_IS_GLOBAL:
        case MPI_UNIVERSE_SIZE:
        case MPI_APPNUM:
        case MPI_WIN_DISP_UNIT:
        case MPIX_FT:
            return *static_cast<int*>(value);
        case MPI_HOST:
        case MPI_IO:
            return abi::rank_out(*static_cast<int*>(value));
        case MPI_LASTUSEDCODE:
            return error_out(*static_cast<int*>(value));
        case MPI_WIN_CREATE_FLAVOR:
            return abi::window_flavor_out(*static_cast<int*>(value));
        case MPI_WIN_MODEL:
            return abi::window_model_out(*static_cast<int*>(value));
        case MPI_WIN_SIZE:
            return *static_cast<MPI_Aint*>(value);
        default:
            return attribute_unboxed(value, false);
    }
}

template <class Value, class Get, class Handle>
int get_attribute(Get* get, Handle handle, int keyval, Value* place, int* flag) {
    void* value = nullptr;
    const int key = keyval_in(abi::fortran_keyval(keyval));
    const int error = get(handle, key, &value, flag);
    if (error == MPI_SUCCESS && *flag) *place = static_cast<Value>(value_of(key, value));
    return error;
}
template <class Set, class Handle>
int set_attribute(Set* set, Handle handle, int keyval, MPI_Aint value) {
    void* const box = attribute_boxed(value);
    const int error = set(handle, keyval_in(keyval), box);
    if (error != MPI_SUCCESS) attribute_unboxed(box, true);
    return error;
}

/// An argv of C, made of Fortran texts of `length` characters that are `stride` texts apart; the first blank text ends it.
class Texts {
  public:
    Texts(const char* first, size_t length, size_t stride) {
        for (const char* text = first;; text += length * stride) {
            const std::string_view word = stripped({text, length});
            if (word.empty()) break;
            kept_.emplace_back(word);
        }
        for (std::string& text : kept_) pointers_.push_back(text.data());
        pointers_.push_back(nullptr);
    }
    char** data() { return pointers_.data(); }

  private:
    std::vector<std::string> kept_;
    std::vector<char*> pointers_;
};

/// Returns the array for the error codes that a spawn returns. The library writes them as the program's interface has them.
int* error_codes(int* place) { return meaning_of(place) == Meaning::errcodes_ignore ? MPI_ERRCODES_IGNORE : place; }

bool is_root(MPI_Comm comm, int root) {
    int rank = -1;
    return library.Comm_rank(comm, &rank) == MPI_SUCCESS && rank == root;
}

}  // namespace

extern "C" {

FORTRAN_ENTRY(init, (int* ierror)) { give(ierror, library.Init(nullptr, nullptr)); }
FORTRAN_ENTRY(init_thread, (const int* required, int* provided, int* ierror)) {
    give(ierror, library.Init_thread(nullptr, nullptr, thread_level_in(*required), thread_level_made(provided)));
}
FORTRAN_ENTRY(pcontrol, (const int* level)) { library.Pcontrol(*level); }
FORTRAN_ENTRY(info_create_env, (int* info, int* ierror)) {
    give(ierror, library.Info_create_env(0, nullptr, made<MPI_Info>(info)));
}

FORTRAN_ENTRY(comm_get_attr, (const int* comm, const int* keyval, MPI_Aint* value, int* flag, int* ierror)) {
    give(ierror, get_attribute(library.Comm_get_attr, in<MPI_Comm>(*comm), *keyval, value, flag));
}
FORTRAN_ENTRY(type_get_attr, (const int* type, const int* keyval, MPI_Aint* value, int* flag, int* ierror)) {
    give(ierror, get_attribute(library.Type_get_attr, in<MPI_Datatype>(*type), *keyval, value, flag));
}
FORTRAN_ENTRY(win_get_attr, (const int* win, const int* keyval, MPI_Aint* value, int* flag, int* ierror)) {
    give(ierror, get_attribute(library.Win_get_attr, in<MPI_Win>(*win), *keyval, value, flag));
}
FORTRAN_ENTRY(attr_get, (const int* comm, const int* keyval, int* value, int* flag, int* ierror)) {
    give(ierror, get_attribute(library.Comm_get_attr, in<MPI_Comm>(*comm), *keyval, value, flag));
}
FORTRAN_ENTRY(comm_set_attr, (const int* comm, const int* keyval, const MPI_Aint* value, int* ierror)) {
    give(ierror, set_attribute(library.Comm_set_attr, in<MPI_Comm>(*comm), *keyval, *value));
}
FORTRAN_ENTRY(type_set_attr, (const int* type, const int* keyval, const MPI_Aint* value, int* ierror)) {
    give(ierror, set_attribute(library.Type_set_attr, in<MPI_Datatype>(*type), *keyval, *value));
}
FORTRAN_ENTRY(win_set_attr, (const int* win, const int* keyval, const MPI_Aint* value, int* ierror)) {
    give(ierror, set_attribute(library.Win_set_attr, in<MPI_Win>(*win), *keyval, *value));
}
FORTRAN_ENTRY(attr_put, (const int* comm, const int* keyval, const int* value, int* ierror)) {
    give(ierror, set_attribute(library.Comm_set_attr, in<MPI_Comm>(*comm), *keyval, *value));
}

// The length arguments of Fortran texts do not count a terminating null.
FORTRAN_ENTRY(info_get, (const int* info, const char* key, const int* most, char* value, int* flag, int* ierror,
                         size_t key_length, size_t value_length)) {
    std::vector<char> text(static_cast<size_t>(std::max(*most, 0)) + 1);
    const int error = library.Info_get(in<MPI_Info>(*info), word_in(key, key_length), *most, text.data(), flag);
    if (error == MPI_SUCCESS && *flag) fill(text.data(), value, value_length);
    give(ierror, error);
}
FORTRAN_ENTRY(info_get_string, (const int* info, const char* key, int* length, char* value, int* flag, int* ierror,
                                size_t key_length, size_t value_length)) {
    const int most = std::max(*length, 0);
    int with_null = most == 0 ? 0 : most + 1;
    std::vector<char> text(static_cast<size_t>(most) + 1);
    const int error = library.Info_get_string(in<MPI_Info>(*info), word_in(key, key_length), &with_null, text.data(), flag);
    if (error == MPI_SUCCESS && *flag) {
        *length = with_null - 1;
        if (most > 0) fill(text.data(), value, value_length);
    }
    give(ierror, error);
}
FORTRAN_ENTRY(session_get_nth_pset,
              (const int* session, const int* info, const int* n, int* length, char* name, int* ierror, size_t name_length)) {
    const int most = std::max(*length, 0);
    int with_null = most == 0 ? 0 : most + 1;
    std::vector<char> text(static_cast<size_t>(most) + 1);
    const int error = library.Session_get_nth_pset(in<MPI_Session>(*session), in<MPI_Info>(*info), *n, &with_null, text.data());
    if (error == MPI_SUCCESS) {
        if (most > 0)
            fill(text.data(), name, name_length);
        else
            *length = with_null - 1;
    }
    give(ierror, error);
}

FORTRAN_ENTRY(comm_spawn,
              (const char* command, const char* argv, const int* maxprocs, const int* info, const int* root, const int* comm,
               int* intercomm, int* codes, int* ierror, size_t command_length, size_t argv_length)) {
    const MPI_Comm parents = in<MPI_Comm>(*comm);
    const bool given = is_root(parents, *root) && !fortran::is_argv_null(argv);
    Texts arguments(given ? argv : " ", given ? argv_length : 1, 1);
    give(ierror, library.Comm_spawn(word_in(command, command_length), given ? arguments.data() : MPI_ARGV_NULL, *maxprocs,
                                    in<MPI_Info>(*info), *root, parents, made<MPI_Comm>(intercomm), error_codes(codes)));
}
FORTRAN_ENTRY(comm_spawn_multiple, (const int* count, const char* commands, const char* argvs, const int* maxprocs,
                                    const int* infos, const int* root, const int* comm, int* intercomm, int* codes, int* ierror,
                                    size_t command_length, size_t argv_length)) {
    const MPI_Comm parents = in<MPI_Comm>(*comm);
    const int mine = is_root(parents, *root) ? std::max(*count, 0) : 0;  // arrays of the call are significant only at the root
    const bool given = mine > 0 && !fortran::is_argvs_null(argvs);
    std::vector<std::string> names;
    std::vector<char*> pointers;
    std::vector<Texts> arguments;
    std::vector<char**> lists;
    for (int i = 0; i < mine; ++i) {
        const auto at = static_cast<size_t>(i);
        names.emplace_back(stripped({commands + at * command_length, command_length}));
        if (given) arguments.emplace_back(argvs + at * argv_length, argv_length, static_cast<size_t>(mine));
    }
    for (std::string& name : names) pointers.push_back(name.data());
    for (Texts& list_of : arguments) lists.push_back(list_of.data());
    give(ierror, library.Comm_spawn_multiple(*count, pointers.data(), given ? lists.data() : MPI_ARGVS_NULL, maxprocs,
                                             list<MPI_Info>(mine ? infos : nullptr, mine), *root, parents,
                                             made<MPI_Comm>(intercomm), error_codes(codes)));
}
FORTRAN_EXTENSION(comm_replace, (const int* comm, const char* command, const char* argv, const int* info, int* made_comm,
                                 int* ierror, size_t command_length, size_t argv_length)) {
    const MPI_Comm here = in<MPI_Comm>(*comm);
    const bool given = here != MPI_COMM_NULL && !fortran::is_argv_null(argv);
    Texts arguments(given ? argv : " ", given ? argv_length : 1, 1);
    give(ierror, library.Comm_replace(here, word_in(command, command_length), given ? arguments.data() : MPI_ARGV_NULL,
                                      in<MPI_Info>(*info), made<MPI_Comm>(made_comm)));
}

FORTRAN_ENTRY(comm_idup, (const int* comm, int* made_comm, int* request, int* ierror)) {
    give(ierror, library.Comm_idup(in<MPI_Comm>(*comm), defer_handle(made_comm), made<MPI_Request>(request)));
}
FORTRAN_ENTRY(comm_idup_with_info, (const int* comm, const int* info, int* made_comm, int* request, int* ierror)) {
    give(ierror, library.Comm_idup_with_info(in<MPI_Comm>(*comm), in<MPI_Info>(*info), defer_handle(made_comm),
                                             made<MPI_Request>(request)));
}
FORTRAN_EXTENSION(comm_ishrink, (const int* comm, int* made_comm, int* request, int* ierror)) {
    give(ierror, library.Comm_ishrink(in<MPI_Comm>(*comm), defer_handle(made_comm), made<MPI_Request>(request)));
}

FORTRAN_ENTRY(type_get_contents, (const int* type, const int* most_integers, const int* most_addresses, const int* most_types,
                                  int* integers, MPI_Aint* addresses, int* types, int* ierror)) {
    int integer_count = 0, address_count = 0, type_count = 0, combiner = 0;
    const MPI_Datatype here = in<MPI_Datatype>(*type);
    library.Type_get_envelope(here, &integer_count, &address_count, &type_count, &combiner);
    std::vector<MPI_Datatype> found(static_cast<size_t>(std::max(*most_types, 0)));
    const int error =
        library.Type_get_contents(here, *most_integers, *most_addresses, *most_types, integers, addresses, found.data());
    for (int i = 0; error == MPI_SUCCESS && i < type_count; ++i) put(found[static_cast<size_t>(i)], &types[i]);
    if (error == MPI_SUCCESS) convert_contents(combiner, integers);
    give(ierror, error);
}
FORTRAN_LARGE(type_get_contents)
FORTRAN_ENTRY(type_get_contents_c,
              (const int* type, const MPI_Count* most_integers, const MPI_Count* most_addresses, const MPI_Count* most_large,
               const MPI_Count* most_types, int* integers, MPI_Aint* addresses, MPI_Count* large, int* types, int* ierror)) {
    MPI_Count counts[4] = {};
    int combiner = 0;
    const MPI_Datatype here = in<MPI_Datatype>(*type);
    library.Type_get_envelope_c(here, &counts[0], &counts[1], &counts[2], &counts[3], &combiner);
    std::vector<MPI_Datatype> found(static_cast<size_t>(std::max<MPI_Count>(*most_types, 0)));
    const int error = library.Type_get_contents_c(here, *most_integers, *most_addresses, *most_large, *most_types, integers,
                                                  addresses, large, found.data());
    for (MPI_Count i = 0; error == MPI_SUCCESS && i < counts[3]; ++i) put(found[static_cast<size_t>(i)], &types[i]);
    if (error == MPI_SUCCESS && counts[2] == 0) convert_contents(combiner, integers);
    give(ierror, error);
}

// In the old interface no type could hold the address, so it is not returned (MPI 5.0 section 3.6).
#define DETACH(name, Function, Count)                                            \
    FORTRAN_ONLY(mpi_##name, (void*, Count* size, int* ierror)) {                \
        void* address = nullptr;                                                 \
        give(ierror, library.Function(&address, size));                          \
    }                                                                            \
    FORTRAN_ONLY(mpi_##name##_f08, (void** address, Count* size, int* ierror)) { \
        give(ierror, library.Function(address, size));                           \
    }
DETACH(buffer_detach, Buffer_detach, int)
DETACH(buffer_detach_c, Buffer_detach_c, MPI_Count)
FORTRAN_MODERN_ONLY(buffer_detach)
#define DETACH_FROM(name, Function, Handle, Count)                                                  \
    FORTRAN_ONLY(mpi_##name, (const int* handle, void*, Count* size, int* ierror)) {                \
        void* address = nullptr;                                                                    \
        give(ierror, library.Function(in<Handle>(*handle), &address, size));                        \
    }                                                                                               \
    FORTRAN_ONLY(mpi_##name##_f08, (const int* handle, void** address, Count* size, int* ierror)) { \
        give(ierror, library.Function(in<Handle>(*handle), address, size));                         \
    }
DETACH_FROM(comm_detach_buffer, Comm_detach_buffer, MPI_Comm, int)
DETACH_FROM(comm_detach_buffer_c, Comm_detach_buffer_c, MPI_Comm, MPI_Count)
DETACH_FROM(session_detach_buffer, Session_detach_buffer, MPI_Session, int)
DETACH_FROM(session_detach_buffer_c, Session_detach_buffer_c, MPI_Session, MPI_Count)

}  // extern "C"

}  // namespace starling::compat
