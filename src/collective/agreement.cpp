#include "collective/agreement.h"

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/kept_memory.h"
#include "collective/collective.h"
#include "collective/comm_call.h"
#include "comm/error_codes.h"

namespace starling::collective {

namespace {

/// One member's vote in an agreement: its error class and failure text, and the number that the allreduce compares.
class Vote {
  public:
    // Encodes an error and its rank so that the lowest rank makes the largest number, and MPI_MAX selects the lowest failed rank.
    Vote(int error, int rank, int size)
        : size_(size),
          own_(error || !KeptMemory::is_short() ? error : fail(MPI_ERR_NO_MEM, "this process has no memory left")),
          text_(own_ ? failure_text() : std::string_view()),
          mine(own_ ? int64_t{size - rank} << 32 | own_ : 0) {}

    /// Returns this member's result after the allreduce, whose own error class is `failed`.
    int result(int failed, const char* what) const {
        if (own_) return text_.empty() ? own_ : fail(own_, "%s", text_.c_str());
        if (failed || all == 0) return failed;
        const auto first = static_cast<int>(all & 0xffffffff);
        const auto rank = size_ - static_cast<int>(all >> 32);
        return fail(first, "rank %d could not create its part of the %s: %s", rank, what, comm::text_of(first).c_str());
    }

  private:
    int size_, own_;
    std::string text_;

  public:
    int64_t mine, all = 0;
};

const Datatype& word() { return datatype::predefined(MPI_INT64_T); }
const Op& largest() { return datatype::predefined(MPI_MAX); }

}  // namespace

int agree(comm::Comm& comm, int error, const char* what) {
    Vote vote(error, comm.rank, comm.size);
    CommCall call(comm, true);
    return vote.result(run(call, allreduce(call, &vote.mine, &vote.all, 1, word(), largest())), what);
}

Task agree(View v, int error, const char* what) {
    Vote vote(error, v.me, v.n);
    const int failed = co_await allreduce(v, &vote.mine, &vote.all, 1, word(), largest());
    co_return vote.result(failed, what);
}

}  // namespace starling::collective
