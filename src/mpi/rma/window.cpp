// Windows: creation, queries, and freeing.
#include "mpi/rma/window.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "mpi/comm/errhandler_handle.h"
#include "mpi/common/handles.h"
#include "mpi/rma/window_check.h"
#include "mpi/tool/tool_events.h"
#include "window/epoch.h"
#include "window/revocation.h"

namespace starling::mpi {

namespace {

using comm::AttributeHolder;
using comm::AttributeKind;

/// The info keys that a window reports, with their default values.
struct Hint {
    const char* key;
    const char* value;
};
constexpr Hint kWindowHints[] = {
    {"no_locks", "false"},
    {"accumulate_ordering", "rar,raw,war,waw"},
    {"accumulate_ops", "same_op_no_op"},
    {"same_size", "false"},
    {"same_disp_unit", "false"},
    {"alloc_shared_noncontig", "false"},
};

void apply_hints(Window& window, const comm::Info& info) {
    for (const Hint& hint : kWindowHints)
        if (const std::string* value = info.find(hint.key)) window.info.set(hint.key, *value);
}

/// Checks the arguments that this process passes to a function which creates a window.
int check(const window::CreateParams& wanted, bool info_is_valid, const MPI_Win* win) {
    if (!win) return null_pointer("win");
    if (!info_is_valid) return fail(MPI_ERR_INFO, "the info object is not valid; was it freed?");
    if (wanted.bytes < 0) return fail(MPI_ERR_SIZE, "the size %lld is negative", static_cast<long long>(wanted.bytes));
    if (wanted.flavor == MPI_WIN_FLAVOR_CREATE && !wanted.base && wanted.bytes > 0)
        return fail(MPI_ERR_BASE, "argument base is a null pointer, but the size is %lld bytes",
                    static_cast<long long>(wanted.bytes));
    if (wanted.disp_unit <= 0)
        return fail(MPI_ERR_DISP, "the displacement unit %lld is not positive", static_cast<long long>(wanted.disp_unit));
    return MPI_SUCCESS;
}

/// Creates a window. `wanted.error` is an error that the caller has found. A process with an error takes part nevertheless, because the
/// other processes wait for it.
// `baseptr`: where the address of the memory is stored; null: not stored.
int make(window::CreateParams wanted, MPI_Info info, MPI_Comm comm, MPI_Win* win, void* baseptr = nullptr) {
    comm::Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (c->is_inter) return wrong_kind_of_comm(c);
    comm::Info hints;
    const bool info_is_valid = comm::read_info(info, hints);
    if (!wanted.error) wanted.error = check(wanted, info_is_valid, win);
    const std::string* apart = hints.find("alloc_shared_noncontig");
    wanted.alignment = comm::minimum_alignment(hints);
    wanted.apart = apart && *apart == "true";
    const comm::ReferenceGuard kept(c);
    Window* made = nullptr;
    if (const int error = window::make(*c, wanted, made)) return raise(c, error);
    apply_hints(*made, hints);
    *win = window::to_handle(made);
    if (baseptr) std::memcpy(baseptr, &made->base, sizeof made->base);
    if (tools_listen())
        notify_tools(ToolEvent::window_made, {made->comm->context(), static_cast<uint64_t>(made->flavor),
                                              static_cast<uint64_t>(made->bytes), static_cast<uint64_t>(made->size())});
    return MPI_SUCCESS;
}

int make_with_memory(int flavor, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win) {
    const int wrong = baseptr ? MPI_SUCCESS : null_pointer("baseptr");
    const window::CreateParams wanted{.flavor = flavor, .bytes = size, .disp_unit = disp_unit, .error = wrong};
    return make(wanted, info, comm, win, baseptr);
}

int predefined_keyval(Window& window) {
    return raise(window, fail(MPI_ERR_KEYVAL, "predefined attributes can't be set or deleted"));
}

int bad_keyval(Window& window, int keyval) {
    return raise(window, fail(MPI_ERR_KEYVAL, "%d is not an attribute key of windows", keyval));
}

bool is_window_attribute(int keyval) { return keyval >= MPI_WIN_BASE && keyval <= MPI_WIN_MODEL; }

void* predefined_attribute(Window& window, int keyval) {
    switch (keyval) {
        case MPI_WIN_BASE:
            return window.base;
        case MPI_WIN_SIZE:
            return &window.bytes;
        case MPI_WIN_DISP_UNIT:
            return &window.disp_unit_int;
        case MPI_WIN_CREATE_FLAVOR:
            return &window.flavor;
        default:
            return &window.model;
    }
}

/// Returns whether each process's memory is apart from that of the others, as the hint asks.
bool is_apart(const Window& window) {
    const std::string* const value = window.info.find("alloc_shared_noncontig");
    return value && *value == "true";
}

}  // namespace

int bad_win(MPI_Win handle) {
    if (phase != LibraryPhase::running) return not_running();
    const char* what = handle == MPI_WIN_NULL ? "the window is MPI_WIN_NULL" : "the window is not valid; was it freed?";
    return raise(static_cast<comm::Comm*>(nullptr), fail(MPI_ERR_WIN, "%s", what));
}

int null_argument(Window& window, const char* name) { return raise(window, null_pointer(name)); }

int bad_rank(const Window& window, int rank) {
    return fail(MPI_ERR_RANK, "there is no rank %d in a window of %d processes", rank, window.size());
}

int Win_create(void* base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
    MakingLock lock;
    return make({.flavor = MPI_WIN_FLAVOR_CREATE, .base = base, .bytes = size, .disp_unit = disp_unit}, info, comm, win);
}

int Win_allocate(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win) {
    MakingLock lock;
    return make_with_memory(MPI_WIN_FLAVOR_ALLOCATE, size, disp_unit, info, comm, baseptr, win);
}

int Win_allocate_shared(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win) {
    MakingLock lock;
    return make_with_memory(MPI_WIN_FLAVOR_SHARED, size, disp_unit, info, comm, baseptr, win);
}

int Win_shared_query(MPI_Win win, int rank, MPI_Aint* size, CountOut disp_unit, void* baseptr) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    if (!size || !disp_unit || !baseptr) return null_argument(*w, !size ? "size" : !disp_unit ? "disp_unit" : "baseptr");
    if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return raise(*w, fail(MPI_ERR_RMA_FLAVOR, "a window of MPI_Win_create_dynamic has no memory of its own to query"));
    if (const int error = check_rank(*w, rank)) return raise(*w, error);
    // MPI_PROC_NULL selects the lowest rank whose memory is not empty (MPI_Win_shared_query).
    for (int r = 0; rank == MPI_PROC_NULL && r < w->size(); ++r)
        if (w->infos.bytes(r) > 0) rank = r;
    std::byte* base = nullptr;
    *size = 0;
    disp_unit.set(1);
    if (rank != MPI_PROC_NULL) {
        const window::WindowTarget& remote = window::get_or_create_target(*w, rank);
        base = window::address_of(remote);
        if (base) *size = static_cast<MPI_Aint>(remote.bytes);
        // Programs expect this of memory that is apart: MPICH and Open MPI return null for it.
        if (remote.bytes == 0 && is_apart(*w)) base = nullptr;
        disp_unit.set(remote.disp_unit);
    }
    std::memcpy(baseptr, &base, sizeof base);
    return MPI_SUCCESS;
}

int Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
    MakingLock lock;
    return make({.flavor = MPI_WIN_FLAVOR_DYNAMIC}, info, comm, win);
}

int Win_attach(MPI_Win win, void* base, MPI_Aint size) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return raise(*w, fail(MPI_ERR_RMA_FLAVOR, "memory can be attached only to windows of MPI_Win_create_dynamic"));
    if (size < 0) return raise(*w, fail(MPI_ERR_SIZE, "the size %lld is negative", static_cast<long long>(size)));
    if (!base && size > 0) return null_argument(*w, "base");
    return raise(*w, rma::attach(w->key, base, static_cast<uint64_t>(size)));
}

int Win_detach(MPI_Win win, const void* base) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return raise(*w, fail(MPI_ERR_RMA_FLAVOR, "memory can be detached only from windows of MPI_Win_create_dynamic"));
    return raise(*w, rma::detach(w->key, base));
}

int Win_free(MPI_Win* win) {
    Lock lock;
    if (!win) return null_argument(static_cast<comm::Comm*>(nullptr), "win");
    Window* w = window::from_handle(*win);
    if (!w) return bad_win(*win);
    if (!window::is_revoked(*w))
        if (const int error = window::check_idle(*w)) return raise(*w, error);
    if (const int error = w->attributes.clear(AttributeHolder(*win))) return raise(*w, error);
    comm::Errhandler* handler = comm::retain_from(w->errhandler);
    const uint64_t number = w->comm->context();
    int error = window::free(*w);
    if (error) error = raise_through(handler, comm::HandlerKind::win, {.win = *win}, error);
    handler->release();
    *win = MPI_WIN_NULL;
    if (tools_listen()) notify_tools(ToolEvent::window_freed, {number});
    return error;
}

