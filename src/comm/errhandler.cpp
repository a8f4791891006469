#include "comm/errhandler.h"

#include "base/pool.h"

namespace starling::comm {

namespace {

Pool<Errhandler>& pool() {
    static auto* handlers = new Pool<Errhandler>;
    return *handlers;
}

constexpr Errhandler predefined_handler(HandlerAction action) {
    Errhandler handler;
    handler.magic = Errhandler::kMagic;
    handler.handles = 1;
    handler.action = action;
    return handler;
}

constinit Errhandler are_fatal = predefined_handler(HandlerAction::fatal);
constinit Errhandler abort_one = predefined_handler(HandlerAction::abort);
constinit Errhandler give_back = predefined_handler(HandlerAction::give_back);

}  // namespace

Errhandler* errors_are_fatal() {
    return &are_fatal;
}
Errhandler* errors_abort() {
    return &abort_one;
}
Errhandler* errors_return() {
    return &give_back;
}

void Errhandler::release() {
    if (--references == 0) pool().destroy(this);
}

Errhandler* make_errhandler(HandlerKind kind) {
    Errhandler* handler = pool().create();
    handler->kind = kind;
    handler->handles = 1;
    return handler;
}

Errhandler* errhandler_at(uint32_t pool_index) {
    return pool().at(pool_index);
}

Errhandler* from_handle(MPI_Errhandler handle) {
    if (handle == MPI_ERRORS_ARE_FATAL) return &are_fatal;
    if (handle == MPI_ERRORS_ABORT) return &abort_one;
    if (handle == MPI_ERRORS_RETURN) return &give_back;
    const auto word = reinterpret_cast<uintptr_t>(handle);
    if (word < 0x1000 || word % alignof(Errhandler) != 0) return nullptr;
    auto* object = reinterpret_cast<Errhandler*>(handle);
    return object->magic == Errhandler::kMagic && object->handles > 0 ? object : nullptr;
}

MPI_Errhandler to_handle(Errhandler* handler) {
    if (handler == &are_fatal) return MPI_ERRORS_ARE_FATAL;
    if (handler == &abort_one) return MPI_ERRORS_ABORT;
    if (handler == &give_back) return MPI_ERRORS_RETURN;
    return handler ? reinterpret_cast<MPI_Errhandler>(handler) : MPI_ERRHANDLER_NULL;
}

}  // namespace starling::comm
