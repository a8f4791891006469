// Counts collective calls by the place in the program that makes them. The generated entry points pass their call site if any listener or
// the profile is active; inner functions add the communicator, the algorithm and the length.
//
// Unless noted otherwise, functions need the library's lock (base/lock.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/size_classes.h"
#include "profile/call_site.h"

namespace starling::profile {

/// One collective call, blocking or not, from entry to return. Stored on the stack of the calling thread.
struct ProfiledCall {
    explicit ProfiledCall(const void* its_site) : site(its_site) {}
    const void* const site;  ///< return address of the call in the program, or a label (profile/call_site.h)
    uint64_t began = 0;      ///< time of the call's begin, ticks; 0: the arguments were wrong and no operation was started
    uint64_t communicator = 0;
    uint32_t size = 0;
    uint64_t bytes = 0;              ///< bytes of the whole vector or of one block, whichever the algorithm selection uses
    const char* algorithm = "none";  ///< name of the algorithm; "none" without a selection, as for one process or no data
    bool tried = false;              ///< whether the algorithm was only tried: the selection table prefers another one
    bool choosing = true;            ///< whether the next selected algorithm is this call's (and not one of its preparations)
};

/// Whether collective calls are watched at all. Every collective call reads it, so it costs one predictable branch if they are not.
/// Readable without the lock.
extern bool watching;
/// The call that this thread is in; null if there is none, or if collective calls are not watched.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ProfiledCall* watched;

/// Called at the start of each collective call of the program, after its arguments were checked and before anything is sent.
///
/// `site` is an address in this process; name_of_site() returns a name that is common to all processes. `communicator` is the context id,
/// which all members share (disjoint communicators made by one split also share one). `size` is the number of processes; an
/// inter-communicator's includes both groups. `function` is a name like "MPI_Allreduce" with static lifetime.
///
/// Listeners are called in the order of registration, cannot be removed, and there are at most kCollectiveListeners. A listener may begin a
/// phase (profile/phase.h), to which the call then belongs.
using CollectiveListener = void (*)(uint64_t site, uint64_t communicator, uint32_t size, const char* function);
inline constexpr uint32_t kCollectiveListeners = 4;
void listen_to_collectives(CollectiveListener listener);

/// Returns the text of a label, or a name like "program+0x1234": the module that contains the address and the offset in it, which is the same in all processes that
/// run the module.
std::string name_of_site(uint64_t site);

/// Returns the kind of operation as environment variables name it: "gather" for "MPI_Gatherv". Nonblocking functions have an i in front:
/// "igather" for "MPI_Igatherv". Returns "other" for functions that are not collective operations.
const char* kind_of_function(std::string_view function);

/// The sums of one row of a phase's table of collective calls.
struct CollectiveSum {
    const void* site;
    uint64_t communicator;
    uint32_t size;
    const char* function;  ///< "MPI_Allreduce"
    uint8_t size_class;    ///< index into kSizeClasses
    const char* algorithm;
    bool tried;  ///< whether the calls used an algorithm on trial: the selection table prefers another one
    uint64_t calls = 0, bytes = 0, ns = 0;
    double squares = 0;  ///< sum of the squares of the calls' durations, ns²
};

/// Visits the rows of the current phase's table of collective calls.
void each_collective(void (*visit)(const CollectiveSum& sum, void* argument), void* argument);
void clear_collectives();
/// Starts to count collective calls; call it before the first one.
void start_collectives();

// --- Filled in during the call; only to be called if `watching` ---

/// Records the communicator of a call whose arguments are valid, and calls the listeners.
void begin_watched(uint64_t communicator, uint32_t size);
/// Discards the algorithms selected so far, which belong to preparations of the call; the next one is recorded.
void expect_choice();
/// Records the algorithm selected for `bytes` bytes; its name has static lifetime. `tried`: the selection table prefers another algorithm.
void note_choice(const char* algorithm, uint64_t bytes, bool tried = false);
/// Counts a call that has ended. Takes the lock.
void end_watched(const ProfiledCall& call);

/// Runs the body of an entry point whose call is watched.
template <class F>
[[gnu::noinline, gnu::cold]] int run_watched(const void* site, F& body) {
    ProfiledCall call(program_site(site));
    ProfiledCall* const outer = watched;
    watched = &call;
    struct End {
        ProfiledCall& call;
        ProfiledCall* outer;
        ~End() {
            watched = outer;
            if (call.began != 0) end_watched(call);
        }
    } end{call, outer};
    return body();
}

}  // namespace starling::profile
