// bindings [operation]: uses the C++ bindings of MPI 2.2; with an argument, a user-defined operation too.
#include <mpi.h>

#include <cstdio>

namespace {

void check(bool right, const char* what) {
    if (right) return;
    std::fprintf(stderr, "bindings: %s is wrong\n", what);
    MPI::COMM_WORLD.Abort(9);
}

void move(MPI::Intracomm& comm, int rank, int size) {
    int got = -1;
    MPI::Request request = comm.Isend(&rank, 1, MPI::INT, (rank + 1) % size, 5);
    MPI::Status status;
    comm.Recv(&got, 1, MPI::INT, MPI::ANY_SOURCE, 5, status);
    request.Wait();
    check(got == (rank + size - 1) % size && status.Get_source() == got && status.Get_count(MPI::INT) == 1, "a message");
}

void add(MPI::Intracomm& comm, int rank, int size) {
    int sum = 0;
    comm.Allreduce(&rank, &sum, 1, MPI::INT, MPI::SUM);
    check(sum == size * (size - 1) / 2, "a sum");
}

void types(MPI::Intracomm& comm, int rank) {
    MPI::Datatype pair = MPI::INT.Create_contiguous(2);
    pair.Commit();
    int values[2] = {rank ? 0 : 7, rank ? 0 : 8};
    comm.Bcast(values, 1, pair, 0);
    check(values[0] == 7 && values[1] == 8, "a broadcast");
    pair.Free();
}

}  // namespace

int main(int argc, char** argv) {
    MPI::Init(argc, argv);
    const int rank = MPI::COMM_WORLD.Get_rank(), size = MPI::COMM_WORLD.Get_size();
    MPI::Intracomm comm = MPI::COMM_WORLD.Dup();
    move(comm, rank, size);
    add(comm, rank, size);
    types(comm, rank);
    comm.Free();
    if (argc > 1) {
        MPI::Op operation;
        operation.Init([](const void*, void*, int, const MPI::Datatype&) {}, true);
    }
    MPI::Finalize();
    return 0;
}
