// The error that daemons return on a machine without network addresses.
#include "launch/tree/addresses.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>

#include "base/error.h"
#include "mpi.h"

namespace starling::launch {
namespace {

/// Runs in a separate process and network namespace, in which no interface is up. Prints the error and exits with 1.
[[noreturn]] void look_for_addresses() {
    if (unshare(CLONE_NEWNET) != 0) _exit(2);
    std::vector<std::string> addresses;
    const int error = own_addresses({}, addresses);
    fprintf(stderr, "%.*s\n", static_cast<int>(failure_text().size()), failure_text().data());
    _exit(error == MPI_ERR_OTHER && addresses.empty() ? 1 : 0);
}

TEST(Addresses, TheErrorForMissingAddressesNamesIPv4) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, for a network of its own";
    EXPECT_EXIT(look_for_addresses(), testing::ExitedWithCode(1), "no network interface that is up and has an IPv4 address");
}

}  // namespace
}  // namespace starling::launch
