// The pools and request classes of sends and receives that have a handle.
#pragma once

#include "base/no_destroy.h"
#include "message/request.h"
#include "mpi/completion/request_handle.h"

namespace starling::mpi {

extern NoDestroy<RequestPool<message::SendRequest>> send_pool_storage;
extern NoDestroy<RequestPool<message::ReceiveRequest>> receive_pool_storage;
inline constinit auto& send_pool = send_pool_storage.value;
inline constinit auto& receive_pool = receive_pool_storage.value;
extern const progress::RequestClass kSend, kReceive;

}  // namespace starling::mpi
