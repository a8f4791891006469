// Memory that a port may use. Telling a device of memory costs a system call, and time for every page, so what has been used is kept, as
// long as it is known to be the same memory (memory_watch.h) and there is not too much of it (STARLING_VERBS_REGISTERED): then what has not been
// used for longest goes. Where it can't be known nothing is kept, but what its owner holds on to.
//
// Why not otherwise: hooks in malloc and munmap miss what an allocator of the program's own, a static program or a system call does, and hooks
// by symbols or patched code fight with other libraries for the same functions; one that misses a call corrupts data. Addresses alone say
// nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "transport/verbs/device.h"
#include "transport/verbs/memory_watch.h"

namespace starling::verbs {

/// A stretch of memory that the port may use.
struct Registration {
    Stretch pages;
    Memory memory;
    uint32_t uses = 0;       ///< by those who have not said done()
    bool watched = false;    ///< it is kept when nobody uses it
    bool held = false;       ///< its owner keeps it there: for all that do so of the same memory
    bool dismissed = false;  ///< the device has forgotten it: spoil()
    bool valid = true;       ///< the program means the same memory by the address
    uint64_t last_used = 0;
};

struct RegistrationCounters {
    uint64_t found = 0, made = 0, evicted = 0, changed = 0;
};

/// Of one port, which lives longer. Not thread-safe: under the library's lock.
class Registrations {
  public:
    /// `watch`: null: nothing is kept. `most`: bytes of what is.
    Registrations(Port& port, MemoryWatch* watch, uint64_t most);
    Registrations(const Registrations&) = delete;
    Registrations& operator=(const Registrations&) = delete;
    ~Registrations();

    /// For memory that its owner may do with as he likes after done(). Null: the device does not take it.
    Registration* use(const void* memory, uint64_t bytes);
    /// For memory that its owner keeps where it is until done().
    Registration* hold(const void* memory, uint64_t bytes);
    void done(Registration& registration);
    /// Nobody shall reach the memory by it any more, whoever uses it: whoever tries breaks his queue, and has another way. It must be used.
    void spoil(Registration& registration);

    uint64_t bytes() const { return bytes_; }
    const RegistrationCounters& counters() const { return counters_; }

  private:
    using All = std::multimap<uint64_t, std::unique_ptr<Registration>>;  ///< by the first address
    Stretch pages_of(const void* memory, uint64_t bytes) const;
    bool note_changes();
    void invalidate(const Stretch& changed);
    Registration* find(const Stretch& pages);
    Registration* make(const Stretch& pages);
    bool make_room(uint64_t bytes);
    bool evict_one();
    void dismiss(Registration& registration);
    All::iterator remove(All::iterator place);
    void unwatch(const Stretch& pages);

    Port& port_;
    MemoryWatch* const watch_;
    const uint64_t most_;
    const uint64_t page_;
    uint64_t bytes_ = 0;    ///< of all
    uint64_t longest_ = 0;  ///< of the stretches that ever were
    uint64_t clock_ = 0;    ///< of uses
    RegistrationCounters counters_;
    All all_;
};

}  // namespace starling::verbs
