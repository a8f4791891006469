#include "mpi/completion/request.h"

#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "comm/error_codes.h"
#include "datatype/datatype.h"
#include "message/receive.h"
#include "message/status.h"
#include "message/suspended_receive.h"
#include "message/wait_report.h"
#include "mpi/common/check.h"
#include "mpi/completion/request_handle.h"
#include "progress/engine.h"

namespace starling::mpi {

using progress::Outcome;
using progress::Request;

namespace {

Request* from_handle(MPI_Request handle) { return request_from_handle(handle); }

bool is_pending(const Request* request) { return request && request->active; }

int bad_request() { return bad_handle(nullptr, MPI_ERR_REQUEST, "request"); }

/// Fills the status of a null or inactive request: the standard's empty status, which has MPI_ERROR = MPI_SUCCESS (MPI 5.0 section 3.7.3).
void fill_empty(MPI_Status* status) {
    message::fill_status(status, Outcome{});
    if (status) status->MPI_ERROR = MPI_SUCCESS;
}

/// Returns the code of a failed request, which keeps its sentence. The request keeps the code for later calls, because its text is moved
/// once. Called while the request holds its communicator.
[[gnu::cold, gnu::noinline]] int code_of_failure(Request& request) {
    const int error = progress::error_of(request);
    return request.outcome.error = keep_failure(comm_of(request), error);
}

inline int code_of(Request& request) {
    if (!request.outcome.error) [[likely]]
        return MPI_SUCCESS;
    return code_of_failure(request);
}

/// Writes the outcome of a done request into `status` (null: ignored) and returns its error. The request stays.
int report(Request& request, MPI_Status* status) {
    message::fill_status(status, request.outcome);
    if (!request.operations->query) return code_of(request);
    MPI_Status ignored;
    return comm::without_text(request.operations->query(request, status ? *status : ignored));
}

/// Ends a completed request: makes a persistent one inactive; frees any other, and sets its handle to null. Returns the error of a
/// generalized request's free function, if there is one.
int retire(Request& request, MPI_Request& handle) {
    if (request.persistent) {
        request.active = false;
        return MPI_SUCCESS;
    }
    int error = MPI_SUCCESS;
    if (request.operations->end) [[unlikely]]
        error = request.operations->end(request);
    handle = MPI_REQUEST_NULL;
    if (request.operations->dispose) request.operations->dispose(request);
    return error;
}

/// Finishes a generalized request. Its functions run outside the library, so the handle is set to null first: other threads then see that
/// the request is being ended.
[[gnu::noinline]] int finish_generalized(Request& request, MPI_Request& handle, MPI_Status* status) {
    handle = MPI_REQUEST_NULL;
    const int error = report(request, status);
    const int error_of_free = comm::without_text(retire(request, handle));
    return error ? error : error_of_free;
}

int finish(Request& request, MPI_Request& handle, MPI_Status* status) {
    if (request.operations->query) [[unlikely]]
        return finish_generalized(request, handle, status);
    message::fill_status(status, request.outcome);
    const int error = code_of(request);
    if (error && message::is_suspended(request)) [[unlikely]]
        return error;  // the request stays active
    const int error_of_free = retire(request, handle);
    return error ? error : error_of_free;
}

/// Finishes a request as finish() does, and calls the error handler of its communicator if it failed.
int finish_one(Request& request, MPI_Request& handle, MPI_Status* status) {
    comm::Comm* comm = comm_of(request);
    if (comm) comm->retain();
    int error = finish(request, handle, status);
    if (error) [[unlikely]]
        error = raise(comm, error);
    if (comm) comm->release();
    return error;
}

/// Returns the index of the first handle that is neither null nor a live request; -1 if there is none.
int find_invalid(int count, const MPI_Request handles[]) {
    for (int i = 0; i < count; ++i)
        if (handles[i] != MPI_REQUEST_NULL && !from_handle(handles[i])) return i;
    return -1;
}

int check_array(int count, const MPI_Request handles[]) {
    if (phase != LibraryPhase::running) return not_running();
    if (count < 0) return bad_count(nullptr, count);
    if (count > 0 && !handles) return null_argument(nullptr, "array_of_requests");
    const int bad = find_invalid(count, handles);
    if (bad >= 0) return raise(nullptr, fail(MPI_ERR_REQUEST, "request %d of the array is not valid; was it freed?", bad));
    return MPI_SUCCESS;
}

/// Returns whether a request is done for good. A suspended receive is not: its message may be waiting for the next poll.
bool is_settled(const Request& request) { return request.done && !(request.outcome.error && message::is_suspended(request)); }

/// Returns whether all requests of the array that are active are done for good.
bool all_settled(int count, const MPI_Request handles[]) {
    for (int i = 0; i < count; ++i) {
        const Request* request = from_handle(handles[i]);
        if (is_pending(request) && !is_settled(*request)) return false;
    }
    return true;
}

bool all_done(int count, const MPI_Request handles[]) {
    for (int i = 0; i < count; ++i) {
        const Request* request = from_handle(handles[i]);
        if (is_pending(request) && !request->done) return false;
    }
    return true;
}

/// Records `error` as the outcome of operation n. MPI_ERROR is written only if one of the operations failed (MPI 5.0 section 3.2.5). So the
/// first error also sets MPI_ERROR to MPI_SUCCESS in all statuses before n.
inline void note_error(MPI_Status* statuses, int n, int error, int& first_error) {
    if (!error && !first_error) [[likely]]
        return;
    if (statuses && !first_error)
        for (int i = 0; i < n; ++i) statuses[i].MPI_ERROR = MPI_SUCCESS;
    if (!first_error) first_error = error;
    if (statuses) statuses[n].MPI_ERROR = error;
}

/// Raises the first error of several requests; no effect for MPI_SUCCESS. The handler gets the error of the request, while the call returns
/// MPI_ERR_IN_STATUS if there are statuses that tell it (MPI 5.0 section 9.3.1).
int raise_of_several(comm::Comm* comm, const MPI_Status* statuses, int first_error) {
    const int error = raise(comm, first_error);
    return error && statuses ? MPI_ERR_IN_STATUS : error;
}

constinit const progress::WaitSite kWaitSite{.report_wait = message::report_request};

/// Returns the active request behind a handle, or null. A thread that has released the lock must call this function again, because another
/// thread may have ended the request meanwhile.
Request* pending_behind(const MPI_Request& handle) {
    Request* request = from_handle(*const_cast<const volatile MPI_Request*>(&handle));
    return is_pending(request) ? request : nullptr;
}

/// Returns whether the failure of a process, or a revocation, has ended one of the requests.
bool has_lost_one(int count, const MPI_Request handles[]) {
    if (!message::any_failure()) [[likely]]
        return false;
    for (int i = 0; i < count; ++i) {
        const Request* request = pending_behind(handles[i]);
        if (request && request->done && comm::is_process_failure(request->outcome.error)) return true;
    }
    return false;
}

/// Condition of a wait for the first request of an array, if the others are awaited after it: also holds if one of them is lost.
struct OverOrLost {
    int count;
    const MPI_Request* handles;
    bool operator()() const {
        const Request* first = pending_behind(handles[0]);
        return !first || first->done || has_lost_one(count, handles);
    }
};
constinit const progress::WaitSite kFirstWaitSite{.report_wait = [](const void* argument, progress::WaitReporter& teller) {
    if (const Request* request = pending_behind(static_cast<const OverOrLost*>(argument)->handles[0]))
        message::report_request(request, teller);
}};

/// Waits for the first request of an array, which is pending, or until one of the array is lost. Other threads may end requests meanwhile.
/// Returns the first request, or null if it has been ended.
[[gnu::noinline]] Request* wait_for_first(int count, const MPI_Request handles[]) {
    if (progress::flags_are_awaited()) progress::wait_for_flags_first(*from_handle(handles[0]));
    const OverOrLost over{count, handles};
    while (!over()) progress::wait_until(over, kFirstWaitSite);
    return pending_behind(handles[0]);
}

/// Polls for the message of a suspended receive. Returns the request, after the transfer if the message has arrived; null if another thread
/// has ended it meanwhile.
[[gnu::noinline]] Request* poll_for_suspended(const MPI_Request& handle) {
    progress::test();
    Request* const request = pending_behind(handle);
    return !request || request->done ? request : wait_for_first(1, &handle);
}

/// Waits for a pending request and returns it, or null if another thread has ended it meanwhile.
inline Request* wait_for(Request& request, const MPI_Request& handle) {
    if (request.done) [[likely]]
        return is_settled(request) ? &request : poll_for_suspended(handle);
    if (program_threads_at_once()) [[unlikely]]
        return wait_for_first(1, &handle);
    progress::wait(request, kWaitSite);
    return &request;
}

/// Ends all requests, and waits for them before if `waits`; else all must be done, or one lost. After a failure of a process it does not
/// wait for the other requests, which may wait for the failed process too, indirectly: these stay, and their statuses have
/// MPI_ERR_PENDING (MPI 5.0 section 3.7.5). Returns MPI_ERR_IN_STATUS if one failed and there are statuses.
int finish_all(int count, MPI_Request handles[], MPI_Status* statuses, bool waits) {
    int first_error = MPI_SUCCESS;
    bool lost = false;
    comm::Comm* comm = nullptr;
    for (int i = 0; i < count; ++i) {
        MPI_Status* status = statuses ? &statuses[i] : nullptr;
        Request* request = from_handle(handles[i]);
        int error = MPI_SUCCESS;
        if (waits && !lost && is_pending(request))
            request = request->done ? wait_for(*request, handles[i]) : wait_for_first(count - i, handles + i);
        if (is_pending(request) && !request->done) [[unlikely]] {
            lost = true;
            error = MPI_ERR_PENDING;
        } else if (is_pending(request)) {
            comm::Comm* its_comm = comm_of(*request);
            if (request->outcome.error && !comm && its_comm) comm = its_comm->retain();
            lost |= comm::is_process_failure(request->outcome.error);
            error = finish(*request, handles[i], status);
            if (first_error == MPI_ERR_PENDING && error) first_error = error;
        } else {
            fill_empty(status);
        }
        note_error(statuses, i, error, first_error);
    }
    if (!first_error) return MPI_SUCCESS;
    const int error = raise_of_several(comm, statuses, first_error);
    if (comm) comm->release();
    return error;
}

struct Array {
    int count;
    const MPI_Request* handles;
    int found;  ///< index of a completed request; -1 if there is none
    bool any;   ///< whether one of the requests is active
};

bool poll_array(Array& array) {
    array.any = false;
    for (int i = 0; i < array.count; ++i) {
        const Request* request = from_handle(array.handles[i]);
        if (!is_pending(request)) continue;
        array.any = true;
        if (request->done) {
            array.found = i;
            return true;
        }
    }
    array.found = -1;
    return !array.any;
}

/// Returns whether the first request that counts as done is a suspended receive.
bool has_found_suspended(Array& array) {
    return poll_array(array) && array.found >= 0 && !is_settled(*from_handle(array.handles[array.found]));
}

/// Condition of a wait for any request of the array.
struct CompletionCondition {
    Array& array;
    bool operator()() const { return poll_array(array); }
};
void report_array(const void* argument, progress::WaitReporter& teller) {
    const Array& array = static_cast<const CompletionCondition*>(argument)->array;
    teller.any_will_do();
    for (int i = 0; i < array.count; ++i)
        if (const Request* request = from_handle(array.handles[i]); is_pending(request))
            message::report_request(request, teller);
}
constinit const progress::WaitSite kWaitanySite{.report_wait = report_array};
constinit const progress::WaitSite kWaitsomeSite{.report_wait = report_array};

int complete_any(Array& array, MPI_Request handles[], int* indx, MPI_Status* status) {
    if (array.found < 0) {
        *indx = MPI_UNDEFINED;
        fill_empty(status);
        return MPI_SUCCESS;
    }
    *indx = array.found;
    return finish_one(*from_handle(handles[array.found]), handles[array.found], status);
}

int complete_some(int count, MPI_Request handles[], int* outcount, int indices[], MPI_Status* statuses) {
    int n = 0, first_error = MPI_SUCCESS;
    comm::Comm* comm = nullptr;
    for (int i = 0; i < count; ++i) {
        Request* request = from_handle(handles[i]);
        if (!is_pending(request) || !request->done) continue;
        MPI_Status* status = statuses ? &statuses[n] : nullptr;
        if (request->outcome.error && !first_error && comm_of(*request)) comm = comm_of(*request)->retain();
        note_error(statuses, n, finish(*request, handles[i], status), first_error);
        indices[n++] = i;
    }
    *outcount = n;
    if (!first_error) return MPI_SUCCESS;
    const int error = raise_of_several(comm, statuses, first_error);
    if (comm) comm->release();
    return error;
}

// The request that eager sends return. It is done from the start and has no state, so all of them share it.
constexpr progress::RequestClass kFinished{nullptr};
struct Finished : Request {
    constexpr Finished() : Request(progress::RequestKind::send) {
        magic = kMagic;
        done = true;
        operations = &kFinished;
    }
};
STARLING_STATE Finished finished;

}  // namespace

/// The numbers that MPI_Request_toint returns; created at the first call.
struct RequestNumbers {
    std::unordered_map<Request*, int> by_request;
    std::unordered_map<int, Request*> by_number;
    int next = kHandleLimit;
};
STARLING_STATE RequestNumbers* request_numbers = nullptr;

MPI_Request completed_request() { return request_to_handle(&finished); }

int request_to_int(MPI_Request handle) {
    if (handle == MPI_REQUEST_NULL) return static_cast<int>(reinterpret_cast<intptr_t>(MPI_REQUEST_NULL));
    Request* request = from_handle(handle);
    if (!request) return static_cast<int>(reinterpret_cast<intptr_t>(MPI_REQUEST_NULL));
    if (!request_numbers) request_numbers = new RequestNumbers;
    const auto [place, is_new] = request_numbers->by_request.try_emplace(request, request_numbers->next);
    if (is_new) request_numbers->by_number[request_numbers->next++] = request;
    return place->second;
}

MPI_Request request_from_int(int number) {
    if (!request_numbers) return MPI_REQUEST_NULL;
    const auto found = request_numbers->by_number.find(number);
    return found == request_numbers->by_number.end() ? MPI_REQUEST_NULL : request_to_handle(found->second);
}

void forget_its_number(Request& request) {
    const auto found = request_numbers->by_request.find(&request);
    if (found == request_numbers->by_request.end()) return;
    request_numbers->by_number.erase(found->second);
    request_numbers->by_request.erase(found);
}

int Wait(MPI_Request* handle, MPI_Status* status) {
    Lock lock;
    if (!handle) [[unlikely]]
        return null_argument(nullptr, "request");
    Request* request = from_handle(*handle);
    if (!is_pending(request)) {
        if (!request && *handle != MPI_REQUEST_NULL) return bad_request();
        fill_empty(status);
        return MPI_SUCCESS;
    }
    request = wait_for(*request, *handle);
    if (!request) [[unlikely]] {
        fill_empty(status);
        return MPI_SUCCESS;
    }
    return finish_one(*request, *handle, status);
}

int Test(MPI_Request* handle, int* flag, MPI_Status* status) {
    Lock lock;
    if (!handle || !flag) [[unlikely]]
        return null_argument(nullptr, handle ? "flag" : "request");
    Request* request = from_handle(*handle);
    if (!is_pending(request)) {
        if (!request && *handle != MPI_REQUEST_NULL) return bad_request();
        *flag = 1;
        fill_empty(status);
        return MPI_SUCCESS;
    }
    if (!is_settled(*request)) {
        progress::test();
        request = pending_behind(*handle);
    }
    *flag = !request || request->done;
    if (request) return request->done ? finish_one(*request, *handle, status) : MPI_SUCCESS;
    fill_empty(status);
    return MPI_SUCCESS;
}

int Waitall(int count, MPI_Request handles[], MPI_Status* statuses) {
    Lock lock;
    if (const int error = check_array(count, handles)) return error;
    return finish_all(count, handles, statuses, true);
}

int Testall(int count, MPI_Request handles[], int* flag, MPI_Status* statuses) {
    Lock lock;
    if (const int error = check_array(count, handles)) return error;
    if (!flag) return null_argument(nullptr, "flag");
    if (!all_settled(count, handles)) progress::test();
    *flag = all_done(count, handles) || has_lost_one(count, handles);
    return *flag ? finish_all(count, handles, statuses, false) : MPI_SUCCESS;
}

int Waitany(int count, MPI_Request handles[], int* indx, MPI_Status* status) {
    Lock lock;
    if (const int error = check_array(count, handles)) return error;
    if (!indx) return null_argument(nullptr, "index");
    Array array{count, handles, -1, false};
    if (has_found_suspended(array)) progress::test();
    do progress::wait_until(CompletionCondition{array}, kWaitanySite);
    while (program_threads_at_once() && !poll_array(array));
    return complete_any(array, handles, indx, status);
}

int Testany(int count, MPI_Request handles[], int* indx, int* flag, MPI_Status* status) {
    Lock lock;
    if (const int error = check_array(count, handles)) return error;
    if (!indx || !flag) return null_argument(nullptr, indx ? "flag" : "index");
    Array array{count, handles, -1, false};
    *flag = poll_array(array);
    if (!*flag || has_found_suspended(array)) {
        progress::test();
        *flag = poll_array(array);
    }
    if (!*flag) {
        *indx = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    return complete_any(array, handles, indx, status);
}

int Waitsome(int incount, MPI_Request handles[], int* outcount, int indices[], MPI_Status* statuses) {
    Lock lock;
    if (const int error = check_array(incount, handles)) return error;
    if (!outcount) return null_argument(nullptr, "outcount");
    progress::test();  // the wait ended at the first complete request; this call should return all that have completed
    Array array{incount, handles, -1, false};
    do progress::wait_until(CompletionCondition{array}, kWaitsomeSite);
    while (program_threads_at_once() && !poll_array(array));
    if (array.found < 0) {
        *outcount = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    return complete_some(incount, handles, outcount, indices, statuses);
}

int Testsome(int incount, MPI_Request handles[], int* outcount, int indices[], MPI_Status* statuses) {
    Lock lock;
    if (const int error = check_array(incount, handles)) return error;
    if (!outcount) return null_argument(nullptr, "outcount");
    progress::test();
    Array array{incount, handles, -1, false};
    poll_array(array);
    if (!array.any) {
        *outcount = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    return complete_some(incount, handles, outcount, indices, statuses);
}

int Request_free(MPI_Request* handle) {
    Lock lock;
    if (!handle) return null_argument(nullptr, "request");
    Request* request = from_handle(*handle);
    if (!request) return bad_request();
    *handle = MPI_REQUEST_NULL;
    if (!request->operations->dispose) return MPI_SUCCESS;
    if (message::is_suspended(*request)) message::resume(static_cast<message::ReceiveRequest&>(*request));
    if (request->done || !request->active) {
        request->operations->dispose(*request);
    } else {
        // The handle becomes invalid, but the operation continues. A generalized request keeps its handle, because the program names it in
        // MPI_Grequest_complete.
        if (request->kind != progress::RequestKind::generalized) {
            forget_number(*request);
            request->magic = 0;
        }
        request->persistent = false;
        request->orphaned = true;
    }
    return MPI_SUCCESS;
}

int Request_get_status(MPI_Request handle, int* flag, MPI_Status* status) {
    Lock lock;
    if (!flag) return null_argument(nullptr, "flag");
    Request* request = from_handle(handle);
    if (!request && handle != MPI_REQUEST_NULL) return bad_request();
    if (is_pending(request) && !is_settled(*request)) {
        progress::test();
        request = from_handle(handle);
    }
    *flag = !is_pending(request) || request->done;
    if (!*flag) return MPI_SUCCESS;
    if (!is_pending(request)) {
        fill_empty(status);
        return MPI_SUCCESS;
    }
    return raise(comm_of(*request), report(*request, status));
}

int Request_get_status_all(int count, const MPI_Request handles[], int* flag, MPI_Status* statuses) {
    Lock lock;
    if (const int error = check_array(count, handles)) return error;
    if (!flag) return null_argument(nullptr, "flag");
    if (!all_settled(count, handles)) progress::test();
    *flag = all_done(count, handles);
    if (!*flag) return MPI_SUCCESS;
    int first_error = MPI_SUCCESS;
    for (int i = 0; i < count; ++i) {
        Request* request = from_handle(handles[i]);
        MPI_Status* status = statuses ? &statuses[i] : nullptr;
        int error = MPI_SUCCESS;
        if (is_pending(request))
            error = report(*request, status);
        else
            fill_empty(status);
        note_error(statuses, i, error, first_error);
    }
    return raise_of_several(nullptr, statuses, first_error);
}

int Request_get_status_any(int count, const MPI_Request handles[], int* indx, int* flag, MPI_Status* status) {
    Lock lock;
    if (const int error = check_array(count, handles)) return error;
    if (!indx || !flag) return null_argument(nullptr, indx ? "flag" : "index");
    progress::test();
    Array array{count, handles, -1, false};
    *flag = poll_array(array);
    *indx = array.found < 0 ? MPI_UNDEFINED : array.found;
    if (!*flag) return MPI_SUCCESS;
    if (array.found < 0) {
        fill_empty(status);
        return MPI_SUCCESS;
    }
    Request* request = from_handle(handles[array.found]);
    return raise(comm_of(*request), report(*request, status));
}

int Request_get_status_some(int incount, const MPI_Request handles[], int* outcount, int indices[], MPI_Status* statuses) {
    Lock lock;
    if (const int error = check_array(incount, handles)) return error;
    if (!outcount) return null_argument(nullptr, "outcount");
    progress::test();
    int n = 0, first_error = MPI_SUCCESS;
    bool any = false;
    for (int i = 0; i < incount; ++i) {
        Request* request = from_handle(handles[i]);
        if (!is_pending(request)) continue;
        any = true;
        if (!request->done) continue;
        MPI_Status* status = statuses ? &statuses[n] : nullptr;
        note_error(statuses, n, report(*request, status), first_error);
        indices[n++] = i;
    }
    *outcount = any ? n : MPI_UNDEFINED;
    return raise_of_several(nullptr, statuses, first_error);
}

namespace {
int cancel_generalized(Request& request);
}

int Cancel(MPI_Request* handle) {
    Lock lock;
    if (!handle) return null_argument(nullptr, "request");
    Request* request = from_handle(*handle);
    if (!request) return bad_request();
    // Some sends complete although they were cancelled (message::abandon); the standard allows both outcomes.
    if (request->kind == progress::RequestKind::generalized)
        return raise(nullptr, comm::without_text(cancel_generalized(*request)));
    const bool is_over = request->done && request->outcome.error == MPI_SUCCESS;
    if (request->active && !is_over && request->operations->cancel && request->operations->cancel(*request)) progress::notify();
    return MPI_SUCCESS;
}

int Test_cancelled(const MPI_Status* status, int* flag) {
    if (!status || !flag) return null_argument(nullptr, status ? "flag" : "status");
    *flag = message::status_cancelled(*status);
    return MPI_SUCCESS;
}

int Status_set_cancelled(MPI_Status* status, int flag) {
    if (!status) return null_argument(nullptr, "status");
    message::set_status_cancelled(*status, flag != 0);
    return MPI_SUCCESS;
}

namespace {

int start_one(MPI_Request handle) {
    Request* request = from_handle(handle);
    if (!request || !request->persistent) return bad_request();
    if (request->active)
        return raise(
            comm_of(*request),
            fail(MPI_ERR_REQUEST,
                 "the persistent request is active already; complete it (MPI_Wait, MPI_Test) before it is started again"));
    request->active = true;
    const int error = request->operations->start(*request);
    return error ? raise(comm_of(*request), error) : MPI_SUCCESS;
}

}  // namespace

int Start(MPI_Request* handle) {
    Lock lock;
    if (!handle) return null_argument(nullptr, "request");
    return start_one(*handle);
}

int Startall(int count, MPI_Request handles[]) {
    Lock lock;
    if (const int error = check_array(count, handles)) return error;
    for (int i = 0; i < count; ++i)
        if (const int error = start_one(handles[i])) return error;
    return MPI_SUCCESS;
}

namespace {

struct Generalized : Request {
    MPI_Grequest_query_function* query_function = nullptr;
    MPI_Grequest_free_function* free_function = nullptr;
    MPI_Grequest_cancel_function* cancel_function = nullptr;
    void* extra_state = nullptr;
};
STARLING_STATE NoDestroy<RequestPool<Generalized>> generalized_pool_storage;
constinit auto& generalized_pool = generalized_pool_storage.value;

// These functions call the program's functions for a generalized request, without the library's lock. The MPI call that triggers such a
// function returns its error (MPI 5.0 section 13.2).

int free_generalized(Request& request) {
    MPI_Grequest_free_function* function = std::exchange(static_cast<Generalized&>(request).free_function, nullptr);
    const OutsideLibrary outside;
    return function ? function(static_cast<Generalized&>(request).extra_state) : MPI_SUCCESS;
}

int query_generalized(Request& request, MPI_Status& status) {
    auto& self = static_cast<Generalized&>(request);
    const OutsideLibrary outside;
    return self.query_function ? self.query_function(self.extra_state, &status) : MPI_SUCCESS;
}

int cancel_generalized(Request& request) {
    auto& self = static_cast<Generalized&>(request);
    if (!self.cancel_function) return MPI_SUCCESS;
    const bool done = self.done;
    const OutsideLibrary outside;
    return self.cancel_function(self.extra_state, done);
}

constexpr progress::RequestClass kGeneralized{.dispose =
                                                  [](Request& request) {
                                                      free_generalized(request);
                                                      generalized_pool.destroy(static_cast<Generalized&>(request));
                                                  },
                                              .query = query_generalized,
                                              .end = free_generalized};

}  // namespace

int Grequest_start(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
                   MPI_Grequest_cancel_function* cancel_fn, void* extra_state, MPI_Request* handle) {
    Lock lock;
    if (phase != LibraryPhase::running) return not_running();
    if (!handle) return null_argument(nullptr, "request");
    Generalized* request = generalized_pool.create(nullptr, kGeneralized);
    request->kind = progress::RequestKind::generalized;
    request->query_function = query_fn;
    request->free_function = free_fn;
    request->cancel_function = cancel_fn;
    request->extra_state = extra_state;
    *handle = request_to_handle(request);
    return MPI_SUCCESS;
}

int Grequest_complete(MPI_Request handle) {
    Lock lock;
    Request* request = from_handle(handle);
    if (!request || request->kind != progress::RequestKind::generalized) return bad_request();
    request->complete();
    progress::notify();
    return MPI_SUCCESS;
}

int Get_count(const MPI_Status* status, MPI_Datatype datatype, CountOut count) {
    if (!status || !count) return null_argument(nullptr, status ? "count" : "status");
    const datatype::Datatype* type = datatype::from_handle(datatype);
    if (!type) return bad_type(nullptr, datatype);
    count.set(datatype::get_count(message::status_bytes(*status), *type));
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
