// The daemons of the simulated hosts: they create the job's segments, answer the ranks' requests, and mark dead ranks.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "control/control_protocol.h"
#include "descriptors.h"
#include "job/job_segment.h"
#include "plans.h"

namespace starling::simulation {

/// Hosts of the ranks, and the job's settings that depend on hosts.
struct Placement {
    std::vector<uint32_t> host_of_rank;
    uint32_t hosts = 1;
    uint32_t cores = 1;  ///< cores per host
    bool recovers = false;
    Plans plans{0};
    bool encrypts = false;  ///< whether packets between hosts are encrypted
};

class Daemons {
  public:
    Daemons(World& world, const Placement& placement);
    ~Daemons();

    /// Return the job variables in a rank's environment.
    const char* job_variable(uint32_t host) const { return job_variables_[host].c_str(); }
    const char* rank_variable(uint32_t rank) const { return rank_variables_[rank].c_str(); }
    /// Returns the mapping of the segment that is open as this file; null if the file is not a segment. All ranks of a host share one
    /// mapping.
    void* mapping(int fd) const;
    bool is_mapping(const void* memory) const;
    uint32_t cores() const { return placement_.cores; }

    /// Kills the rank: its host's kernel closes its descriptors, the daemons mark it as dead and ring the other ranks.
    void kill(Process& process);

    /// Ends the job on behalf of a rank (MPI_Abort and the like): its daemon reports it, and all other ranks are killed.
    [[noreturn]] void end_job(Process& by);
    bool is_ending() const { return is_ending_; }

    job::JobSegment& segment(uint32_t host) { return segments_[host]; }
    Process& daemon_of(uint32_t host) { return *daemons_[host]; }

    // Carry out requests that a rank sends to the daemon of its host.
    void on_locate(Process& asker, const control::JobQuery& query, int fd);
    void on_abandoned(const control::JobQuery& query, uint32_t by);
    void on_arrived();
    void on_plan(Process& asker, int fd);

  private:
    void mark_dead(uint32_t rank, uint32_t host);
    void ring(uint32_t rank);
    void answer(Process& asker, uint32_t rank, int fd);

    World& world_;
    const Placement placement_;
    std::vector<job::JobSegment> segments_;
    std::vector<struct stat> files_;  ///< of the segments; ranks ask often whether a descriptor is one of them
    std::vector<Process*> daemons_;
    std::vector<std::string> job_variables_, rank_variables_;
    uint32_t arrived_ = 0;
    bool is_ending_ = false;
};

Daemons* daemons();

/// A rank's end of its connection to the daemon.
struct ControlSocket final : Descriptor {
    control::FrameDecoder decoder{control::kMaxFrame};
    std::string replies;
    uint32_t rank = 0;

    using Descriptor::Descriptor;
    uint32_t events() const override { return (replies.empty() ? 0u : EPOLLIN) | EPOLLOUT; }
    void send(std::string_view bytes, int fd);
};

}  // namespace starling::simulation
