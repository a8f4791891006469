#include "mpi/file/data_access.h"

#include <utility>

#include "base/error.h"
#include "base/state.h"
#include "message/status.h"
#include "mpi/completion/request_handle.h"
#include "mpi/file/file_access.h"
#include "profile/files.h"
#include "progress/engine.h"

namespace starling::mpi {

namespace {

constexpr FileAccessKind kRead{false, false, FilePointer::individual};
constexpr FileAccessKind kReadAll{false, true, FilePointer::individual};
constexpr FileAccessKind kReadAt{false, false, FilePointer::explicit_offset};
constexpr FileAccessKind kReadAtAll{false, true, FilePointer::explicit_offset};
constexpr FileAccessKind kReadShared{false, false, FilePointer::shared};
constexpr FileAccessKind kReadOrdered{false, true, FilePointer::ordered};
constexpr FileAccessKind kWrite{true, false, FilePointer::individual};
constexpr FileAccessKind kWriteAll{true, true, FilePointer::individual};
constexpr FileAccessKind kWriteAt{true, false, FilePointer::explicit_offset};
constexpr FileAccessKind kWriteAtAll{true, true, FilePointer::explicit_offset};
constexpr FileAccessKind kWriteShared{true, false, FilePointer::shared};
constexpr FileAccessKind kWriteOrdered{true, true, FilePointer::ordered};

/// Number of accesses, for poll_sometimes().
STARLING_STATE uint32_t accesses = 0;

/// Polls now and then, because most accesses of one process need no poll: a loop of them would learn neither of a revocation nor of anything
/// else. A poll takes much less time than the system calls of so many accesses.
void poll_sometimes() {
    constexpr uint32_t kAccessesPerPoll = 16;
    if (++accesses % kAccessesPerPoll == 0) progress::poll();
}

void fill(MPI_Status* status, int64_t bytes) {
    progress::Outcome outcome;
    outcome.bytes = static_cast<uint64_t>(bytes);
    message::fill_status(status, outcome);
}

/// A blocking access.
int transfer(MPI_File fh, FileAccessKind kind, const AccessArguments& arguments, MPI_Status* status) {
    Lock lock;
    poll_sometimes();
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    profile::FileCall measured;
    measured.begin();
    FileAccess access;
    int error = access.prepare(*f, kind, arguments);
    if (error && !kind.together) return raise(*f, error);
    ++f->blocking_accesses;
    if (error || !access.run_now(error)) error = collective::run(access.run(true), access.label());
    --f->blocking_accesses;
    access.settle_pointer();
    measured.end(f->name, access.moved());
    fill(status, access.moved());
    return raise(*f, error);
}

/// Frees a request that has no handle, when it completes.
void release_unnamed(FileRequest& request) {
    if (request.done)
        free_file_request(request);
    else
        request.orphaned = true;
}

/// A non-blocking access. An error of a collective one appears when the request completes, because this member takes part all the same. If
/// there is no place for the request, the error is returned at once, and the others get it when their requests complete.
int start(MPI_File fh, FileAccessKind kind, const AccessArguments& arguments, MPI_Request* request) {
    Lock lock;
    poll_sometimes();
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    if (!request && !kind.together) return null_argument(*f, "request");
    FileRequest* made = make_file_request(*f);
    const int given = request ? MPI_SUCCESS : null_pointer("request");
    const int error = made->access.prepare(*f, kind, arguments, given);
    if (error && !kind.together) {
        free_file_request(*made);
        return raise(*f, error);
    }
    start_access(*made);
    if (!request) {
        release_unnamed(*made);
        return null_argument(*f, "request");
    }
    *request = request_to_handle(made);
    return MPI_SUCCESS;
}

/// The first half of a split collective access. An error of an argument appears in the second half.
int begin(MPI_File fh, FileAccessKind kind, const AccessArguments& arguments) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    if (f->split) return raise(*f, fail(MPI_ERR_OTHER, "a split collective operation on the file is in progress already"));
    FileRequest* made = make_file_request(*f);
    made->access.prepare(*f, kind, arguments);
    f->split = made;
    start_access(*made);
    return MPI_SUCCESS;
}

constinit const progress::WaitSite kSplitSite{.report_wait = [](const void* argument, progress::WaitReporter& teller) {
    collective::report_wait(static_cast<const FileRequest*>(argument)->label, teller);
}};

int end(MPI_File fh, FileAccessKind kind, MPI_Status* status) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    auto* const request = static_cast<FileRequest*>(f->split);
    if (!request || request->access.kind() != kind)
        return raise(*f,
                     fail(MPI_ERR_OTHER, request ? "the split collective operation in progress was begun by another function"
                                                 : "no split collective operation is in progress"));
    progress::wait(*request, kSplitSite);
    f->split = nullptr;
    const int error = progress::error_of(*request);
    fill(status, request->access.moved());
    free_file_request(*request);
    return raise(*f, error);
}

}  // namespace

