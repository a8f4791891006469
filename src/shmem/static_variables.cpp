#include "shmem/static_variables.h"

#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include "base/barrier.h"
#include "base/page_size.h"
#include "base/state.h"
#include "job/descriptor_passing.h"
#include "link/host_memory.h"
#include "shmem/runtime_abi.h"

namespace starling::shmem {

namespace {

struct Shared {
    StaticVariables known;
    link::Pages file;
    bool tried = false;
    bool handed_over = false;
    pthread_mutex_t forking = PTHREAD_MUTEX_INITIALIZER;  ///< mutex held from before a fork until after it
    std::byte* copy = nullptr;                            ///< copy of the variables for the child, during a fork
};

STARLING_STATE Lazy<Shared> the_shared;

/// A part of the variables that is one mapping in the kernel.
struct VariableMapping {
    uintptr_t first, last;
    bool of_file;
};

/// Finds the program's writable segments, except the part that the loader makes read-only. dl_iterate_phdr() reports the program first.
int find_variables(dl_phdr_info* info, size_t, void* out) {
    uintptr_t first = ~uintptr_t{0}, last = 0, read_only = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + segment.p_vaddr, end = begin + segment.p_memsz;
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W)) {
            first = std::min(first, begin);
            last = std::max(last, end);
        } else if (segment.p_type == PT_GNU_RELRO) {
            read_only = (end + kPage - 1) / kPage * kPage;
        }
    }
    if (first >= last) return 1;
    first = std::max(first, std::min(read_only, last));
    StaticVariables& found = *static_cast<StaticVariables*>(out);
    found.first = reinterpret_cast<std::byte*>(first);
    found.bytes = last - first;
    return 1;
}

/// Returns the begin or end of the whole pages that contain the variables.
uintptr_t first_page(const StaticVariables& all) { return reinterpret_cast<uintptr_t>(all.first) / kPage * kPage; }
uintptr_t last_page(const StaticVariables& all) {
    return (reinterpret_cast<uintptr_t>(all.first) + all.bytes + kPage - 1) / kPage * kPage;
}

/// Returns the mappings between two addresses. Returns none unless they are as the loader made them: private, without gaps, all writable.
std::vector<VariableMapping> stretches(uintptr_t first, uintptr_t last) {
    std::vector<VariableMapping> found;
    const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
    char line[512], rights[5];
    unsigned long begin, end, inode;
    uintptr_t reached = first;
    while (maps && reached < last && std::fgets(line, sizeof line, maps.get())) {
        if (std::sscanf(line, "%lx-%lx %4s %*x %*x:%*x %lu", &begin, &end, rights, &inode) != 4 || end <= reached) continue;
        if (begin > reached || std::string_view(rights) != "rw-p") break;
        found.push_back({reached, std::min<uintptr_t>(end, last), inode != 0});
        reached = end;
    }
    if (reached < last) found.clear();
    return found;
}

/// Writes memory to the file by a system call: a sanitizer forbids reads of the redzones between variables.
bool write_out(int file, uintptr_t first, uintptr_t last, uintptr_t base) {
    while (first < last) {
        const long written =
            syscall(SYS_pwrite64, file, first, last - first, StaticVariables::offset_of(base) + (first - base));
        if (written <= 0) return false;
        first += static_cast<uintptr_t>(written);
    }
    return true;
}

/// Returns whether a page is zero. Not instrumented, because the page may contain a sanitizer's redzones.
[[gnu::no_sanitize("address")]] bool is_zero(uintptr_t page) {
    const auto* words = reinterpret_cast<const uint64_t*>(page);
    return std::all_of(words, words + kPage / sizeof *words, [](uint64_t word) { return word == 0; });
}

/// Finds out which pages of an anonymous mapping were touched: from the kernel's pagemap, otherwise by their contents.
bool find_touched(int pagemap, uintptr_t first, uint64_t (&entries)[512], size_t n) {
    constexpr uint64_t kPresent = uint64_t{1} << 63, kSwapped = uint64_t{1} << 62;
    const size_t bytes = n * sizeof *entries;
    if (pagemap >= 0 &&
        pread(pagemap, entries, bytes, static_cast<off_t>(first / kPage * sizeof *entries)) != static_cast<ssize_t>(bytes))
        return false;
    for (size_t i = 0; i < n; ++i)
        entries[i] = pagemap >= 0 ? entries[i] & (kPresent | kSwapped) : uint64_t{!is_zero(first + i * kPage)};
    return true;
}

