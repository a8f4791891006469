#include "transport/shm/shared_heap.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cerrno>

#include "base/heap.h"
#include "base/page_size.h"
#include "base/state.h"
#include "transport/shm/pages.h"
#include "transport/shm/path.h"

namespace starling::shm {

namespace {

/// Sizes from which freed memory is returned to the system, and from which huge pages are requested.
constexpr uint64_t kGiveBack = 1u << 20;

struct ExchangedHeap {
    Pages pages;
    Heap heap;
};
STARLING_STATE ExchangedHeap* exchanged = nullptr;

/// Returns the size of the heap: all memory of the machine, since untouched pages take none.
uint64_t room() {
    struct sysinfo info;
    uint64_t bytes = sysinfo(&info) == 0 ? uint64_t{info.totalram} * info.mem_unit : uint64_t{1} << 30;
    rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0) bytes = std::min<uint64_t>(bytes, limit.rlim_cur);
    // Limited address space must also hold the neighbors' heaps.
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        bytes = std::min<uint64_t>(bytes, std::max<uint64_t>(limit.rlim_cur / 1024, kGiveBack));
    return bytes / kPage * kPage;
}

void show(SegmentRegion own) {
    ExchangedMemory& shown = own.exchanged();
    shown.pid = exchanged->pages.name().pid;
    shown.descriptor = exchanged->pages.name().descriptor;
    shown.inode = exchanged->pages.name().inode;
    shown.base = reinterpret_cast<uint64_t>(exchanged->pages.data());
    shown.bytes = exchanged->heap.limit();
    shown.ready.store(1, std::memory_order_release);
}

bool make() {
    ExchangedHeap made;
    uint64_t bytes = room();
    if (bytes < kGiveBack) errno = EFBIG;  // only the limit of file sizes makes the heap so small
    // Retry with a quarter of the size, since there may be less address space than memory.
    while (bytes >= kGiveBack && !made.pages.make_hidden(bytes)) bytes = bytes / 4 / kPage * kPage;
    // The failure is not remembered: later there may be a free descriptor, or memory.
    if (bytes < kGiveBack) return false;
    made.heap = Heap(bytes);
    exchanged = new ExchangedHeap(std::move(made));
    return true;
}

/// Calls madvise on the whole pages of a block; `page` is their size.
void advise(std::byte* memory, uint64_t bytes, uint64_t page, int advice) {
    const auto at = reinterpret_cast<uintptr_t>(memory);
    const uintptr_t first = (at + page - 1) / page * page, last = (at + bytes) / page * page;
    if (first < last) madvise(memory + (first - at), last - first, advice);
}

}  // namespace

void* allocate_exchanged(SegmentRegion own, uint64_t bytes, uint64_t alignment) {
    if (alignment > kHugePage) {
        errno = EINVAL;
        return nullptr;
    }
    if (!exchanged && !make()) return nullptr;
    if (own.exchanged().ready.load(std::memory_order_relaxed) == 0) show(own);
    const uint64_t offset = exchanged->heap.allocate(bytes, alignment);
    if (offset == Heap::kNone) {
        errno = ENOMEM;
        return nullptr;
    }
    if (!exchanged->pages.show(exchanged->heap.high_water())) {
        exchanged->heap.free(offset);
        return nullptr;
    }
    std::byte* memory = exchanged->pages.data() + offset;
    if (bytes >= kHugePage) advise(memory, bytes, kHugePage, MADV_HUGEPAGE);
    return memory;
}

bool free_exchanged(void* memory) {
    if (!exchanged) return false;
    const auto offset = reinterpret_cast<uint64_t>(memory) - reinterpret_cast<uint64_t>(exchanged->pages.data());
    const uint64_t bytes = exchanged->heap.bytes_at(offset);
    if (bytes == 0) return false;
    if (bytes >= kGiveBack) advise(exchanged->pages.data() + offset, bytes, kPage, MADV_REMOVE);
    return exchanged->heap.free(offset);
}

bool ShmPath::show_exchanged(uint64_t bytes) {
    const ExchangedMemory& shown = region.exchanged();
    if (exchanged_.data()) return exchanged_.show(bytes);
    if (exchanged_refused_) return false;
    if (exchanged_.open({shown.pid, shown.descriptor, shown.inode}, shown.bytes, shown.bytes)) return exchanged_.show(bytes);
    // A lack of descriptors or memory may be temporary, so another attempt is allowed.
    exchanged_refused_ = errno != EMFILE && errno != ENFILE && errno != ENOMEM;
    return false;
}

}  // namespace starling::shm
