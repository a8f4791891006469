#include "coordinator.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

namespace farm {
namespace {

// Maximum number of workers that may die while they render the same tile, before the run fails.
constexpr int kMaxAttempts = 20;

std::string own_path() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    return length > 0 ? std::string(path, size_t(length)) : "render-farm";
}

std::string text_of(int code) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return "error " + std::to_string(code);
    return std::string(text, size_t(length));
}

}  // namespace

Coordinator::Coordinator(const Plan& plan, Picture* picture)
    : plan_(plan),
      picture_(picture),
      program_(own_path()),
      tiles_(cut(plan.job.width, plan.job.height, plan.tile_width, plan.tile_height)),
      attempts_(tiles_.size(), 0),
      grow_left_(plan.grow),
      shrink_left_(plan.shrink),
      kill_left_(plan.kill),
      progress_(int(tiles_.size()), plan.quiet) {
    for (size_t i = 0; i < tiles_.size(); ++i) waiting_.push_back(int(i));
    outcome_.tiles = int(tiles_.size());
}

Outcome Coordinator::run() {
    const double started = now();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    add_workers(plan_.workers);
    while (!done()) {
        int index = MPI_UNDEFINED;
        MPI_Status status;
        const int code = MPI_Waitany(int(requests_.size()), requests_.data(), &index, &status);
        if (index == MPI_UNDEFINED) {
            outcome_.error = "no worker is left to wait for: " + text_of(code);
        } else if (code == MPI_SUCCESS) {
            handle_arrival(size_t(index), status);
        } else {
            workers_[size_t(index)]->death = code;
        }
        replace_dead();
        if (done()) break;
        follow_plan();
        hand_out_to_idle();
        progress_.show(tiles_done_, int(workers_.size()));
    }
    progress_.show(tiles_done_, int(workers_.size()));
    progress_.end();
    if (!outcome_.error.empty()) return outcome_;
    while (!workers_.empty()) let_go(workers_.size() - 1);
    outcome_.elapsed = now() - started;
    return outcome_;
}

void Coordinator::add_workers(int count) {
    for (int i = 0; i < count && outcome_.error.empty(); ++i) {
        auto worker = std::make_unique<Worker>();
        const double before = now();
        const int code = find_worker(worker.get());
        outcome_.spawning += now() - before;
        if (code != MPI_SUCCESS) {
            // Continue with the existing workers, if there are any.
            if (workers_.empty())
                outcome_.error = "can't spawn a worker: " + text_of(code);
            else
                progress_.say("can't spawn another worker: " + text_of(code));
            return;
        }
        worker->number = ++outcome_.spawned;
        MPI_Comm_set_errhandler(worker->comm, MPI_ERRORS_RETURN);
        worker->buffer.resize(sizeof(ResultHeader) + std::max(kMaxErrorText, size_t(plan_.tile_width) * plan_.tile_height * 3));
        const auto job = plan_.job.pack();
        MPI_Send(job.data(), int(job.size()), MPI_BYTE, 0, kJob, worker->comm);
        workers_.push_back(std::move(worker));
        requests_.push_back(MPI_REQUEST_NULL);
        post_receive(workers_.size() - 1);  // the worker's first message has its pid
        for (int k = 0; k < plan_.ahead; ++k) send_order(workers_.size() - 1);
    }
}

// Creates an inter-communicator to a new worker: spawns it, or takes the next member of the job.
int Coordinator::find_worker(Worker* worker) {
    if (plan_.members) {
        const int rank = outcome_.spawned + 1;
        return MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, rank, kMeetingTag, &worker->comm);
    }
    char argument[16];
    strcpy(argument, kWorkerArgument);
    char* arguments[] = {argument, nullptr};
    int start_code = MPI_SUCCESS;
    return MPI_Comm_spawn(program_.c_str(), arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &worker->comm, &start_code);
}

void Coordinator::post_receive(size_t index) {
    Worker& worker = *workers_[index];
    worker.receiving = true;
    const int code =
        MPI_Irecv(worker.buffer.data(), int(worker.buffer.size()), MPI_BYTE, 0, MPI_ANY_TAG, worker.comm, &requests_[index]);
    if (code != MPI_SUCCESS) {
        // The worker is known to be dead already.
        worker.death = code;
        worker.receiving = false;
        requests_[index] = MPI_REQUEST_NULL;
    }
}

void Coordinator::handle_arrival(size_t index, const MPI_Status& status) {
    Worker& worker = *workers_[index];
    worker.receiving = false;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (status.MPI_TAG == kReady) {
        memcpy(&worker.pid, worker.buffer.data(), sizeof worker.pid);
        if (plan_.verbose) {
            progress_.say("worker " + std::to_string(worker.number) + " is process " + std::to_string(worker.pid));
        }
    } else {
        accept_result(worker, bytes);
        send_order(index);
    }
    if (worker.leaving && worker.tiles.empty()) {
        ++outcome_.let_go;
        if (plan_.verbose) progress_.say("worker " + std::to_string(worker.number) + " is released");
        let_go(index);
    } else if (!worker.tiles.empty()) {
        post_receive(index);
    }
}

