#include "comm/errhandler.h"

#include "base/handle.h"
#include "base/mutex.h"
#include "base/no_destroy.h"
#include "base/pool.h"
#include "base/state.h"

namespace starling::comm {

namespace {

/// Guards the counts of all handlers, the pool, and the members of objects in which handlers are set.
STARLING_STATE Mutex errhandler_mutex;

STARLING_STATE NoDestroy<Pool<Errhandler>> errhandler_pool_storage;
constinit auto& errhandler_pool = errhandler_pool_storage.value;

void drop(Errhandler* handler) {
    if (--handler->references == 0) errhandler_pool.destroy(handler);
}

constexpr Errhandler predefined_handler(HandlerAction action) {
    Errhandler handler;
    handler.magic = Errhandler::kMagic;
    handler.handles = 1;
    handler.action = action;
    return handler;
}

STARLING_STATE Errhandler are_fatal = predefined_handler(HandlerAction::fatal);
STARLING_STATE Errhandler abort_one = predefined_handler(HandlerAction::abort);
STARLING_STATE Errhandler return_handle = predefined_handler(HandlerAction::return_handle);

Errhandler* find(MPI_Errhandler handle) {
    if (handle == MPI_ERRORS_ARE_FATAL) return &are_fatal;
    if (handle == MPI_ERRORS_ABORT) return &abort_one;
    if (handle == MPI_ERRORS_RETURN) return &return_handle;
    auto* object = object_behind<Errhandler>(handle);
    return object && object->handles > 0 ? object : nullptr;
}

}  // namespace

Errhandler* errors_are_fatal() { return &are_fatal; }
Errhandler* errors_abort() { return &abort_one; }
Errhandler* errors_return() { return &return_handle; }

STARLING_STATE Errhandler* file_handler = &return_handle;

Errhandler* Errhandler::retain() {
    const MutexGuard guard(errhandler_mutex);
    ++references;
    return this;
}

void Errhandler::release() {
    const MutexGuard guard(errhandler_mutex);
    drop(this);
}

Errhandler* retain_from(Errhandler* const& place) {
    const MutexGuard guard(errhandler_mutex);
    ++place->references;
    return place;
}

void replace(Errhandler*& place, Errhandler* handler) {
    const MutexGuard guard(errhandler_mutex);
    ++handler->references;
    drop(place);
    place = handler;
}

MPI_Errhandler add_handle(Errhandler* handler) {
    const MutexGuard guard(errhandler_mutex);
    if (handler->kind != HandlerKind::any) {
        ++handler->handles;
        ++handler->references;
    }
    return to_handle(handler);
}

Errhandler* make_errhandler(HandlerKind kind) {
    const MutexGuard guard(errhandler_mutex);
    Errhandler* handler = errhandler_pool.create();
    handler->kind = kind;
    handler->handles = 1;
    return handler;
}

Errhandler* errhandler_at(uint32_t pool_index) {
    const MutexGuard guard(errhandler_mutex);
    return errhandler_pool.at(pool_index);
}

Errhandler* from_handle(MPI_Errhandler handle) {
    const MutexGuard guard(errhandler_mutex);
    return find(handle);
}

bool drop_handle(MPI_Errhandler handle) {
    const MutexGuard guard(errhandler_mutex);
    Errhandler* handler = find(handle);
    if (handler && handler->kind != HandlerKind::any) {
        --handler->handles;
        drop(handler);
    }
    return handler != nullptr;
}

MPI_Errhandler to_handle(Errhandler* handler) {
    if (handler == &are_fatal) return MPI_ERRORS_ARE_FATAL;
    if (handler == &abort_one) return MPI_ERRORS_ABORT;
    if (handler == &return_handle) return MPI_ERRORS_RETURN;
    return handler ? reinterpret_cast<MPI_Errhandler>(handler) : MPI_ERRHANDLER_NULL;
}

}  // namespace starling::comm
