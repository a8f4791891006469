// Heavy traffic between parents and children in both directions, in all sizes: small messages interleave with rendezvous, and collectives
// on the merged communicator run in between.
#include <vector>

#include "dynamic.h"

namespace {

const int kSizes[] = {1, 60, 900, 5000, 40000, 300000, 3000000};

void traffic(MPI_Comm inter, int side) {
    int rank, remote;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_remote_size(inter, &remote));
    for (int round = 0; round < 6; round++) {
        std::vector<std::vector<char>> out, in;
        std::vector<MPI_Request> requests;
        for (int peer = 0; peer < remote; peer++)
            for (int k = 0; k < 7; k++) {
                int n = kSizes[(k + round) % 7];
                out.emplace_back(n);
                in.emplace_back(n);
                fill_bytes(out.back().data(), n, side * 1000 + rank * 10 + k + round);
                requests.emplace_back();
                OK(MPI_Irecv(in.back().data(), n, MPI_BYTE, peer, k % 3, inter, &requests.back()));
            }
        size_t index = 0;
        for (int peer = 0; peer < remote; peer++)
            for (int k = 0; k < 7; k++, index++) {
                requests.emplace_back();
                OK(MPI_Isend(out[index].data(), (int)out[index].size(), MPI_BYTE, peer, k % 3, inter, &requests.back()));
            }
        OK(MPI_Waitall((int)requests.size(), requests.data(), MPI_STATUSES_IGNORE));
        index = 0;
        for (int peer = 0; peer < remote; peer++)
            for (int k = 0; k < 7; k++, index++)
                CHECK(first_wrong_byte(in[index].data(), in[index].size(), !side * 1000 + peer * 10 + k + round) < 0,
                      "round %d from %d: %zu bytes differ", round, peer, in[index].size());
    }
    int value = 0;
    for (int i = 0; i < 100; i++)  // small messages, back and forth
        for (int peer = 0; peer < remote; peer++) {
            if (side == 0) {
                OK(MPI_Send(&i, 1, MPI_INT, peer, 9, inter));
                OK(MPI_Recv(&value, 1, MPI_INT, peer, 9, inter, MPI_STATUS_IGNORE));
                EXPECT_INT(value, i + 1);
            } else {
                OK(MPI_Recv(&value, 1, MPI_INT, peer, 9, inter, MPI_STATUS_IGNORE));
                value++;
                OK(MPI_Send(&value, 1, MPI_INT, peer, 9, inter));
            }
        }
}

void collectives(MPI_Comm merged) {
    int rank, size;
    OK(MPI_Comm_rank(merged, &rank));
    OK(MPI_Comm_size(merged, &size));
    for (int n : {1, 500, 100000}) {
        std::vector<int> data(n, rank), sum(n);
        OK(MPI_Allreduce(data.data(), sum.data(), n, MPI_INT, MPI_SUM, merged));
        for (int value : sum) EXPECT_INT(value, size * (size - 1) / 2);
        std::vector<int> all(n * (size_t)size);
        OK(MPI_Allgather(data.data(), n, MPI_INT, all.data(), n, MPI_INT, merged));
        for (size_t i = 0; i < all.size(); i++) EXPECT_INT(all[i], i / n);
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Comm parent, inter, merged;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    int child = parent != MPI_COMM_NULL, world;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &world));
    inter = child ? parent : spawn_self("child", 3, MPI_COMM_WORLD);
    traffic(inter, child);
    OK(MPI_Intercomm_merge(inter, child, &merged));
    collectives(merged);
    traffic(inter, child);
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Finalize());
    return 0;
}
