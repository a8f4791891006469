// Collective calls by the place in the program that makes them. The generated entries of the collective chapter say where they
// are called from, when somebody wants to know; the rest is filled in on the call's way down.
//
// Needs the library's lock (base/lock.h), but for what says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/size_classes.h"

namespace starling::profile {

/// One collective call, blocking or not, from its entry to its return. On the stack of the thread that makes it.
struct CollectiveCall {
    explicit CollectiveCall(const void* its_site) : site(its_site) {}
    const void* const site;  ///< return address: behind the call instruction in the program
    uint64_t began = 0;      ///< ticks; 0: the arguments were refused, and nothing was called
    uint64_t communicator = 0;
    uint32_t size = 0;
    uint64_t bytes = 0;              ///< whole vector, or one block, as the choice of the algorithm counts it
    const char* algorithm = "none";  ///< none: there was nothing to choose, as for one process or no data
    bool tried = false;              ///< the table would have taken another one
    bool choosing = true;            ///< the next algorithm that is chosen is this call's
};

/// Whether collective calls are watched at all: read by every collective call, so it is one predictable branch where nobody does.
/// Readable without the lock.
extern bool watching;
/// The call that this thread is in; null: none, or it is not watched.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local CollectiveCall* watched;

/// Who wants to know of each collective call of the program's, as it begins: its arguments are right, and nothing has been sent
/// for it. `site` is an address in this process: name_of_site() says what it is called in all of them. `communicator` is the
/// context id, which is the same for all members (disjoint communicators made by one split share it), `size` the number of
/// processes, of both groups if there are two; `function` as "MPI_Allreduce", and lasts for ever. In the order in which they came; a few at
/// most (kCollectiveListeners), for good. May begin a phase (profile/phase.h), which the call then belongs to.
using CollectiveListener = void (*)(uint64_t site, uint64_t communicator, uint32_t size, const char* function);
inline constexpr uint32_t kCollectiveListeners = 4;
void listen_to_collectives(CollectiveListener listener);

/// "program+0x1234": the module that the address lies in and its place there, the same in all processes that run it.
std::string name_of_site(uint64_t site);

/// The operation that a function is one of, in the words of the variables: "MPI_Gatherv" is a "gather"; with an i in front if it
/// does not wait: "MPI_Igatherv" is an "igather". "other" if it is none.
const char* kind_of_function(std::string_view function);

/// The sums of one row of a phase's table of collective calls.
struct CollectiveSum {
    const void* site;
    uint64_t communicator;
    uint32_t size;
    const char* function;  ///< "MPI_Allreduce"
    uint8_t size_class;    ///< index into kSizeClasses
    const char* algorithm;
    bool tried;  ///< the table would have taken another one
    uint64_t calls = 0, bytes = 0, ns = 0;
    double squares = 0;  ///< ns²: the sum of the squares of the calls' times
};

/// Visits the rows of the phase that is going on.
void each_collective(void (*visit)(const CollectiveSum& sum, void* argument), void* argument);
void clear_collectives();
/// Before the first of them, where somebody counts.
void start_collectives();

// --- what the call's way down fills in; to be called where `watching` ---

/// The communicator is known and the arguments are right: listeners hear of it.
void begin_watched(uint64_t communicator, uint32_t size);
/// What was chosen so far was none of the call's: the next is.
void expect_choice();
/// An algorithm was chosen for so many bytes; its name lasts for ever. `tried`: the table would have taken another one.
void note_choice(const char* algorithm, uint64_t bytes, bool tried = false);
/// Counts the call: its end. Takes the lock.
void end_watched(const CollectiveCall& call);

/// The body of an entry whose call is watched.
template <class F>
[[gnu::noinline, gnu::cold]] int run_watched(const void* site, F& body) {
    CollectiveCall call(site);
    CollectiveCall* const outer = watched;
    watched = &call;
    struct End {
        CollectiveCall& call;
        CollectiveCall* outer;
        ~End() {
            watched = outer;
            if (call.began != 0) end_watched(call);
        }
    } end{call, outer};
    return body();
}

}  // namespace starling::profile
