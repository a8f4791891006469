// One collective call on a store: waits for requests until the program's communicator is revoked, and ends with an agreement.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "keep/store.h"

namespace starling::keep {

/// The result of an agreement: each member's answers, combined.
struct CallVerdict {
    int error = 0;  ///< MPI_SUCCESS, MPIX_ERR_PROC_FAILED or MPIX_ERR_REVOKED
    bool has_memory = true;
    bool is_valid = true;  ///< whether no member has found invalid arguments
};

class KeepCall {
  public:
    explicit KeepCall(KeepStore& its_store);
    ~KeepCall();
    KeepCall(const KeepCall&) = delete;

    /// Returns a list with room for requests, so that no allocation can fail once some of them have begun.
    static std::vector<MPI_Request> reserve(size_t requests);
    /// Begin to send to or receive from a member, and add the request. After an error failed() is true.
    void send(const void* data, size_t bytes, int to, int tag, std::vector<MPI_Request>& requests);
    void receive(void* data, size_t bytes, int from, int tag, std::vector<MPI_Request>& requests);
    /// Waits for all requests, which belong to the store's communicator. After an error all of them have ended, and failed() is true.
    void wait(std::vector<MPI_Request>& requests);
    /// Ends the communication of all members, who then fail alike.
    void abandon();
    bool failed() const { return has_failed; }

    bool has_memory = true, is_valid = true;

    /// Agrees with all members. If the program's communicator is revoked meanwhile, the agreement remains pending in the store.
    CallVerdict conclude();

    /// Gathers `bytes` bytes of every member.
    void gather(const void* mine, void* all, size_t bytes);
    /// Replaces the words by the combination of all members' words. If some members fail here, others may not.
    void combine(uint64_t* words, int count, MPI_Op operation);

  private:
    /// Abandons the call if `code` is an error.
    void note(int code);

    KeepStore& store;
    MPI_Request revoked = MPI_REQUEST_NULL;  ///< a receive that only the revocation of the program's communicator ends
    bool has_failed = false, is_revoked = false;
};

/// Takes part in the last agreement of the store's communicator, and commits a pending save that has succeeded. Members may have left other
/// numbers of agreements pending: the last one is the first in which any member takes part here. All living members call it.
void settle(KeepStore& store);

/// Returns the error and its sentence.
int report_failure(int error);

uint64_t hash_of(const std::string& name, int64_t version);

}  // namespace starling::keep
