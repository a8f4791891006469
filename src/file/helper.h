// The helper thread that reads and writes files while the process computes or communicates. It makes system calls only: it never takes the
// library's lock and runs no code of the program.
#pragma once

#include "base/list.h"
#include "file/system/open_file.h"
#include "progress/request.h"

namespace starling::file {

/// A piece of work for the helper thread. Its owner keeps it in place until it is done; then `moved` is valid. A coroutine can await it as
/// it awaits any request (progress::RequestDone).
struct HelperJob : progress::Request {
    HelperJob() : Request(progress::RequestKind::file) {}
    /// The work: runs in the helper thread, without the library's lock. Only system calls and memory of this job.
    Moved (*work)(HelperJob& job) = nullptr;
    Moved moved;
    ListHook hook;
};

/// Hands a job to the helper thread, which is started at the first job. Jobs of one process run in the order in which they were handed
/// over. If no thread can be started, the job is done on return. Needs the library's lock. The thread ends with the library's other threads
/// (progress::stop()).
void start(HelperJob& job);
/// Does a job in this thread, without the library's lock; it is done on return. For a thread that would only wait for the helper.
void do_now(HelperJob& job);

}  // namespace starling::file
