// Default implementations of the optional calls, for transports without the capability.
#include "transport/transport.h"

#include "base/error.h"
#include "mpi.h"

namespace starling::transport {

int Transport::unsupported(const char* what) const {
    return fail(MPI_ERR_UNSUPPORTED_OPERATION, "transport %s does not support %s", traits.name, what);
}

int Transport::expose(void*, uint64_t, RemoteKey&) { return unsupported("registered memory"); }
int Transport::withdraw(const RemoteKey&) { return unsupported("registered memory"); }
int Transport::put(Path&, const RemoteKey&, uint64_t, const void*, uint64_t, Completion&) {
    return unsupported("registered memory");
}
int Transport::get(Path&, const RemoteKey&, uint64_t, void*, uint64_t, Completion&) { return unsupported("registered memory"); }
int Transport::update(Path&, const RemoteKey&, uint64_t, AtomicOperation, uint64_t, uint64_t, uint64_t*, Completion&) {
    return unsupported("registered memory");
}
int Transport::write(Path&, const RemoteKey&, const void*, uint64_t, uint32_t, WriteNotice, Completion&) {
    return unsupported("registered memory");
}
int Transport::join(const GroupName&, DatagramHandler&, std::unique_ptr<MulticastMembership>&) { return unsupported("groups"); }

}  // namespace starling::transport
