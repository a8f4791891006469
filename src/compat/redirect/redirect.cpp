// An audit library (rtld-audit(7)) that mpiexec names in LD_AUDIT for programs whose MPI it cannot replace by a search path: interpreters,
// start scripts and programs with an RPATH. The loader asks it before it opens a library, and it answers with Starling's file in place of
// another MPI's. It contains no code that runs later.
//
// The loader keeps audit libraries apart from the program, with a C library of their own. This file needs none, so that no second one is
// loaded. So it calls the kernel itself, and finds the environment above the stack.
#include <elf.h>
#include <link.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

#include "base/library_mark.h"
#include "compat/redirect/kernel_call.h"
#include "compat/redirect/soname.h"

extern "C" {
extern void* __libc_stack_end;  // of the loader: the address of main's argc, behind which are argv and the environment
[[gnu::visibility("default")]] unsigned la_version(unsigned version);
[[gnu::visibility("default")]] char* la_objsearch(const char* name, uintptr_t* cookie, unsigned flag);
}

namespace {

constexpr size_t kLongestPath = 4096;

/// A library that is replaced: its name, and its folder below Starling's libraries, which begins with the interface's name.
struct Replaced {
    const char* name;
    const char* folder;
};
constexpr Replaced kReplaced[] = {
    {"libmpi.so.12", "mpich"},
    {"libmpich.so.12", "mpich"},
    {"libmpifort.so.12", "mpich"},
    {"libmpichfort.so.12", "mpich"},
    {"libmpi.so.40", "openmpi"},
    {"libmpi_mpifh.so.40", "openmpi"},
    {"libmpi_usempif08.so.40", "openmpi"},
    {"libmpi_usempi_ignore_tkr.so.40", "openmpi"},
};
constexpr const char* kStandardName = "libmpi_abi.so.1";

bool equal(const char* a, const char* b) {
    while (*a && *a == *b) ++a, ++b;
    return *a == *b;
}

const char* value_of(const char* name) {
    char** entry = static_cast<char**>(__libc_stack_end);
    entry += *reinterpret_cast<long*>(entry) + 2;  // argc itself, the arguments, and the null after them
    for (; *entry; ++entry) {
        const char *a = *entry, *b = name;
        while (*b && *a == *b) ++a, ++b;
        if (!*b && *a == '=') return a + 1;
    }
    return nullptr;
}

const char* last_part(const char* path) {
    const char* part = path;
    for (const char* at = path; *at; ++at)
        if (*at == '/') part = at + 1;
    return part;
}

/// Writes the words one after another; returns null if they do not fit.
char* join(const char* const (&words)[5]) {
    static char path[kLongestPath];
    size_t length = 0;
    for (const char* word : words)
        for (; word && *word; ++word) {
            if (length + 1 == kLongestPath) return nullptr;
            path[length++] = *word;
        }
    path[length] = '\0';
    return path;
}

/// Returns whether a file exists that is another vendor's. Starling's have a mark in their first page.
bool is_foreign(const char* path) {
    static char page[4096];
    const long fd =
        starling::kernel_call(SYS_openat, -100 /* AT_FDCWD */, reinterpret_cast<long>(path), 02000000 /* O_CLOEXEC */, 0);
    if (fd < 0) return false;
    const long got = starling::kernel_call(SYS_read, fd, reinterpret_cast<long>(page), sizeof page, 0);
    starling::kernel_call(SYS_close, fd, 0, 0, 0);
    constexpr long kMark = sizeof starling::kLibraryMark;
    for (long at = 0; at + kMark <= got; ++at) {
        long same = 0;
        while (same < kMark && page[at + same] == starling::kLibraryMark[same]) ++same;
        if (same == kMark) return false;
    }
    return got > 0;
}

bool is_replaced(const char* name) {
    for (const Replaced& replaced : kReplaced)
        if (equal(name, replaced.name)) return true;
    return equal(name, kStandardName);
}

// Returns whether a library may be an MPI's whose file has another name than the library itself, such as libmpi.so or libmpi.so.40.30.4.
bool may_have_another_name(const char* part) {
    const char* const begin = "libmpi";
    size_t same = 0;
    while (begin[same] && part[same] == begin[same]) ++same;
    return !begin[same] && !is_replaced(part);
}

char* replacement(const char* name, unsigned flag, const char* libraries) {
    const char* part = last_part(name);
    const bool path = part != name;
    bool asked = (flag & LA_SER_ORIG) != 0;
    if (path && may_have_another_name(part))
        if (const char* const soname = starling::soname_of(name)) part = soname, asked = true;
    const char* const interface = value_of("STARLING_COMPAT");
    const bool any = !interface || !*interface || equal(interface, "auto");
    for (const Replaced& replaced : kReplaced)
        if (asked && equal(part, replaced.name) && (any || equal(interface, replaced.folder)))
            return join({libraries, "/compat/", replaced.folder, "/", part});
    if (path && equal(part, kStandardName) && is_foreign(name)) return join({libraries, "/", part, nullptr, nullptr});
    return nullptr;
}

}  // namespace

// Any version of the interface will do, because these two functions have not changed.
unsigned la_version(unsigned version) { return version; }

// Called with the name that a file needs or dlopen() gets, then with each path that the search tries.
char* la_objsearch(const char* name, uintptr_t*, unsigned flag) {
    const char* const libraries = value_of(starling::kLibrariesVariable);
    char* const other = libraries && *libraries ? replacement(name, flag, libraries) : nullptr;
    return other ? other : const_cast<char*>(name);
}
