// Open files (MPI 5.0 chapter 14): the object behind an MPI_File, its view and its pointers.
//
// Not thread-safe: needs the library's lock.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/handle.h"
#include "collective/shm/operation_queue.h"
#include "comm/comm.h"
#include "comm/errhandler.h"
#include "comm/info.h"
#include "file/hints.h"
#include "file/system/open_file.h"
#include "file/view.h"
#include "mpi-ext.h"
#include "rma/access.h"

namespace starling::collective {
struct CollectiveRequest;
}

namespace starling::file {

class TwoPhaseBuffers;

/// The shared file pointer: a count of etypes at rank 0, which all members update by one-sided access (file/shared_pointer.h).
struct SharedPointer;

struct File {
    static constexpr uint32_t kMagic = 0x46696c65;
    uint32_t magic = 0;
    uint32_t pool_index = 0;

    comm::Comm* comm = nullptr;  ///< the file's private communicator; reference held
    comm::Errhandler* errhandler = nullptr;
    std::string name;  ///< name without prefix
    int amode = 0;
    std::unique_ptr<OpenFile> system;
    uint64_t device = 0, inode = 0;   ///< the file, as this host numbers it
    bool created = false;             ///< whether this process has created the file in the file system
    bool survives = false;            ///< whether members may die while others continue; the same on all
    int sync_leader = -1;             ///< rank that stores the file for this process (file/sync.cpp); -1: not chosen yet
    bool sync_is_shared = false;      ///< whether some member has another one as its leader; the same on all
    Caching caching = Caching::none;  ///< the largest value of all members, whose drivers may differ; the same on all
    FileLayout layout;                ///< as the file system had it when the file was opened
    /// The view for the accesses that begin now. An access keeps the view with which it began (FileTransfer::view).
    FileView view;
    int64_t position = 0;  ///< individual file pointer, bytes of the view's stream
    bool atomic = false;
    /// Transfers in atomic mode, one after the other: locks of the file keep other handles and processes apart, but not two transfers
    /// through this handle.
    collective::OperationQueue locked_turns;
    FileHints hints;
    /// Host names of the members, the same on all. Empty until a hint names hosts: tables of hosts may differ between members.
    std::vector<std::string> host_names;
    std::unique_ptr<SharedPointer> shared;
    std::shared_ptr<TwoPhaseBuffers> buffers;  ///< buffers of collective transfers, kept between calls; null before the first
    /// The split collective operation in progress; null: none. One per handle at most (section 14.4.5).
    collective::CollectiveRequest* split = nullptr;
    int64_t split_bytes = 0;
    uint32_t open_requests = 0;      ///< non-blocking operations in progress: MPI_File_close with any is an error
    uint32_t blocking_accesses = 0;  ///< threads within a blocking access

    File();
    ~File();
    bool may_read() const;
    bool may_write() const;
    bool sequential() const { return amode & MPI_MODE_SEQUENTIAL; }
};

/// Arguments of open() on this process. `error`: an error that the caller has found in them, with failure_text(); the process takes part
/// nevertheless, so that all members get an error.
struct OpenArguments {
    std::string name;
    int amode = 0;
    comm::Info info;
    int error = MPI_SUCCESS;
};

/// Opens a file on all members of the intra-communicator. Collective: `opened` is set on all members, or all return an error.
int open(comm::Comm& comm, const OpenArguments& arguments, File*& opened);
/// Closes the file on all members, and deletes it if it was opened with MPI_MODE_DELETE_ON_CLOSE. Collective. `error`: an error that keeps
/// this member from closing the file; it then stays open on all. `closed`: whether the object is gone on return; the same on all living
/// members, and also true after other errors, such as the death of a member.
int close(File& file, int error, bool& closed);
/// Returns MPI_ERR_AMODE with failure_text() for an access mode that the standard does not allow (section 14.2.1).
int check_amode(int amode);

/// Makes all members of a collective call agree: returns MPI_SUCCESS if every member passes no error and the same `values`;
/// MPI_ERR_NOT_SAME if the values differ, or the error of a member. `what` names the values in the text. `largest` (null: none) is replaced
/// by the largest of all members' numbers. Collective and blocking.
int agree_on(File& file, std::span<const int64_t> values, int error, const char* what, int64_t* largest = nullptr);

/// Gathers the host names of the members if the hints name hosts. Collective, and the result is the same kind of result on all.
int share_host_names(File& file);
/// Replaces the hints by those that rank 0 passes. Collective; every member calls it, and the result is the same on all.
int share_hints(File& file, const comm::Info& info);

/// Sets the view, whose references the file takes over, and both file pointers to 0. Local.
void set_view(File& file, const FileView& view);
/// Returns whether some members have caches of their own, so that they see each other's writes only after MPI_File_sync. Aggregators then
/// write and read data of other members past these members' caches, although each process must see its own writes in order (MPI 5.0 section
/// 14.6.1). The same on all members.
bool caches_differ(const File& file);
/// Returns the file's size in the file system; MPI error class with failure_text().
int size_of(File& file, int64_t& bytes);

/// Stores all members' writes on the device and makes them visible to processes that call this function or open the file afterwards.
/// Collective: every member calls it, with its own error so far, and the result is the same kind of result on all.
int sync(File& file, int error);

/// Checks that the file system can lock ranges, as atomic mode requires: MPI_ERR_UNSUPPORTED_OPERATION with failure_text() otherwise.
int check_locks(File& file);

/// Returns whether an error class reports that a member of a collective call has died. Other members may then have another result.
inline bool is_death(int error) { return error == MPI_ERR_PROC_ABORTED || error == MPIX_ERR_PROC_FAILED; }

/// Find open files by pool index, and by the context id of their communicator; null if there is none.
File* file_at(uint32_t pool_index);
File* file_of(uint64_t context);

/// One transfer between a buffer of the program and a file's stream, from stream position `position` on. The file's extents follow from the
/// view, the memory's blocks from buffer, count and type. The caller keeps the view, and references of all types, while the transfer runs;
/// another thread may set another view of the file meanwhile.
struct FileTransfer {
    int64_t position = 0;
    rma::LocalBuffer memory;
    const FileView* view = nullptr;
    bool blocking = false;  ///< whether a thread waits for the transfer, and so makes the system calls itself
    uint64_t bytes() const { return memory.bytes(); }
};

inline File* from_handle(MPI_File handle) { return object_behind<File>(handle); }
inline MPI_File to_handle(File* file) { return file ? reinterpret_cast<MPI_File>(file) : MPI_FILE_NULL; }

}  // namespace starling::file
