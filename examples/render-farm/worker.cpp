#include "worker.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "protocol.h"

namespace farm {
namespace {

class Worker {
  public:
    explicit Worker(MPI_Comm coordinator) : coordinator_(coordinator) {}

    void run() {
        const int pid = getpid();
        MPI_Send(&pid, 1, MPI_INT, 0, kReady, coordinator_);
        receive_job();
        // After every order except kLeave the worker sends a result or waits for the next order; see protocol.h.
        while (take_order()) {}
    }

  private:
    void receive_job() {
        MPI_Status status;
        MPI_Probe(0, kJob, coordinator_, &status);
        int bytes = 0;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        std::vector<char> packed(size_t(bytes), '\0');
        MPI_Recv(packed.data(), bytes, MPI_BYTE, 0, kJob, coordinator_, MPI_STATUS_IGNORE);
        job_ = Job::unpack(packed);
    }

    // Receives orders and starts a povray for each tile. If no more orders have arrived, delivers the result of the oldest povray.
    bool take_order() {
        Order order;
        MPI_Recv(&order, sizeof order, MPI_BYTE, 0, kOrder, coordinator_, MPI_STATUS_IGNORE);
        if (order.kind == Order::kLeave) return false;
        if (order.kind == Order::kRender) {
            running_.emplace_back(order.tile_number, Povray());
            running_.back().second.start(job_, order.tile, 1);
        }
        int more = 0;
        MPI_Iprobe(0, kOrder, coordinator_, &more, MPI_STATUS_IGNORE);
        if (!more && !running_.empty()) deliver_oldest();
        return true;
    }

    void deliver_oldest() {
        auto [tile_number, povray] = std::move(running_.front());
        running_.pop_front();
        ResultHeader header;
        header.tile_number = tile_number;
        std::vector<uint8_t> body;
        if (!povray.error().empty() || !povray.finish(&body, &header.cost)) {
            header.failed = 1;
            const std::string text = povray.error().substr(0, kMaxErrorText);
            body.assign(text.begin(), text.end());
        }
        header.length = int(body.size());
        std::vector<uint8_t> message(sizeof header + body.size());
        memcpy(message.data(), &header, sizeof header);
        std::copy(body.begin(), body.end(), message.begin() + sizeof header);
        MPI_Send(message.data(), int(message.size()), MPI_BYTE, 0, kResult, coordinator_);
    }

    MPI_Comm coordinator_;
    Job job_;
    std::deque<std::pair<int, Povray>> running_;  ///< running povrays with their tile numbers, oldest first
};

}  // namespace

void run_worker(MPI_Comm coordinator) {
    Worker(coordinator).run();
    MPI_Comm_disconnect(&coordinator);
}

void run_member() {
    MPI_Comm coordinator = MPI_COMM_NULL;
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 0, kMeetingTag, &coordinator);
    run_worker(coordinator);
}

}  // namespace farm
