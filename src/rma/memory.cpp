#include "rma/memory.h"

#include "base/delay.h"
#include "link/job.h"
#include "transport/shm/shared_heap.h"

namespace starling::rma {

void* allocate(uint64_t bytes, uint64_t alignment) {
    const link::Process& me = link::self();
    return me.job ? shm::allocate_exchanged(shm::SegmentRegion(me.job->segment().region(me.rank)), bytes, alignment) : nullptr;
}

bool free(void* memory) {
    delay_at("before memory is freed");
    return shm::free_exchanged(memory);
}

}  // namespace starling::rma
