#include "rma/memory.h"

#include "base/delay.h"
#include "link/host_memory.h"
#include "link/job.h"

namespace starling::rma {

void* allocate(uint64_t bytes, uint64_t alignment) {
    const link::Process& me = link::self();
    return me.job ? link::allocate_exchanged(link::SegmentRegion(me.job->segment().region(me.rank)), bytes, alignment)
                  : nullptr;
}

bool free(void* memory) {
    delay_at("before memory is freed");
    return link::free_exchanged(memory);
}

}  // namespace starling::rma