void Coordinator::accept_result(Worker& worker, int bytes) {
    ResultHeader header;
    memcpy(&header, worker.buffer.data(), sizeof header);
    const uint8_t* body = worker.buffer.data() + sizeof header;
    const auto place = std::find(worker.tiles.begin(), worker.tiles.end(), header.tile_number);
    if (place == worker.tiles.end() || bytes != int(sizeof header) + header.length) {
        outcome_.error = "a worker sent an unexpected result";
        return;
    }
    worker.tiles.erase(place);
    if (header.failed) {
        outcome_.error = std::string(reinterpret_cast<const char*>(body), size_t(header.length));
        return;
    }
    picture_->paste(tiles_[size_t(header.tile_number)], body);
    outcome_.tile_cpu += header.cost.cpu;
    ++tiles_done_;
}

void Coordinator::replace_dead() {
    const auto is_dead = [](const auto& worker) { return worker->death != MPI_SUCCESS; };
    for (;;) {
        const auto dead = std::find_if(workers_.begin(), workers_.end(), is_dead);
        if (dead == workers_.end() || !outcome_.error.empty()) return;
        const bool replace = !(*dead)->leaving || workers_.size() == 1;
        bury(size_t(dead - workers_.begin()));
        if (outcome_.lost > kMaxAttempts * int(tiles_.size())) outcome_.error = "too many workers have died";
        if (replace) add_workers(1);
    }
}

void Coordinator::bury(size_t index) {
    Worker& worker = *workers_[index];
    ++outcome_.lost;
    progress_.say("worker " + std::to_string(worker.number) + " is lost, its " + std::to_string(worker.tiles.size()) +
                  " tiles are reassigned (" + text_of(worker.death) + ")");
    for (auto tile = worker.tiles.rbegin(); tile != worker.tiles.rend(); ++tile) waiting_.push_front(*tile);
    if (requests_[index] != MPI_REQUEST_NULL) MPI_Request_free(&requests_[index]);
    // Disconnecting a dead worker only releases local resources, because no agreement with it is possible.
    MPI_Comm_disconnect(&worker.comm);
    workers_.erase(workers_.begin() + long(index));
    requests_.erase(requests_.begin() + long(index));
}

// Sends a worker its first tiles, or the order that follows a result; see protocol.h.
void Coordinator::send_order(size_t index) {
    Worker& worker = *workers_[index];
    Order order;
    if (!waiting_.empty() && !worker.leaving && outcome_.error.empty()) {
        order.kind = Order::kRender;
        order.tile_number = waiting_.front();
        order.tile = tiles_[size_t(order.tile_number)];
        if (++attempts_[size_t(order.tile_number)] > kMaxAttempts) {
            outcome_.error = "tile " + std::to_string(order.tile_number) + " was lost with its worker " +
                             std::to_string(kMaxAttempts) + " times";
            return;
        }
        waiting_.pop_front();
        worker.tiles.push_back(order.tile_number);
    }
    // If the worker has died meanwhile, its receive reports the error, now or when it is posted.
    MPI_Send(&order, sizeof order, MPI_BYTE, 0, kOrder, worker.comm);
}

// Assigns the tiles of a lost worker to idle workers.
void Coordinator::hand_out_to_idle() {
    for (size_t i = 0; i < workers_.size() && !waiting_.empty(); ++i) {
        Worker& worker = *workers_[i];
        if (worker.leaving || !worker.tiles.empty() || worker.receiving) continue;
        send_order(i);
        post_receive(i);
    }
}

void Coordinator::let_go(size_t index) {
    Order order;
    order.kind = Order::kLeave;
    Worker& worker = *workers_[index];
    const double before = now();
    MPI_Send(&order, sizeof order, MPI_BYTE, 0, kOrder, worker.comm);
    // A worker that started too late to get a tile has yet to send its pid, so wait for it.
    if (worker.receiving) MPI_Wait(&requests_[index], MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&worker.comm);
    outcome_.disconnecting += now() - before;
    workers_.erase(workers_.begin() + long(index));
    requests_.erase(requests_.begin() + long(index));
}

void Coordinator::follow_plan() {
    const int total = int(tiles_.size());
    if (grow_left_ > 0 && tiles_done_ * 3 >= total) {
        const int count = std::exchange(grow_left_, 0);
        progress_.say("growing by " + std::to_string(count));
        add_workers(count);
    }
    // The kills are spread over the run; the first happens after a sixth of it.
    if (kill_left_ > 0 && tiles_done_ * 6 * plan_.kill >= total * (1 + 4 * (plan_.kill - kill_left_))) kill_one();
    if (shrink_left_ > 0 && tiles_done_ * 3 >= total * 2) shrink();
}

void Coordinator::shrink() {
    const int count = std::min(std::exchange(shrink_left_, 0), int(workers_.size()) - 1);
    progress_.say("shrinking by " + std::to_string(count));
    for (int i = 0; i < count; ++i) workers_[size_t(i)]->leaving = true;
    // Busy workers leave after their last result.
    for (size_t i = size_t(count); i-- > 0;) {
        if (!workers_[i]->receiving) {
            ++outcome_.let_go;
            let_go(i);
        }
    }
}

void Coordinator::kill_one() {
    for (auto& worker : workers_) {
        if (worker->pid == 0 || worker->tiles.empty()) continue;
        --kill_left_;
        progress_.say("killing worker " + std::to_string(worker->number));
        kill(worker->pid, SIGKILL);
        worker->pid = 0;
        return;
    }
}

}  // namespace farm
