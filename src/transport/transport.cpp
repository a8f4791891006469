// Default implementations of the optional calls, for transports without the capability.
#include "transport/transport.h"

#include "base/error.h"
#include "mpi.h"

namespace starling::transport {

int Transport::unsupported(const char* what) const {
    return fail(MPI_ERR_UNSUPPORTED_OPERATION, "transport %s does not support %s", traits.name, what);
}

int Transport::expose(void*, uint64_t, Region&) { return unsupported("registered memory"); }
int Transport::withdraw(const Region&) { return unsupported("registered memory"); }
int Transport::put(Path&, const Region&, uint64_t, const void*, uint64_t, Completion&) {
    return unsupported("registered memory");
}
int Transport::get(Path&, const Region&, uint64_t, void*, uint64_t, Completion&) { return unsupported("registered memory"); }
int Transport::update(Path&, const Region&, uint64_t, Update, uint64_t, uint64_t, uint64_t*, Completion&) {
    return unsupported("registered memory");
}
int Transport::write(Path&, const Region&, const void*, uint64_t, uint32_t, WriteNotice, Completion&) {
    return unsupported("registered memory");
}
int Transport::join(const GroupName&, DatagramHandler&, std::unique_ptr<Group>&) { return unsupported("groups"); }

}  // namespace starling::transport
