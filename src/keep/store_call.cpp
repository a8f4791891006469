#include "keep/store_call.h"

#include <utility>

#include "keep/message.h"
#include "mpi-ext.h"

namespace starling::keep {

namespace {

// Bits of the agreement's flag. A bit that is not set on any member is not set in the result.
enum : int { kOk = 1, kHasMemory = 2, kIsValid = 4, kIsOpen = 8 };

int class_of(int code) {
    int error = MPI_SUCCESS;
    MPI_Error_class(code, &error);
    return error;
}

int flag_of(bool is_ok, bool has_memory, bool is_valid) {
    return (is_ok ? kOk : 0) | (has_memory ? kHasMemory : 0) | (is_valid ? kIsValid : 0) | kIsOpen;
}

CallVerdict verdict_of(int flag, int error) {
    CallVerdict verdict;
    verdict.has_memory = flag & kHasMemory;
    verdict.is_valid = flag & kIsValid;
    // All members have taken part if all have answered yes: a failure that an agreement knows has had no effect then.
    if (!(flag & kOk)) verdict.error = error == MPIX_ERR_PROC_FAILED ? error : MPIX_ERR_REVOKED;
    return verdict;
}

/// Ends the pending agreement, with the error that it has returned. Commits the save that it was about.
CallVerdict finish(KeepStore& store, int code) {
    const CallVerdict verdict = verdict_of(store.pending.flag, class_of(code));
    if (!(store.pending.flag & kIsOpen)) store.is_closed = true;
    if (store.pending.save && !verdict.error && verdict.has_memory && verdict.is_valid)
        store.commit(std::move(*store.pending.save));
    store.pending.save.reset();
    return verdict;
}

int largest_tag(MPI_Comm comm) {
    int* value = nullptr;
    int is_set = 0;
    MPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&value), &is_set);
    return is_set ? *value : 32767;
}

}  // namespace

KeepCall::KeepCall(KeepStore& its_store) : store(its_store) {
    int rank = 0, has_ended = 0;
    // A revocation before the call ends the call always, also if no process has to wait for another.
    if (MPIX_Comm_is_revoked(store.comm, &has_ended) || has_ended || MPI_Comm_rank(store.comm, &rank) ||
        MPI_Irecv(nullptr, 0, MPI_BYTE, rank, largest_tag(store.comm), store.comm, &revoked))
        is_revoked = true, abandon();
}

KeepCall::~KeepCall() {
    if (revoked == MPI_REQUEST_NULL) return;
    MPI_Cancel(&revoked);
    MPI_Wait(&revoked, MPI_STATUS_IGNORE);
}

void KeepCall::abandon() {
    has_failed = true;
    MPIX_Comm_revoke(store.wire);
}

void KeepCall::note(int code) {
    if (code && !has_failed) abandon();
}

std::vector<MPI_Request> KeepCall::reserve(size_t requests) {
    std::vector<MPI_Request> list;
    list.reserve(requests + 1);  // wait() adds one
    return list;
}

void KeepCall::send(const void* data, size_t bytes, int to, int tag, std::vector<MPI_Request>& requests) {
    if (has_failed) return;
    requests.push_back(MPI_REQUEST_NULL);
    note(MPI_Isend_c(data, static_cast<MPI_Count>(bytes), MPI_BYTE, to, tag, store.wire, &requests.back()));
}

void KeepCall::receive(void* data, size_t bytes, int from, int tag, std::vector<MPI_Request>& requests) {
    if (has_failed) return;
    requests.push_back(MPI_REQUEST_NULL);
    note(MPI_Irecv_c(data, static_cast<MPI_Count>(bytes), MPI_BYTE, from, tag, store.wire, &requests.back()));
}

void KeepCall::gather(const void* mine, void* all, size_t bytes) {
    if (has_failed) return;
    std::vector<MPI_Request> requests = reserve(1);
    requests.push_back(MPI_REQUEST_NULL);
    const int count = static_cast<int>(bytes);
    note(MPI_Iallgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, store.wire, requests.data()));
    wait(requests);
}

void KeepCall::combine(uint64_t* words, int count, MPI_Op operation) {
    if (has_failed) return;
    std::vector<MPI_Request> requests = reserve(1);
    requests.push_back(MPI_REQUEST_NULL);
    note(MPI_Iallreduce(MPI_IN_PLACE, words, count, MPI_UINT64_T, operation, store.wire, requests.data()));
    wait(requests);
}

void KeepCall::wait(std::vector<MPI_Request>& requests) {
    std::erase(requests, MPI_REQUEST_NULL);
    requests.push_back(std::exchange(revoked, MPI_REQUEST_NULL));
    const int last = static_cast<int>(requests.size()) - 1;
    for (int left = last; left > 0;) {
        int index = 0;
        const int code = MPI_Waitany(last + (is_revoked ? 0 : 1), requests.data(), &index, MPI_STATUS_IGNORE);
        if (index == last) is_revoked = true;
        note(index == last ? MPIX_ERR_REVOKED : code);
        left -= index != last;
    }
    revoked = requests.back();
    requests.clear();
}

CallVerdict KeepCall::conclude() {
    PendingAgreement& pending = store.pending;
    pending.flag = flag_of(!has_failed, has_memory, is_valid);
    if (is_revoked || MPIX_Comm_iagree(store.wire, &pending.flag, &pending.request)) return {MPIX_ERR_REVOKED};
    MPI_Request requests[] = {pending.request, revoked};
    int index = 0;
    const int code = MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    pending.request = requests[0];
    revoked = requests[1];
    if (index != 0) {
        abandon();
        return {MPIX_ERR_REVOKED};
    }
    return finish(store, code);
}

void settle(KeepStore& store) {
    PendingAgreement& pending = store.pending;
    while (!store.is_closed) {
        if (pending.request == MPI_REQUEST_NULL) {
            pending.save.reset();
            pending.flag = 0;
            if (MPIX_Comm_iagree(store.wire, &pending.flag, &pending.request)) return;
        }
        const int code = MPI_Wait(&pending.request, MPI_STATUS_IGNORE);
        finish(store, code);
    }
}

int report_failure(int error) {
    if (error == MPIX_ERR_PROC_FAILED)
        return fail(error,
                    "a process of the store's communicator has failed; shrink the communicator and call starling_keep_move");
    return fail(error,
                "the store's communicator is revoked, or an earlier call has failed; shrink the communicator and call "
                "starling_keep_move");
}

uint64_t hash_of(const std::string& name, int64_t version) {
    uint64_t hash = 14695981039346656037u;
    const auto mix = [&](unsigned char byte) { hash = (hash ^ byte) * 1099511628211u; };
    for (char c : name) mix(static_cast<unsigned char>(c));
    for (int shift = 0; shift < 64; shift += 8) mix(static_cast<unsigned char>(static_cast<uint64_t>(version) >> shift));
    return hash;
}

}  // namespace starling::keep
