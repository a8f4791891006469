#include "mpi/environment/toint.h"

#include "message/match.h"
#include "mpi/common/check.h"
#include "mpi/common/handles.h"
#include "mpi/completion/request_handle.h"

namespace starling::mpi {

namespace {

// Returns the predefined handle of a number; `null` if the number is not that of a predefined handle.
template <class Handle>
Handle predefined(int value, Handle null) {
    if (value < 0 || value >= kFirstHandleInt) return null;
    return reinterpret_cast<Handle>(static_cast<uintptr_t>(value));
}

}  // namespace

int Request_toint(MPI_Request request) {
    Lock lock;
    return request_to_int(request);
}
MPI_Request Request_fromint(int request) {
    Lock lock;
    return request_from_int(request);
}
int Message_toint(MPI_Message message) {
    Lock lock;
    const auto word = reinterpret_cast<uintptr_t>(message);
    const auto* object = reinterpret_cast<const message::Unexpected*>(message);
    const bool valid =
        word >= kFirstHandleInt && word % alignof(message::Unexpected) == 0 && object->magic == message::Unexpected::kMagic;
    return to_int(message, valid ? object : nullptr);
}
MPI_Message Message_fromint(int message) {
    Lock lock;
    if (message < kFirstHandleInt) return predefined(message, MPI_MESSAGE_NULL);
    message::Unexpected* object = message::unexpected_pool.at(static_cast<uint32_t>(message - kFirstHandleInt));
    return object ? reinterpret_cast<MPI_Message>(object) : MPI_MESSAGE_NULL;
}

}  // namespace starling::mpi
