// What daemons are told of a machine without addresses for them.
#include "launch/tree/addresses.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>

#include "base/error.h"
#include "mpi.h"

namespace starling::launch {
namespace {

/// In a process and a network of its own, in which no interface is up; ends with 1 and the reason as text.
[[noreturn]] void look_for_addresses() {
    if (unshare(CLONE_NEWNET) != 0) _exit(2);
    std::vector<std::string> addresses;
    const int error = own_addresses({}, addresses);
    fprintf(stderr, "%.*s\n", static_cast<int>(failure_text().size()), failure_text().data());
    _exit(error == MPI_ERR_OTHER && addresses.empty() ? 1 : 0);
}

TEST(Addresses, ThatThereAreNoneIsSaidOfIPv4) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, for a network of its own";
    EXPECT_EXIT(look_for_addresses(), testing::ExitedWithCode(1), "no network interface that is up and has an IPv4 address");
}

}  // namespace
}  // namespace starling::launch
