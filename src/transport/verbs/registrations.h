// Cache of memory registrations of one port. A registration costs a system call and time for each page. So it is kept after use while its
// address is known to mean the same memory (memory_watch.h). Beyond STARLING_VERBS_REGISTERED bytes the least recently used one is evicted.
// Where changes can't be detected, only registrations that their owner holds are kept.
//
// Why not otherwise: hooks in malloc and munmap miss custom allocators, static programs and direct system calls. Hooks by symbols or
// patched code conflict with other libraries that hook the same functions. A cache that misses one call corrupts data. Addresses alone
// prove nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "transport/verbs/device.h"
#include "transport/verbs/memory_watch.h"

namespace starling::verbs {

/// A stretch of memory registered with the port.
struct Registration {
    PageRange pages;
    Memory memory;
    uint32_t uses = 0;       ///< number of calls of use() and hold() without their done() yet
    bool watched = false;    ///< whether changes of the memory are detected, so that the registration is kept while unused
    bool held = false;       ///< whether hold() created the registration; all holders of this memory share it
    bool dismissed = false;  ///< whether spoil() has deregistered it with the device
    bool valid = true;       ///< whether the address still means the same memory
    uint64_t last_used = 0;
};

struct RegistrationCounters {
    uint64_t found = 0, made = 0, evicted = 0, changed = 0;
};

/// The registrations of one port, which must outlive this object. Not thread-safe: all calls under the library's lock.
class Registrations {
  public:
    /// Creates an empty cache. `watch`: null if changes can't be detected, then nothing is kept. `most`: limit of kept registrations in
    /// bytes.
    Registrations(Port& port, MemoryWatch* watch, uint64_t most);
    Registrations(const Registrations&) = delete;
    Registrations& operator=(const Registrations&) = delete;
    ~Registrations();

    /// Registers memory that its owner may unmap after done(). Returns null if the device refuses.
    Registration* use(const void* memory, uint64_t bytes);
    /// Registers memory that its owner keeps mapped until done().
    Registration* hold(const void* memory, uint64_t bytes);
    void done(Registration& registration);
    /// Deregisters the memory while it is in use, so that no peer can access it any more. A peer that still accesses it breaks its queue to
    /// this process, and then uses another path.
    void spoil(Registration& registration);

    uint64_t bytes() const { return bytes_; }
    const RegistrationCounters& counters() const { return counters_; }

  private:
    using RegistrationMap = std::multimap<uint64_t, std::unique_ptr<Registration>>;  ///< registrations by their first address
    PageRange pages_of(const void* memory, uint64_t bytes) const;
    bool note_changes();
    void invalidate(const PageRange& changed);
    Registration* find(const PageRange& pages);
    Registration* make(const PageRange& pages);
    bool make_room(uint64_t bytes);
    bool evict_one();
    void dismiss(Registration& registration);
    RegistrationMap::iterator remove(RegistrationMap::iterator place);
    void unwatch(const PageRange& pages);

    Port& port_;
    MemoryWatch* const watch_;
    const uint64_t most_;
    const uint64_t page_;
    uint64_t bytes_ = 0;    ///< bytes of all registrations
    uint64_t longest_ = 0;  ///< length of the longest registered stretch so far, bytes
    uint64_t clock_ = 0;    ///< counter by which the least recently used registration is found
    RegistrationCounters counters_;
    RegistrationMap all_;
};

}  // namespace starling::verbs
