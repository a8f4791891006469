#include "mpi/comm/errhandler.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/comm.h"
#include "comm/errhandler.h"
#include "comm/error_codes.h"
#include "comm/error_sentences.h"
#include "mpi/comm/errhandler_handle.h"
#include "mpi/common/check.h"
#include "mpi/common/handles.h"
#include "mpi/file/file_check.h"

namespace starling::mpi {

namespace {

using comm::Errhandler;
using comm::HandlerKind;

int bad_code(int code) { return raise(nullptr, fail(MPI_ERR_ARG, "%d is not an error code of MPI or of this program", code)); }

// Returns the text of a valid code. It begins with the standard's name of the class, because readers search for it.
std::string full_text(int code) {
    if (const auto call = comm::failed_call(code))
        return std::string(comm::class_name(comm::class_of(code))) + ": " + (call->function ? call->function : "MPI") + ": " +
               call->sentence;
    const int error_class = comm::class_of(code);
    const bool of_program = error_class > MPI_ERR_LASTCODE || (code > MPI_ERR_LASTCODE && !comm::has_kept_sentence(code));
    return of_program ? comm::text_of(code) : std::string(comm::class_name(error_class)) + ": " + comm::text_of(code);
}

/// Returns the place of the error handler of a file, or of MPI_FILE_NULL; null if the handle is not valid.
Errhandler** handler_place(MPI_File handle) {
    if (handle == MPI_FILE_NULL) return &comm::file_handler;
    File* f = file::from_handle(handle);
    return f ? &f->errhandler : nullptr;
}

}  // namespace

Errhandler* usable_errhandler(MPI_Errhandler handle, HandlerKind kind) {
    Errhandler* handler = comm::from_handle(handle);
    if (!handler)
        fail(MPI_ERR_ERRHANDLER, "the error handler is null or not valid; was it freed?");
    else if (handler->kind != HandlerKind::any && handler->kind != kind)
        fail(MPI_ERR_ERRHANDLER,
             "the error handler was created for another kind of object (communicator, window, file or "
             "session)");
    else
        return handler;
    return nullptr;
}

MPI_Errhandler make_handle(Errhandler* const& place) {
    Errhandler* handler = comm::retain_from(place);
    const MPI_Errhandler handle = comm::add_handle(handler);
    handler->release();
    return handle;
}

int Comm_create_errhandler(MPI_Comm_errhandler_function* comm_errhandler_fn, MPI_Errhandler* errhandler) {
    if (!comm_errhandler_fn) return null_argument(nullptr, "comm_errhandler_fn");
    if (!errhandler) return null_argument(nullptr, "errhandler");
    Errhandler* handler = comm::make_errhandler(HandlerKind::comm);
    handler->comm_function = comm_errhandler_fn;
    *errhandler = comm::to_handle(handler);
    return MPI_SUCCESS;
}

int Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler) {
    Lock lock;
    comm::Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    Errhandler* handler = usable_errhandler(errhandler, HandlerKind::comm);
    if (!handler) return raise(c, MPI_ERR_ERRHANDLER);
    c->set_errhandler(handler);
    return MPI_SUCCESS;
}

int Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* errhandler) {
    Lock lock;
    comm::Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!errhandler) return null_argument(c, "errhandler");
    *errhandler = make_handle(c->errhandler);
    return MPI_SUCCESS;
}

int Comm_call_errhandler(MPI_Comm comm, int errorcode) {
    Lock lock;
    comm::Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    clear_failure();
    raise(c, errorcode);
    return MPI_SUCCESS;
}

int Win_create_errhandler(MPI_Win_errhandler_function* win_errhandler_fn, MPI_Errhandler* errhandler) {
    if (!win_errhandler_fn) return null_argument(nullptr, "win_errhandler_fn");
    if (!errhandler) return null_argument(nullptr, "errhandler");
    Errhandler* handler = comm::make_errhandler(HandlerKind::win);
    handler->win_function = win_errhandler_fn;
    *errhandler = comm::to_handle(handler);
    return MPI_SUCCESS;
}

int File_create_errhandler(MPI_File_errhandler_function* file_errhandler_fn, MPI_Errhandler* errhandler) {
    if (!file_errhandler_fn) return null_argument(nullptr, "file_errhandler_fn");
    if (!errhandler) return null_argument(nullptr, "errhandler");
    Errhandler* handler = comm::make_errhandler(HandlerKind::file);
    handler->file_function = file_errhandler_fn;
    *errhandler = comm::to_handle(handler);
    return MPI_SUCCESS;
}