int Win_get_group(MPI_Win win, MPI_Group* group) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    if (!group) return null_argument(*w, "group");
    *group = comm::add_handle(w->comm->local_group().retain());
    return MPI_SUCCESS;
}

int Win_set_name(MPI_Win win, const char* win_name) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    if (!win_name) return null_argument(*w, "win_name");
    w->name.assign(win_name, strnlen(win_name, MPI_MAX_OBJECT_NAME - 1));
    return MPI_SUCCESS;
}

int Win_get_name(MPI_Win win, char* win_name, int* resultlen) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w && (win != MPI_WIN_NULL || phase != LibraryPhase::running)) return bad_win(win);
    if (!win_name || !resultlen) return null_argument(static_cast<comm::Comm*>(nullptr), win_name ? "resultlen" : "win_name");
    const std::string name = w ? w->name : "MPI_WIN_NULL";
    std::memcpy(win_name, name.c_str(), name.size() + 1);
    *resultlen = static_cast<int>(name.size());
    return MPI_SUCCESS;
}

int Win_set_info(MPI_Win win, MPI_Info info) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    comm::Info object;
    if (!comm::read_info(info, object)) return raise(*w, fail(MPI_ERR_INFO, "the info object is not valid; was it freed?"));
    apply_hints(*w, object);
    return MPI_SUCCESS;
}

int Win_get_info(MPI_Win win, MPI_Info* info_used) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    if (!info_used) return null_argument(*w, "info_used");
    comm::Info* info = comm::make_info();
    for (const Hint& hint : kWindowHints) {
        const std::string* given = w->info.find(hint.key);
        info->set(hint.key, given ? std::string_view(*given) : hint.value);
    }
    *info_used = comm::to_handle(info);
    return MPI_SUCCESS;
}

int Win_set_attr(MPI_Win win, int win_keyval, void* attribute_val) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    if (is_window_attribute(win_keyval)) return predefined_keyval(*w);
    comm::Keyval* keyval = comm::find_keyval(AttributeKind::win, win_keyval);
    if (!keyval) return bad_keyval(*w, win_keyval);
    return raise(*w, w->attributes.set(AttributeHolder(win), keyval, attribute_val));
}

int Win_get_attr(MPI_Win win, int win_keyval, void* attribute_val, int* flag) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    if (!attribute_val || !flag) return null_argument(*w, attribute_val ? "flag" : "attribute_val");
    if (is_window_attribute(win_keyval)) {
        void* value = predefined_attribute(*w, win_keyval);
        std::memcpy(attribute_val, &value, sizeof value);
        *flag = 1;
        return MPI_SUCCESS;
    }
    if (!comm::find_keyval(AttributeKind::win, win_keyval)) return bad_keyval(*w, win_keyval);
    *flag = w->attributes.get(win_keyval, static_cast<void**>(attribute_val));
    return MPI_SUCCESS;
}

int Win_delete_attr(MPI_Win win, int win_keyval) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    if (is_window_attribute(win_keyval)) return predefined_keyval(*w);
    if (!w->attributes.get(win_keyval, nullptr)) return bad_keyval(*w, win_keyval);
    return raise(*w, w->attributes.remove(AttributeHolder(win), win_keyval));
}

int Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    comm::Errhandler* handler = usable_errhandler(errhandler, comm::HandlerKind::win);
    if (!handler) return raise(*w, MPI_ERR_ERRHANDLER);
    comm::replace(w->errhandler, handler);
    return MPI_SUCCESS;
}

int Win_get_errhandler(MPI_Win win, MPI_Errhandler* errhandler) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    if (!errhandler) return null_argument(*w, "errhandler");
    *errhandler = make_handle(w->errhandler);
    return MPI_SUCCESS;
}

int Win_call_errhandler(MPI_Win win, int errorcode) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    clear_failure();
    raise(*w, errorcode);
    return MPI_SUCCESS;
}

int Win_toint(MPI_Win win) {
    Lock lock;
    return to_int(win, window::from_handle(win));
}

MPI_Win Win_fromint(int win) {
    Lock lock;
    return from_int<MPI_Win>(win, window::window_at, MPI_WIN_NULL);
}

}  // namespace starling::mpi
