#include "profile/call_site.h"

#include <dlfcn.h>
#include <unwind.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include "base/state.h"
#include "profile/collectives.h"
#include "profile/python_site.h"

// Begin and end in memory of the module (program or library) that contains this code, as the linker defines them.
extern "C" {
[[gnu::visibility("hidden")]] extern const char __ehdr_start;
[[gnu::visibility("hidden")]] extern const char _etext;
}

namespace starling::profile {

STARLING_STATE std::atomic<const void*> known_sites[kKnownSites] = {};

namespace {

/// The code that contains a return address.
enum class CallerKind : uint8_t { program, wrapper, python };

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
    for (const std::string_view begin : beginnings)
        if (text.starts_with(begin)) return true;
    return false;
}

/// Returns whether a file, without ".so" and what follows, is a library of an MPI or OpenSHMEM. A user's libmpi_solver.so is none.
bool is_mpi_library(std::string_view name) {
    for (const std::string_view known : {"libmpi", "libpmpi", "libmpi_abi", "libmpifort_abi", "libmpi_mpifh", "libmpi_usempi",
                                         "libmpi_usempif08", "libmpi_usempi_ignore_tkr", "libmpi_cxx", "libmpich",
                                         "libmpichfort", "libmpichcxx", "libmpifort", "libmpicxx", "liboshmem", "libsma"})
        if (name.substr(0, name.find(".so")) == known) return true;
    return false;
}

/// Returns whether a function has a name that the standards reserve. In C a program may have names such as mpi_solver; in Fortran not.
bool is_standard_name(std::string_view name) {
    if (starts_with_any(name, {"mpi_", "pmpi_"})) return name.ends_with('_');
    return starts_with_any(name, {"MPI_", "PMPI_", "shmem_", "pshmem_"});
}

CallerKind kind_of(const void* address) {
    Dl_info info{};
    // The call may be the function's last instruction, and the return address in the next function. The outermost frame of a stack may have
    // a null return address.
    const auto* const call = reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(address) - 1);
    if (dladdr(call, &info) == 0 || !info.dli_fname) return CallerKind::program;
    const std::string_view path(info.dli_fname), name = path.substr(path.rfind('/') + 1);
    if (is_mpi_library(name) || (info.dli_sname && is_standard_name(info.dli_sname))) return CallerKind::wrapper;
    return is_in_binding(path) ? CallerKind::python : CallerKind::program;
}

/// Places in wrappers and in mpi4py: the address times two, plus one for those in mpi4py. Indexed as known_sites.
STARLING_STATE std::atomic<uintptr_t> known_others[kKnownSites] = {};

/// Returns the kind, and remembers it.
CallerKind remembered_kind(const void* address) {
    std::atomic<const void*>& known = known_site(address);
    if (known.load(std::memory_order_relaxed) == address) return CallerKind::program;
    std::atomic<uintptr_t>& other = known_others[&known - known_sites];
    const uintptr_t twice = reinterpret_cast<uintptr_t>(address) << 1, entry = other.load(std::memory_order_relaxed);
    if (entry >> 1 == twice >> 1 && entry != 0) return (entry & 1) != 0 ? CallerKind::python : CallerKind::wrapper;
    const CallerKind kind = kind_of(address);
    if (kind == CallerKind::program)
        known.store(address, std::memory_order_relaxed);
    else
        other.store(twice | (kind == CallerKind::python ? 1 : 0), std::memory_order_relaxed);
    return kind;
}

struct StackSearch {
    const void* found = nullptr;
    CallerKind kind = CallerKind::program;
};

_Unwind_Reason_Code look(_Unwind_Context* frame, void* argument) {
    const auto address = _Unwind_GetIP(frame);
    if (address == 0) return _URC_END_OF_STACK;
    if (address >= reinterpret_cast<uintptr_t>(&__ehdr_start) && address <= reinterpret_cast<uintptr_t>(&_etext))
        return _URC_NO_REASON;
    auto& search = *static_cast<StackSearch*>(argument);
    const auto* const place = reinterpret_cast<const void*>(address);
    const CallerKind kind = remembered_kind(place);
    // Without a caller above it, the innermost wrapper is the best answer.
    if (!search.found || kind != CallerKind::wrapper) {
        search.found = place;
        search.kind = kind;
    }
    return kind == CallerKind::wrapper ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/// Walks up the stack to the first frame outside of this module that is no wrapper's.
const void* walk_to_program() {
    StackSearch search;
    _Unwind_Backtrace(look, &search);
    if (search.kind != CallerKind::python) return search.found;
    const void* const label = python_site();
    return label ? label : search.found;
}

}  // namespace

const void* call_site() {
    if (watched) return watched->site;
    return walk_to_program();
}

const void* program_site_slowly(const void* caller) {
    switch (remembered_kind(caller)) {
        case CallerKind::program:
            return caller;
        case CallerKind::wrapper: {
            const void* const found = walk_to_program();
            return found ? found : caller;
        }
        case CallerKind::python: {
            const void* const label = python_site();
            return label ? label : caller;
        }
    }
    return caller;
}

bool is_label(const void* site) { return is_python_site(site); }

}  // namespace starling::profile