int File_set_errhandler(MPI_File file, MPI_Errhandler errhandler) {
    Lock lock;
    Errhandler** const place = handler_place(file);
    if (!place) return bad_file(file);
    Errhandler* handler = usable_errhandler(errhandler, HandlerKind::file);
    if (!handler) return raise_through(*place, HandlerKind::file, {.file = file}, MPI_ERR_ERRHANDLER);
    comm::replace(*place, handler);
    return MPI_SUCCESS;
}

int File_get_errhandler(MPI_File file, MPI_Errhandler* errhandler) {
    Lock lock;
    Errhandler** const place = handler_place(file);
    if (!place) return bad_file(file);
    if (!errhandler) return raise_through(*place, HandlerKind::file, {.file = file}, null_pointer("errhandler"));
    *errhandler = make_handle(*place);
    return MPI_SUCCESS;
}

int File_call_errhandler(MPI_File fh, int errorcode) {
    Lock lock;
    Errhandler** const place = handler_place(fh);
    if (!place) return bad_file(fh);
    clear_failure();
    raise_through(*place, HandlerKind::file, {.file = fh}, errorcode);
    return MPI_SUCCESS;
}

int Session_create_errhandler(MPI_Session_errhandler_function* session_errhandler_fn, MPI_Errhandler* errhandler) {
    if (!session_errhandler_fn) return null_argument(nullptr, "session_errhandler_fn");
    if (!errhandler) return null_argument(nullptr, "errhandler");
    Errhandler* handler = comm::make_errhandler(HandlerKind::session);
    handler->session_function = session_errhandler_fn;
    *errhandler = comm::to_handle(handler);
    return MPI_SUCCESS;
}

int Errhandler_free(MPI_Errhandler* errhandler) {
    if (!errhandler) return null_argument(nullptr, "errhandler");
    if (!comm::drop_handle(*errhandler)) return bad_handle(nullptr, MPI_ERR_ERRHANDLER, "error handler");
    *errhandler = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
}

int Errhandler_toint(MPI_Errhandler errhandler) { return to_int(errhandler, comm::from_handle(errhandler)); }

MPI_Errhandler Errhandler_fromint(int errhandler) {
    return from_int<MPI_Errhandler>(errhandler, comm::errhandler_at, MPI_ERRHANDLER_NULL);
}

int Error_class(int errorcode, int* errorclass) {
    if (!errorclass) return null_argument(nullptr, "errorclass");
    if (!comm::is_error_code(errorcode)) return bad_code(errorcode);
    *errorclass = comm::class_of(errorcode);
    return MPI_SUCCESS;
}

int Error_string(int errorcode, char* string, int* resultlen) {
    if (!string || !resultlen) return null_argument(nullptr, string ? "resultlen" : "string");
    if (!comm::is_error_code(errorcode)) return bad_code(errorcode);
    const std::string text = full_text(errorcode);
    const size_t length = std::min<size_t>(text.size(), MPI_MAX_ERROR_STRING - 1);
    std::memcpy(string, text.data(), length);
    string[length] = '\0';
    *resultlen = static_cast<int>(length);
    return MPI_SUCCESS;
}

int Add_error_class(int* errorclass) {
    if (!errorclass) return null_argument(nullptr, "errorclass");
    *errorclass = comm::add_class();
    return MPI_SUCCESS;
}

int Add_error_code(int errorclass, int* errorcode) {
    if (!errorcode) return null_argument(nullptr, "errorcode");
    if (!comm::is_error_code(errorclass) || comm::class_of(errorclass) != errorclass)
        return raise(nullptr, fail(MPI_ERR_ARG, "%d is not an error class of MPI or of this program", errorclass));
    *errorcode = comm::add_code(errorclass);
    return MPI_SUCCESS;
}

int Add_error_string(int errorcode, const char* string) {
    if (!string) return null_argument(nullptr, "string");
    if (strnlen(string, MPI_MAX_ERROR_STRING) >= MPI_MAX_ERROR_STRING)
        return raise(nullptr, fail(MPI_ERR_ARG, "the string is longer than %d characters", MPI_MAX_ERROR_STRING - 1));
    const int error = comm::set_text(errorcode, string);
    return error ? raise(nullptr, error) : MPI_SUCCESS;
}

int Remove_error_class(int errorclass) {
    const int error = comm::remove_class(errorclass);
    return error ? raise(nullptr, error) : MPI_SUCCESS;
}

int Remove_error_code(int errorcode) {
    const int error = comm::remove_code(errorcode);
    return error ? raise(nullptr, error) : MPI_SUCCESS;
}

int Remove_error_string(int errorcode) {
    const int error = comm::remove_text(errorcode);
    return error ? raise(nullptr, error) : MPI_SUCCESS;
}

}  // namespace starling::mpi
