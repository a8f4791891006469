#include "mpi/common/check.h"

#include <time.h>

#include <cstdio>
#include <string>

#include "base/error.h"
#include "base/shim_hooks.h"
#include "comm/error_codes.h"
#include "comm/error_sentences.h"
#include "comm/failures.h"
#include "comm/initial_errhandler.h"
#include "datatype/datatype.h"
#include "message/receive.h"
#include "mpi-ext.h"
#include "mpi/file/file_check.h"
#include "mpi/rma/window_check.h"
#include "runtime/error_abort.h"

namespace starling::mpi {

namespace {

constexpr int kAbortCode = 1;

// Returns "rank 2 of job-command", or "starling" if the job is not known.
std::string who() {
    const link::Process& me = link::self();
    if (!me.job || !me.job->mapped()) return "starling";
    return "rank " + std::to_string(me.rank) + " of " + me.job->segment().header().command;
}

std::string sentence(int error) {
    if (const auto call = comm::failed_call(error)) return call->sentence;
    const std::string_view text = failure_text();
    return std::string(text.empty() ? comm::text_of(error) : text);
}

[[noreturn]] void die(int error) {
    const int error_class = comm::class_of(error);
    const std::string line =
        who() + ": " + (calling ? calling : "MPI") + ": " + sentence(error) + " (" + comm::class_name(error_class) + ")\n";
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
    runtime::abort_by_error(kAbortCode);
}

void call_foreign(const comm::Errhandler& handler, ErrorSubject& subject, int& error) {
    switch (handler.kind) {
        case comm::HandlerKind::win:
            return foreign->win_error(handler.win_function, subject.win, &error);
        case comm::HandlerKind::file:
            return foreign->file_error(handler.file_function, subject.file, &error);
        case comm::HandlerKind::session:
            return foreign->session_error(handler.session_function, subject.session, &error);
        default:
            return foreign->comm_error(handler.comm_function, subject.comm, &error);
    }
}

// Calls the program's error handler without the library's lock.
void call_function(const comm::Errhandler& handler, ErrorSubject& subject, int& error) {
    const OutsideLibrary outside;
    if (foreign) return call_foreign(handler, subject, error);
    switch (handler.kind) {
        case comm::HandlerKind::win:
            return handler.win_function(&subject.win, &error);
        case comm::HandlerKind::file:
            return handler.file_function(&subject.file, &error);
        case comm::HandlerKind::session:
            return handler.session_function(&subject.session, &error);
        default:
            return handler.comm_function(&subject.comm, &error);
    }
}

// Returns the communicator whose handler receives errors that belong to no object: MPI_COMM_SELF (MPI 5.0 section 9.3). If the program has
// not set that handler, returns MPI_COMM_WORLD, which received these errors before MPI 4.
comm::Comm* for_no_object() {
    comm::Comm* self = comm::self();
    comm::Comm* world = comm::world();
    return world && self && !self->errhandler_was_set ? world : self;
}

// Returns the class by which the program learns of a failed process: in a job that continues after failures, the one of fault tolerance.
int class_for_program(int error) {
    if (error != MPI_ERR_PROC_ABORTED) return error;
    const link::Process& me = link::self();
    return me.job && me.job->mapped() && me.job->segment().header().recovers ? MPIX_ERR_PROC_FAILED : error;
}

// If a rank dies, the launcher ends the job with a message about that rank. Another rank may notice the death first: the kernel cannot
// copy from the dead one's memory any more. Its error is only an effect, so it waits until the launcher ends it, at most five seconds.
void leave_death_to_launcher(int error) {
    if (error != MPI_ERR_PROC_ABORTED || !comm::own_job_loses_a_rank()) return;
    constexpr int kSteps = 500;
    const timespec step = {0, 10'000'000};
    for (int i = 0; i < kSteps; ++i) nanosleep(&step, nullptr);
}

// Composes the text of a collective operation that continued after an error, and may have lost the text of its first error.
void compose_text(comm::Comm* comm, int error) {
    if (comm && error == MPI_ERR_PROC_ABORTED && failure_text().empty()) message::why_member_failed(comm->collective);
}

bool is_of_files(const std::string_view name) { return name.find("MPI_File_") != name.npos || name.ends_with("_datarep"); }

}  // namespace

int raise_through(comm::Errhandler* const& place, comm::HandlerKind, ErrorSubject subject, int error) {
    leave_death_to_launcher(error);
    error = class_for_program(error);
    // A reference is held because the handler may free itself or raise errors, and other threads may set another handler.
    comm::Errhandler* handler = comm::retain_from(place);
    error = comm::keep_sentence(error, calling);
    switch (handler->action) {
        case comm::HandlerAction::fatal:
        case comm::HandlerAction::abort:
            die(error);
        case comm::HandlerAction::return_handle:
            break;
        case comm::HandlerAction::call: {
            int code = error;
            call_function(*handler, subject, code);
            break;
        }
    }
    handler->release();
    clear_failure();
    return error;
}

int keep_failure(comm::Comm* comm, int error) {
    compose_text(comm, error);
    return comm::keep_sentence(class_for_program(error), calling);
}

int raise(comm::Comm* comm, int error) {
    if (error == MPI_SUCCESS) return error;
    compose_text(comm, error);
    // An error of a window's or file's request is raised on that object (MPI 5.0 section 9.3): its communicator is internal.
    if (window::Window* const window = comm ? window::window_of(comm->context()) : nullptr) return raise(*window, error);
    if (file::File* const file = comm ? file::file_of(comm->context()) : nullptr) return raise(*file, error);
    if (!comm) comm = for_no_object();
    ErrorSubject subject{.comm = comm::to_handle(comm)};
    if (comm) return raise_through(comm->errhandler, comm::HandlerKind::comm, subject, error);
    comm::Errhandler* const initial = comm::initial_errhandler();
    return raise_through(initial, comm::HandlerKind::comm, subject, error);
}

int unsupported(const char* name) {
    calling = name;
    const int error =
        fail(MPI_ERR_UNSUPPORTED_OPERATION, "not implemented; `starling info --missing` lists all such functions");
    // The handler of MPI_FILE_NULL returns errors by default (MPI 5.0 section 14.7).
    if (is_of_files(name)) return raise_through(comm::file_handler, comm::HandlerKind::file, {.file = MPI_FILE_NULL}, error);
    return raise(nullptr, error);
}

int out_of_memory() {
    if (KeptMemory::was_left()) KeptMemory::end();
    return raise(nullptr, fail(MPI_ERR_NO_MEM, "out of memory"));
}

int not_running() {
    const char* text = phase == LibraryPhase::finalized ? "called after MPI_Finalize" : "called before MPI_Init";
    return raise(nullptr, fail(MPI_ERR_OTHER, "%s", text));
}

int bad_comm(MPI_Comm handle) {
    if (phase != LibraryPhase::running) return not_running();
    const char* what =
        handle == MPI_COMM_NULL ? "the communicator is MPI_COMM_NULL" : "the communicator is not valid; was it freed?";
    return raise(nullptr, fail(MPI_ERR_COMM, "%s", what));
}

int bad_handle(comm::Comm* comm, int error_class, const char* what) {
    return raise(comm, fail(error_class, "the %s is null or not valid; was it freed?", what));
}

int bad_rank(comm::Comm* comm, int rank) {
    const char* group = comm->is_inter ? "remote group" : "communicator";
    const bool alone = comm == comm::world() && comm->peer_count == 1;  // a job that was started without mpiexec, or without -n
    return raise(comm, fail(MPI_ERR_RANK, "there is no rank %d in a %s of %d process%s%s", rank, group, comm->peer_count,
                            comm->peer_count == 1 ? "" : "es", alone ? "; mpiexec -n N starts a job of N processes" : ""));
}

int bad_root(comm::Comm* comm, int root) {
    const char* group = comm->is_inter ? "remote group" : "communicator";
    return raise(comm, fail(MPI_ERR_ROOT, "root %d is not a rank of a %s of %d processes", root, group, comm->peer_count));
}

int bad_tag(comm::Comm* comm, int tag) {
    return raise(comm,
                 fail(MPI_ERR_TAG, "tag %d is not valid; use a number from 0 to the value of the attribute MPI_TAG_UB", tag));
}

int bad_count(comm::Comm* comm, MPI_Count count) {
    return raise(comm, fail(MPI_ERR_COUNT, "count %lld is negative or too large", static_cast<long long>(count)));
}

int bad_type(comm::Comm* comm, MPI_Datatype type) {
    const char* what = "the datatype is not valid; was it freed?";
    if (type == MPI_DATATYPE_NULL)
        what = "the datatype is MPI_DATATYPE_NULL";
    else if (const auto* object = datatype::from_handle(type); object && !object->committed)
        what = "the datatype is not committed; call MPI_Type_commit first";
    return raise(comm, fail(MPI_ERR_TYPE, "%s", what));
}

int bad_buffer(comm::Comm* comm) {
    return raise(comm, fail(MPI_ERR_BUFFER, "the buffer is a null pointer, but the count and the datatype specify data"));
}

int null_pointer(const char* name) { return fail(MPI_ERR_ARG, "argument %s is a null pointer", name); }

int null_argument(comm::Comm* comm, const char* name) { return raise(comm, null_pointer(name)); }

int wrong_kind_of_comm(comm::Comm* comm) {
    const char* what =
        comm->is_inter ? "an inter-communicator is not allowed here" : "this function requires an inter-communicator";
    return raise(comm, fail(MPI_ERR_COMM, "%s", what));
}

}  // namespace starling::mpi
