// Messages between two ranks in one context must not overtake each other, whatever path they take. Random sizes make successive messages
// switch between eager, ring and rendezvous. Tags and communicators are mixed, some receives use wildcards, some are posted early, and some
// sends block.
#include <algorithm>
#include <memory>
#include <vector>

#include "check.h"

namespace {

struct Head {
    int sender, sequence, bytes, tag;
};

int rank, size;

int draw_bytes(uint64_t* state) {
    int shape = random_below(state, 100);
    if (shape < 40) return (int)sizeof(Head) + random_below(state, 48);
    if (shape < 65) return (int)sizeof(Head) + random_below(state, 2000);
    if (shape < 80) return (int)sizeof(Head) + random_below(state, 20000);
    if (shape < 97) return (int)sizeof(Head) + random_below(state, 200000);
    return (int)sizeof(Head) + random_below(state, 4 << 20);
}

// The messages of one sender, computed from the seed, so that the receiver knows them too.
struct Stream {
    uint64_t state;
    int sequence = 0;
    Stream(uint64_t seed, int from, int to) : state(seed * 1000003 + from * 1009 + to * 31) {}
    Head next(int from) {
        Head head{from, sequence++, 0, 0};
        head.bytes = draw_bytes(&state);
        head.tag = random_below(&state, 4);
        return head;
    }
};

struct Sending {
    MPI_Request request;
    std::unique_ptr<char[]> data;
};

void send_all(uint64_t seed, MPI_Comm comm, int to, int count, std::vector<Sending>& pending) {
    Stream stream(seed, rank, to);
    uint64_t how = seed + rank;
    for (int i = 0; i < count; i++) {
        Head head = stream.next(rank);
        auto data = std::make_unique<char[]>(head.bytes);
        fill_bytes(data.get(), head.bytes, rank + i);
        memcpy(data.get(), &head, sizeof head);
        MPI_Request request;
        if (random_below(&how, 10) == 0)
            OK(MPI_Issend(data.get(), head.bytes, MPI_BYTE, to, head.tag, comm, &request));
        else
            OK(MPI_Isend(data.get(), head.bytes, MPI_BYTE, to, head.tag, comm, &request));
        pending.push_back({request, std::move(data)});
    }
}

void check_message(const Head& wanted, const char* data, const MPI_Status& status) {
    Head got;
    memcpy(&got, data, sizeof got);
    int bytes;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    CHECK(got.sequence == wanted.sequence && got.sender == wanted.sender,
          "from %d: message %d arrived instead of message %d (tag %d)", wanted.sender, got.sequence, wanted.sequence,
          status.MPI_TAG);
    EXPECT_INT(bytes, wanted.bytes);
    EXPECT_INT(status.MPI_TAG, wanted.tag);
    std::vector<char> reference(wanted.bytes);
    fill_bytes(reference.data(), wanted.bytes, wanted.sender + wanted.sequence);
    CHECK(memcmp(data + sizeof got, reference.data() + sizeof got, wanted.bytes - sizeof got) == 0,
          "from %d: message %d (%d bytes) is damaged", wanted.sender, wanted.sequence, wanted.bytes);
}

// Receives with wildcards: the messages of each sender must arrive in order.
void receive_any(uint64_t seed, MPI_Comm comm, int count, int window) {
    std::vector<Stream> streams;
    for (int from = 0; from < size; from++) streams.emplace_back(seed, from, rank);
    std::vector<char> buffer(((4 << 20) + 64) * (size_t)window);
    std::vector<MPI_Request> requests(window, MPI_REQUEST_NULL);
    int total = count * size, posted = 0;
    auto slot = [&](int i) { return buffer.data() + (size_t)i * ((4 << 20) + 64); };
    for (; posted < window && posted < total; posted++)
        OK(MPI_Irecv(slot(posted), (4 << 20) + 64, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[posted]));
    for (int done = 0; done < total; done++) {
        MPI_Status status;
        int i = done % window;  // receives match in posting order
        OK(MPI_Wait(&requests[i], &status));
        check_message(streams[status.MPI_SOURCE].next(status.MPI_SOURCE), slot(i), status);
        if (posted < total) {
            OK(MPI_Irecv(slot(i), (4 << 20) + 64, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[i]));
            posted++;
        }
    }
}

// Receives by tag: the order is kept within each (sender, tag), and arbitrary between tags.
void receive_by_tag(uint64_t seed, MPI_Comm comm, int count) {
    std::vector<char> buffer((4 << 20) + 64);
    for (int from = 0; from < size; from++) {
        Stream stream(seed, from, rank);
        std::vector<Head> heads;
        for (int i = 0; i < count; i++) heads.push_back(stream.next(from));
        for (int tag = 3; tag >= 0; tag--)
            for (const Head& head : heads) {
                if (head.tag != tag) continue;
                MPI_Status status;
                OK(MPI_Recv(buffer.data(), (int)buffer.size(), MPI_BYTE, from, tag, comm, &status));
                check_message(head, buffer.data(), status);
            }
    }
}

void round(uint64_t seed, MPI_Comm comm, int count, int way) {
    std::vector<Sending> pending;
    for (int i = 0; i < size; i++) send_all(seed, comm, (rank + i) % size, count, pending);
    if (way == 0)
        receive_any(seed, comm, count, 1);
    else if (way == 1)
        receive_any(seed, comm, count, 5);
    else
        receive_by_tag(seed, comm, count);
    for (Sending& sending : pending) OK(MPI_Wait(&sending.request, MPI_STATUS_IGNORE));
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    uint64_t seed = start_seed(20261121);
    MPI_Comm other;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    int count = size == 1 ? 60 : std::max(6, 240 / (size * size));
    for (int way = 0; way < 3; way++) round(seed + way, way == 1 ? other : MPI_COMM_WORLD, count, way);
    OK(MPI_Comm_free(&other));
    OK(MPI_Finalize());
    return 0;
}
