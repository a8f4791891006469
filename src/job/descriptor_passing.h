// Memory handed over as a descriptor: where the kernel lets nobody look into this process's /proc (a program that may be executed but
// not read, one that runs with another group, prctl(PR_SET_DUMPABLE, 0)), neighbours can't open its memory there. Then the job's launcher
// keeps the descriptor (launch/process/descriptor_broker.h), and gives it to every process of its jobs that asks.
//
// A rank in a user namespace of its own (a rootless container) can look into nobody outside, its launcher included, but the launcher can look
// into everybody: it opens for the rank what the rank can't, segments of jobs among it.
//
// A call is one connection, one packet and one answer; it waits for a few seconds at most. Needs the library's lock.
#pragma once

#include <sys/un.h>

#include <cstdint>
#include <string_view>

#include "job/job_segment.h"

namespace starling::job {

enum class DescriptorCall : uint32_t { give = 1, fetch = 2, take_back = 3, segment = 4 };

/// What is asked for; `give` has the descriptor with it, the answers to `fetch` and `segment` too.
struct DescriptorRequest {
    DescriptorCall what;
    uint32_t unused;
    JobId job;
    uint64_t secret[2];  ///< of the job's segment; not looked at where a rank asks for the segment of its own job, which has it
    uint64_t inode;      ///< of the memory
    JobId wanted;        ///< whose segment
    int32_t pid, descriptor;  ///< where it is, /proc/<pid>/fd/<descriptor>
};
/// Not 0: it was done.
using DescriptorReply = uint32_t;

/// Where the keeper listens whose control socket has this name: an abstract socket of whole packets. Length of the address.
socklen_t keeper_address(std::string_view control_socket, sockaddr_un& address);

/// A packet with a descriptor (-1: without). False with errno.
bool send_with(int socket, const void* packet, size_t bytes, int descriptor);
/// Takes one, with its first descriptor, which is the caller's to close, or -1; further ones are closed. How many bytes it had; 0 if there
/// is none.
size_t receive_with(int socket, void* packet, size_t room, int& descriptor);

/// Whether somebody keeps memory for that job: its launcher lives. True if it has none yet.
bool launcher_listens(const JobHeader& job);

/// This process's own job, whose mapping stays.
void hand_over_through(const JobHeader& own);
/// Whether others may not look into this process.
bool is_closed_to_others();
/// The launcher keeps it from now on, until it is taken back or the job is over; if there is none yet, from hand_over_again() on. False if it
/// can't.
bool hand_over(int descriptor, uint64_t inode);
void take_back(uint64_t inode);
/// To a launcher that has just come: of a process that was started without mpiexec.
void hand_over_again();
/// Memory that somebody has handed over, or that the launcher can open there; the caller closes it. -1 if there is none.
int fetch_handed_over(int32_t pid, int32_t descriptor, uint64_t inode);
/// The same for the segment of a job, of the own one too. What comes need not be it.
int fetch_segment(const JobAddress& address);

}  // namespace starling::job
