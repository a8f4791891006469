// The pools and classes of the requests that move one message.
#pragma once

#include "message/request.h"
#include "mpi/request_handle.h"

namespace starling::mpi {

extern RequestPool<message::SendRequest> send_pool;
extern RequestPool<message::ReceiveRequest> receive_pool;
extern const message::RequestClass kSend, kReceive;

}  // namespace starling::mpi
