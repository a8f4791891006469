// The blocks of an allgather in the order of hosts.
#include "collective/algorithms/host_blocks.h"

#include <gtest/gtest.h>

#include <vector>

#include "mpi.h"

namespace starling::collective {
namespace {

/// Returns where the blocks of five ranks of two ints each begin. `hosts`: the host of each rank.
void* begin_of(const std::vector<int>& hosts, const Blocks& blocks) {
    const HostMap map = make_host_map(hosts, 0, 0);
    const View v{nullptr, 0, 5, 0};
    const HostBlocks all(v, map, blocks);
    EXPECT_EQ(all.parts().bytes(0) + all.parts().bytes(1), 5 * 2 * sizeof(int));
    return all.parts().at(0);
}

TEST(HostBlocks, AReceiveBufferInTheOrderOfHostsIsUsedInPlace) {
    int data[16] = {};
    const Datatype& type = datatype::predefined(MPI_INT);
    EXPECT_EQ(begin_of({0, 0, 1, 1, 1}, Blocks(data, 2, type)), data);
    EXPECT_NE(begin_of({0, 1, 0, 1, 1}, Blocks(data, 2, type)), data) << "the blocks of a host are apart";
    const int counts[] = {0, 4, 2, 2, 2}, offsets[] = {9, 1, 5, 7, 9}, gaps[] = {9, 1, 5, 8, 10};
    EXPECT_EQ(begin_of({0, 0, 1, 1, 1}, Blocks(data, Counts(counts), Counts(offsets), type)), data + 1);
    EXPECT_NE(begin_of({0, 0, 1, 1, 1}, Blocks(data, Counts(counts), Counts(gaps), type)), data + 1);
}

}  // namespace
}  // namespace starling::collective