/// Writes the touched pages of an anonymous mapping to the file; the others stay holes.
bool write_touched(int file, const VariableMapping& stretch, uintptr_t base) {
    // A process whose /proc is closed cannot open its pagemap.
    const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    bool done = true;
    uint64_t entries[512];
    for (uintptr_t at = stretch.first; done && at < stretch.last;) {
        const size_t n = std::min<size_t>(std::size(entries), (stretch.last - at) / kPage);
        done = find_touched(pagemap, at, entries, n);
        for (size_t i = 0; done && i < n; ++i, at += kPage)
            if (entries[i]) done = write_out(file, at, at + kPage, base);
    }
    if (pagemap >= 0) close(pagemap);
    return done;
}

bool put_into_file(link::Pages& file, uintptr_t first, uintptr_t last) {
    const std::vector<VariableMapping> all = stretches(first, last);
    if (all.empty() || !file.make_hidden(StaticVariables::offset_of(first) + (last - first))) return false;
    const int descriptor = file.name().descriptor;
    for (const VariableMapping& stretch : all)
        if (stretch.of_file ? !write_out(descriptor, stretch.first, stretch.last, first)
                            : !write_touched(descriptor, stretch, first))
            return false;
    void* place = reinterpret_cast<void*>(first);
    if (mmap(place, last - first, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, descriptor,
             static_cast<off_t>(StaticVariables::offset_of(first))) == MAP_FAILED)
        return false;
    madvise(place, last - first, MADV_HUGEPAGE);
    return true;
}

/// Returns whether the descriptor still refers to the file: a program may have closed a descriptor that it does not know.
bool is_there(const link::PagesName& name) {
    struct stat status;
    return fstat(name.descriptor, &status) == 0 && status.st_ino == name.inode;
}

/// Copies all pages that the file has into zeroed memory.
bool read_back(int file, std::byte* copy, uintptr_t first, uint64_t bytes) {
    const auto base = static_cast<off_t>(StaticVariables::offset_of(first)), end = base + static_cast<off_t>(bytes);
    for (off_t at = lseek(file, base, SEEK_DATA); at >= 0 && at < end; at = lseek(file, at, SEEK_DATA)) {
        const off_t hole = std::min(lseek(file, at, SEEK_HOLE), end);
        while (at < hole) {
            const ssize_t got = pread(file, copy + (at - base), static_cast<size_t>(hole - at), at);
            if (got <= 0) return false;
            at += got;
        }
    }
    return true;
}

}  // namespace

const StaticVariables& variables() { return the_shared.get().known; }

void share_variables() {
    Shared& shared = the_shared.get();
    if (shared.tried) return;
    shared.tried = true;
    dl_iterate_phdr(find_variables, &shared.known);
    const uintptr_t first = first_page(shared.known), last = last_page(shared.known);
    const auto own = reinterpret_cast<uintptr_t>(&the_shared);
    // A program that contains the library statically has the library's variables among its own, so they stay private.
    if (shared.known.bytes == 0 || !starling_shmem_near.forks || (own >= first && own < last) || !has_one_thread()) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (put_into_file(shared.file, first, last))
        shared.known.name = shared.file.name();
    else
        shared.file = link::Pages();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void publish_variables() {
    Shared& shared = the_shared.get();
    const link::PagesName& name = shared.known.name;
    if (shared.handed_over || !name.valid() || !job::is_closed_to_others()) return;
    shared.handed_over = job::deposit_descriptor(name.descriptor, name.inode);
}

extern "C" {

void starling_shmem_before_fork() {
    Shared& shared = the_shared.get();
    if (!shared.known.name.valid()) return;
    pthread_mutex_lock(&shared.forking);
    const uintptr_t first = first_page(shared.known);
    const uint64_t bytes = last_page(shared.known) - first;
    void* copy = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    shared.copy = copy == MAP_FAILED ? nullptr : static_cast<std::byte*>(copy);
    if (!shared.copy) return;
    if (!is_there(shared.known.name) || !read_back(shared.known.name.descriptor, shared.copy, first, bytes))
        std::copy_n(reinterpret_cast<const std::byte*>(first), bytes, shared.copy);
}

void starling_shmem_after_fork(bool child) {
    Shared& shared = the_shared.get();
    if (!shared.known.name.valid()) return;
    const uintptr_t first = first_page(shared.known);
    const uint64_t bytes = last_page(shared.known) - first;
    if (!child) {
        if (shared.copy) munmap(shared.copy, bytes);
    } else {
        void* place = reinterpret_cast<void*>(first);
        const void* now = shared.copy ? mremap(shared.copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) : MAP_FAILED;
        // Maps the file privately: changes by the child stay in the child, but later changes by the parent may be seen by it.
        if (now == MAP_FAILED)
            now = mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED,
                       shared.known.name.descriptor, static_cast<off_t>(StaticVariables::offset_of(first)));
        // The child must not change the parent's variables, so it ends if it cannot map its own.
        if (now == MAP_FAILED) _exit(1);
        shared.known.name = {};
    }
    shared.copy = nullptr;
    pthread_mutex_unlock(&shared.forking);
}
}  // extern "C"

}  // namespace starling::shmem