int File_read(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
    return transfer(fh, kRead, {0, buf, count, datatype}, status);
}

int File_read_all(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
    return transfer(fh, kReadAll, {0, buf, count, datatype}, status);
}

int File_read_at(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
    return transfer(fh, kReadAt, {offset, buf, count, datatype}, status);
}

int File_read_at_all(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
    return transfer(fh, kReadAtAll, {offset, buf, count, datatype}, status);
}

int File_read_shared(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
    return transfer(fh, kReadShared, {0, buf, count, datatype}, status);
}

int File_read_ordered(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
    return transfer(fh, kReadOrdered, {0, buf, count, datatype}, status);
}

int File_iread(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
    return start(fh, kRead, {0, buf, count, datatype}, request);
}

int File_iread_all(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
    return start(fh, kReadAll, {0, buf, count, datatype}, request);
}

int File_iread_at(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
    return start(fh, kReadAt, {offset, buf, count, datatype}, request);
}

int File_iread_at_all(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
    return start(fh, kReadAtAll, {offset, buf, count, datatype}, request);
}

int File_iread_shared(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
    return start(fh, kReadShared, {0, buf, count, datatype}, request);
}

int File_read_all_begin(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype) {
    return begin(fh, kReadAll, {0, buf, count, datatype});
}

int File_read_all_end(MPI_File fh, void*, MPI_Status* status) { return end(fh, kReadAll, status); }

int File_read_at_all_begin(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype) {
    return begin(fh, kReadAtAll, {offset, buf, count, datatype});
}

int File_read_at_all_end(MPI_File fh, void*, MPI_Status* status) { return end(fh, kReadAtAll, status); }

int File_read_ordered_begin(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype) {
    return begin(fh, kReadOrdered, {0, buf, count, datatype});
}

int File_read_ordered_end(MPI_File fh, void*, MPI_Status* status) { return end(fh, kReadOrdered, status); }

int File_write(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
    return transfer(fh, kWrite, {0, const_cast<void*>(buf), count, datatype}, status);
}

int File_write_all(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
    return transfer(fh, kWriteAll, {0, const_cast<void*>(buf), count, datatype}, status);
}

int File_write_at(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
    return transfer(fh, kWriteAt, {offset, const_cast<void*>(buf), count, datatype}, status);
}

int File_write_at_all(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
                      MPI_Status* status) {
    return transfer(fh, kWriteAtAll, {offset, const_cast<void*>(buf), count, datatype}, status);
}

int File_write_shared(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
    return transfer(fh, kWriteShared, {0, const_cast<void*>(buf), count, datatype}, status);
}

int File_write_ordered(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
    return transfer(fh, kWriteOrdered, {0, const_cast<void*>(buf), count, datatype}, status);
}

int File_iwrite(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
    return start(fh, kWrite, {0, const_cast<void*>(buf), count, datatype}, request);
}

int File_iwrite_all(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
    return start(fh, kWriteAll, {0, const_cast<void*>(buf), count, datatype}, request);
}

int File_iwrite_at(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
                   MPI_Request* request) {
    return start(fh, kWriteAt, {offset, const_cast<void*>(buf), count, datatype}, request);
}

int File_iwrite_at_all(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
                       MPI_Request* request) {
    return start(fh, kWriteAtAll, {offset, const_cast<void*>(buf), count, datatype}, request);
}

int File_iwrite_shared(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
    return start(fh, kWriteShared, {0, const_cast<void*>(buf), count, datatype}, request);
}

int File_write_all_begin(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype) {
    return begin(fh, kWriteAll, {0, const_cast<void*>(buf), count, datatype});
}

int File_write_all_end(MPI_File fh, const void*, MPI_Status* status) { return end(fh, kWriteAll, status); }

int File_write_at_all_begin(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype) {
    return begin(fh, kWriteAtAll, {offset, const_cast<void*>(buf), count, datatype});
}

int File_write_at_all_end(MPI_File fh, const void*, MPI_Status* status) { return end(fh, kWriteAtAll, status); }

int File_write_ordered_begin(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype) {
    return begin(fh, kWriteOrdered, {0, const_cast<void*>(buf), count, datatype});
}

int File_write_ordered_end(MPI_File fh, const void*, MPI_Status* status) { return end(fh, kWriteOrdered, status); }

}  // namespace starling::mpi
