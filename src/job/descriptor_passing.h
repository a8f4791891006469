// Passing of file descriptors between processes that cannot open each other's memory through /proc. The kernel closes /proc/<pid>/fd of a
// program that may be executed but not read, of one that runs with another group, and after prctl(PR_SET_DUMPABLE, 0). Such a process
// passes the descriptor of its memory to the job's launcher (launch/process/descriptor_broker.h), which passes it on to any process of its
// jobs that asks for it.
//
// A rank in a separate user namespace (a rootless container) cannot open files of any process outside, its launcher included. The launcher
// can open files of all processes, so it opens for the rank what the rank cannot open, including job segments.
//
// A call is one connection, one packet and one reply; it waits for a few seconds at most. Needs the library's lock.
#pragma once

#include <sys/un.h>

#include <cstdint>
#include <string_view>

#include "job/job_segment.h"

namespace starling::job {

enum class DescriptorCall : uint32_t { deposit = 1, fetch = 2, withdraw_descriptor = 3, segment = 4 };

/// A request to the descriptor broker. With `deposit` the descriptor is attached to the request, with `fetch` and `segment` to the reply.
struct DescriptorRequest {
    DescriptorCall what;
    uint32_t unused;
    JobId job;
    uint64_t secret[2];       ///< secret of the job's segment; not checked if a rank asks for the segment of its job
    uint64_t inode;           ///< inode of the memory
    JobId wanted;             ///< the job whose segment is wanted
    int32_t pid, descriptor;  ///< location of the memory: /proc/<pid>/fd/<descriptor>
};
/// Not 0 if the request was carried out.
using DescriptorReply = uint32_t;

/// Writes the address of the broker that belongs to the launcher with this control socket: an abstract SOCK_SEQPACKET socket. Returns the
/// length of the address.
socklen_t keeper_address(std::string_view control_socket, sockaddr_un& address);

/// Sends a packet with a descriptor (-1: without). Returns false with errno.
bool send_with(int socket, const void* packet, size_t bytes, int descriptor);
/// Receives a packet and its first descriptor (-1 if it has none), which the caller must close; further descriptors are closed. Returns the
/// packet's length, or 0 if there is no packet.
size_t receive_with(int socket, void* packet, size_t room, int& descriptor);

/// Returns whether the job's launcher lives, judged by whether its broker accepts connections. True if the job has no launcher yet.
bool launcher_listens(const JobHeader& job);

/// Sets this process's own job, through whose launcher descriptors are passed. Its mapping must stay.
void deposit_through(const JobHeader& own);
/// Returns whether other processes cannot open this one's descriptors through /proc.
bool is_closed_to_others();
/// Deposits a descriptor with the launcher until withdraw_descriptor() or the end of the job. Without a launcher, deposit_again() deposits
/// it later. Returns false on failure.
bool deposit_descriptor(int descriptor, uint64_t inode);
void withdraw_descriptor(uint64_t inode);
/// Deposits all descriptors with a launcher that has just started: for a process that was started without mpiexec.
void deposit_again();
/// Returns a descriptor that a process has deposited, or that the launcher can open in /proc/<pid>; the caller closes it. -1 if there is
/// none.
int fetch_deposited(int32_t pid, int32_t descriptor, uint64_t inode);
/// Returns a descriptor of a job's segment, this process's own job included; the caller closes it and must check that it is that segment.
/// -1 if there is none.
int fetch_segment(const JobAddress& address);

}  // namespace starling::job
