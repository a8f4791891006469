#include "plugins/verbs/buffers.h"

#include <sys/mman.h>

#include <cerrno>
#include <new>

namespace starling::verbs {

ibv_mr* enroll(ibv_pd* domain, void* memory, uint64_t bytes, int access, Problem& problem) {
    errno = 0;
    ibv_mr* registration = ibv_reg_mr(domain, memory, bytes, access);
    if (!registration) problem.describe_memory(ibv_get_device_name(domain->context->device), bytes, errno ? errno : EIO);
    return registration;
}

bool Buffers::make(ibv_pd* domain, uint32_t count, uint32_t bytes, Problem& problem) {
    const uint64_t total = uint64_t{count} * bytes;
    void* memory = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        problem.describe("no memory for %u buffers of %u bytes", count, bytes);
        return false;
    }
    memory_ = static_cast<std::byte*>(memory);
    count_ = count;
    bytes_ = bytes;
    registration_ = enroll(domain, memory, total, IBV_ACCESS_LOCAL_WRITE, problem);
    if (registration_) free_.reset(new (std::nothrow) uint32_t[count]);
    if (!free_) {
        drop();
        return false;
    }
    for (uint32_t i = count; i-- > 0;) put(i);
    return true;
}

void Buffers::drop() {
    if (registration_) ibv_dereg_mr(registration_);
    if (memory_) munmap(memory_, total());
    registration_ = nullptr;
    memory_ = nullptr;
    free_.reset();
    free_count_ = count_ = 0;
}

bool Buffers::allocate(uint32_t& index) {
    if (free_count_ == 0) return false;
    index = free_[--free_count_];
    return true;
}

}  // namespace starling::verbs
