// One data access of a file (MPI 5.0 section 14.4): its checks, its task, and the request of a non-blocking or split one.
#pragma once

#include <string>

#include "collective/collective_request.h"
#include "collective/core/view.h"
#include "file/transfer.h"
#include "file/two_phase.h"
#include "mpi/file/file_check.h"
#include "profile/files.h"

namespace starling::mpi {

/// The pointer from which an access takes its position. `ordered`: the shared pointer, in the order of ranks.
enum class FilePointer : uint8_t { explicit_offset, individual, shared, ordered };

/// The kind of a data access, as its function's name has it.
struct FileAccessKind {
    bool writes = false;
    bool together = false;  ///< whether all members of the file call the function
    FilePointer pointer = FilePointer::individual;
    bool operator==(const FileAccessKind&) const = default;
};

/// The arguments of a data access.
struct AccessArguments {
    MPI_Offset offset = 0;  ///< offset in etypes; used only with FilePointer::explicit_offset
    void* buffer = nullptr;
    MPI_Count count = 0;
    MPI_Datatype datatype = MPI_DATATYPE_NULL;
};

/// A checked data access. Holds a reference of its datatype.
class FileAccess {
  public:
    FileAccess() = default;
    FileAccess(const FileAccess&) = delete;
    ~FileAccess();

    /// Checks the arguments and takes the position; an individual file pointer moves on by the whole length. Returns an error class with
    /// failure_text(). With an error a collective access can and must still run. `error`: an error that the caller has found, with
    /// failure_text(); the arguments are then not used.
    int prepare(File& file, FileAccessKind kind, const AccessArguments& arguments, int error = MPI_SUCCESS);
    /// Returns the task that carries out the access; this object must outlive it. Call it once, after prepare(). `blocking`: the caller waits
    /// for the task.
    collective::Task run(bool blocking);
    /// Carries out the access at once if that takes no communication and no conversion. Returns false if run() must be used.
    bool run_now(int& error);
    /// Moves the individual file pointer back to the end of what a blocking access has read.
    void settle_pointer();

    /// Returns the description of the access for wait reports: members of a collective one that have not called it are known by its number.
    collective::OperationLabel label() const;
    File& file() const { return *file_; }
    FileAccessKind kind() const { return kind_; }
    /// Bytes of the program's buffer that have been moved.
    int64_t moved() const { return moved_; }

  private:
    int check(const AccessArguments& arguments);
    int take_position(MPI_Offset offset);
    int measure();
    collective::Task find_position(int error);
    collective::Task find_ordered_position(collective::View sum, collective::View spread, int error);
    collective::Task transfer(int error, bool blocking);
    void note_moved(int64_t bytes);

    File* file_ = nullptr;
    file::FileView view_;  ///< the file's view when the access began; references held
    FileAccessKind kind_;
    rma::LocalBuffer memory_;
    int64_t position_ = 0;
    int64_t bytes_ = 0;          ///< length in the file's representation
    int64_t moved_ = 0;          ///< bytes of the program's buffer
    int64_t moved_in_file_ = 0;  ///< bytes of the file
    int error_ = MPI_SUCCESS;
    std::string text_;  ///< text of `error_`
    bool moved_pointer_ = false;
    uint32_t number_ = 0;        ///< number of a collective access among the collective operations of the file's communicator
    file::TransferViews views_;  ///< of a collective access
    collective::View ordered_views_[2]{};  ///< of the two steps that find an ordered position
};

/// A non-blocking or split access.
struct FileRequest : collective::CollectiveRequest {
    FileAccess access;
    profile::FileCall measured;
};

/// Starts an access that has been prepared as the request's `access`.
void start_access(FileRequest& request);
FileRequest* make_file_request(File& file);
void free_file_request(FileRequest& request);

}  // namespace starling::mpi
