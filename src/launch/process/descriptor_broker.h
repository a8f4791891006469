// Passes file descriptors between processes that cannot open each other's /proc entries. The broker stores descriptors of processes whose
// /proc is closed, and passes them to their peers. For processes that cannot open any /proc entry it opens memory itself
// (job/descriptor_passing.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "job/descriptor_passing.h"

namespace starling::launch {

class Launcher;

class DescriptorBroker {
  public:
    explicit DescriptorBroker(Launcher& launcher) : launcher_(launcher) {}
    DescriptorBroker(const DescriptorBroker&) = delete;
    DescriptorBroker& operator=(const DescriptorBroker&) = delete;
    ~DescriptorBroker();

    /// Listens on a socket whose name follows from `control_socket`. Returns false and sets errno on failure.
    bool start(const std::string& control_socket);

  private:
    struct StoredDescriptor {
        job::JobId job;
        int descriptor;
    };

    void accept();
    void serve(int socket);
    bool is_entitled(const job::DescriptorRequest& request) const;
    bool answer(const job::DescriptorRequest& request, int& descriptor, int& found);
    int find_segment(const job::DescriptorRequest& request) const;
    bool store(const job::DescriptorRequest& request, int descriptor);
    void drop(std::unordered_map<uint64_t, StoredDescriptor>::iterator kept);
    void drop_of_ended_jobs();

    Launcher& launcher_;
    int socket_ = -1;
    std::unordered_set<int> askers_;
    std::unordered_map<uint64_t, StoredDescriptor> stored_;  ///< descriptors that processes have passed to the broker, by inode
};

}  // namespace starling::launch
