// The launcher keeps memory of processes that nobody may look into, and gives it to the others of its jobs; for those that may look into nobody
// it opens what it can itself (job/descriptor_passing.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "job/descriptor_passing.h"

namespace starling::launch {

class Launcher;

class Keeper {
  public:
    explicit Keeper(Launcher& launcher) : launcher_(launcher) {}
    Keeper(const Keeper&) = delete;
    Keeper& operator=(const Keeper&) = delete;
    ~Keeper();

    /// Listens beside that control socket. False with errno.
    bool start(const std::string& control_socket);

  private:
    struct Kept {
        job::JobId job;
        int descriptor;
    };

    void accept();
    void serve(int socket);
    bool is_entitled(const job::HandoverRequest& request) const;
    bool answer(const job::HandoverRequest& request, int& descriptor, int& found);
    int find_segment(const job::HandoverRequest& request) const;
    bool keep(const job::HandoverRequest& request, int descriptor);
    void drop(std::unordered_map<uint64_t, Kept>::iterator kept);
    void drop_of_ended_jobs();

    Launcher& launcher_;
    int socket_ = -1;
    std::unordered_set<int> askers_;
    std::unordered_map<uint64_t, Kept> kept_;  ///< by inode
};

}  // namespace starling::launch
