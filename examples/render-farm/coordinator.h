#pragma once

#include <mpi.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "picture.h"
#include "povray.h"
#include "progress.h"
#include "protocol.h"

namespace farm {

/// The options of a run of the farm.
struct Plan {
    Job job;
    int tile_width = 0;  ///< pixels
    int tile_height = 0;
    int workers = 1;
    int grow = 0;          ///< workers to add when a third of the tiles is done
    int shrink = 0;        ///< workers to release when two thirds are done
    int kill = 0;          ///< workers to kill during the run, to show that nothing is lost
    bool members = false;  ///< the workers are the other members of the job; none is spawned
    int ahead = 2;         ///< number of tiles that a worker has at a time, so that one povray starts while another renders
    bool verbose = false;
    bool quiet = false;
};

/// The result and statistics of a run.
struct Outcome {
    std::string error;  ///< empty if the picture is complete
    int tiles = 0;
    int spawned = 0;           ///< total number of workers: spawned, or members of the job
    int lost = 0;              ///< workers that died
    int let_go = 0;            ///< workers released before the end
    double elapsed = 0;        ///< seconds from the first spawn to the last disconnect
    double spawning = 0;       ///< seconds of `elapsed` that were spent in MPI_Comm_spawn
    double disconnecting = 0;  ///< seconds of `elapsed` that were spent in MPI_Comm_disconnect
    double tile_cpu = 0;       ///< processor seconds of all accepted tiles
};

/// Spawns workers (or takes the other members of its job), distributes tiles, and collects pixels. Each worker has a separate
/// inter-communicator with MPI_ERRORS_RETURN, so the death of a worker affects only its receive.
class Coordinator {
  public:
    Coordinator(const Plan& plan, Picture* picture);

    Outcome run();

  private:
    struct Worker {
        int number = 0;  ///< number of the worker; counts from 1, never reused
        int pid = 0;     ///< process id; 0 until the worker has sent it
        MPI_Comm comm = MPI_COMM_NULL;
        std::deque<int> tiles;    ///< numbers of its current tiles
        bool receiving = false;   ///< whether a receive is posted (in requests_)
        int death = MPI_SUCCESS;  ///< error that reported the worker's death
        bool leaving = false;     ///< whether the worker is to be released and gets no more tiles
        std::vector<uint8_t> buffer;
    };

    void add_workers(int count);
    int find_worker(Worker* worker);
    void post_receive(size_t index);
    void handle_arrival(size_t index, const MPI_Status& status);
    void accept_result(Worker& worker, int bytes);
    void replace_dead();
    void bury(size_t index);
    void send_order(size_t index);
    void hand_out_to_idle();
    void let_go(size_t index);
    void follow_plan();
    void shrink();
    void kill_one();
    bool done() const { return tiles_done_ == int(tiles_.size()) || !outcome_.error.empty(); }

    const Plan plan_;
    Picture* picture_;
    std::string program_;
    std::vector<Tile> tiles_;
    std::vector<int> attempts_;  ///< number of workers lost with each tile
    std::deque<int> waiting_;    ///< numbers of the tiles without a worker
    int tiles_done_ = 0;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<MPI_Request> requests_;  ///< the receive from each worker, in the order of workers_
    int grow_left_, shrink_left_, kill_left_;
    Progress progress_;
    Outcome outcome_;
};

}  // namespace farm
