// A program that other process managers start. Its first argument selects the work:
//
//   - work: sums, rings and exchanges among all ranks; each rank prints "rank R of N: S on this host, T hosts"
//   - spawn N: spawns N more processes of this program, merges them with the first ones and computes a sum
//   - wait: each rank prints "rank R pid P", and all wait for a message that never arrives
//   - abort CODE: the last rank calls MPI_Abort, the others wait
//   - leave: the last rank returns from main without MPI_Finalize, the others wait
//   - vanish: like leave, but by _exit
//   - late: rank 0 initializes a second after the others, which have sent it a message by then
//   - early N: the N other ranks initialize and finalize at once; rank 0 begins a second after they have started, and prints how many of
//     them still live then
//   - never: rank 0 does not call MPI at all
//   - session: uses an MPI session without MPI_Init
//   - twice: each rank runs this program again by system(), which must be refused and not hang
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

namespace {

int rank, size;

void check(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 99);
}

void sum(MPI_Comm comm) {
    int me, n, total = 0;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    MPI_Allreduce(&me, &total, 1, MPI_INT, MPI_SUM, comm);
    check(total == n * (n - 1) / 2, "a sum");
}

void ring(int bytes) {
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    std::vector<char> out(static_cast<size_t>(bytes), static_cast<char>(rank)), in(out.size());
    MPI_Sendrecv(out.data(), bytes, MPI_CHAR, to, 1, in.data(), bytes, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (const char c : in) check(c == static_cast<char>(from), "what came around the ring");
}

int hosts(MPI_Comm comm, int& here) {
    MPI_Comm node;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    int place, leader, leaders;
    MPI_Comm_rank(node, &place);
    leader = place == 0;
    MPI_Allreduce(&leader, &leaders, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_free(&node);
    return leaders;
}

void work() {
    sum(MPI_COMM_WORLD);
    for (const int bytes : {0, 100, 10000, 1 << 20}) ring(bytes);
    std::vector<int> out(static_cast<size_t>(size), rank), in(out.size());
    MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; ++i) check(in[static_cast<size_t>(i)] == i, "an exchange");
    int here;
    const int all = hosts(MPI_COMM_WORLD, here);
    std::printf("rank %d of %d: %d on this host, %d hosts\n", rank, size, here, all);
    MPI_Barrier(MPI_COMM_WORLD);
}

void spawn(const char* program, int count) {
    MPI_Comm children, family;
    char grown[] = "grown";
    char* arguments[] = {grown, nullptr};
    MPI_Comm_spawn(program, arguments, count, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(children, 0, &family);
    sum(family);
    int all;
    MPI_Comm_size(family, &all);
    check(all == size + count, "the family's size");
    int here;
    const int places = hosts(family, here);
    if (rank == 0) std::printf("family of %d on %d hosts\n", all, places);
    MPI_Comm_disconnect(&children);
    MPI_Comm_free(&family);
}

void grown() {
    MPI_Comm parent, family;
    MPI_Comm_get_parent(&parent);
    check(parent != MPI_COMM_NULL, "the parent");
    MPI_Intercomm_merge(parent, 1, &family);
    sum(family);
    int here;
    hosts(family, here);
    MPI_Comm_disconnect(&parent);
    MPI_Comm_free(&family);
}

void wait_forever() {
    int never = 0;
    MPI_Recv(&never, 1, MPI_INT, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void late() {
    int value = rank;
    if (rank != 0) {
        MPI_Send(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
        return;
    }
    int total = 0;
    for (int i = 1; i < size; ++i) {
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        total += value;
    }
    check(total == size * (size - 1) / 2, "what the early ones sent");
    std::printf("late sum %d\n", total);
}

int by_session() {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session)) return 1;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "managers", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int total = 0;
    MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, comm);
    std::printf("rank %d of %d: session sum %d\n", rank, size, total);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    return total != size * (size - 1) / 2;
}

// Counts the other processes that this one's parent has started and that have not ended.
int living_siblings() {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string pid = entry.path().filename();
        if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
        std::ifstream file(entry.path() / "stat");
        const std::string stat{std::istreambuf_iterator<char>(file), {}};
        const size_t end = stat.rfind(')');
        char state;
        int parent;
        if (end == std::string::npos || std::sscanf(stat.c_str() + end, ") %c %d", &state, &parent) != 2) continue;
        if (parent == getppid() && state != 'Z' && state != 'X' && pid != std::to_string(getpid())) ++count;
    }
    return count;
}

int managers_rank() {
    for (const char* name : {"PMIX_RANK", "PMI_RANK"})
        if (const char* value = std::getenv(name)) return std::atoi(value);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "work";
    const int number = argc > 2 ? std::atoi(argv[2]) : 0;
    setvbuf(stdout, nullptr, _IOLBF, 0);
    if (mode == "session") return by_session();
    if (managers_rank() == 0) {
        if (mode == "never") return usleep(500000), 0;
        for (int look = 0; mode == "early" && look < 1000 && living_siblings() < number; ++look) usleep(50000);
        if (mode == "late" || mode == "early") sleep(1);
        if (mode == "early") std::printf("%d early ranks live\n", living_siblings());
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (mode == "work") work();
    if (mode == "spawn") spawn(argv[0], number);
    if (mode == "grown") grown();
    if (mode == "late") late();
    if (mode == "twice") {
        const int code = std::system((std::string(argv[0]) + " work 2>&1").c_str());
        std::printf("rank %d: the second ended with %s\n", rank, code == 0 ? "success" : "an error");
    }
    if (mode == "wait") std::printf("rank %d pid %d\n", rank, getpid());
    if (mode == "abort" || mode == "leave" || mode == "vanish") {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == size - 1 && mode == "abort") MPI_Abort(MPI_COMM_WORLD, number);
        if (rank == size - 1 && mode == "leave") return 0;
        if (rank == size - 1) _exit(0);
        wait_forever();
    }
    if (mode == "wait") wait_forever();
    MPI_Finalize();
}
