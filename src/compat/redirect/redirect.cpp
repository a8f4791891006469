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

long call(long number, long first, long second, long third, long fourth) {
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = fourth;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = first;
    register long x1 __asm__("x1") = second;
    register long x2 __asm__("x2") = third;
    register long x3 __asm__("x3") = fourth;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
#else
    return -1;
#endif
}

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
    const long fd = call(SYS_openat, -100 /* AT_FDCWD */, reinterpret_cast<long>(path), 02000000 /* O_CLOEXEC */, 0);
    if (fd < 0) return false;
    const long got = call(SYS_read, fd, reinterpret_cast<long>(page), sizeof page, 0);
    call(SYS_close, fd, 0, 0, 0);
    constexpr long kMark = sizeof starling::kLibraryMark;
    for (long at = 0; at + kMark <= got; ++at) {
        long same = 0;
        while (same < kMark && page[at + same] == starling::kLibraryMark[same]) ++same;
        if (same == kMark) return false;
    }
    return got > 0;
}

char* replacement(const char* name, unsigned flag, const char* libraries) {
    const char* const part = last_part(name);
    const char* const interface = value_of("STARLING_COMPAT");
    const bool any = !interface || !*interface || equal(interface, "auto");
    for (const Replaced& replaced : kReplaced)
        if ((flag & LA_SER_ORIG) != 0 && equal(part, replaced.name) && (any || equal(interface, replaced.folder)))
            return join({libraries, "/compat/", replaced.folder, "/", part});
    if (part != name && equal(part, "libmpi_abi.so.1") && is_foreign(name))
        return join({libraries, "/", part, nullptr, nullptr});
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
